//! `countersign mirror` (D74–D76).

mod following;
mod interrupted;
mod log;
mod lying;
mod operator;
mod pages;
mod promoted;
mod proofs;
mod rewritten;
mod speed;
mod state;
