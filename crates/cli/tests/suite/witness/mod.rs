//! `countersign witness`, and servers that ask witnesses (D93–D96).

mod asking;
mod cosigning;
mod forks;
mod hostile;
mod kept;
mod kills;
mod network;
mod polling;
mod restored;
