//! The formats of exports: signatures on `SHA256SUMS` for minisign, ssh-keygen and openssl, each with its script.

use std::collections::BTreeSet;

use countersign_core::values::other_format::{
    NAMESPACE, OtherFormat, ReleaseSums, trusted_comment, write_public_key,
};
use countersign_core::values::{digest::Sha256, key::PublicKey, key::encode_base64, wire};
use countersign_core::{documents::layout, documents::signatures::OtherFormatsFile, rules::quorum};

use crate::commands::export::release::{
    ExportedFile, ExportedRelease, ExportedSigner, SHA256SUMS, ToolScript, expect,
};
use crate::{client::state::Shown, words::error::CliError};

/// Digests with the programs that every system has.
const PLAIN: &str = include_str!("plain.sh");

/// The signatures of a release in one format. They verify, and they are enough.
#[derive(Debug)]
pub(super) struct FormatSignatures {
    format: OtherFormat,
    file: OtherFormatsFile,
}

impl FormatSignatures {
    pub(super) fn find(
        shown: &Shown,
        release: &ExportedRelease<'_>,
        format: OtherFormat,
    ) -> Result<Self, CliError> {
        let index = &release.artifact.path;
        let file = shown.parsed(&layout::other_formats_of(index), OtherFormatsFile::parse)?;
        let sums = ReleaseSums { index, text: &release.sha256sums };
        let mut file = file.unwrap_or_default().keep_verifying(&sums);
        file.entries.retain(|_, texts| texts.contains_key(&format));
        let signed: BTreeSet<PublicKey> = file.entries.keys().copied().collect();
        if quorum::is_met(release.groups(), &signed) {
            return Ok(Self { format, file });
        }
        Err(CliError::other(
            format!("too few have signed {index} for {format}: {}", signed.len()),
            "`--for openssl` needs our own signatures only. For later releases, `countersign signers edit PROJECT \
             --format ssh,minisign` asks signers for more",
        ))
    }

    pub(super) fn text_of(&self, signer: &ExportedSigner<'_>) -> Option<&str> {
        self.file.entries.get(&signer.signer.key)?.get(&self.format).map(String::as_str)
    }
}

impl ToolScript {
    /// The script for signatures on `SHA256SUMS`. The tools read their files leniently, so it has the digest of every file
    /// that was exported.
    pub(super) fn render_for(
        mut self,
        release: &ExportedRelease<'_>,
        signatures: &FormatSignatures,
        files: &[ExportedFile],
    ) -> String {
        let others = files.iter().filter(|file| file.name != SHA256SUMS);
        self.expected.extend(others.map(|file| expect(&file.name, &file.bytes)));
        self.functions.push_str(PLAIN);
        self.render(release, |signer| signatures.text_of(signer).is_some())
    }
}

// `--for minisign`: signatures on `SHA256SUMS` as `minisign -V` reads them.

const MINISIGN_CHECKS: &str = "\
#   - every signature below holds: `minisign -V -H` over SHA256SUMS, with the trusted comment of this release,";

pub(super) fn list_minisign_files(
    release: &ExportedRelease<'_>,
    signatures: &FormatSignatures,
) -> Vec<ExportedFile> {
    let mut files = vec![ExportedFile::new(SHA256SUMS, release.sha256sums.as_str())];
    for signer in &release.signers {
        let key = write_public_key(&signer.signer.key);
        files.push(ExportedFile::new(format!("keys/{}.pub", signer.id), key));
        if let Some(text) = signatures.text_of(signer) {
            files.push(ExportedFile::new(format!("signatures/{}.minisig", signer.id), text));
        }
    }
    files
}

pub(super) fn minisign_script(release: &ExportedRelease<'_>) -> ToolScript {
    // A path is text from outside, so the script has its digest only.
    let comment = Sha256::of(trusted_comment(&release.artifact.path).as_bytes());
    ToolScript {
        needs: "minisign 0.10 or newer",
        checks: MINISIGN_CHECKS,
        functions: include_str!("minisign.sh").to_owned(),
        expected: vec![format!("comment {comment}")],
        spell: encode_minisign_key,
    }
}

/// The second line of the file with the key.
fn encode_minisign_key(key: &PublicKey) -> String {
    write_public_key(key).lines().nth(1).unwrap_or_default().to_owned()
}

// `--for ssh`: signatures on `SHA256SUMS` as `ssh-keygen -Y verify` reads them.

const SSH_CHECKS: &str =
    "#   - every signature below holds: `ssh-keygen -Y verify` over SHA256SUMS, namespace `file`,";

pub(super) fn list_ssh_files(
    release: &ExportedRelease<'_>,
    signatures: &FormatSignatures,
) -> Vec<ExportedFile> {
    let mut files = vec![
        ExportedFile::new(SHA256SUMS, release.sha256sums.as_str()),
        ExportedFile::new("allowed_signers", list_allowed(release)),
    ];
    for signer in &release.signers {
        if let Some(text) = signatures.text_of(signer) {
            files.push(ExportedFile::new(format!("signatures/{}.sig", signer.id), text));
        }
    }
    files
}

pub(super) fn ssh_script() -> ToolScript {
    ToolScript {
        needs: "OpenSSH 8.1 or newer",
        checks: SSH_CHECKS,
        functions: include_str!("ssh.sh").to_owned(),
        expected: Vec::new(),
        spell: encode_ssh_key,
    }
}

/// One line a signer. None is good for another namespace than that of files.
fn list_allowed(release: &ExportedRelease<'_>) -> String {
    let line = |id: &str, key: &PublicKey| {
        format!("{id} namespaces=\"{NAMESPACE}\" {} {}\n", wire::SSH_KEY_TYPE, encode_ssh_key(key))
    };
    release.signers.iter().map(|signer| line(&signer.id, &signer.signer.key)).collect()
}

fn encode_ssh_key(key: &PublicKey) -> String {
    encode_base64(&key.to_ssh_blob())
}

// `--for openssl`: raw signatures and PEM keys, as `openssl pkeyutl -verify -rawin` reads them.

const OPENSSL_CHECKS: &str = "\
#   - every signature below holds: Ed25519 over the 64 bytes of the SHA-512 of svc.index.json,
#   - SHA256SUMS is the one of this release, and the signed index has each of its digests,";

/// What stands before the 32 bytes of an Ed25519 key in a SubjectPublicKeyInfo (RFC 8410).
const SPKI_HEAD: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

pub(super) fn list_openssl_files(release: &ExportedRelease<'_>) -> Vec<ExportedFile> {
    let mut files = vec![
        ExportedFile::new(wire::INDEX_FILE, release.index),
        ExportedFile::new("svc.index.json.sha512", *release.artifact.index_digest.as_bytes()),
        ExportedFile::new(wire::SIGNERS_FILE, release.signers_file),
        ExportedFile::new(SHA256SUMS, release.sha256sums.as_str()),
    ];
    for signer in &release.signers {
        let pem = format!(
            "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
            spki_base64(&signer.signer.key)
        );
        files.push(ExportedFile::new(format!("keys/{}.pem", signer.id), pem));
        if let Some(signature) = signer.signature {
            files.push(ExportedFile::new(format!("signatures/{}.sig", signer.id), *signature.as_bytes()));
        }
    }
    files
}

pub(super) fn render_script(release: &ExportedRelease<'_>) -> String {
    let script = ToolScript {
        needs: "OpenSSL 3",
        checks: OPENSSL_CHECKS,
        functions: include_str!("openssl.sh").to_owned(),
        expected: vec![
            expect("svc.signers.json", release.signers_file.as_bytes()),
            format!("index {}", release.artifact.index_digest),
        ],
        spell: spki_base64,
    };
    script.render(release, |signer| signer.signature.is_some())
}

fn spki_base64(key: &PublicKey) -> String {
    encode_base64(&[SPKI_HEAD.as_slice(), key.as_bytes()].concat())
}
