//! What server and client say to each other: bodies of requests and answers, events, and their schemas. Events come
//! from what the messages of commits claim.

pub mod answers;
pub mod assembly;
pub mod catalogue;
pub mod error_code;
pub mod event;
pub mod requests;
pub mod schemas;
pub mod state;
