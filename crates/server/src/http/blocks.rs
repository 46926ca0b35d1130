//! What the operator has blocked (D59): keys, hosts and projects whose changes the server refuses. It still serves what
//! is stored. The list is a file in the data directory, so it survives a restart.

use std::{collections::BTreeSet, error::Error, fmt, path::PathBuf, sync::Arc, sync::Mutex};

use arc_swap::ArcSwap;
use countersign_core::values::{key::PublicKey, path::RepoPath, shown::shown_text, wire::PUBLIC_KEY_PREFIX};
use countersign_store::machine::{clock::lock, disk};

use crate::follow::background::BoxedError;

/// The most entries of the list, which is more than anyone keeps by hand.
pub const MAX_BLOCKS: usize = 10_000;
/// The most bytes of the file, which is far more than so many entries take.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// One entry, in the spelling of the operator.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlockedThing {
    /// A public key as text, because text has an order.
    Key(String),
    /// A host in small letters.
    Host(String),
    /// A project, or a directory with everything below it.
    Project(String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    #[error(
        "`{}` is not a key (svc-pub:…), a host (github.com) or a project (https/github.com/443/acme/app)",
        shown_text(.0)
    )]
    NotAThing(String),
    #[error("{0} is blocked already")]
    Already(BlockedThing),
    #[error("{0} is not blocked")]
    NotBlocked(BlockedThing),
    #[error(
        "there are {MAX_BLOCKS} blocks already: unblock something, or block a host or a directory of projects"
    )]
    Full,
    #[error("the list of blocks cannot be written: {0}")]
    Unwritten(String),
}

/// A change that the operator does not want.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the operator of this server refuses changes of {0}: ask them why. What is stored stays readable")]
pub struct ChangeBlocked(pub BlockedThing);

impl BlockedThing {
    pub fn parse(text: &str) -> Result<Self, BlockError> {
        let refuse = || BlockError::NotAThing(text.to_owned());
        if text.starts_with(PUBLIC_KEY_PREFIX) {
            return PublicKey::parse_prefixed(text)
                .map(|key| Self::Key(key.to_string()))
                .map_err(|_| refuse());
        }
        let path = RepoPath::parse(text).map_err(|_| refuse())?;
        let folded = path.as_str().to_ascii_lowercase();
        match path.segments().count() {
            1 => Ok(Self::Host(folded)),
            // Scheme, host, port, and a name.
            2 | 3 => Err(refuse()),
            _ => Ok(Self::Project(folded)),
        }
    }

    pub fn as_str(&self) -> &str {
        match self {
            Self::Key(text) | Self::Host(text) | Self::Project(text) => text,
        }
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Self::Key(_) => "key",
            Self::Host(_) => "host",
            Self::Project(_) => "project",
        }
    }
}

impl fmt::Display for BlockedThing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} `{}`", self.kind(), self.as_str())
    }
}

#[derive(Debug)]
pub struct Blocks {
    path: PathBuf,
    list: ArcSwap<BTreeSet<BlockedThing>>,
    /// Held while the file is being written.
    writing: Mutex<()>,
}

impl Blocks {
    /// Reads the list. The caller holds the lock of the data directory.
    pub fn open(path: PathBuf) -> Result<Self, BoxedError> {
        let refuse =
            |error: &dyn Error| format!("the list of blocks {} cannot be read: {error}", path.display());
        let text =
            disk::read_text(&path, MAX_FILE_BYTES).map_err(|error| refuse(&error))?.unwrap_or_default();
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let list =
            lines.map(BlockedThing::parse).collect::<Result<_, _>>().map_err(|error| refuse(&error))?;
        Ok(Self { path, list: ArcSwap::from_pointee(list), writing: Mutex::new(()) })
    }

    pub fn list(&self) -> Arc<BTreeSet<BlockedThing>> {
        self.list.load_full()
    }

    /// Refuses a change if a key that takes part in it is blocked, or its host or its project.
    pub fn check(&self, keys: &[&PublicKey], path: &RepoPath) -> Result<(), ChangeBlocked> {
        self.check_keys(keys)?;
        let list = self.list.load();
        if list.is_empty() {
            return Ok(());
        }
        let folded = path.as_str().to_ascii_lowercase();
        let host = folded.split('/').nth(1).map(|host| BlockedThing::Host(host.to_owned()));
        let ends = folded.match_indices('/').map(|(end, _)| end).chain([folded.len()]);
        let projects = ends.map(|end| BlockedThing::Project(folded[..end].to_owned()));
        let found = host.into_iter().chain(projects).find(|thing| list.contains(thing));
        found.map_or(Ok(()), |thing| Err(ChangeBlocked(thing)))
    }

    /// Refuses a change if one of the keys that take part in it is blocked.
    pub fn check_keys(&self, keys: &[&PublicKey]) -> Result<(), ChangeBlocked> {
        let list = self.list.load();
        let is_blocked = |thing: &BlockedThing| !list.is_empty() && list.contains(thing);
        let found = keys.iter().map(|key| BlockedThing::Key(key.to_string())).find(is_blocked);
        found.map_or(Ok(()), |thing| Err(ChangeBlocked(thing)))
    }

    pub fn block(&self, thing: BlockedThing) -> Result<(), BlockError> {
        self.change(|list| {
            if list.len() >= MAX_BLOCKS {
                return Err(BlockError::Full);
            }
            if list.insert(thing.clone()) { Ok(()) } else { Err(BlockError::Already(thing)) }
        })
    }

    pub fn unblock(&self, thing: BlockedThing) -> Result<(), BlockError> {
        self.change(|list| if list.remove(&thing) { Ok(()) } else { Err(BlockError::NotBlocked(thing)) })
    }

    /// Changes the list. The change is in force once it is on disk.
    fn change(
        &self,
        edit: impl FnOnce(&mut BTreeSet<BlockedThing>) -> Result<(), BlockError>,
    ) -> Result<(), BlockError> {
        let _writing = lock(&self.writing);
        let mut list = BTreeSet::clone(&self.list.load());
        edit(&mut list)?;
        let text: String = list.iter().map(|entry| format!("{}\n", entry.as_str())).collect();
        disk::replace(&self.path, &text).map_err(|error| BlockError::Unwritten(error.to_string()))?;
        self.list.store(Arc::new(list));
        Ok(())
    }
}
