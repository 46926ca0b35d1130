//! The store together with the lock of its data directory.

use std::ops::Deref;

use countersign_store::{Store, data_dir::DataDir};

#[derive(Debug)]
pub struct HeldStore {
    store: Store,
    /// Dropped last: the lock holds until the store has stopped writing.
    _data_dir: DataDir,
}

impl HeldStore {
    pub fn new(store: Store, data_dir: DataDir) -> Self {
        Self { store, _data_dir: data_dir }
    }
}

impl Deref for HeldStore {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}
