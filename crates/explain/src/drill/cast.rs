//! Who plays: a stand-in for each key of the real signers file, so that signatures can be made.

use std::sync::Arc;

use countersign_core::{
    documents::signers::{Role, Signer, SignersFile},
    values::{
        digest::Sha512,
        key::{PublicKey, SecretKey},
    },
};

/// Someone who can sign.
#[derive(Clone)]
pub(super) struct Actor {
    pub(super) secret: Arc<SecretKey>,
    /// The key that the stand-in stands for, with its name.
    pub(super) signer: Signer,
}

/// Whose key a stand-in is.
#[derive(Clone, Copy)]
enum Purpose {
    /// The key that is listed.
    Listed,
    /// The one that the same person has after a loss or a theft.
    Replacement,
    Thief,
}

impl Actor {
    /// Everyone whom the file lists, registrars too, in its order.
    pub(super) fn of_file(file: &SignersFile) -> Vec<Self> {
        let listed = list_keys(file).into_iter().map(|key| Self {
            secret: Arc::new(seeded(key.as_bytes(), Purpose::Listed)),
            signer: file.named_signer(key),
        });
        listed.collect()
    }

    /// The actor with a new key.
    pub(super) fn renewed(&self) -> Self {
        let secret = Arc::new(seeded(self.signer.key.as_bytes(), Purpose::Replacement));
        Self { secret, signer: self.signer.clone() }
    }

    /// A key of the thief's own.
    pub(super) fn thief() -> Self {
        let secret = seeded(b"a thief", Purpose::Thief);
        let signer = Signer { key: secret.public_key(), name: Some("thief".to_owned()) };
        Self { secret: Arc::new(secret), signer }
    }

    pub(super) fn key(&self) -> PublicKey {
        self.secret.public_key()
    }
}

/// Every key of the file once.
fn list_keys(file: &SignersFile) -> Vec<PublicKey> {
    let groups = Role::ALL.into_iter().filter_map(|role| file.explicit_groups(role)).flatten();
    let signers = groups.flat_map(|group| &group.signers).chain(file.registrars());
    let mut keys = Vec::new();
    for signer in signers {
        if !keys.contains(&signer.key) {
            keys.push(signer.key);
        }
    }
    keys
}

/// A key that is derived, so that a drill gives the same answer every time. It protects nothing.
fn seeded(bytes: &[u8], purpose: Purpose) -> SecretKey {
    let purpose: &[u8] = match purpose {
        Purpose::Listed => b"stand-in of ",
        Purpose::Replacement => b"replacement of ",
        Purpose::Thief => b"key of ",
    };
    let digest = Sha512::of(&[purpose, bytes].concat());
    SecretKey::from_seed(digest.as_bytes().first_chunk().expect("64 bytes have 32"))
}
