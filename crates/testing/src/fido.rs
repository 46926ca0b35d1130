//! Hardware keys with fixed secrets. They frame what they sign by code of their own, not by that of `core`.

use countersign_core::values::digest::{Sha256, Sha512};
use countersign_core::values::key::SecretKey;
use countersign_core::values::key::{PublicKey, Signature, encode_base64};
use ed25519_dalek::{Signer as _, SigningKey};

/// Touched by a person.
pub const PRESENT: u8 = 0x01;

/// A FIDO key of OpenSSH's type `sk-ssh-ed25519@openssh.com`.
#[derive(Debug, Clone)]
pub struct FidoKey(SigningKey);

/// The FIDO key that grows from the seed of 32 times `n`.
pub fn fido(n: u8) -> FidoKey {
    FidoKey(SigningKey::from_bytes(&[n; 32]))
}

/// A person's key of either format, which signs a digest.
pub trait SignsDigests {
    fn public_key(&self) -> PublicKey;
    fn sign(&self, digest: &Sha512) -> Signature;
}

impl SignsDigests for SecretKey {
    fn public_key(&self) -> PublicKey {
        self.public_key()
    }

    fn sign(&self, digest: &Sha512) -> Signature {
        self.sign(digest)
    }
}

impl SignsDigests for FidoKey {
    fn public_key(&self) -> PublicKey {
        PublicKey::from_bytes(self.0.verifying_key().to_bytes()).expect("a key")
    }

    /// Signs what other keys sign by their digest.
    fn sign(&self, digest: &Sha512) -> Signature {
        let fields = [b"countersign", &b""[..], b"sha512", digest.as_bytes()].map(prefixed);
        self.sign_message(&[b"SSHSIG", &fields.concat()[..]].concat(), PRESENT, 7)
    }
}

impl FidoKey {
    /// The key in OpenSSH's encoding.
    pub fn blob(&self) -> Vec<u8> {
        let key = self.public_key();
        let parts = [b"sk-ssh-ed25519@openssh.com", &key.as_bytes()[..], b"ssh:"];
        parts.map(prefixed).concat()
    }

    /// The line of its `.pub` file.
    pub fn line(&self) -> String {
        format!("sk-ssh-ed25519@openssh.com {} of a person", encode_base64(&self.blob()))
    }

    /// Signs a message, as an agent asks for it.
    pub fn sign_message(&self, message: &[u8], flags: u8, counter: u32) -> Signature {
        let behind = [&[flags][..], &counter.to_be_bytes()].concat();
        let (application, message) = (Sha256::of(b"ssh:"), Sha256::of(message));
        let signed = [application.as_bytes(), &behind[..], message.as_bytes()].concat();
        let all = [&self.0.sign(&signed).to_bytes()[..], &behind].concat();
        Signature::from_fido_bytes(all.try_into().expect("69 bytes"))
    }
}

fn prefixed(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).expect("it is short").to_be_bytes(), bytes].concat()
}
