//! How many things one caller does at the same time.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

#[derive(Debug, Default)]
pub(super) struct Count(AtomicU32);

/// Some of the counted things. Dropping it gives them back.
#[derive(Debug)]
pub struct Share(Arc<Count>, u32);

impl Count {
    /// So many more, unless there would be more than `most`.
    pub(super) fn hold(self: &Arc<Self>, more: u32, most: u32) -> Option<Share> {
        let add = |count: u32| count.checked_add(more).filter(|count| *count <= most);
        let counted = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        counted.is_ok().then(|| Share(Arc::clone(self), more))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.0.0.fetch_sub(self.1, Ordering::Relaxed);
    }
}
