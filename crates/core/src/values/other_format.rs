//! Signatures that other programs verify (D100, D101): over the `SHA256SUMS` of a release, as OpenSSH, minisign and OpenPGP
//! programs write them. A text has one form only: it is read, written again, and compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use blake2::{Blake2b512, Digest as _};
use sha1::Sha1;
use thiserror::Error;

use crate::json_words;
use crate::values::key::{KeyFormat, PublicKey, SecretKey, Signature, decode_padded_base64, encode_base64};
use crate::values::{bounds::OPENPGP_FILES, digest::Sha256, digest::Sha512};
use crate::values::{path::RepoPath, sshsig, sshsig::string, time::Timestamp};

/// A format besides our own. Sorted by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(rename_all = "lowercase"))]
pub enum OtherFormat {
    Minisign,
    Openpgp,
    Ssh,
}

/// The `SHA256SUMS` of a release, and the index that it was made from.
#[derive(Debug, Clone, Copy)]
pub struct ReleaseSums<'a> {
    pub index: &'a RepoPath,
    /// The time that the index says, which an OpenPGP signature has to name.
    pub mirrored_on: Timestamp,
    pub text: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FormatError {
    #[error("it is not in the one form that we accept for a signature of this key")]
    Form,
    #[error("it does not verify for the SHA256SUMS of the release")]
    Signature,
    #[error(
        "it signs a file by itself that the release does not have, or in a release of more than {OPENPGP_FILES}"
    )]
    NoSuchFile,
    #[error("its signature on a file does not verify for the digest that it states")]
    FileSignature,
}

json_words!(OtherFormat { Minisign = "minisign", Openpgp = "openpgp", Ssh = "ssh" }
    "must be \"ssh\", \"minisign\" or \"openpgp\"");

impl OtherFormat {
    /// Whether keys of this format can sign so. A FIDO key frames what it signs, which only OpenSSH understands.
    pub fn is_for(self, key: KeyFormat) -> bool {
        match key {
            KeyFormat::Ed25519 => true,
            KeyFormat::Fido => self == Self::Ssh,
        }
    }

    /// How many signatures of the key it takes, besides those on files by themselves. An agent that asks, asks so often.
    pub fn signature_count(self) -> usize {
        match self {
            Self::Minisign | Self::Openpgp => 2,
            Self::Ssh => 1,
        }
    }

    /// The text that the other program reads; `sign` is the key's own operation. Of `files`, which the signer has read, it
    /// signs those of the release by themselves if the format is OpenPGP.
    pub fn sign<E>(
        self,
        key: &PublicKey,
        sums: &ReleaseSums<'_>,
        files: &[OpenpgpFile],
        sign: impl Fn(&FormatMessage) -> Result<Signature, E>,
    ) -> Result<String, E> {
        match self {
            Self::Ssh => Ok(write_ssh(key, &sign(&ssh_message(sums.text))?)),
            Self::Minisign => {
                let signature = sign(&minisign_message(sums.text))?;
                let comment = trusted_comment(sums.index);
                let global = sign(&global_message(&signature, &comment))?;
                Ok(write_minisign(key, &comment, &Pair { signature, global }))
            }
            Self::Openpgp => {
                let certification = sign(&certification_message(key))?;
                let signature = sign(&openpgp_message(key, sums))?;
                let contents = openpgp_contents(sums).unwrap_or_default();
                let read = files.iter().map(|file| (file.sha256(), file));
                let read = read.filter(|(content, _)| contents.contains(content));
                // Copies of one file are one content, which is signed once.
                let signed = read.collect::<BTreeMap<_, _>>().into_iter().map(|(content, file)| {
                    let signature = sign(&file.message(sums))?;
                    Ok((content, FileSignature { digest: file.digest(sums), signature }))
                });
                let files = signed.collect::<Result<_, E>>()?;
                Ok(write_openpgp(key, sums, &OpenpgpSignatures { certification, signature, files }))
            }
        }
    }

    /// Whether `text` is the signature of `key`, in the one form that it can have.
    pub fn verify(self, text: &str, key: &PublicKey, sums: &ReleaseSums<'_>) -> Result<(), FormatError> {
        let check = |message: &FormatMessage, signature: &Signature| {
            key.verify_text(message.as_bytes(), signature).map_err(|_| FormatError::Signature)
        };
        match self {
            Self::Ssh => {
                let signature = parse_ssh(text, key).ok_or(FormatError::Form)?;
                check(&ssh_message(sums.text), &signature)
            }
            Self::Minisign => {
                let comment = trusted_comment(sums.index);
                let pair = parse_minisign(text, key, &comment).ok_or(FormatError::Form)?;
                check(&minisign_message(sums.text), &pair.signature)?;
                check(&global_message(&pair.signature, &comment), &pair.global)
            }
            Self::Openpgp => {
                let signed = parse_openpgp(text, key, sums).ok_or(FormatError::Form)?;
                check(&certification_message(key), &signed.certification)?;
                check(&openpgp_message(key, sums), &signed.signature)?;
                signed.verify_files(key, sums)
            }
        }
    }
}

impl fmt::Display for OtherFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

// The bytes that a key signs for other programs.

/// The bytes that a key signs for one of these formats. Only the formats in this folder make them, so no other bytes reach a key this
/// way (D34).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormatMessage(Vec<u8>);

impl FormatMessage {
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn sign_with(&self, key: &SecretKey) -> Signature {
        key.sign_text(&self.0)
    }

    pub fn is_signed_by(&self, key: &PublicKey, signature: &Signature) -> bool {
        key.verify_text(&self.0, signature).is_ok()
    }
}

// minisign's signatures: prehashed (`ED`) only, with a trusted comment that is not empty.
//
// The legacy kind (`Ed`) signs the bytes of a file themselves. A file of 64 bytes would then be what we sign (D34).

const PREHASHED: &[u8] = b"ED";
/// The kind by which minisign names keys, whatever they sign.
const KEY_KIND: &[u8] = b"Ed";
const UNTRUSTED: &str = "untrusted comment: signature of SHA256SUMS";
const TRUSTED: &str = "trusted comment: ";

/// The signature of the file, and the one that binds the trusted comment to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    pub signature: Signature,
    pub global: Signature,
}

/// What the key signs first: the 64 bytes of BLAKE2b-512.
pub fn minisign_message(sums: &str) -> FormatMessage {
    FormatMessage(Blake2b512::digest(sums.as_bytes()).to_vec())
}

/// What it signs then: more than 64 bytes, since the comment is not empty.
pub fn global_message(signature: &Signature, comment: &str) -> FormatMessage {
    FormatMessage([signature.ed25519_bytes(), comment.as_bytes()].concat())
}

/// Paths have no control characters, and neither has this.
pub fn trusted_comment(index: &RepoPath) -> String {
    format!("countersign {index}")
}

/// The id of a key. minisign chooses it at random. Ours follows from the key: the first 8 bytes of its SHA-256.
pub fn key_id(key: &PublicKey) -> [u8; 8] {
    let digest = Sha256::of(key.as_bytes());
    *digest.as_bytes().first_chunk().expect("32 bytes have a first 8")
}

/// The file that `minisign -V -p` reads.
pub fn write_public_key(key: &PublicKey) -> String {
    let id = key_id(key);
    let encoded = encode_base64(&[KEY_KIND, &id, key.as_bytes()].concat());
    // As minisign shows an id.
    format!("untrusted comment: minisign public key {:016X}\n{encoded}\n", u64::from_le_bytes(id))
}

pub fn write_minisign(key: &PublicKey, comment: &str, pair: &Pair) -> String {
    let signature = encode_base64(&[PREHASHED, &key_id(key), pair.signature.ed25519_bytes()].concat());
    let global = pair.global.to_base64();
    format!("{UNTRUSTED}\n{signature}\n{TRUSTED}{comment}\n{global}\n")
}

/// Parses the signatures in the text. Its kind, its key and its comments can only be these.
pub fn parse_minisign(text: &str, key: &PublicKey, comment: &str) -> Option<Pair> {
    let mut lines = text.strip_suffix('\n')?.splitn(4, '\n').skip(1);
    let (signature, _comment, global) = (lines.next()?, lines.next()?, lines.next()?);
    let blob = decode_padded_base64(signature)?;
    let global = decode_padded_base64(global)?.try_into().ok()?;
    let pair =
        Pair { signature: Signature::from_bytes(*blob.last_chunk()?), global: Signature::from_bytes(global) };
    (write_minisign(key, comment, &pair) == text).then_some(pair)
}

// SSHSIG (OpenSSH's PROTOCOL.sshsig): an Ed25519 key, namespace `file`, SHA-512, armored.

/// The namespace that `ssh-keygen -Y verify` is told with `-n`.
pub const NAMESPACE: &str = "file";

const VERSION: [u8; 4] = [0, 0, 0, 1];
const BEGIN: &str = "-----BEGIN SSH SIGNATURE-----\n";
const END: &str = "-----END SSH SIGNATURE-----\n";
const LINE_CHARS: usize = 70;

/// What the key signs: 96 bytes, which begin with `SSHSIG`. A FIDO key signs 69 bytes around them.
pub fn ssh_message(sums: &str) -> FormatMessage {
    FormatMessage(sshsig::message(NAMESPACE, &Sha512::of(sums.as_bytes())))
}

pub fn write_ssh(key: &PublicKey, signature: &Signature) -> String {
    let (format, all) = (signature.format(), signature.to_bytes());
    let (bytes, touch) = all.split_at(64);
    let signature = [&[format.ssh_type().as_bytes(), bytes].map(string).concat()[..], touch].concat();
    let blob = key.to_ssh_blob(format);
    let fields = [&blob, NAMESPACE.as_bytes(), sshsig::RESERVED, sshsig::HASH, &signature].map(string);
    let lines = base64_lines(&[sshsig::MAGIC, &VERSION, &fields.concat()].concat(), LINE_CHARS);
    format!("{BEGIN}{lines}\n{END}")
}

/// Bytes in base64, in lines of so many characters.
fn base64_lines(bytes: &[u8], line_chars: usize) -> String {
    let mut lines = String::new();
    for (position, character) in encode_base64(bytes).chars().enumerate() {
        if position > 0 && position.is_multiple_of(line_chars) {
            lines.push('\n');
        }
        lines.push(character);
    }
    lines
}

/// Parses the signature in the armor. Its key, namespace and hash can only be these.
pub fn parse_ssh(text: &str, key: &PublicKey) -> Option<Signature> {
    // Before anything is copied: each text of a key and format has the same length.
    let longest = [Signature::from_bytes([0; 64]), Signature::LONGEST];
    let like = longest.iter().find(|like| text.len() == write_ssh(key, like).len())?;
    let armored = text.strip_prefix(BEGIN)?.strip_suffix(END)?;
    let blob = decode_padded_base64(&armored.replace('\n', ""))?;
    let signature = match like.format() {
        KeyFormat::Ed25519 => Signature::from_bytes(*blob.last_chunk()?),
        KeyFormat::Fido => Signature::from_fido_bytes(*blob.last_chunk()?),
    };
    (write_ssh(key, &signature) == text).then_some(signature)
}

// OpenPGP (RFC 4880, RFC 9580): version 4, EdDSA with Ed25519 (algorithm 22), SHA-256. gpg, sqv and their relatives read it.
//
// What the key signs are the 32 bytes of a SHA-256, so it is never one of the other kinds, which are longer (D34).

/// The time at which every key was made, 2020-01-01T00:00:00Z, so that a key's certificate follows from the key.
const KEY_TIME: u32 = 1_577_836_800;
const PGP_VERSION: u8 = 4;
const EDDSA: u8 = 22;
const WITH_SHA256: u8 = 8;
/// The name of the curve: a length, and the object identifier of Ed25519.
const CURVE: [u8; 10] = [9, 0x2b, 0x06, 0x01, 0x04, 0x01, 0xda, 0x47, 0x0f, 0x01];
/// The sign of a plain point before its 32 bytes.
const NATIVE_POINT: u8 = 0x40;
/// What a key can do: certify and sign.
const KEY_FLAGS: [u8; 3] = [2, 27, 0x03];

const SIGNATURE_PACKET: u8 = 2;
const KEY_PACKET: u8 = 6;
const USER_ID_PACKET: u8 = 13;

/// The signature by which a key names its owner, the one on `SHA256SUMS`, and those on files by themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenpgpSignatures {
    pub certification: Signature,
    pub signature: Signature,
    /// By the SHA-256 of the content, as `SHA256SUMS` has it.
    pub files: BTreeMap<Sha256, FileSignature>,
}

/// A signature on one file by itself, and the digest that was signed. Only those who have the content can say whether the
/// digest is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSignature {
    pub digest: Sha256,
    pub signature: Signature,
}

/// What an OpenPGP signature is about.
struct PgpSigned<'a> {
    /// The type of the signature.
    kind: u8,
    time: u32,
    flags: &'a [u8],
    /// The bytes that are signed, in parts.
    content: [&'a [u8]; 2],
}

/// The text that is stored for one signer: the armored signature packets on the certificate and on `SHA256SUMS`, and behind
/// them a line for each file that was signed by itself.
pub fn write_openpgp(key: &PublicKey, sums: &ReleaseSums<'_>, signed: &OpenpgpSignatures) -> String {
    let packets =
        [certification_packet(key, &signed.certification), openpgp_packet(key, sums, &signed.signature)];
    let mut text = armor("SIGNATURE", &packets.concat());
    for (content, FileSignature { digest, signature }) in &signed.files {
        text += &format!("{content} {digest} {}\n", signature.to_base64());
    }
    text
}

/// The length of a line: two digests and a signature, each with what ends it.
const FILE_LINE_BYTES: usize = 65 + 65 + 89;
const END_OF_PACKETS: &str = "\n-----END PGP SIGNATURE-----\n";

/// Parses the signatures in the armor. All else in it follows from the key, the time and the text.
pub fn parse_openpgp(text: &str, key: &PublicKey, sums: &ReleaseSums<'_>) -> Option<OpenpgpSignatures> {
    // Before anything is copied: no text of a key is longer.
    let longest = Signature::from_bytes([0xff; 64]);
    let longest = OpenpgpSignatures { certification: longest, signature: longest, files: BTreeMap::new() };
    if text.len() > write_openpgp(key, sums, &longest).len() + OPENPGP_FILES * FILE_LINE_BYTES {
        return None;
    }
    let encoded = text.strip_prefix("-----BEGIN PGP SIGNATURE-----\n\n")?;
    let (encoded, lines) = encoded.split_once(END_OF_PACKETS)?;
    let (encoded, _) = encoded.rsplit_once("\n=")?;
    let bytes = decode_padded_base64(&encoded.replace('\n', ""))?;
    let (certification, rest) = split_signature(&bytes)?;
    let (signature, _) = split_signature(rest)?;
    let files = lines.lines().map(parse_file_line).collect::<Option<_>>()?;
    let signed = OpenpgpSignatures { certification, signature, files };
    (write_openpgp(key, sums, &signed) == text).then_some(signed)
}

fn parse_file_line(line: &str) -> Option<(Sha256, FileSignature)> {
    let (content, rest) = line.split_once(' ')?;
    let (digest, signature) = rest.split_once(' ')?;
    let signature = Signature::from_bytes(decode_padded_base64(signature)?.try_into().ok()?);
    Some((Sha256::parse(content)?, FileSignature { digest: Sha256::parse(digest)?, signature }))
}

/// The contents of a release that are signed by themselves: all, or none if there are more than [`OPENPGP_FILES`].
pub fn openpgp_contents(sums: &ReleaseSums<'_>) -> Option<BTreeSet<Sha256>> {
    let mut contents = BTreeSet::new();
    for content in sums.text.lines().filter_map(|line| Sha256::parse(line.split_once("  ")?.0)) {
        contents.insert(content);
        if contents.len() > OPENPGP_FILES {
            return None;
        }
    }
    Some(contents)
}

impl OpenpgpSignatures {
    /// Verifies what can be verified without the contents: the digests are the signer's word.
    fn verify_files(&self, key: &PublicKey, sums: &ReleaseSums<'_>) -> Result<(), FormatError> {
        if self.files.is_empty() {
            return Ok(());
        }
        let contents = openpgp_contents(sums).ok_or(FormatError::NoSuchFile)?;
        for (content, FileSignature { digest, signature }) in &self.files {
            if !contents.contains(content) {
                return Err(FormatError::NoSuchFile);
            }
            key.verify_text(digest.as_bytes(), signature).map_err(|_| FormatError::FileSignature)?;
        }
        Ok(())
    }
}

/// A file of the signer's own, hashed while it is read. It is the only way to a signature on a file by itself, so that a
/// key signs the digest of a content that was there, and no 32 bytes that someone names (D34, D254).
#[derive(Debug, Clone, Default)]
pub struct OpenpgpFile(sha2::Sha256);

impl OpenpgpFile {
    pub fn update(&mut self, block: &[u8]) {
        self.0.update(block);
    }

    /// The SHA-256 of what was read.
    fn sha256(&self) -> Sha256 {
        Sha256::from_bytes(self.0.clone().finalize().into())
    }

    /// What a key signs of the file.
    pub fn message(&self, sums: &ReleaseSums<'_>) -> FormatMessage {
        FormatMessage(self.digest(sums).as_bytes().to_vec())
    }

    /// Hashes the content, and after it the head of the signature. That names no key, so one digest serves all signers.
    fn digest(&self, sums: &ReleaseSums<'_>) -> Sha256 {
        let head = file_head(sums);
        let hasher = self.0.clone().chain_update(&head).chain_update(head_end(&head));
        Sha256::from_bytes(hasher.finalize().into())
    }
}

/// The signature packet on a file by itself, in the release of these sums.
pub fn openpgp_file_packet(key: &PublicKey, sums: &ReleaseSums<'_>, signed: &FileSignature) -> Vec<u8> {
    signature_packet(&file_head(sums), key, signed.digest.as_bytes(), &signed.signature)
}

/// A key with its owner's name, the key itself, as OpenPGP programs keep it in a keyring.
pub fn openpgp_certificate(key: &PublicKey, certification: &Signature) -> Vec<u8> {
    let user_id = packet(USER_ID_PACKET, key.to_string().as_bytes());
    [packet(KEY_PACKET, &key_body(key)), user_id, certification_packet(key, certification)].concat()
}

/// The signature packet on `SHA256SUMS`. Those of several keys, one after the other, are one file.
pub fn openpgp_packet(key: &PublicKey, sums: &ReleaseSums<'_>, signature: &Signature) -> Vec<u8> {
    on_sums(sums).packet(key, signature)
}

/// The fingerprint by which OpenPGP programs name a key.
pub fn openpgp_fingerprint(key: &PublicKey) -> [u8; 20] {
    Sha1::digest(hashed_key(key)).into()
}

/// Armors bytes for OpenPGP programs. gpg 2.2 misreads the end of an armor that has neither padding nor a checksum.
pub fn armor(kind: &str, bytes: &[u8]) -> String {
    let (lines, checksum) = (base64_lines(bytes, PGP_LINE_CHARS), encode_base64(&checksum(bytes)));
    format!("-----BEGIN PGP {kind}-----\n\n{lines}\n={checksum}\n-----END PGP {kind}-----\n")
}

/// The CRC-24 of OpenPGP.
fn checksum(bytes: &[u8]) -> [u8; 3] {
    let sum = bytes.iter().fold(0x00b7_04ce_u32, |sum, byte| {
        (0..8).fold(sum ^ (u32::from(*byte) << 16), |sum, _| {
            let shifted = sum << 1;
            if shifted & 0x0100_0000 == 0 { shifted } else { shifted ^ 0x0186_4cfb }
        })
    });
    let [_, sum @ ..] = sum.to_be_bytes();
    sum
}

const PGP_LINE_CHARS: usize = 64;

/// What the key signs to name its owner.
pub fn certification_message(key: &PublicKey) -> FormatMessage {
    let (key_part, user_id_part) = (hashed_key(key), hashed_user_id(key));
    certified(&key_part, &user_id_part).message(key)
}

/// What the key signs of a file.
pub fn openpgp_message(key: &PublicKey, sums: &ReleaseSums<'_>) -> FormatMessage {
    on_sums(sums).message(key)
}

fn certification_packet(key: &PublicKey, certification: &Signature) -> Vec<u8> {
    let (key_part, user_id_part) = (hashed_key(key), hashed_user_id(key));
    certified(&key_part, &user_id_part).packet(key, certification)
}

fn certified<'a>(key_part: &'a [u8], user_id_part: &'a [u8]) -> PgpSigned<'a> {
    PgpSigned { kind: 0x13, time: KEY_TIME, flags: &KEY_FLAGS, content: [key_part, user_id_part] }
}

fn on_sums<'a>(sums: &ReleaseSums<'a>) -> PgpSigned<'a> {
    PgpSigned { kind: 0x00, time: pgp_time(sums), flags: &[], content: [sums.text.as_bytes(), &[]] }
}

/// OpenPGP's time ends in 2106. A later release has the last time that there is.
fn pgp_time(sums: &ReleaseSums<'_>) -> u32 {
    u32::try_from(sums.mirrored_on.unix_seconds()).unwrap_or(u32::MAX)
}

/// The head of a signature on a file by itself: the time alone is signed with the content.
fn file_head(sums: &ReleaseSums<'_>) -> Vec<u8> {
    head(0x00, &time_part(pgp_time(sums)))
}

/// The head of a signature, with the parts that are signed.
fn head(kind: u8, hashed: &[u8]) -> Vec<u8> {
    let begin = [PGP_VERSION, kind, EDDSA, WITH_SHA256];
    [&begin[..], &length_bytes::<2>(hashed), hashed].concat()
}

/// What is hashed after the head.
fn head_end(head: &[u8]) -> Vec<u8> {
    [&[PGP_VERSION, 0xff][..], &length_bytes::<4>(head)].concat()
}

fn time_part(time: u32) -> Vec<u8> {
    [&[5, 2][..], &time.to_be_bytes()].concat()
}

impl PgpSigned<'_> {
    /// The head of the signature, which is signed with the content.
    fn head(&self, key: &PublicKey) -> Vec<u8> {
        let issuer = [&[22, 33, PGP_VERSION][..], &openpgp_fingerprint(key)].concat();
        head(self.kind, &[time_part(self.time), self.flags.to_vec(), issuer].concat())
    }

    fn message(&self, key: &PublicKey) -> FormatMessage {
        let head = self.head(key);
        let all = [self.content[0], self.content[1], &head, &head_end(&head)].concat();
        FormatMessage(Sha256::of(&all).as_bytes().to_vec())
    }

    fn packet(&self, key: &PublicKey, signature: &Signature) -> Vec<u8> {
        signature_packet(&self.head(key), key, self.message(key).as_bytes(), signature)
    }
}

fn signature_packet(head: &[u8], key: &PublicKey, digest: &[u8], signature: &Signature) -> Vec<u8> {
    let issuer = [&[9, 16][..], &openpgp_fingerprint(key)[12..]].concat();
    let (r, s) = signature.ed25519_bytes().split_at(32);
    let issuer_length = length_bytes::<2>(&issuer);
    let body = [head, &issuer_length, &issuer, &digest[..2], &write_number(r), &write_number(s)];
    packet(SIGNATURE_PACKET, &body.concat())
}

/// A packet. Ours are all short, so that one byte says how long they are.
fn packet(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u8::try_from(body.len()).ok().filter(|length| *length < 192).expect("packets are short");
    [&[0xc0 | tag, length][..], body].concat()
}

fn key_body(key: &PublicKey) -> Vec<u8> {
    let point = [&[NATIVE_POINT][..], key.as_bytes()].concat();
    let (version, time) = ([PGP_VERSION], KEY_TIME.to_be_bytes());
    [&version[..], &time, &[EDDSA], &CURVE, &write_number(&point)].concat()
}

/// The key as it is hashed.
fn hashed_key(key: &PublicKey) -> Vec<u8> {
    let body = key_body(key);
    [&[0x99][..], &length_bytes::<2>(&body), &body].concat()
}

fn hashed_user_id(key: &PublicKey) -> Vec<u8> {
    let user_id = key.to_string();
    [&[0xb4][..], &length_bytes::<4>(user_id.as_bytes()), user_id.as_bytes()].concat()
}

fn length_bytes<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let length = u32::try_from(bytes.len()).expect("parts are short").to_be_bytes();
    *length.last_chunk().expect("a length has at most 4 bytes")
}

/// A number as OpenPGP writes it: how many bits it has, and its bytes without leading zeros.
fn write_number(bytes: &[u8]) -> Vec<u8> {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let bytes = &bytes[zeros..];
    let bits = 8 * bytes.len() - bytes.first().map_or(0, |first| first.leading_zeros() as usize);
    [&u16::try_from(bits).expect("numbers are short").to_be_bytes()[..], bytes].concat()
}

/// The two numbers at the end of the signature packet that these bytes begin with, and what follows the packet.
fn split_signature(bytes: &[u8]) -> Option<(Signature, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<2>()?;
    let (body, rest) = rest.split_at_checked(usize::from(head[1]))?;
    let (hashed, unhashed) = (usize::from(*body.get(5)?), 10);
    let mut numbers = body.get(6 + hashed + 2 + unhashed + 2..)?;
    let mut signature = [0; 64];
    for part in signature.chunks_exact_mut(32) {
        let (bits, behind) = numbers.split_first_chunk::<2>()?;
        let (number, behind) = behind.split_at_checked(usize::from(u16::from_be_bytes(*bits)).div_ceil(8))?;
        part.get_mut(32_usize.checked_sub(number.len())?..)?.copy_from_slice(number);
        numbers = behind;
    }
    Some((Signature::from_bytes(signature), rest))
}
