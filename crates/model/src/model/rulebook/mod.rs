//! The specification: what the server stores, and what it answers.

mod files;
mod propose;
mod read;
mod sign;
mod signers;
mod state;
mod statements;

pub(crate) use crate::model::rulebook::signers::{Config, ModelGroup, ModelRole};
pub(crate) use crate::model::rulebook::state::{
    ExpectedAnswer, ModelIndex, ModelIndexState, ModelProposal, Project, Published, Spec, ok, refuse,
};
pub(crate) use crate::model::rulebook::statements::{Objecting, Rebuilding, Revoking, Vetoing, Withdrawing};
pub(crate) use crate::model::rulebook::{propose::Proposing, sign::SignedPath, sign::Submitted};
