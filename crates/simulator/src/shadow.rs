//! What of a directory is durable, beside the real one: contents after the sync of a file, names after the sync of
//! their directory. From it a power cut makes a directory that the machine could have been left with.

use std::{collections::BTreeMap, ffi::OsStr, ffi::OsString, fs, io, path::Path, path::PathBuf};

use countersign_store::DiskStep;

use crate::script::Chance;

/// Files that SQLite writes and syncs itself, and the lock of the data directory.
fn is_foreign(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name == "lock" || name.starts_with("nonces.sqlite")
}

#[derive(Debug)]
pub struct Shadow {
    root: PathBuf,
    nodes: Vec<Node>,
    /// Changes of names that no sync of their directory has made durable, oldest first.
    pending: Vec<NameChange>,
}

type NodeId = usize;
type Names = BTreeMap<OsString, NodeId>;

#[derive(Debug)]
enum Node {
    File(FileNode),
    Dir { current: Names, durable: Names },
}

#[derive(Debug, Default)]
struct FileNode {
    durable: Vec<u8>,
    /// Contents since then, oldest first.
    since: Vec<Vec<u8>>,
    /// Whether a sync has failed. The system may have dropped what was to be written, so a later sync proves nothing.
    is_doubtful: bool,
}

/// A change of names. All of it happens, or nothing.
#[derive(Debug)]
struct NameChange {
    dir: NodeId,
    names: Vec<(OsString, Option<NodeId>)>,
}

const ROOT: NodeId = 0;

impl Shadow {
    /// The shadow of a directory, all of which is durable.
    pub fn of(root: &Path) -> io::Result<Self> {
        let mut shadow = Self { root: root.to_owned(), nodes: Vec::new(), pending: Vec::new() };
        shadow.scan(root)?;
        Ok(shadow)
    }

    fn scan(&mut self, path: &Path) -> io::Result<NodeId> {
        let id = self.nodes.len();
        if !path.is_dir() {
            self.nodes.push(Node::File(FileNode { durable: fs::read(path)?, ..FileNode::default() }));
            return Ok(id);
        }
        self.nodes.push(Node::Dir { current: Names::new(), durable: Names::new() });
        let mut names = Names::new();
        for entry in sorted_entries(path)? {
            if !(id == ROOT && is_foreign(&entry)) {
                names.insert(entry.clone(), self.scan(&path.join(entry))?);
            }
        }
        self.nodes[id] = Node::Dir { current: names.clone(), durable: names };
        Ok(id)
    }

    /// Notes what a step does that is about to happen.
    pub fn note_before(&mut self, step: DiskStep, path: &Path) {
        if step == DiskStep::Create && !path.exists() {
            let id = self.nodes.len();
            self.nodes.push(Node::File(FileNode::default()));
            self.put(path, id);
        }
    }

    /// What a step did that has happened, or a part of it.
    pub fn note_after(&mut self, step: DiskStep, path: &Path) {
        match step {
            DiskStep::Create | DiskStep::Commit => {}
            DiskStep::CreateDir => drop(self.learn_dir(path)),
            DiskStep::Write | DiskStep::WriteAt | DiskStep::SetLength => self.note_content(path),
            DiskStep::Sync => {
                self.note_content(path);
                if let Some(file) = self.file(path).filter(|file| !file.is_doubtful) {
                    file.durable = file.since.pop().expect("it was just noted");
                    file.since.clear();
                }
            }
            DiskStep::Rename => self.note_rename(path),
            DiskStep::Remove => self.note_removal(path),
            DiskStep::SyncDir => self.note_sync_dir(path),
        }
    }

    pub fn note_failed_sync(&mut self, path: &Path) {
        if let Some(file) = self.file(path) {
            file.is_doubtful = true;
        }
    }

    fn note_content(&mut self, path: &Path) {
        let Ok(content) = fs::read(path) else { return };
        if let Some(file) = self.file(path) {
            file.since.push(content);
        }
    }

    /// The name that is gone is the one that the file had before.
    fn note_rename(&mut self, to: &Path) {
        let Some((dir, name)) = self.entry_of(to) else { return };
        let parent = to.parent().expect("a file lies in a directory");
        let gone = |old: &&OsString| **old != name && parent.join(old).symlink_metadata().is_err();
        let from = self.current(dir).keys().find(gone).cloned().expect("a rename takes a name away");
        let id = self.current(dir)[&from];
        self.change(dir, vec![(from, None), (name, Some(id))]);
    }

    fn note_removal(&mut self, path: &Path) {
        let Some((dir, name)) = self.entry_of(path) else { return };
        if self.current(dir).contains_key(&name) {
            self.change(dir, vec![(name, None)]);
        }
    }

    fn note_sync_dir(&mut self, path: &Path) {
        let Some(synced) = self.find(path) else { return };
        let (kept, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.pending).into_iter().partition(|change| change.dir == synced);
        self.pending = rest;
        kept.iter().for_each(|change| self.make_durable(change));
    }

    fn make_durable(&mut self, change: &NameChange) {
        let Node::Dir { durable, .. } = &mut self.nodes[change.dir] else { return };
        for (name, id) in &change.names {
            match id {
                Some(id) => drop(durable.insert(name.clone(), *id)),
                None => drop(durable.remove(name)),
            }
        }
    }

    fn change(&mut self, dir: NodeId, names: Vec<(OsString, Option<NodeId>)>) {
        if let Node::Dir { current, .. } = &mut self.nodes[dir] {
            for (name, id) in &names {
                match id {
                    Some(id) => drop(current.insert(name.clone(), *id)),
                    None => drop(current.remove(name)),
                }
            }
        }
        self.pending.push(NameChange { dir, names });
    }

    fn put(&mut self, path: &Path, id: NodeId) {
        let dir = self.learn_dir(path.parent().expect("a file lies in a directory"));
        let name = path.file_name().expect("a file has a name").to_owned();
        self.change(dir, vec![(name, Some(id))]);
    }

    /// The node of a directory, which may have been made by a step that we did not see.
    fn learn_dir(&mut self, path: &Path) -> NodeId {
        if let Some(id) = self.find(path) {
            return id;
        }
        let id = self.nodes.len();
        self.nodes.push(Node::Dir { current: Names::new(), durable: Names::new() });
        self.put(path, id);
        id
    }

    fn find(&self, path: &Path) -> Option<NodeId> {
        let mut id = ROOT;
        for name in path.strip_prefix(&self.root).ok()? {
            id = *self.current(id).get(name)?;
        }
        Some(id)
    }

    fn entry_of(&self, path: &Path) -> Option<(NodeId, OsString)> {
        let dir = self.find(path.parent()?)?;
        Some((dir, path.file_name()?.to_owned()))
    }

    fn file(&mut self, path: &Path) -> Option<&mut FileNode> {
        match self.find(path).map(|id| &mut self.nodes[id]) {
            Some(Node::File(file)) => Some(file),
            Some(Node::Dir { .. }) | None => None,
        }
    }

    fn current(&self, id: NodeId) -> &Names {
        static NONE: Names = Names::new();
        match &self.nodes[id] {
            Node::Dir { current, .. } => current,
            Node::File(_) => &NONE,
        }
    }
}

/// How much of what is not durable a power cut takes.
#[derive(Debug, Clone, Copy)]
enum PowerLoss {
    All,
    Some,
    Nothing,
}

impl Shadow {
    /// Puts in the place of the directory what a power cut could have left of it. What was durable is there; of the
    /// rest, any part.
    pub fn cut_power(mut self, chance: &mut Chance) -> io::Result<Self> {
        let losses = [PowerLoss::All, PowerLoss::Some, PowerLoss::Some, PowerLoss::Nothing];
        let (of_names, of_contents) = (*chance.pick(&losses), *chance.pick(&losses));
        for change in std::mem::take(&mut self.pending) {
            if survives(of_names, chance) {
                self.make_durable(&change);
            }
        }
        for entry in sorted_entries(&self.root)?.into_iter().filter(|entry| !is_foreign(entry)) {
            let path = self.root.join(entry);
            if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
        }
        let root = self.root.clone();
        self.write_out(ROOT, &root, of_contents, chance)?;
        Self::of(&root)
    }

    fn write_out(&self, id: NodeId, path: &Path, loss: PowerLoss, chance: &mut Chance) -> io::Result<()> {
        match &self.nodes[id] {
            Node::File(file) => fs::write(path, file.after_power_cut(loss, chance)),
            Node::Dir { durable, .. } => {
                fs::create_dir_all(path)?;
                durable.iter().try_for_each(|(name, id)| self.write_out(*id, &path.join(name), loss, chance))
            }
        }
    }
}

fn survives(loss: PowerLoss, chance: &mut Chance) -> bool {
    match loss {
        PowerLoss::All => false,
        PowerLoss::Some => chance.percent(50),
        PowerLoss::Nothing => true,
    }
}

impl FileNode {
    fn after_power_cut(&self, loss: PowerLoss, chance: &mut Chance) -> Vec<u8> {
        let Some(newest) = self.since.last() else { return self.durable.clone() };
        match loss {
            PowerLoss::All => self.durable.clone(),
            PowerLoss::Nothing => newest.clone(),
            PowerLoss::Some if chance.percent(50) => self.torn(chance),
            PowerLoss::Some => newest[..chance.below(newest.len() + 1)].to_vec(),
        }
    }

    /// The length of one version, and each block from any version. What none has is zero.
    fn torn(&self, chance: &mut Chance) -> Vec<u8> {
        let versions: Vec<&Vec<u8>> = [&self.durable].into_iter().chain(&self.since).collect();
        let mut torn = vec![0; chance.pick(&versions).len()];
        let size = *chance.pick(&[16, 512]);
        for (number, block) in torn.chunks_mut(size).enumerate() {
            if let Some(rest) = chance.pick(&versions).get(number * size..) {
                let known = rest.len().min(block.len());
                block[..known].copy_from_slice(&rest[..known]);
            }
        }
        torn
    }
}

fn sorted_entries(dir: &Path) -> io::Result<Vec<OsString>> {
    let mut names = fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}
