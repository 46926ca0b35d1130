//! How places are shared, and who claims one.

use std::{net::IpAddr, time::Duration};

use countersign_core::values::{key::PublicKey, path::RepoPath};

#[derive(Debug, Clone, Copy)]
pub struct PlaceRules {
    pub total: usize,
    /// For one address, one project or one key.
    pub share: usize,
    /// For all strangers together: callers that are not signers of an active project.
    pub strangers: usize,
    /// How many can wait, and how long.
    pub waiting: usize,
    pub max_wait: Duration,
    /// A holder keeps its place for at least this long. `None`: until it gives the place back.
    pub grace: Option<Duration>,
    pub pace: Option<MinimumPace>,
}

/// A holder that moves fewer bytes after this time is too slow.
#[derive(Debug, Clone, Copy)]
pub struct MinimumPace {
    pub bytes_per_second: u64,
    pub after: Duration,
}

/// Who claims a place, as far as it is known.
#[derive(Debug, Clone, Default)]
pub struct Claimant {
    pub(super) holders: Vec<PlaceHolder>,
    pub(super) is_stranger: bool,
}

/// What a place is counted for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum PlaceHolder {
    Address(IpAddr),
    Project(RepoPath),
    Key(PublicKey),
}

impl Claimant {
    /// There is no address if limits are switched off.
    pub fn at(address: Option<IpAddr>) -> Self {
        let holders = address.map(PlaceHolder::Address).into_iter().collect();
        Self { holders, is_stranger: false }
    }

    pub fn with_key(mut self, key: &PublicKey) -> Self {
        self.holders.push(PlaceHolder::Key(*key));
        self
    }

    pub fn with_project(mut self, project: &RepoPath) -> Self {
        self.holders.push(PlaceHolder::Project(project.clone()));
        self
    }

    /// For a key that no active project lists.
    pub fn as_stranger(mut self) -> Self {
        self.is_stranger = true;
        self
    }
}
