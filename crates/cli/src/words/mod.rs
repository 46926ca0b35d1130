//! What people and programs read: errors, answers, questions, tables.

pub(crate) mod error;
pub(crate) mod output;
pub(crate) mod table;
