//! Code forges (D26): which hosts are forges, and where their signers files and releases are read.

mod claimed;
mod configured;
pub(crate) mod credential;
mod forge;
pub(crate) mod kind;
mod locate;
mod signers_form;
pub(crate) mod source;

pub use self::{
    claimed::{locate_claimed, may_be_configured},
    configured::Forges,
    credential::{Credential, Token, TokenError},
    forge::{ForgeConfig, ForgeConfigError},
    kind::{ForgeKind, ForgeKindError},
    source::{FetchedSigners, OutgoingRequest, ReleaseSource, Retrieval, SignersSource},
};
