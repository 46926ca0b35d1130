//! A new key pair, as `ssh-keygen -t ed25519` makes it.

use countersign_core::values::key::{PublicKey, SecretKey};
use ssh_key::private::{Ed25519Keypair, Ed25519PrivateKey, KeypairData};
use ssh_key::{Cipher, Kdf, LineEnding, PrivateKey, public::Ed25519PublicKey};

use crate::{keys::passphrase::SecretBytes, words::error::CliError};

/// The rounds of newer versions of ssh-keygen: a fraction of a second, for everyone who guesses too.
const BCRYPT_ROUNDS: u32 = 24;
const SALT_BYTES: usize = 16;

#[derive(Debug)]
pub(crate) struct NewKey {
    /// The text of the private key file.
    pub(crate) private: SecretBytes,
    pub(crate) public: PublicKey,
}

/// Generates a key. Without a `passphrase` the private key is not encrypted.
pub(crate) fn generate(comment: &str, passphrase: Option<&SecretBytes>) -> Result<NewKey, CliError> {
    let seed = SecretBytes::new(random(Ed25519PrivateKey::BYTE_SIZE)?);
    let private = Ed25519PrivateKey::try_from(seed.as_bytes()).map_err(unwritable)?;
    let public = SecretKey::from_seed(private.as_ref()).public_key();
    let pair = Ed25519Keypair { public: Ed25519PublicKey(*public.as_bytes()), private };
    let key = PrivateKey::new(KeypairData::from(pair), comment).map_err(unwritable)?;
    let key = match passphrase {
        Some(passphrase) => encrypt(&key, passphrase)?,
        None => key,
    };
    let text = key.to_openssh(LineEnding::LF).map_err(unwritable)?;
    Ok(NewKey { private: SecretBytes::new(text.as_bytes().to_vec()), public })
}

fn encrypt(key: &PrivateKey, passphrase: &SecretBytes) -> Result<PrivateKey, CliError> {
    let kdf = Kdf::Bcrypt { salt: random(SALT_BYTES)?, rounds: BCRYPT_ROUNDS };
    let check = getrandom::u32().map_err(no_randomness)?;
    key.encrypt_with(Cipher::Aes256Ctr, kdf, check, passphrase.as_bytes()).map_err(unwritable)
}

fn random(length: usize) -> Result<Vec<u8>, CliError> {
    let mut bytes = vec![0; length];
    getrandom::fill(&mut bytes).map_err(no_randomness)?;
    Ok(bytes)
}

fn no_randomness(error: getrandom::Error) -> CliError {
    CliError::other("the system gave no random bytes", "no key was made; check the system").because(error)
}

fn unwritable(error: ssh_key::Error) -> CliError {
    CliError::other("the key cannot be written in OpenSSH format", "try a shorter --comment").because(error)
}
