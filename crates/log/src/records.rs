//! The records of the status map, on disk in the order of their leaves. A file that has grown by replaced records is
//! written anew without them (D271).

use std::io::{BufReader, Read as _, Seek as _, SeekFrom};
use std::{collections::HashMap, fs::File, path::Path};

use countersign_core::log::{record::Record, status::Statuses, trie::TrieKey};
use countersign_core::values::bounds::REPLACED_RECORDS;
use countersign_store::{ChangedFile, Disk, machine::disk};

use crate::error::LogError;

/// A record in the file: the leaf that it came with, its length, and its text.
const RECORD_HEAD: usize = 8 + 2;
/// How many bytes are written at a time when the file is written anew.
const PART_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct RecordFile {
    disk: Disk,
    /// While the file is written anew, until it is in its place, its path is another one.
    file: ChangedFile,
    written: Extent,
    /// How many records were needed when the file was loaded or written anew.
    needed: u64,
    /// The records that are not written yet, each with the number of its leaf.
    new: Vec<(u64, Record)>,
    kept: KeptRecords,
}

/// Which records are written, of those with one key that wait together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeptRecords {
    /// The newest: checkpoints are made when nothing waits.
    Newest,
    /// All of them: a checkpoint of another server can be of any size.
    All,
}

#[derive(Debug, Clone, Copy, Default)]
struct Extent {
    bytes: u64,
    records: u64,
}

/// The maps of the checkpoints that can be asked for again, the newest last.
pub(crate) type KeptMaps = Vec<(u64, Statuses)>;

impl RecordFile {
    pub(crate) fn open(disk: &Disk, dir: &Path, kept: KeptRecords) -> Result<Self, LogError> {
        let path = dir.join("records");
        // A crash may have left a copy that never took the place of the file.
        disk::remove(&path.with_extension("new")).map_err(LogError::cache(&path))?;
        let file = disk.open_changed(&path).map_err(LogError::cache(&path))?;
        let (disk, written, needed, new) = (disk.clone(), Extent::default(), 0, Vec::new());
        Ok(Self { disk, file, written, needed, new, kept })
    }

    /// How many records wait to be written.
    pub(crate) fn waiting(&self) -> usize {
        self.new.len()
    }

    pub(crate) fn push(&mut self, leaf: u64, records: Vec<Record>) {
        self.new.extend(records.into_iter().map(|record| (leaf, record)));
    }

    /// Writes what waits. After a failure everything is written again, at the same place.
    pub(crate) fn write(&mut self) -> Result<(), LogError> {
        if self.kept == KeptRecords::Newest {
            let numbers = self.new.iter().enumerate().map(|(number, (_, record))| (record.key(), number));
            let newest: HashMap<TrieKey, usize> = numbers.collect();
            let mut number = 0..;
            self.new.retain(|(_, record)| newest.get(&record.key()).copied() == number.next());
        }
        let mut bytes = Vec::new();
        self.new.iter().for_each(|(leaf, record)| write_record(*leaf, &record.text(), &mut bytes));
        let written = self.file.write_at(&bytes, self.written.bytes);
        written.map_err(LogError::cache(self.file.path()))?;
        self.written.bytes += bytes.len() as u64;
        self.written.records += self.new.len() as u64;
        self.new.clear();
        Ok(())
    }

    pub(crate) fn sync(&mut self) -> Result<(), LogError> {
        self.file.sync().map_err(LogError::cache(self.file.path()))?;
        self.settle()
    }

    pub(crate) fn clear(&mut self) -> Result<(), LogError> {
        self.new.clear();
        self.needed = 0;
        self.cut(Extent::default())
    }

    fn cut(&mut self, extent: Extent) -> Result<(), LogError> {
        self.file.set_length(extent.bytes).map_err(LogError::cache(self.file.path()))?;
        self.written = extent;
        Ok(())
    }

    /// Reads the map of the first `size` leaves, and the one of the first `earlier` if that is asked for. What follows
    /// counts for nothing and is cut off. A torn tail looks the same as damage; the root tells them apart.
    pub(crate) fn load(
        &mut self,
        size: u64,
        earlier: Option<u64>,
    ) -> Result<(Option<Statuses>, Statuses), LogError> {
        let mut reader = self.read(u64::MAX)?;
        let mut later = Vec::new();
        let first = std::iter::from_fn(|| {
            loop {
                let (leaf, _, record) = reader.next_before(size)?;
                match earlier {
                    Some(earlier) if leaf >= earlier => later.push(record),
                    Some(_) | None => return Some(record),
                }
            }
        });
        let first = Statuses::of_records(first);
        let extent = reader.extent;
        let last = later.iter().fold(first.clone(), |statuses, record| statuses.insert_record(record));
        self.cut(extent)?;
        self.needed = last.count();
        Ok((earlier.map(|_| first), last))
    }

    /// Whether there are so many replaced records that the file should be written anew.
    pub(crate) fn has_grown(&self) -> bool {
        self.written.records > 2 * self.needed + REPLACED_RECORDS as u64
    }

    /// Writes the file anew with what the maps need, and with everything that came after the newest of them. The new
    /// file takes the place of the old one when it is whole: a crash leaves one or the other, and each gives all of
    /// these maps.
    pub(crate) fn compact(&mut self, maps: &KeptMaps) -> Result<(), LogError> {
        let written = self.write_anew(maps);
        let Err(error @ LogError::Cache { .. }) = written else { return written };
        // Nothing that is signed needs it, and the disk may be full. It is tried again when there is as much again.
        tracing::warn!(%error, "the log's records cannot be compacted: the file stays as it is for now");
        let unfinished = self.file.path().with_extension("new");
        if unfinished != self.file.path() {
            let _ = disk::remove(&unfinished);
        }
        self.needed = self.written.records;
        Ok(())
    }

    fn write_anew(&mut self, maps: &KeptMaps) -> Result<(), LogError> {
        let newest = maps.iter().map(|(size, _)| *size).max().unwrap_or(0);
        let path = self.file.path().with_extension("new");
        let fresh = self.disk.open_changed(&path).map_err(LogError::cache(&path))?;
        fresh.set_length(0).map_err(LogError::cache(&path))?;
        let mut reader = self.read(self.written.bytes)?;
        let (mut extent, mut part) = (Extent::default(), Vec::with_capacity(PART_BYTES));
        let append = |part: &mut Vec<u8>, extent: &mut Extent| {
            fresh.write_at(part, extent.bytes).map_err(LogError::cache(&path))?;
            extent.bytes += part.len() as u64;
            part.clear();
            Ok::<_, LogError>(())
        };
        while let Some((leaf, text, record)) = reader.next_before(u64::MAX) {
            let of_map = record.leaf();
            if leaf >= newest || maps.iter().rev().any(|(size, map)| leaf < *size && map.holds(&of_map)) {
                write_record(leaf, &text, &mut part);
                extent.records += 1;
            }
            if part.len() >= PART_BYTES {
                append(&mut part, &mut extent)?;
            }
        }
        append(&mut part, &mut extent)?;
        if reader.extent.bytes != self.written.bytes {
            return Err(LogError::Miscounted("file of records"));
        }
        fresh.sync().map_err(LogError::cache(&path))?;
        let before = std::mem::replace(&mut self.written, extent);
        (self.file, self.needed) = (fresh, extent.records);
        self.settle()?;
        tracing::debug!(before = before.records, after = extent.records, "the log's records were compacted");
        Ok(())
    }

    /// Puts a file that was written anew in its place. Until that is durable, no checkpoint relies on it.
    fn settle(&mut self) -> Result<(), LogError> {
        let path = self.file.path().with_extension("");
        self.file.take_place(&path).map_err(LogError::cache(&path))
    }

    /// Reads at most so many bytes from the beginning.
    fn read(&self, bytes: u64) -> Result<RecordReader<'_>, LogError> {
        let mut file: &File = self.file.file();
        file.seek(SeekFrom::Start(0)).map_err(LogError::cache(self.file.path()))?;
        let reader = BufReader::with_capacity(1 << 20, file.take(bytes));
        Ok(RecordReader { reader, extent: Extent::default() })
    }
}

fn write_record(leaf: u64, text: &str, out: &mut Vec<u8>) {
    // A record names at most nine paths, which are bounded.
    let length = u16::try_from(text.len()).expect("records have less than 64 KiB");
    out.extend_from_slice(&leaf.to_be_bytes());
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

struct RecordReader<'a> {
    reader: BufReader<std::io::Take<&'a File>>,
    /// How much it has read.
    extent: Extent,
}

impl RecordReader<'_> {
    /// The next record of the log's first `size` leaves with its text, if there is one and it can be read.
    fn next_before(&mut self, size: u64) -> Option<(u64, String, Record)> {
        let mut head = [0; RECORD_HEAD];
        self.reader.read_exact(&mut head).ok()?;
        let [leaf @ .., high, low] = head;
        let leaf = Some(u64::from_be_bytes(leaf)).filter(|leaf| *leaf < size)?;
        let mut text = vec![0; usize::from(u16::from_be_bytes([high, low]))];
        self.reader.read_exact(&mut text).ok()?;
        let text = String::from_utf8(text).ok()?;
        let record = Record::parse(&text).ok()?;
        self.extent.bytes += (RECORD_HEAD + text.len()) as u64;
        self.extent.records += 1;
        Some((leaf, text, record))
    }
}
