use super::entry::JournalEntry;
pub fn write_entry(_entry: &JournalEntry, _to: &mut Vec<u8>) {}
