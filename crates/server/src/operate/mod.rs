//! What the operator sets and sees: the configuration, log lines, TLS and the disk.

pub mod config;
pub mod disk_space;
pub mod observe;
pub mod tls;
