//! The attempts of a drill, and what came of them.

use std::{fmt, sync::Arc};

use countersign_core::documents::signers::{Signer, SignersFile};
use countersign_core::values::{digest::Sha512, key::PublicKey, key::SecretKey};
use thiserror::Error;

use crate::{progress::Names, strength::Act};

/// One act that was tried.
#[derive(Debug, Clone)]
pub struct DrillAttempt {
    pub act: Act,
    pub succeeds: bool,
    /// Whether it succeeds only if owners of stolen keys still have them, and sign as well.
    pub takes_stolen_keys: bool,
    /// A thief succeeds, but not if owners of stolen keys still have them and veto in time.
    pub is_stopped_by_owners: bool,
    /// The team fails because a thief stops it each time, and succeeds once the operator has blocked the stolen keys.
    pub is_freed_by_block: bool,
    pub steps: Vec<DrillStep>,
}

/// What someone did, and how the server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrillStep {
    /// The actor; `None` if it is no one in particular.
    pub who: Option<Signer>,
    pub text: String,
}

/// What one listed key allows, whatever the thresholds; `Display` says what a thief can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Nuisance {
    #[error("register releases under any name that is free, and wait for others to sign them")]
    RegisterReleases,
    #[error("withdraw every release that still collects signatures")]
    WithdrawReleases,
    #[error("object to every release, which all pages then show")]
    ObjectToReleases,
    #[error("put another proposal in the place of yours, again and again")]
    ReplaceProposals,
    #[error("begin a revocation of every release, which all pages then show")]
    BeginRevocations,
    #[error("state that the source of every release gives something else, which all pages then show")]
    StateFalseRebuilds,
}

/// The file cannot be played, which no valid file comes to.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct DrillFault(pub String);

impl DrillFault {
    pub(super) fn of(error: impl fmt::Display) -> Self {
        Self(error.to_string())
    }
}

// Who plays: a stand-in for each key of the real signers file, so that signatures can be made.

/// Someone who can sign.
#[derive(Clone)]
pub(super) struct Actor {
    pub(super) secret: Arc<SecretKey>,
    /// The key that the stand-in stands for, with its name.
    pub(super) signer: Signer,
}

impl Actor {
    /// Everyone whom the file lists, builders and registrars too, in its order.
    pub(super) fn of_file(file: &SignersFile) -> Vec<Self> {
        let registrars = file.registrars().iter().map(|registrar| registrar.key);
        let listed = Names::of([file]).in_order(file.keys().into_iter().chain(registrars));
        let stand_in =
            |signer: Signer| Self { secret: seeded(b"stand-in of ", signer.key.as_bytes()), signer };
        listed.into_iter().map(stand_in).collect()
    }

    /// The actor with the key that the same person has after a loss or a theft.
    pub(super) fn renewed(&self) -> Self {
        let secret = seeded(b"replacement of ", self.signer.key.as_bytes());
        Self { secret, signer: self.signer.clone() }
    }

    /// A key of the thief's own.
    pub(super) fn thief() -> Self {
        let secret = seeded(b"key of ", b"a thief");
        let signer = Signer { name: Some("thief".to_owned()), ..Signer::nameless(secret.public_key()) };
        Self { secret, signer }
    }

    pub(super) fn key(&self) -> PublicKey {
        self.secret.public_key()
    }
}

/// A key that is derived, so that a drill gives the same answer every time. It protects nothing.
fn seeded(purpose: &[u8], bytes: &[u8]) -> Arc<SecretKey> {
    let digest = Sha512::of(&[purpose, bytes].concat());
    Arc::new(SecretKey::from_seed(digest.as_bytes().first_chunk().expect("64 bytes have 32")))
}
