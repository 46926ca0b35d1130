//! Which stored requests cannot both have been accepted, since one was used again.

use std::{collections::HashMap, time::Duration};

use super::times::shift;
use countersign_core::{
    rules::auth::{VerifiedRequest, nonce_expiry, request_expiry},
    values::{nonce::Nonce, time::Timestamp},
};

/// How long before a commit the requests are that are still remembered. A stored request is at most some hour older than
/// its commit. The rest is for clocks that were set back.
const REMEMBERED: Duration = Duration::from_secs(24 * 60 * 60);
/// Below this number, nothing is forgotten.
const FEW: usize = 10_000;

/// As much as a server knows (D31), for as long as a later commit can hold the same request.
#[derive(Debug, Default)]
pub(crate) struct SeenNonces {
    seen: HashMap<Nonce, Vec<Seen>>,
    /// How many there are, and how many there may be before the old ones are looked for.
    count: usize,
    most: usize,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    request: VerifiedRequest,
    /// When the commit was made that stored it.
    committed: Timestamp,
}

impl SeenNonces {
    /// Whether the request, stored by a commit of this time, may have been accepted after those before it.
    pub(crate) fn accept(&mut self, request: VerifiedRequest, committed: Timestamp) -> bool {
        self.forget(committed);
        let seen = self.seen.entry(request.nonce).or_default();
        let is_new = !seen.iter().any(|earlier| earlier.excludes(&request));
        seen.push(Seen { request, committed });
        self.count += 1;
        is_new
    }

    fn forget(&mut self, now: Timestamp) {
        if self.count < self.most.max(FEW) {
            return;
        }
        let oldest = shift(now, -i64::try_from(REMEMBERED.as_secs()).expect("a day fits"));
        self.seen.retain(|_, seen| {
            seen.retain(|seen| seen.request.timestamp >= oldest);
            !seen.is_empty()
        });
        self.count = self.seen.values().map(Vec::len).sum();
        self.most = 2 * self.count;
    }
}

impl Seen {
    /// A server that was restored from a clone has no nonces, and accepts what is dated after its start: then it has
    /// this commit already. But the same request is the same one for any server.
    fn excludes(&self, later: &VerifiedRequest) -> bool {
        let is_same = self.request.signature == later.signature;
        excludes(&self.request, later) && (is_same || later.timestamp < self.committed)
    }
}

/// Whether a server that remembers the nonce of one of these two cannot accept the other, where it is the same nonce: the
/// first one is remembered until the other is too old.
fn excludes(one: &VerifiedRequest, other: &VerifiedRequest) -> bool {
    let outlasts = |first: Timestamp, second: Timestamp| request_expiry(second) <= nonce_expiry(first);
    outlasts(one.timestamp, other.timestamp) && outlasts(other.timestamp, one.timestamp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use countersign_core::values::key::{SecretKey, Signature};

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
        for (seconds, is_new) in
            [(-61, true), (-60, false), (30, false), (60, false), (61, true), (3_600, true)]
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
}
