//! The specification: what the server stores, and what it answers.

mod files;
mod propose;
mod read;
mod revoke;
mod second_thoughts;
mod sign;
mod signers;
mod state;
mod veto;

pub(crate) use propose::Proposing;
pub(crate) use revoke::Revoking;
pub(crate) use second_thoughts::{Objecting, Withdrawing};
pub(crate) use sign::{SignedPath, Submitted};
pub(crate) use signers::{Config, ModelGroup, ModelRole};
pub(crate) use state::{
    ExpectedAnswer, ModelIndex, ModelIndexState, ModelProposal, Project, Published, Spec, ok, refuse,
};
pub(crate) use veto::Vetoing;
