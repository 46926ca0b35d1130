//! `--for openssl`: raw signatures and PEM keys, as `openssl pkeyutl -verify -rawin` reads them.

use countersign_core::values::{key::PublicKey, key::encode_base64, wire};

use crate::commands::export::release::{ExportedFile, ExportedRelease, SHA256SUMS, ToolScript, expect};

const CHECKS: &str = "\
#   - every signature below holds: Ed25519 over the 64 bytes of the SHA-512 of svc.index.json,
#   - SHA256SUMS is the one of this release, and the signed index has each of its digests,";

/// What stands before the 32 bytes of an Ed25519 key in a SubjectPublicKeyInfo (RFC 8410).
const SPKI_HEAD: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

pub(super) fn list_files(release: &ExportedRelease<'_>) -> Vec<ExportedFile> {
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
        checks: CHECKS,
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
