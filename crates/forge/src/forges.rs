//! Code forges (D26): which hosts are forges, and where their signers files and releases are read.

mod claimed;
mod configured;
mod forge;
mod locate;
mod signers_form;

pub use self::{
    claimed::{locate_claimed, may_be_configured},
    configured::Forges,
    forge::{ForgeConfig, ForgeConfigError},
};
pub use crate::source::{
    FetchedSigners, OutgoingRequest, ReleaseSource, Retrieval, SignersSource,
    credential::{Credential, Token, TokenError},
    kind::{ForgeKind, ForgeKindError},
};
