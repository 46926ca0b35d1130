//! `--for openssl`: raw signatures and PEM keys, as `openssl pkeyutl -verify -rawin` reads them.

use countersign_core::values::{
    digest::Sha256,
    key::{PublicKey, encode_base64},
};

use super::{
    directory::ExportedFile,
    release::{ExportedRelease, ToolScript},
};

const HEAD: &str = include_str!("openssl.sh");

/// What stands before the 32 bytes of an Ed25519 key in a SubjectPublicKeyInfo (RFC 8410).
const SPKI_HEAD: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

pub(super) fn list_files(release: &ExportedRelease<'_>) -> Vec<ExportedFile> {
    let mut files = vec![
        ExportedFile::new("svc.index.json", release.index),
        ExportedFile::new("svc.index.json.sha512", *release.artifact.index_digest.as_bytes()),
        ExportedFile::new("svc.signers.json", release.signers_file),
        ExportedFile::new("SHA256SUMS", release.sha256sums.as_str()),
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
        head: HEAD.to_owned(),
        expected: vec![
            format!("expect {} svc.signers.json", Sha256::of(release.signers_file.as_bytes())),
            format!("index {}", release.artifact.index_digest),
        ],
        spell: spki_base64,
        is_signed: &|signer| signer.signature.is_some(),
    };
    script.render(release)
}

fn spki_base64(key: &PublicKey) -> String {
    encode_base64(&[SPKI_HEAD.as_slice(), key.as_bytes()].concat())
}
