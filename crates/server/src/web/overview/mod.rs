//! What people see of projects: their signers, their releases, their history. These modules count; the pages lay out.
//! What is seen of one release or proposal, `countersign_explain::describe` says.

pub mod project;
pub mod releases;
pub mod search;
pub mod timeline;
