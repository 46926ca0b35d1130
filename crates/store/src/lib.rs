//! Durable state: files in one bare Git repository, one commit per change, many changes per fsync.
//!
//! Readers take the [`Head`] and never wait. All changes go through [`Store::transact`].
//!
//! The rooms below these are public so that tests and tools can look into them.

pub mod audit;
pub mod bucket;
pub mod budget;
pub mod catalogue;
pub mod clock;
pub mod commit;
pub mod commit_feed;
pub mod data_dir;
mod disk;
pub mod durable;
mod error;
pub mod feed;
pub mod fold;
pub mod follow;
pub mod histogram;
mod jobs;
pub mod journal;
pub mod journal_copy;
mod need;
pub mod nonces;
pub mod objects;
pub mod open;
pub mod recent_commits;
mod repository;
pub mod sequence;
pub mod snapshot;
mod stats;
mod store;
mod thread;
pub mod tree;
pub mod trouble;
mod writer;

pub use gix::ObjectId;

pub use crate::{
    budget::{BudgetScope, OverBudget, StorageBudget, StorageLimits},
    commit::{Author, AuthorError},
    disk::{ChangedFile, Disk, DiskError, DiskFault, DiskStep, Moment},
    error::StoreError,
    repository::{OpenError, Repository},
    snapshot::{
        head::{FoundFile, Head, PathEntry, unreadable},
        index::Index,
    },
    stats::StoreStats,
    store::{Options, Store, StoreRole},
    tree::dir::Dir,
};
