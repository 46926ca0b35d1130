//! The journal out of the repository, from any commit on. Memory is bounded however long the history and however large
//! the tree is.

use std::{sync::Arc, vec};

use countersign_core::rules::snapshot::Change;
use gix::{ObjectId, hashtable, objs::Kind};

use crate::journal::milestones::{Milestones, Stretch};
use crate::journal::{JournalEntry, JournalWriter, differing::TreeReader};
use crate::objects::{Objects, commit::Commit};
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
}

/// Some commits of the journal as text.
#[derive(Debug, Default)]
pub struct JournalPart {
    pub bytes: Vec<u8>,
    /// How many commits it has.
    pub commits: usize,
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
        let tree = after.map(|after| objects.commit(after)).transpose()?.map(|commit| commit.tree);
        Ok(Some(Self {
            objects: Arc::clone(objects),
            head,
            stretches,
            commits: Vec::new().into_iter(),
            trees: TreeReader::new(Arc::clone(objects)),
            tree,
            writer: JournalWriter::default(),
        }))
    }

    /// The last commit that it will give, or the one that it begins after if there is nothing new.
    pub fn head(&self) -> ObjectId {
        self.head
    }

    /// Whether all of the export was given.
    pub fn is_done(&self) -> bool {
        self.commits.as_slice().is_empty() && self.stretches.is_empty()
    }

    /// The next commit with all of its content.
    pub fn next_entry(&mut self) -> Result<Option<JournalEntry>, StoreError> {
        if self.commits.as_slice().is_empty() {
            let Some(stretch) = self.stretches.pop() else { return Ok(None) };
            self.commits = read_stretch(&self.objects, stretch)?.into_iter();
        }
        let Some((id, Commit { tree, parents, time, message, author, .. })) = self.commits.next() else {
            return Ok(None);
        };
        let mut change = Change::new(message);
        let is_ours = parents.len() <= 1 && change.recorded_message() == change.message;
        let odd = || StoreError::corrupt(id, "the commit is not written as the server writes one");
        let author = author.filter(|_| is_ours).ok_or_else(odd)?;
        let files = self.trees.compare(self.tree, tree);
        self.tree = Some(tree);
        let mut contents = hashtable::HashMap::<ObjectId, Arc<[u8]>>::default();
        for (path, blob) in files.map_err(|error| StoreError::corrupt(id, error.reason()))? {
            let Some(blob) = blob else {
                change.delete(path);
                continue;
            };
            let content = match contents.get(&blob) {
                Some(content) => Arc::clone(content),
                // Not through the cache of blobs, which serves those who read files.
                None => self.objects.read(&blob, Kind::Blob)?.into(),
            };
            contents.insert(blob, Arc::clone(&content));
            change.write(path, content);
        }
        Ok(Some(JournalEntry { id, parent: parents.first().copied(), author, time, change }))
    }

    /// The next commits as text, about as many bytes as asked for; `None` at the end.
    pub fn next_part(&mut self, bytes: usize) -> Result<Option<JournalPart>, StoreError> {
        let mut part = JournalPart::default();
        while part.bytes.len() < bytes
            && let Some(entry) = self.next_entry()?
        {
            self.writer.write(&entry, &mut part.bytes);
            part.commits += 1;
        }
        Ok(Some(part).filter(|part| part.commits > 0))
    }
}

/// Reads the commits of a stretch, oldest first.
fn read_stretch(objects: &Objects, stretch: Stretch) -> Result<Vec<(ObjectId, Commit)>, StoreError> {
    let read = objects.history(stretch.newest).take(stretch.commits);
    let mut commits = read.collect::<Result<Vec<_>, _>>()?;
    commits.reverse();
    Ok(commits)
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
