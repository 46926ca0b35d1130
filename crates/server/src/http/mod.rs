//! What every request has: its limits in HTTP, its errors, what is fetched for it, and how large answers are sent.

pub mod blocks;
pub mod error;
pub mod request;
pub mod sending;
pub mod upstream;
