//! An open pack, and what lies in it as it is.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use gix::{
    ObjectId,
    hash::Kind as HashKind,
    odb::pack::{
        self,
        data::{decode::header::ResolvedBase, entry::Header},
    },
    zlib::Inflate,
};

use crate::{
    disk::{DiskError, list_dir},
    error::StoreError,
    objects::{filter::Filter, spot::Known, stored},
};

pub struct Pack {
    /// A number that this process gives to each pack that it opens, and to no other one.
    pub(crate) number: u64,
    /// The file without `.pack` or `.idx`.
    pub(crate) stem: PathBuf,
    pub bundle: pack::Bundle,
    filter: Filter,
}

impl Pack {
    pub fn open(stem: PathBuf) -> Result<Self, StoreError> {
        static OPENED: AtomicU64 = AtomicU64::new(0);
        let index = stem.with_extension("idx");
        let bundle = pack::Bundle::at(&index, HashKind::Sha1)
            .map_err(|error| StoreError::corrupt(index.display(), error))?;
        let ids = (0..bundle.index.num_objects()).map(|at| bundle.index.oid_at_index(at));
        let filter = Filter::of(bundle.index.num_objects() as usize, ids);
        Ok(Self { number: OPENED.fetch_add(1, Ordering::Relaxed), stem, bundle, filter })
    }

    /// Bounds what is read from the pack: nothing larger than `max_bytes`.
    pub(crate) fn bounded(mut self, max_bytes: usize) -> Self {
        self.bundle.pack = self.bundle.pack.with_alloc_limit_bytes(Some(max_bytes));
        self
    }

    /// The position of an object in the pack's index.
    pub(crate) fn find(&self, id: &ObjectId) -> Option<u32> {
        if self.filter.may_contain(id) { self.bundle.index.lookup(id) } else { None }
    }

    /// What there is to note about an object, by where in the index it is.
    pub(crate) fn known(&self, at: u32) -> Known {
        Known::At { pack: self.number, offset: self.bundle.index.pack_offset_at_index(at) }
    }

    /// How large an object is, by its position in the index. Reads the beginning of it alone.
    pub(crate) fn size(&self, at: u32, inflate: &mut Inflate) -> Result<u64, gix::Error> {
        let pack::Bundle { index, pack } = &self.bundle;
        let entry = pack.entry(index.pack_offset_at_index(at))?;
        let base = |id: &gix::oid| {
            let offset = index.lookup(id).map(|at| index.pack_offset_at_index(at));
            let entry = offset.map(|offset| pack.entry(offset)).transpose()?;
            Ok::<_, gix::Error>(entry.map(ResolvedBase::InPack))
        };
        Ok(pack.decode_header(entry, inflate, &base)?.object_size)
    }

    /// The content of a blob that lies at this offset as it is.
    pub(crate) fn stored(&self, offset: u64) -> Option<&[u8]> {
        let entry = self.bundle.pack.entry(offset).ok()?;
        let bytes =
            usize::try_from(entry.decompressed_size).ok().filter(|bytes| *bytes <= stored::MAX_BYTES)?;
        let stream_end = entry.data_offset + stored::encoded_len(bytes) as u64;
        let content = stored::content(self.bundle.pack.entry_slice(entry.data_offset..stream_end)?)?;
        (entry.header == Header::Blob && content.len() == bytes).then_some(content)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bundle.pack.data_len() as u64
    }
}

impl fmt::Debug for Pack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pack").field(&self.stem).finish()
    }
}

/// The packs in a directory, without their endings.
pub(crate) fn list_packs(dir: &Path) -> Result<Vec<PathBuf>, DiskError> {
    let indexes =
        list_dir(dir)?.into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "idx"));
    Ok(indexes.map(|path| path.with_extension("")).collect())
}
