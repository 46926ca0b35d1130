//! What this computer keeps: the configuration, and what its user has accepted.

pub(crate) mod client_config;
pub(crate) mod config_dir;
pub(crate) mod trust;
