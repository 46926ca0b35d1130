//! `countersign witness`, and servers that ask witnesses (D93–D96).

mod asking;
mod cosigning;
mod forks;
mod hostile;
mod kept;
mod network;
mod polling;
mod restored;
