//! What people see of projects, releases and proposals. These modules count; the pages lay out.

pub mod project;
pub mod proposal;
pub mod release;
pub mod releases;
pub mod search;
pub mod timeline;

pub use countersign_core::rules::tally::Tally;
pub use countersign_explain::progress::{GroupProgress, Member, Names};
