//! Documents: each stored document in a file of its own, with how it is read, checked and written.

pub mod fields;
pub mod history;
pub mod index;
pub mod layout;
pub mod objections;
pub mod rebuilds;
pub mod signatures;
pub mod signed_request;
pub mod signers;
pub mod statement;
pub mod transparency;
