use super::entry::JournalEntry;
use crate::{error::StoreError, log::Log};
use gix::ObjectId;
#[derive(Debug)]
pub struct Export;
impl Export {
    pub fn new(
        _log: &std::sync::Arc<Log>,
        _after: Option<ObjectId>,
        _tip: ObjectId,
    ) -> Result<Self, StoreError> {
        Ok(Self)
    }
}
impl Iterator for Export {
    type Item = Result<JournalEntry, StoreError>;
    fn next(&mut self) -> Option<Self::Item> {
        None
    }
}
