//! The journal in batches, as nodes share them.

use super::{export::JournalExport, write::JournalWriter};
use crate::{
    error::StoreError,
    sequence::{BATCH_BYTES, BATCH_COMMITS, SharedBatch},
};

use gix::ObjectId;

/// The rest of an export. Ends after an error.
#[derive(Debug)]
pub struct JournalBatches<F> {
    export: Option<JournalExport>,
    base: Option<ObjectId>,
    is_end: F,
}

impl<F: Fn(&ObjectId) -> bool> JournalBatches<F> {
    /// Batches of an export that begins after the commit `base`. A batch ends where `is_end` says so, at the latest.
    pub fn new(export: JournalExport, base: Option<ObjectId>, is_end: F) -> Self {
        Self { export: Some(export), base, is_end }
    }

    fn read(&mut self) -> Result<Option<SharedBatch>, StoreError> {
        let Some(export) = &mut self.export else { return Ok(None) };
        let (mut writer, mut body, mut commits, mut head) = (JournalWriter::default(), Vec::new(), 0, None);
        while body.len() < BATCH_BYTES
            && commits < BATCH_COMMITS
            && head.is_none_or(|head| !(self.is_end)(&head))
            && let Some(entry) = export.next_entry()?
        {
            writer.write(&entry, &mut body);
            commits += 1;
            head = Some(entry.id);
        }
        let base = self.base;
        self.base = head.or(base);
        Ok(head.map(|head| SharedBatch { base, head, commits, body: body.into() }))
    }
}

impl<F: Fn(&ObjectId) -> bool> Iterator for JournalBatches<F> {
    type Item = Result<SharedBatch, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = self.read().transpose();
        if !matches!(read, Some(Ok(_))) {
            self.export = None;
        }
        read
    }
}
