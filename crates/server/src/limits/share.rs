//! How many things one caller does at the same time.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

#[derive(Debug, Default)]
pub(super) struct Count(AtomicU32);

/// One of the counted things. Dropping it ends the count.
#[derive(Debug)]
pub(super) struct Held(Arc<Count>, u32);

impl Count {
    /// One more, unless there are `most` already.
    pub(super) fn hold(self: &Arc<Self>, most: u32) -> Option<Held> {
        self.hold_many(1, most)
    }

    /// So many more, unless there would be more than `most`.
    pub(super) fn hold_many(self: &Arc<Self>, more: u32, most: u32) -> Option<Held> {
        let add = |count: u32| count.checked_add(more).filter(|count| *count <= most);
        let counted = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        counted.is_ok().then(|| Held(Arc::clone(self), more))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.0.fetch_sub(self.1, Ordering::Relaxed);
    }
}
