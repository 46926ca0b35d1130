//! Chains that are kept to be sent again.

use axum::body::Bytes;
use countersign_server::known_chains::{KnownChain, KnownChains, MAX_BYTES};
use countersign_store::ObjectId;

fn id(n: u64) -> ObjectId {
    let mut bytes = [0; 20];
    bytes[..8].copy_from_slice(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    ObjectId::from_bytes_or_panic(&bytes)
}

#[test]
fn they_take_no_more_than_their_bound() {
    for (count, text, entries) in [(100_000, 200, 1), (600, 64 << 10, 64)] {
        let chains = KnownChains::default();
        for n in 0..count {
            let later = (1..entries).map(id).collect();
            chains.remember(id(n), KnownChain { first: id(0), later, text: Bytes::from(vec![b'x'; text]) });
        }
        let bytes = chains.bytes();
        assert!((MAX_BYTES / 2..=MAX_BYTES).contains(&bytes), "{bytes}");
    }
}
