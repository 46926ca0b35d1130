//! Objects that are in no pack yet.

use std::{
    collections::HashMap,
    mem,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use bytes::Bytes;
use gix::{ObjectId, objs::Kind};

use crate::objects::pack::PackObject;

#[derive(Debug, Default)]
pub(super) struct Unpacked {
    /// Blobs of changes that are decided and not yet published: only the writer's own head names them.
    staged: RwLock<HashMap<ObjectId, Arc<[u8]>>>,
    /// Objects that are published, and will be in the next pack: a node writes them to disk in groups.
    held: RwLock<HashMap<ObjectId, (Kind, Bytes)>>,
}

impl Unpacked {
    pub(super) fn stage(&self, id: ObjectId, blob: Arc<[u8]>) {
        write(&self.staged).insert(id, blob);
    }

    pub(super) fn staged(&self, id: &ObjectId) -> Option<Arc<[u8]>> {
        read(&self.staged).get(id).cloned()
    }

    /// The staged blobs, of which none is left here.
    pub(super) fn take_staged(&self) -> HashMap<ObjectId, Arc<[u8]>> {
        mem::take(&mut *write(&self.staged))
    }

    pub(super) fn hold(&self, objects: &[PackObject]) {
        let held = objects.iter().map(|object| (object.id, (object.kind, object.data.clone())));
        write(&self.held).extend(held);
    }

    pub(super) fn held(&self, id: &ObjectId) -> Option<(Kind, Bytes)> {
        read(&self.held).get(id).cloned()
    }

    /// Holds nothing any more. What was held is in a pack, or gone.
    pub(super) fn release(&self) {
        *write(&self.held) = HashMap::default();
    }
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
