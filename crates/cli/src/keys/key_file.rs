//! Reads what is in a key file, whose content tells, not its name; and makes new keys.

use countersign_core::values::key::{KeyError, KeyFormat, PublicKey, SecretKey, encode_base64};
use countersign_core::values::{shown::shown_text, wire};
use ssh_key::encoding::{Decode, DecodePem as _, Reader, pem::PemLabel};
use ssh_key::private::{Ed25519Keypair, Ed25519PrivateKey, KeypairData};
use ssh_key::{Cipher, Kdf, KdfAlg, LineEnding, PrivateKey, encoding, public::Ed25519PublicKey};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::{keys::passphrase::SecretBytes, words::error::CliError};

const OPENSSH_LABEL: &str = "OPENSSH PRIVATE KEY";

#[derive(Debug)]
pub(crate) enum KeyFile {
    Private(Box<OpenSshKey>),
    Public(PublicHalf),
}

/// A public key, and what its file says of its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PublicHalf {
    pub(crate) key: PublicKey,
    /// `None` if the spelling does not say it.
    pub(crate) format: Option<KeyFormat>,
}

/// An OpenSSH private key that says of itself to be an Ed25519 key; it may be encrypted.
#[derive(Debug)]
pub(crate) struct OpenSshKey(PrivateKey);

/// Why a file or a line is no key for us. The texts end sentences that begin with "it is" or the like.
#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum Unusable {
    #[error("a FIDO key that is not Ed25519 ({0})")]
    Fido(String),
    #[error("a FIDO key that was made for another application than `ssh:`")]
    Application,
    #[error("a certificate ({0}), not a plain key")]
    Certificate(String),
    #[error("a key of type {0}")]
    OtherType(String),
    #[error("a private key in PEM format ({0}), not in OpenSSH format")]
    Pem(String),
    #[error("a PuTTY key file")]
    Putty,
    #[error("a public key in the format of RFC 4716")]
    Rfc4716,
    #[error("a damaged key: {0}")]
    Damaged(String),
    #[error("a damaged key: its public half does not belong to its private half")]
    Mismatch,
    #[error("encrypted with a method that is not supported: {0}")]
    Cipher(String),
    #[error("a list of several keys")]
    Several,
    #[error("no key at all")]
    Nothing,
}

#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum UnlockError {
    /// The passphrase or the file is wrong: encryption without a check sum cannot tell the one from the other.
    #[error("the passphrase is wrong (or the file is damaged)")]
    Passphrase,
    #[error("{0}")]
    Key(#[from] Unusable),
}

impl Unusable {
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::Fido(_) => "`ssh-keygen -t ed25519-sk` makes one that works, if the device can",
            Self::Application => "make one without `-O application`: `ssh-keygen -t ed25519-sk`",
            Self::Certificate(_) => "use the plain key that the certificate is for: the .pub file beside it",
            Self::OtherType(_) | Self::Nothing => {
                "only Ed25519 works: `countersign keygen` or `ssh-keygen -t ed25519` makes a key"
            }
            Self::Pem(_) => {
                "only Ed25519 in OpenSSH format works: `countersign keygen` or `ssh-keygen -t ed25519` makes a key"
            }
            Self::Putty => "PuTTYgen can export an Ed25519 key: Conversions, Export OpenSSH key",
            Self::Rfc4716 => "`ssh-keygen -i -f FILE` converts it",
            Self::Damaged(_) | Self::Mismatch => {
                "check that it was copied whole, or restore it from a backup"
            }
            Self::Cipher(_) => "`ssh-keygen -p -f FILE` encrypts it anew with the usual method",
            Self::Several => "give a file with one key",
        }
    }
}

impl KeyFile {
    pub(crate) fn parse(content: &[u8]) -> Result<Self, Unusable> {
        let content = content.trim_ascii();
        let text = String::from_utf8_lossy(content);
        if let Some(rest) = text.strip_prefix("-----BEGIN ") {
            let label = rest.split("-----").next().unwrap_or_default();
            return match label {
                OPENSSH_LABEL => OpenSshKey::parse_file(content),
                other => Err(Unusable::Pem(shown_text(other))),
            };
        }
        if text.starts_with("PuTTY-User-Key-File-") {
            return Err(Unusable::Putty);
        }
        if text.starts_with("---- BEGIN SSH2 ") {
            return Err(Unusable::Rfc4716);
        }
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        match (lines.next(), lines.next()) {
            (Some(line), None) => parse_public_line(line).map(Self::Public),
            (Some(line), Some(_)) => parse_public_line(line).and(Err(Unusable::Several)),
            (None, _) => Err(Unusable::Nothing),
        }
    }
}

/// Parses a public key in any spelling; of an OpenSSH line, the comment may be anything.
pub(crate) fn parse_public_line(line: &str) -> Result<PublicHalf, Unusable> {
    let mut words = line.split_ascii_whitespace();
    let (first, second) = (words.next().unwrap_or_default(), words.next());
    if let Some(encoded) = second
        && is_ssh_type(first)
    {
        check_type(first)?;
        return PublicKey::parse_with_format(&format!("{first} {encoded}"))
            .map(|(key, format)| PublicHalf { key, format })
            .map_err(|error| match error {
                KeyError::Application => Unusable::Application,
                error => Unusable::Damaged(error.to_string()),
            });
    }
    match PublicKey::parse(line) {
        Ok(key) => Ok(PublicHalf { key, format: None }),
        Err(error) if line.starts_with(wire::PUBLIC_KEY_PREFIX) => Err(Unusable::Damaged(error.to_string())),
        Err(_) => Err(Unusable::Nothing),
    }
}

/// Whether a word can be the type at the start of an OpenSSH public key line.
pub(crate) fn is_ssh_type(word: &str) -> bool {
    ["ssh-", "sk-", "ecdsa-"].iter().any(|prefix| word.starts_with(prefix))
}

fn check_type(name: &str) -> Result<KeyFormat, Unusable> {
    let shown = || shown_text(name);
    KeyFormat::of_ssh_type(name).ok_or_else(|| match name {
        _ if name.contains("-cert-v") => Unusable::Certificate(shown()),
        _ if name.starts_with("sk-") => Unusable::Fido(shown()),
        _ => Unusable::OtherType(shown()),
    })
}

impl OpenSshKey {
    /// Parses the text of a private key file. That of a FIDO key holds no secret, only its public half and a handle,
    /// with which an agent and the device sign together.
    fn parse_file(pem: &[u8]) -> Result<KeyFile, Unusable> {
        let header = Header::decode_pem(pem).map_err(|error| Unusable::Damaged(error.to_string()))?;
        match check_type(&header.key_type)? {
            KeyFormat::Ed25519 => Self::parse(pem, &header).map(Box::new).map(KeyFile::Private),
            KeyFormat::Fido => {
                parse_public_line(&format!("{} {}", header.key_type, encode_base64(&header.public)))
                    .map(KeyFile::Public)
            }
        }
    }

    fn parse(pem: &[u8], header: &Header) -> Result<Self, Unusable> {
        // 3DES has a name in the library, but no code that is compiled in.
        let cipher = header.cipher.parse::<Cipher>().ok().filter(|cipher| *cipher != Cipher::TdesCbc);
        if cipher.is_none() || header.kdf.parse::<KdfAlg>().is_err() {
            return Err(Unusable::Cipher(shown_text(&format!("{}, {}", header.cipher, header.kdf))));
        }
        let key = PrivateKey::from_openssh(pem).map_err(|error| match error {
            ssh_key::Error::PublicKey => Unusable::Mismatch,
            other => Unusable::Damaged(other.to_string()),
        })?;
        Ok(Self(key))
    }

    /// The comment; empty in a key that is encrypted.
    pub(crate) fn comment(&self) -> &str {
        self.0.comment().as_str_lossy()
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.0.is_encrypted()
    }

    /// The public key as the file names it, which the private half does not prove if it is encrypted.
    pub(crate) fn public_key(&self) -> Result<PublicKey, Unusable> {
        let named = self.0.public_key().key_data().ed25519().ok_or(Unusable::Mismatch)?;
        PublicKey::from_bytes(named.0).map_err(|_| Unusable::Mismatch)
    }

    /// The key itself, where it is not encrypted.
    pub(crate) fn read(&self) -> Result<SecretKey, Unusable> {
        read_secret(&self.0)
    }

    pub(crate) fn unlock(&self, passphrase: &[u8]) -> Result<SecretKey, UnlockError> {
        match self.0.decrypt(passphrase) {
            Ok(key) => Ok(read_secret(&key)?),
            Err(ssh_key::Error::PublicKey) => Err(Unusable::Mismatch.into()),
            Err(_) => Err(UnlockError::Passphrase),
        }
    }
}

/// The file names its public half in two or three places, and any of them may lie: what is signed with must be what is
/// shown and listed.
fn read_secret(key: &PrivateKey) -> Result<SecretKey, Unusable> {
    let pair = key.key_data().ed25519().ok_or(Unusable::Mismatch)?;
    let secret = SecretKey::from_seed(pair.private.as_ref());
    let named = key.public_key().key_data().ed25519().ok_or(Unusable::Mismatch)?;
    let public = secret.public_key();
    if public.as_bytes() == &pair.public.0 && public.as_bytes() == &named.0 {
        Ok(secret)
    } else {
        Err(Unusable::Mismatch)
    }
}

/// The part of a private key file that is never encrypted. Read on its own because it names the type of keys that
/// `PrivateKey` does not know.
struct Header {
    cipher: String,
    kdf: String,
    key_type: String,
    /// The public key in OpenSSH's encoding.
    public: Vec<u8>,
}

impl PemLabel for Header {
    const PEM_LABEL: &'static str = OPENSSH_LABEL;
}

impl Decode for Header {
    type Error = encoding::Error;

    fn decode(reader: &mut impl Reader) -> encoding::Result<Self> {
        let mut magic = [0; 15];
        reader.read(&mut magic)?;
        if &magic != b"openssh-key-v1\0" {
            return Err(encoding::Error::CharacterEncoding);
        }
        let (cipher, kdf) = (String::decode(reader)?, String::decode(reader)?);
        reader.drain_prefixed()?;
        let _keys = u32::decode(reader)?;
        let public = Vec::decode(reader)?;
        let key_type = String::decode(&mut public.as_slice())?;
        reader.drain(reader.remaining_len())?;
        Ok(Self { cipher, kdf, key_type, public })
    }
}

// A new key pair, as `ssh-keygen -t ed25519` makes it.

/// The rounds of newer versions of ssh-keygen: a fraction of a second, for everyone who guesses too.
const BCRYPT_ROUNDS: u32 = 24;

#[derive(Debug)]
pub(crate) struct NewKey {
    /// The text of the private key file.
    pub(crate) private: SecretBytes,
    pub(crate) public: PublicKey,
}

/// Generates a key. Without a `passphrase` the private key is not encrypted.
pub(crate) fn generate(comment: &str, passphrase: Option<&SecretBytes>) -> Result<NewKey, CliError> {
    let seed = random()?;
    let public = SecretKey::from_seed(&seed).public_key();
    let private = Ed25519PrivateKey::from_bytes(&seed);
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
    let kdf = Kdf::Bcrypt { salt: random::<16>()?.to_vec(), rounds: BCRYPT_ROUNDS };
    let check = getrandom::u32().map_err(no_randomness)?;
    key.encrypt_with(Cipher::Aes256Ctr, kdf, check, passphrase.as_bytes()).map_err(unwritable)
}

pub(super) fn random<const N: usize>() -> Result<Zeroizing<[u8; N]>, CliError> {
    let mut bytes = Zeroizing::new([0; N]);
    getrandom::fill(bytes.as_mut_slice()).map_err(no_randomness)?;
    Ok(bytes)
}

fn no_randomness(error: getrandom::Error) -> CliError {
    CliError::other("the system gave no random bytes", "no key was made; check the system").because(error)
}

fn unwritable(error: ssh_key::Error) -> CliError {
    CliError::other("the key cannot be written in OpenSSH format", "try a shorter --comment").because(error)
}
