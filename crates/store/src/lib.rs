//! Durable state: files in one bare Git repository, one commit per change, many changes per fsync.
//!
//! Readers take the [`Head`] and never wait. All changes go through [`Store::transact`].

pub mod audit;
mod author;
pub mod bucket;
mod budget;
pub mod catalogue;
pub mod clock;
mod commit;
pub mod data_dir;
mod disk;
mod error;
mod fold;
pub mod histogram;
pub mod log;
pub mod nonces;
mod objects;
pub mod open;
mod over_budget;
mod repository;
mod snapshot;
mod stats;
mod store;
mod tree;
pub mod trouble;
mod writer;

pub use gix::ObjectId;

pub use crate::{
    author::{Author, AuthorError},
    budget::{StorageBudget, StorageLimits},
    disk::{Disk, DiskError, DiskFault, DiskStep, Moment},
    error::StoreError,
    over_budget::{BudgetScope, OverBudget},
    repository::{OpenError, Repository},
    snapshot::{
        files::{Files, FoundFile, PathEntry, unreadable},
        head::Head,
        index::Index,
    },
    stats::StoreStats,
    store::{Options, Store},
    tree::dir::Dir,
};
