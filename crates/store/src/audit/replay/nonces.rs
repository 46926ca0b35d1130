//! Which stored requests cannot both have been accepted, since one was used again.

use std::{collections::HashMap, collections::hash_map::Entry, time::Duration};

use countersign_core::rules::auth::{VerifiedRequest, nonce_expiry, request_expiry};
use countersign_core::{documents::signed_request::Nonce, values::time::Timestamp};

use crate::audit::replay::violation::shift;

/// How long before a commit the requests are that are still remembered. A stored request is at most some hour older than
/// its commit. The rest is for clocks that were set back.
pub(crate) const REMEMBERED: Duration = Duration::from_secs(24 * 60 * 60);
/// The number of nonces below which nothing is forgotten.
pub const FEW: usize = 10_000;

/// The nonces that a server would know (D31), for as long as a later commit can hold the same request.
#[derive(Debug, Default)]
pub struct SeenNonces {
    pub seen: HashMap<Nonce, Vec<SeenRequest>>,
    /// How many there are, and how many there may be before the old ones are looked for.
    pub count: usize,
    most: usize,
    /// Nonces that count only if the change that is being tried is made.
    tried: Option<Vec<Nonce>>,
}

#[derive(Debug, Clone, Copy)]
pub struct SeenRequest {
    request: VerifiedRequest,
    /// The time of the commit that stored the request.
    committed: Timestamp,
}

impl SeenNonces {
    /// Whether the request, stored by a commit of this time, may have been accepted after those before it.
    pub fn accept(&mut self, request: VerifiedRequest, committed: Timestamp) -> bool {
        self.forget(committed);
        let seen = self.seen.entry(request.nonce).or_default();
        let is_new = !seen.iter().any(|earlier| earlier.excludes(&request));
        seen.push(SeenRequest { request, committed });
        self.count += 1;
        if let Some(tried) = &mut self.tried {
            tried.push(request.nonce);
        }
        is_new
    }

    /// Begins a trial: requests from now on can be taken back. Returns how many there are to take back.
    pub fn begin_trial(&mut self) -> usize {
        self.tried.get_or_insert_default().len()
    }

    /// Takes back all requests but so many.
    pub fn take_back(&mut self, kept: usize) {
        let Some(tried) = &mut self.tried else { return };
        for nonce in tried.drain(kept.min(tried.len())..).rev() {
            if let Entry::Occupied(mut seen) = self.seen.entry(nonce) {
                self.count -= usize::from(seen.get_mut().pop().is_some());
                if seen.get().is_empty() {
                    seen.remove();
                }
            }
        }
    }

    /// Ends a trial whose change is made: its requests stay.
    pub fn end_trial(&mut self) {
        self.tried = None;
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

impl SeenRequest {
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
