//! The keys of a witness: Ed25519 as everywhere, or ML-DSA-44 (D263), whose file is the seed in PKCS#8 (RFC 9881), as
//! other programs read it, behind a line with the name of the witness.

use std::path::Path;

use countersign_core::values::key::{decode_padded_base64, encode_base64};
use countersign_core::values::verifier_key::{KeyKind, VerifierKey, VerifierKeyError};
use countersign_log::{CheckpointSigner, MlDsaSecret};
use zeroize::Zeroizing;

use crate::keys::passphrase::SecretBytes;
use crate::keys::{MAX_KEY_FILE_BYTES, SigningKey, key_file::random, read_comment, warn_of_loose_mode};
use crate::words::{error::CliError, error::shown_path, output::Output};

const NAME: &str = "Name: ";
const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const END: &str = "-----END PRIVATE KEY-----";
/// The DER of PKCS#8 before the 32 bytes of the seed: version 0, the algorithm ML-DSA-44, and a seed alone.
const HEAD: &[u8; 22] =
    b"\x30\x34\x02\x01\x00\x30\x0b\x06\x09\x60\x86\x48\x01\x65\x03\x04\x03\x11\x04\x22\x80\x20";
const LINE: usize = 64;

#[derive(Debug)]
pub(crate) enum WitnessKey {
    Ed25519(SigningKey),
    MlDsa {
        secret: MlDsaSecret,
        /// What its file says.
        name: Option<String>,
    },
}

impl WitnessKey {
    /// Loads a key for a process that has no terminal.
    pub(crate) fn load(path: &Path, output: Output) -> Result<Self, CliError> {
        // A key that an agent holds has no file, or only a public one.
        let content =
            SecretBytes::read(path, MAX_KEY_FILE_BYTES).unwrap_or_else(|_| SecretBytes::new(Vec::new()));
        let text = std::str::from_utf8(content.as_bytes()).unwrap_or_default();
        if !text.contains(BEGIN) {
            return SigningKey::load_for_service(path, output).map(Self::Ed25519);
        }
        warn_of_loose_mode(path, output);
        let secret = read_seed(text).map(|seed| MlDsaSecret::from_seed(&seed)).ok_or_else(|| {
            CliError::other(
                format!("{} is no ML-DSA-44 key: it must be its seed alone, in PKCS#8", shown_path(path)),
                "`countersign admin witness init --type ml-dsa-44` makes one",
            )
        })?;
        let name = text.lines().find_map(|line| line.strip_prefix(NAME));
        Ok(Self::MlDsa { secret, name: name.map(|name| name.trim().to_owned()) })
    }

    /// The name of the witness in the file of this key; `None` if the file has no name.
    pub(crate) fn read_name(&self, path: &Path) -> Result<Option<String>, CliError> {
        match self {
            Self::Ed25519(_) => read_comment(path),
            Self::MlDsa { name, .. } => Ok(name.clone()),
        }
    }

    /// Signs as the witness of this name.
    pub(crate) fn into_signer(self, name: &str) -> Result<CheckpointSigner, VerifierKeyError> {
        match self {
            Self::Ed25519(key) => {
                let named = VerifierKey::new(name, KeyKind::Witness, key.public_key())?;
                Ok(key.into_checkpoint_signer(named))
            }
            Self::MlDsa { secret, .. } => CheckpointSigner::with_ml_dsa(name, secret),
        }
    }
}

fn read_seed(text: &str) -> Option<Zeroizing<[u8; 32]>> {
    let (_, rest) = text.split_once(BEGIN)?;
    let (body, _) = rest.split_once(END)?;
    let encoded = Zeroizing::new(body.split_ascii_whitespace().collect::<String>());
    let bytes = Zeroizing::new(decode_padded_base64(&encoded)?);
    Some(Zeroizing::new(bytes.strip_prefix(HEAD)?.try_into().ok()?))
}

/// A new ML-DSA-44 key: the text of its file, and the key under the name of the witness.
pub(crate) fn generate_ml_dsa(name: &str) -> Result<(SecretBytes, MlDsaSecret), CliError> {
    let seed = random()?;
    let encoded = Zeroizing::new(encode_base64(&Zeroizing::new([HEAD.as_slice(), seed.as_slice()].concat())));
    let (first, second) = encoded.split_at(LINE);
    let text = format!("{NAME}{name}\n{BEGIN}\n{first}\n{second}\n{END}\n");
    Ok((SecretBytes::new(text.into_bytes()), MlDsaSecret::from_seed(&seed)))
}
