//! `--for minisign`: signatures on `SHA256SUMS` as `minisign -V` reads them.

use countersign_core::values::other_format::minisign::{trusted_comment, write_public_key};
use countersign_core::values::{digest::Sha256, key::PublicKey};

use super::directory::ExportedFile;
use super::other_format::FormatSignatures;
use super::release::{ExportedRelease, SHA256SUMS, ToolScript};

const CHECKS: &str = "\
#   - every signature below holds: `minisign -V -H` over SHA256SUMS, with the trusted comment of this release,";

pub(super) fn list_files(release: &ExportedRelease<'_>, signatures: &FormatSignatures) -> Vec<ExportedFile> {
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

pub(super) fn script(release: &ExportedRelease<'_>) -> ToolScript {
    // A path is text from outside, so the script has its digest only.
    let comment = Sha256::of(trusted_comment(&release.artifact.path).as_bytes());
    ToolScript {
        needs: "minisign 0.10 or newer",
        checks: CHECKS,
        functions: include_str!("minisign.sh").to_owned(),
        expected: vec![format!("comment {comment}")],
        spell: encode_key,
    }
}

/// The second line of the file with the key.
fn encode_key(key: &PublicKey) -> String {
    write_public_key(key).lines().nth(1).unwrap_or_default().to_owned()
}
