//! The state that the commits of a log give (D214): the status map, derived from the journal alone, and kept in a file
//! between two looks. All of it can be deleted; the journal gives it again.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead as _, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::{fs::File, fs::OpenOptions, io, os::unix::fs::OpenOptionsExt as _, path::Path, path::PathBuf};

use countersign_core::documents::{layout, layout::Signable};
use countersign_core::log::status::{StatusError, Statuses};
use countersign_core::log::{record::Record, tree::Hash, trie::TrieKey};
use countersign_core::values::{digest::Sha512, path::RepoPath};
use countersign_core::{json_fields, rules::snapshot::Change};
use serde::Serialize;

use crate::words::error::CliError;

/// How much of the file counts, and the root of the map that it gives. What follows a crash has left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct ReplayMark {
    bytes: u64,
    #[serde(serialize_with = "write_hash")]
    state: Hash,
}

#[derive(Debug)]
pub(super) struct StateReplay {
    file: PathBuf,
    written: u64,
    statuses: Statuses,
    /// The digest of every index, whether it is complete or not.
    digests: HashMap<RepoPath, Sha512>,
    /// The newest record of each key that is not in the file yet.
    new_records: HashMap<TrieKey, Record>,
    new_digests: BTreeMap<RepoPath, Option<Sha512>>,
}

/// A line of the file.
enum Kept {
    Record(Record),
    Index(RepoPath, Option<Sha512>),
}

json_fields!(object ReplayMark { state: text(|text| Hash::parse(text).ok_or("must be a hash")), bytes });

impl StateReplay {
    /// Begins before the first commit.
    pub(super) fn begin(file: &Path) -> Self {
        Self {
            file: file.to_owned(),
            written: 0,
            statuses: Statuses::default(),
            digests: HashMap::new(),
            new_records: HashMap::new(),
            new_digests: BTreeMap::new(),
        }
    }

    /// Reads the replay from its file. Returns `None` if the file is missing or does not fit its mark; then everything
    /// is derived again.
    pub(super) fn load(file: &Path, mark: &ReplayMark) -> Result<Option<Self>, CliError> {
        let mut replay = Self { written: mark.bytes, ..Self::begin(file) };
        let mut is_whole = true;
        let mut digests = HashMap::new();
        let mut lines = match replay.lines() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            lines => lines.map_err(|error| CliError::file("read", file, error))?,
        };
        let records = std::iter::from_fn(|| {
            loop {
                match lines.next()? {
                    Some(Kept::Record(record)) => return Some(record),
                    Some(Kept::Index(path, Some(digest))) => drop(digests.insert(path, digest)),
                    Some(Kept::Index(path, None)) => drop(digests.remove(&path)),
                    None => {
                        is_whole = false;
                        return None;
                    }
                }
            }
        });
        replay.statuses = Statuses::of_records(records);
        replay.digests = digests;
        Ok((is_whole && replay.statuses.root() == mark.state).then_some(replay))
    }

    /// Whether the replay is what the file had at this mark, and nothing more.
    pub(super) fn is_at(&self, mark: &ReplayMark) -> bool {
        let has_new = !self.new_records.is_empty() || !self.new_digests.is_empty();
        !has_new && self.written == mark.bytes && self.statuses.root() == mark.state
    }

    pub(super) fn statuses(&self) -> &Statuses {
        &self.statuses
    }

    /// Goes on to the state after a commit if that has this root. Returns whether it has.
    pub(super) fn advance(&mut self, change: &Change, root: Hash) -> Result<bool, StatusError> {
        let (statuses, records) =
            self.statuses.apply_digests(change, |index| self.digests.get(index).copied())?;
        if statuses.root() != root {
            return Ok(false);
        }
        self.statuses = statuses;
        self.new_records.extend(records.into_iter().map(|record| (record.key(), record)));
        for (path, content) in &change.files {
            if layout::signable(path) != Some(Signable::Index) {
                continue;
            }
            let digest = content.as_deref().map(Sha512::of);
            match digest {
                Some(digest) => drop(self.digests.insert(path.clone(), digest)),
                None => drop(self.digests.remove(path)),
            }
            self.new_digests.insert(path.clone(), digest);
        }
        Ok(true)
    }

    /// Writes what is new. Only the mark makes it count.
    pub(super) fn save(&mut self) -> Result<ReplayMark, CliError> {
        self.written = self.append().map_err(|error| CliError::file("written", &self.file, error))?;
        self.new_records.clear();
        self.new_digests.clear();
        Ok(ReplayMark { bytes: self.written, state: self.statuses.root() })
    }

    /// The newest records of these keys.
    pub(super) fn find_records(
        &self,
        keys: impl IntoIterator<Item = TrieKey>,
    ) -> Result<HashMap<TrieKey, Record>, CliError> {
        let mut found = HashMap::new();
        let mut missing: HashMap<TrieKey, Option<Record>> = HashMap::new();
        for key in keys {
            match self.new_records.get(&key) {
                Some(record) => drop(found.insert(key, record.clone())),
                None => drop(missing.insert(key, None)),
            }
        }
        if !missing.is_empty() && self.written > 0 {
            let lines = self.lines().map_err(|error| CliError::file("read", &self.file, error))?;
            for kept in lines {
                if let Some(Kept::Record(record)) = kept
                    && let Some(slot) = missing.get_mut(&record.key())
                {
                    *slot = Some(record);
                }
            }
        }
        found.extend(missing.into_iter().filter_map(|(key, record)| Some((key, record?))));
        Ok(found)
    }

    /// What the file says, as far as it counts; `None` for a line that cannot be read.
    fn lines(&self) -> io::Result<impl Iterator<Item = Option<Kept>> + use<>> {
        let reader = BufReader::with_capacity(1 << 20, File::open(&self.file)?.take(self.written));
        Ok(reader.split(b'\n').map(|line| line.ok().and_then(|line| Kept::parse(&line))))
    }

    fn append(&self) -> io::Result<u64> {
        let mut file =
            OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&self.file)?;
        file.set_len(self.written)?;
        file.seek(SeekFrom::Start(self.written))?;
        let mut writer = BufWriter::with_capacity(1 << 20, file);
        for record in self.new_records.values() {
            serde_json::to_writer(&mut writer, &["record", &record.text()])?;
            writer.write_all(b"\n")?;
        }
        for (path, digest) in &self.new_digests {
            match digest {
                Some(digest) => {
                    serde_json::to_writer(&mut writer, &["index", path.as_str(), &digest.to_string()])?;
                }
                None => serde_json::to_writer(&mut writer, &["index", path.as_str()])?,
            }
            writer.write_all(b"\n")?;
        }
        let mut file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_data()?;
        file.stream_position()
    }
}

impl Kept {
    fn parse(line: &[u8]) -> Option<Self> {
        let words: Vec<String> = serde_json::from_slice(line).ok()?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Some(match words.as_slice() {
            ["record", text] => Self::Record(Record::parse(text).ok()?),
            ["index", path] => Self::Index(RepoPath::parse(path).ok()?, None),
            ["index", path, digest] => Self::Index(RepoPath::parse(path).ok()?, Some(Sha512::parse(digest)?)),
            [..] => return None,
        })
    }
}

fn write_hash<S: serde::Serializer>(hash: &Hash, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(hash)
}
