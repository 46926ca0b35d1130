//! The state that the commits of a log give (D214): the status map, derived from the journal alone, and kept in a file
//! between two looks. All of it can be deleted; the journal gives it again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{BufRead as _, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::{fs::File, fs::OpenOptions, io, os::unix::fs::OpenOptionsExt as _, path::Path, path::PathBuf};

use countersign_core::documents::{layout, layout::Signable};
use countersign_core::log::status::{StatusError, Statuses};
use countersign_core::log::{record::Record, tree::Hash, trie::TrieKey};
use countersign_core::values::{bounds::REPLACED_RECORDS, digest::Sha256, digest::Sha512, path::RepoPath};
use countersign_core::{json_fields, rules::snapshot::Change};
use serde::Serialize;

use crate::words::error::{CliError, add_suffix};

/// How much of the file counts, and the root of the map that it gives. What follows a crash has left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct ReplayMark {
    /// Counts the files: one that has grown too much is written anew under another name.
    file: u64,
    bytes: u64,
    #[serde(serialize_with = "write_hash")]
    digest: Sha256,
    #[serde(serialize_with = "write_hash")]
    state: Hash,
}

#[derive(Debug)]
pub(super) struct StateReplay {
    /// The name of the first file.
    name: PathBuf,
    written: Written,
    /// How many lines were needed when the file was loaded or written anew.
    needed: u64,
    statuses: Statuses,
    /// The digest of every index, whether it is complete or not.
    digests: HashMap<RepoPath, Sha512>,
    /// The newest record of each key that is not in the file yet.
    new_records: HashMap<TrieKey, Record>,
    new_digests: BTreeMap<RepoPath, Option<Sha512>>,
}

/// What was written to which file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Written {
    file: u64,
    bytes: u64,
    lines: u64,
    /// The digest of all lines: each line is hashed with the digest of those before it.
    digest: Sha256,
}

/// A line of the file.
enum Kept {
    Record(Record),
    Index(RepoPath, Option<Sha512>),
}

json_fields!(object ReplayMark { file, bytes, digest: text(parse_hash), state: text(parse_hash) });

impl StateReplay {
    /// Begins before the first commit.
    pub(super) fn begin(name: &Path) -> Self {
        Self {
            name: name.to_owned(),
            written: Written::nothing(0),
            needed: 0,
            statuses: Statuses::default(),
            digests: HashMap::new(),
            new_records: HashMap::new(),
            new_digests: BTreeMap::new(),
        }
    }

    /// Reads the replay from its file. Returns `None` if the file is missing or does not fit its mark; then everything
    /// is derived again.
    pub(super) fn load(name: &Path, mark: &ReplayMark) -> Result<Option<Self>, CliError> {
        let mut replay = Self::begin(name);
        replay.written = Written { bytes: mark.bytes, ..Written::nothing(mark.file) };
        let mut found = Written::nothing(mark.file);
        let mut digests = HashMap::new();
        let lines = match replay.lines() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            lines => lines.map_err(|error| CliError::file("read", &replay.path(), error))?,
        };
        // A line that cannot be read ends them, and then the digest is another one.
        let kept = lines.map_while(|line| Kept::parse(&line).inspect(|_| found.add(&line)));
        let records = kept.filter_map(|kept| match kept {
            Kept::Record(record) => Some(record),
            Kept::Index(path, digest) => {
                set_digest(&mut digests, path, digest);
                None
            }
        });
        replay.statuses = Statuses::of_records(records);
        replay.digests = digests;
        replay.needed = replay.count();
        replay.written = found;
        replay.forget_files_before();
        Ok((replay.mark() == *mark).then_some(replay))
    }

    /// Whether the replay is what the file had at this mark, and nothing more.
    pub(super) fn is_at(&self, mark: &ReplayMark) -> bool {
        self.new_records.is_empty() && self.new_digests.is_empty() && self.mark() == *mark
    }

    fn mark(&self) -> ReplayMark {
        let Written { file, bytes, digest, .. } = self.written;
        ReplayMark { file, bytes, digest, state: self.statuses.root() }
    }

    fn path(&self) -> PathBuf {
        self.path_of(self.written.file)
    }

    fn path_of(&self, file: u64) -> PathBuf {
        match file {
            0 => self.name.clone(),
            number => add_suffix(&self.name, &format!(".{number}")),
        }
    }

    /// How many lines a file without anything replaced has.
    fn count(&self) -> u64 {
        self.statuses.count() + self.digests.len() as u64
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
            if layout::signable(path) == Some(Signable::Index) {
                let digest = content.as_deref().map(Sha512::of);
                set_digest(&mut self.digests, path.clone(), digest);
                self.new_digests.insert(path.clone(), digest);
            }
        }
        Ok(true)
    }

    /// Writes what is new. Only the mark makes it count, and until it is kept, the one before it still holds.
    pub(super) fn save(&mut self) -> Result<ReplayMark, CliError> {
        let fail = |replay: &Self, error| CliError::file("written", &replay.path(), error);
        self.append().map_err(|error| fail(self, error))?;
        self.new_records.clear();
        self.new_digests.clear();
        if self.written.lines > 2 * self.needed + REPLACED_RECORDS as u64 {
            self.compact().map_err(|error| fail(self, error))?;
        }
        Ok(self.mark())
    }

    /// The mark is kept, so no earlier file is needed.
    pub(super) fn forget_files_before(&self) {
        if let Some(before) = self.written.file.checked_sub(1) {
            // One that stays does no harm.
            let _ = std::fs::remove_file(self.path_of(before));
        }
    }

    /// The newest records of these keys.
    pub(super) fn find_records(
        &self,
        keys: &BTreeSet<TrieKey>,
    ) -> Result<HashMap<TrieKey, Record>, CliError> {
        // Without need of the file, it does not matter whether it can be read.
        let needs_file = keys.iter().any(|key| !self.new_records.contains_key(key));
        let lines = (needs_file && self.written.bytes > 0).then(|| self.lines()).transpose();
        let lines = lines.map_err(|error| CliError::file("read", &self.path(), error))?;
        let written = lines.into_iter().flatten().filter_map(|line| Kept::parse(&line)?.record());
        let records = written.chain(self.new_records.values().cloned());
        let wanted = records.filter(|record| keys.contains(&record.key()));
        Ok(wanted.map(|record| (record.key(), record)).collect())
    }

    /// What the file says, as far as it counts. A line that cannot be read ends it, and a file that is too short has
    /// none.
    fn lines(&self) -> io::Result<impl Iterator<Item = Vec<u8>> + use<>> {
        let file = File::open(self.path())?;
        let bytes = self.written.bytes;
        let counting = if file.metadata()?.len() < bytes { 0 } else { bytes };
        let reader = BufReader::with_capacity(1 << 20, file.take(counting));
        Ok(reader.split(b'\n').map_while(Result::ok))
    }

    fn append(&mut self) -> io::Result<()> {
        let records = self.new_records.values().map(record_line);
        let digests = self.new_digests.iter().map(|(index, digest)| index_line(index, digest.as_ref()));
        self.written = write_lines(&self.path(), self.written, records.chain(digests))?;
        Ok(())
    }

    /// Writes everything to the next file, without what was replaced. The file before stays.
    fn compact(&mut self) -> io::Result<()> {
        let before = self.lines()?.filter_map(|line| Kept::parse(&line)?.record());
        let records = before.filter(|record| self.statuses.holds(&record.leaf()));
        let digests = self.digests.iter().map(|(index, digest)| index_line(index, Some(digest)));
        let lines = records.map(|record| record_line(&record)).chain(digests);
        let after = Written::nothing(self.written.file + 1);
        self.written = write_lines(&self.path_of(after.file), after, lines)?;
        self.needed = self.written.lines;
        Ok(())
    }
}

impl Written {
    fn nothing(file: u64) -> Self {
        Self { file, bytes: 0, lines: 0, digest: Sha256::of(b"") }
    }

    fn add(&mut self, line: &[u8]) {
        self.bytes += line.len() as u64 + 1;
        self.lines += 1;
        self.digest = Sha256::of(&[self.digest.as_bytes(), line].concat());
    }
}

/// Writes lines behind what was written. What follows it is cut off.
fn write_lines(
    path: &Path,
    mut written: Written,
    lines: impl Iterator<Item = Vec<String>>,
) -> io::Result<Written> {
    let mut file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
    file.set_len(written.bytes)?;
    file.seek(SeekFrom::Start(written.bytes))?;
    let mut writer = BufWriter::with_capacity(1 << 20, file);
    for words in lines {
        let line = serde_json::to_vec(&words)?;
        written.add(&line);
        writer.write_all(&line)?;
        writer.write_all(b"\n")?;
    }
    writer.into_inner().map_err(io::IntoInnerError::into_error)?.sync_data()?;
    Ok(written)
}

fn record_line(record: &Record) -> Vec<String> {
    vec!["record".to_owned(), record.text()]
}

fn index_line(index: &RepoPath, digest: Option<&Sha512>) -> Vec<String> {
    let words = ["index".to_owned(), index.to_string()].into_iter();
    words.chain(digest.map(ToString::to_string)).collect()
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

    fn record(self) -> Option<Record> {
        match self {
            Self::Record(record) => Some(record),
            Self::Index(..) => None,
        }
    }
}

/// Notes the digest that an index has from now on.
fn set_digest(digests: &mut HashMap<RepoPath, Sha512>, index: RepoPath, digest: Option<Sha512>) {
    match digest {
        Some(digest) => drop(digests.insert(index, digest)),
        None => drop(digests.remove(&index)),
    }
}

fn parse_hash(text: &str) -> Result<Hash, &'static str> {
    Hash::parse(text).ok_or("must be a hash")
}

fn write_hash<S: serde::Serializer>(hash: &Hash, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(hash)
}

#[cfg(test)]
mod tests {
    use countersign_core::documents::layout;

    use super::*;

    const PROJECTS: usize = 40;

    fn rotate(number: usize) -> Change {
        let mut change = Change::new("New signers of all");
        for project in 0..PROJECTS {
            let project = RepoPath::parse(&format!("https/a.example/443/p{project}")).unwrap();
            change.write(layout::active_signers(&project), format!("{number}").into_bytes());
            change.write(layout::history_entry(&project, number), b"entry".to_vec());
            // One that waits for signatures has a digest and no record.
            change.write(layout::index_in(&project), format!("index {number}").into_bytes());
        }
        change
    }

    fn go_on(replay: &mut StateReplay, number: usize) -> ReplayMark {
        let change = rotate(number);
        let (next, _) = replay.statuses.apply_digests(&change, |_| None).unwrap();
        assert!(replay.advance(&change, next.root()).unwrap());
        replay.save().unwrap()
    }

    #[test]
    fn replaced_lines_stay_below_their_bound_and_a_kill_at_any_moment_loses_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let name = dir.path().join("state.json.map");
        let (mut replay, needed) = (StateReplay::begin(&name), 2 * PROJECTS);
        let (mut most, mut kept) = (0, None::<ReplayMark>);
        for number in 1..=150 {
            let mark = go_on(&mut replay, number);
            most = most.max(replay.written.lines);
            // Killed before the mark was kept, and after that.
            let is_new = kept.is_some_and(|kept| kept.file < mark.file);
            for mark in kept.iter().chain([&mark]).filter(|_| is_new) {
                let loaded = StateReplay::load(&name, mark).unwrap().expect("what the mark says");
                assert!(loaded.is_at(mark) && loaded.digests.len() == PROJECTS);
            }
            replay.forget_files_before();
            kept = Some(mark);
        }
        let bound = (2 * needed + REPLACED_RECORDS) as u64;
        assert!(most <= bound && most > bound - needed as u64, "{most}");
        let mark = kept.unwrap();
        assert_eq!(dir.path().read_dir().unwrap().count(), 1, "nothing is left behind");
        assert!(mark.file > 0);
        // After a start it goes on, and is bounded as before.
        let mut replay = StateReplay::load(&name, &mark).unwrap().unwrap();
        for number in 151..=250 {
            go_on(&mut replay, number);
        }
        assert!(replay.mark().file > mark.file && replay.written.lines <= bound);
    }

    #[test]
    fn a_file_that_does_not_fit_its_mark_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let name = dir.path().join("state.json.map");
        let mut replay = StateReplay::begin(&name);
        let earlier = go_on(&mut replay, 1);
        let rolled_back = std::fs::read(&name).unwrap();
        let mark = go_on(&mut replay, 2);
        let whole = std::fs::read(&name).unwrap();
        let mut swapped: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
        // Another digest of an index, with the same records.
        let index = swapped.iter().rposition(|line| line.starts_with(b"[\"index\"")).unwrap();
        let wrong = String::from_utf8(swapped[index].to_vec()).unwrap().replace('0', "1");
        swapped[index] = wrong.as_bytes();
        let mut flipped = whole.clone();
        flipped[whole.len() / 3] ^= 1;
        for bytes in
            [&rolled_back, &flipped, &swapped.concat(), &whole[..whole.len() - 1].to_vec(), &Vec::new()]
        {
            std::fs::write(&name, bytes).unwrap();
            assert!(StateReplay::load(&name, &mark).unwrap().is_none());
        }
        // What a crash left behind the mark does not count.
        std::fs::write(&name, &whole).unwrap();
        assert!(StateReplay::load(&name, &earlier).unwrap().is_some_and(|replay| replay.is_at(&earlier)));
        std::fs::remove_file(&name).unwrap();
        assert!(StateReplay::load(&name, &mark).unwrap().is_none());
    }
}
