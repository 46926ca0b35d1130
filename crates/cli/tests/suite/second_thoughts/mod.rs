//! Releases that are withdrawn, and objections to releases (D120–D126).

mod client;
mod objected;
mod pages;
mod repeated;
mod tampered;
mod withdrawn;
