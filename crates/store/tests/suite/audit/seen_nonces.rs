//! Which stored requests cannot both have been accepted.

use countersign_core::values::{key::SecretKey, key::Signature, time::Timestamp};
use countersign_core::{documents::signed_request::Nonce, rules::auth::VerifiedRequest};
use countersign_store::audit::replay::violation::{FEW, SeenNonces};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix_seconds(1_800_000_000 + seconds).unwrap()
}

fn request(nonce: u32, seconds: i64) -> VerifiedRequest {
    let mut bytes = [0; 64];
    bytes[..8].copy_from_slice(&seconds.to_be_bytes());
    let mut id = [0; 16];
    id[..4].copy_from_slice(&nonce.to_be_bytes());
    VerifiedRequest {
        public_key: SecretKey::from_seed(&[7; 32]).public_key(),
        signature: Signature::from_bytes(bytes),
        nonce: Nonce(id),
        timestamp: at(seconds),
    }
}

#[test]
fn the_same_request_counts_once_even_where_its_clock_was_ahead() {
    for lead in [-300, 0, 9] {
        let mut nonces = SeenNonces::default();
        assert!(nonces.accept(request(1, lead), at(0)));
        assert!(!nonces.accept(request(1, lead), at(60)));
        assert!(nonces.accept(request(2, lead), at(60)));
    }
}

#[test]
fn a_nonce_is_new_again_when_a_server_has_forgotten_it() {
    // The first is remembered for seven minutes; the second is accepted for six.
    for (seconds, is_new) in [(-61, true), (-60, false), (30, false), (60, false), (61, true), (3_600, true)]
    {
        let mut nonces = SeenNonces::default();
        assert!(nonces.accept(request(1, 0), at(100)));
        assert_eq!(nonces.accept(request(1, seconds), at(200)), is_new, "{seconds}");
    }
}

#[test]
fn a_server_that_was_restored_from_a_clone_knows_no_nonces() {
    let mut nonces = SeenNonces::default();
    assert!(nonces.accept(request(1, 0), at(1)));
    assert!(nonces.accept(request(1, 5), at(6)), "dated after the commit of the first");
    assert!(!nonces.accept(request(1, 4), at(7)), "dated before the commit of the second");
}

#[test]
fn what_no_later_commit_can_hold_is_forgotten() {
    let mut nonces = SeenNonces::default();
    for number in 0..100_000 {
        let seconds = i64::from(number) * 60;
        assert!(nonces.accept(request(number, seconds), at(seconds)));
    }
    assert!(nonces.count <= 2 * FEW && nonces.seen.len() <= 2 * FEW, "{}", nonces.count);
    assert!(!nonces.accept(request(99_990, 99_990 * 60), at(100_000 * 60)));
}
