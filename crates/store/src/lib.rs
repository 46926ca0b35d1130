//! Durable state: files in one bare Git repository, one commit per change, many changes per fsync.
//!
//! Readers take the [`Head`] and never wait. All changes go through [`Store::transact`].
//!
//! The chapters below these are public so that tests and tools can look into them.

pub mod audit;
pub mod budget;
pub mod catalogue;
mod error;
pub mod journal;

pub mod machine {
    //! What the machine gives: its disk, step by step, the data directory on it, its clock and its threads.

    pub mod clock;
    pub mod data_dir;
    pub mod disk;
}

pub mod nonces;
pub mod objects;
pub mod repository;
pub mod sequence;
pub mod snapshot;
pub mod store;
pub mod writer;

pub use gix::ObjectId;

pub use crate::budget::{BudgetScope, OverBudget, StorageBudget, StorageLimits};
pub use crate::machine::disk::{ChangedFile, Disk, DiskError, DiskFault, DiskStep, Moment};
pub use crate::objects::commit::{Author, AuthorError};
pub use crate::repository::{OpenError, Repository};
pub use crate::snapshot::{FoundFile, Head, PathEntry, unreadable};
pub use crate::snapshot::{index::Index, tree::Dir};
pub use crate::store::{Options, Store, StoreRole};
pub use crate::{error::StoreError, writer::stats::StoreStats};
