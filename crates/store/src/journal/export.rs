//! The journal out of the repository, from any commit on. Memory is bounded however long the history and however large
//! the tree is.

use std::{collections::btree_map, sync::Arc, vec};

use countersign_core::{rules::snapshot::Change, values::path::RepoPath};
use gix::{ObjectId, hashtable, objs::Kind};

use crate::journal::differing::{DifferingFiles, TreeReader};
use crate::journal::milestones::{Milestones, Stretch};
use crate::journal::write::{EntryHead, FileLine, JournalEntry, JournalWriter, write_end, write_file};
use crate::objects::{Objects, commit::Author, commit::Commit};
use crate::{error::StoreError, sequence::BATCH_BYTES, sequence::BATCH_COMMITS, sequence::SharedBatch};

/// A position in the journal. Every method reads from disk, so no thread that others wait for should call them.
#[derive(Debug)]
pub struct JournalExport {
    objects: Arc<Objects>,
    head: ObjectId,
    /// The stretches still to be read; the oldest comes last.
    stretches: Vec<Stretch>,
    commits: vec::IntoIter<(ObjectId, Commit)>,
    trees: TreeReader,
    /// The tree of the commit before.
    tree: Option<ObjectId>,
    writer: JournalWriter,
    /// The files of the last written commit that are still to be written.
    files: Option<UnwrittenFiles>,
}

/// Some bytes of the journal, which can begin and end anywhere in it.
#[derive(Debug, Default)]
pub struct JournalPart {
    pub bytes: Vec<u8>,
    /// How many commits end in it.
    pub commits: usize,
}

#[derive(Debug)]
struct UnwrittenFiles {
    files: btree_map::IntoIter<RepoPath, Option<ObjectId>>,
    written: hashtable::HashSet<ObjectId>,
}

/// A commit, with the files that it changed.
struct ChangedCommit {
    id: ObjectId,
    parent: Option<ObjectId>,
    author: Author,
    commit: Commit,
    files: DifferingFiles,
}

impl JournalExport {
    /// Begins an export. `None` if `after` is not in the history of `head`.
    pub(crate) fn begin(
        objects: &Arc<Objects>,
        milestones: &Milestones,
        after: Option<ObjectId>,
        head: ObjectId,
    ) -> Result<Option<Self>, StoreError> {
        let stretches = if head.is_null() {
            after.is_none().then(Vec::new)
        } else {
            milestones.stretches(after, head)?
        };
        let Some(stretches) = stretches else { return Ok(None) };
        let tree = after.map(|after| read_commit(objects, after)).transpose()?.map(|commit| commit.tree);
        Ok(Some(Self {
            objects: Arc::clone(objects),
            head,
            stretches,
            commits: Vec::new().into_iter(),
            trees: TreeReader::new(Arc::clone(objects)),
            tree,
            writer: JournalWriter::default(),
            files: None,
        }))
    }

    /// The last commit that it will give, or the one that it begins after if there is nothing new.
    pub fn head(&self) -> ObjectId {
        self.head
    }

    /// Whether all of the export was given.
    pub fn is_done(&self) -> bool {
        self.files.is_none() && self.commits.as_slice().is_empty() && self.stretches.is_empty()
    }

    /// The next commit with all of its content.
    pub fn next_entry(&mut self) -> Result<Option<JournalEntry>, StoreError> {
        let Some(ChangedCommit { id, parent, author, commit, files }) = self.next_commit()? else {
            return Ok(None);
        };
        let mut change = Change::new(commit.message);
        let mut contents = hashtable::HashMap::<ObjectId, Arc<[u8]>>::default();
        for (path, blob) in files {
            let Some(blob) = blob else {
                change.delete(path);
                continue;
            };
            let content = match contents.get(&blob) {
                Some(content) => Arc::clone(content),
                None => self.objects.read(&blob, Kind::Blob)?.into(),
            };
            contents.insert(blob, Arc::clone(&content));
            change.write(path, content);
        }
        Ok(Some(JournalEntry { id, parent, author, time: commit.time, change }))
    }

    /// The next bytes of the journal, about as many as asked for, or one file more; `None` at its end.
    pub fn next_part(&mut self, bytes: usize) -> Result<Option<JournalPart>, StoreError> {
        let mut part = JournalPart::default();
        while part.bytes.len() < bytes {
            match &mut self.files {
                Some(unwritten) => match unwritten.files.next() {
                    Some((path, blob)) => unwritten.write(&self.objects, &path, blob, &mut part.bytes)?,
                    None => {
                        write_end(&mut part.bytes);
                        part.commits += 1;
                        self.files = None;
                    }
                },
                None => {
                    let Some(next) = self.next_commit()? else { break };
                    let ChangedCommit { id, parent, author, commit, files } = next;
                    let (time, message) = (commit.time, &*commit.message);
                    let head = EntryHead { id, parent, author: &author, time, message };
                    self.writer.write_head(&head, &mut part.bytes);
                    let (files, written) = (files.into_iter(), hashtable::HashSet::default());
                    self.files = Some(UnwrittenFiles { files, written });
                }
            }
        }
        Ok(Some(part).filter(|part| !part.bytes.is_empty()))
    }

    fn next_commit(&mut self) -> Result<Option<ChangedCommit>, StoreError> {
        if self.commits.as_slice().is_empty() {
            let Some(stretch) = self.stretches.pop() else { return Ok(None) };
            self.commits = read_stretch(&self.objects, stretch)?.into_iter();
        }
        let Some((id, mut commit)) = self.commits.next() else { return Ok(None) };
        let author = commit.author.take().filter(|_| commit.parents.len() <= 1);
        let author = author.filter(|_| Change::new(&*commit.message).recorded_message() == commit.message);
        let odd = || StoreError::corrupt(id, "the commit is not written as the server writes one");
        let author = author.ok_or_else(odd)?;
        let files = self.trees.compare(self.tree, commit.tree);
        let files = files.map_err(|error| StoreError::corrupt(id, error.reason()))?;
        self.tree = Some(commit.tree);
        Ok(Some(ChangedCommit { id, parent: commit.parents.first().copied(), author, commit, files }))
    }
}

impl UnwrittenFiles {
    fn write(
        &mut self,
        objects: &Objects,
        path: &RepoPath,
        blob: Option<ObjectId>,
        out: &mut Vec<u8>,
    ) -> Result<(), StoreError> {
        let Some(blob) = blob else {
            write_file(path, &FileLine::Gone, out);
            return Ok(());
        };
        if !self.written.insert(blob) {
            write_file(path, &FileLine::Repeated(blob), out);
            return Ok(());
        }
        // Not through the cache of blobs, which serves those who read files.
        write_file(path, &FileLine::Content(&objects.read(&blob, Kind::Blob)?), out);
        Ok(())
    }
}

/// Reads the commits of a stretch, oldest first.
fn read_stretch(objects: &Objects, stretch: Stretch) -> Result<Vec<(ObjectId, Commit)>, StoreError> {
    let mut commits = Vec::with_capacity(stretch.commits);
    let mut next = Some(stretch.newest);
    while let Some(id) = next.filter(|_| commits.len() < stretch.commits) {
        let commit = read_commit(objects, id)?;
        next = commit.parents.first().copied();
        commits.push((id, commit));
    }
    commits.reverse();
    Ok(commits)
}

pub(crate) fn read_commit(objects: &Objects, id: ObjectId) -> Result<Commit, StoreError> {
    let bytes = objects.read(&id, Kind::Commit)?;
    Commit::parse(&bytes).map_err(|reason| StoreError::corrupt(id, reason))
}

// The journal in batches, as nodes share them.

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
