//! Releases that are withdrawn, and objections to releases (D120–D126).

mod client;
mod hostile;
mod objected;
mod pages;
mod repeated;
mod withdrawn;
