//! What server and client say to each other: bodies of requests and answers, events, and their schemas.

pub mod answers;
pub mod catalogue;
pub mod event;
pub mod offline;
pub mod requests;
pub mod schemas;
