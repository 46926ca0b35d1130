//! What keys sign for OpenSSH (PROTOCOL.sshsig, PROTOCOL.u2f): messages, and the bytes around one that a FIDO key signs.

use crate::values::digest::{Sha256, Sha512};

pub(crate) const MAGIC: &[u8] = b"SSHSIG";
pub(crate) const RESERVED: &[u8] = b"";
pub(crate) const HASH: &[u8] = b"sha512";
/// The namespace of our own signatures by FIDO keys (D255), which `ssh-keygen -Y verify` is told with `-n`.
const OWN_NAMESPACE: &str = "countersign";
/// The application of every FIDO key that we know. It is OpenSSH's default.
pub(crate) const APPLICATION: &str = "ssh:";
/// The bit that a FIDO key sets if someone has touched it.
const PRESENT: u8 = 0x01;

/// What a FIDO key adds to the 64 bytes of its signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Touch {
    pub(crate) flags: u8,
    /// How often the key has signed. We do not check it: keys may leave it at zero.
    pub(crate) counter: [u8; 4],
}

impl Touch {
    pub(crate) fn is_present(self) -> bool {
        self.flags & PRESENT != 0
    }

    /// The 69 bytes that the key signs for a message.
    pub(crate) fn around(self, message: &[u8]) -> Vec<u8> {
        let (application, message) = (Sha256::of(APPLICATION.as_bytes()), Sha256::of(message));
        [application.as_bytes(), &[self.flags][..], &self.counter, message.as_bytes()].concat()
    }
}

/// What `ssh-keygen -Y sign` lets a key sign for content of this digest.
pub(crate) fn message(namespace: &str, digest: &Sha512) -> Vec<u8> {
    let fields = [namespace.as_bytes(), RESERVED, HASH, digest.as_bytes()].map(string);
    [MAGIC, &fields.concat()].concat()
}

/// What a FIDO key signs where other keys sign the digest itself (D255).
pub(crate) fn own_message(digest: &Sha512) -> Vec<u8> {
    message(OWN_NAMESPACE, digest)
}

/// Bytes with their length in front.
pub(crate) fn string(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).expect("fields are short");
    [&length.to_be_bytes(), bytes].concat()
}
