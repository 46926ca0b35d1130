//! Code forges (D26): which hosts are forges, and where their signers files and releases are read.

pub mod configured;
mod locate;

pub use crate::forges::configured::{Forges, locate_claimed, may_be_configured};
pub use crate::forges::locate::{ForgeConfig, ForgeConfigError};
pub use crate::source::{
    Credential, FetchedSigners, ForgeKind, ForgeKindError, OutgoingRequest, ReleaseSource, Retrieval,
    SignersSource, Token, TokenError,
};
