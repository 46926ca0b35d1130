//! The store together with the lock of its data directory.

use std::ops::Deref;

use countersign_store::{Store, data_dir::DataDir};

#[derive(Debug)]
pub struct HeldStore {
    pub store: Store,
    /// Dropped last: the lock holds until the store has stopped writing.
    pub data_dir: DataDir,
}

impl Deref for HeldStore {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}
