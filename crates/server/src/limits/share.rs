//! How many things go on at the same time for one caller.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

#[derive(Debug, Default)]
pub(super) struct Count(AtomicU32);

/// One of those that are counted, for as long as it lives.
#[derive(Debug)]
pub(super) struct Held(Arc<Count>);

impl Count {
    /// One more, unless there are `most` already.
    pub(super) fn hold(self: &Arc<Self>, most: u32) -> Option<Held> {
        let one_more = |count| (count < most).then_some(count + 1);
        let counted = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        counted.is_ok().then(|| Held(Arc::clone(self)))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
