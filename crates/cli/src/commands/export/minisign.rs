//! `--for minisign`: signatures on `SHA256SUMS` as `minisign -V` reads them.

use countersign_core::values::{
    digest::Sha256,
    key::PublicKey,
    other_format::minisign::{trusted_comment, write_public_key},
};

use super::{
    directory::ExportedFile,
    other_format::{self, FormatSignatures},
    release::ExportedRelease,
};

const HEAD: &str = include_str!("minisign.sh");

pub(super) fn list_files(release: &ExportedRelease<'_>, signatures: &FormatSignatures) -> Vec<ExportedFile> {
    let mut files = vec![ExportedFile::new("SHA256SUMS", release.sha256sums.as_str())];
    for signer in &release.signers {
        let key = write_public_key(&signer.signer.key);
        files.push(ExportedFile::new(format!("keys/{}.pub", signer.id), key));
        if let Some(text) = signatures.text_of(signer) {
            files.push(ExportedFile::new(format!("signatures/{}.minisig", signer.id), text));
        }
    }
    files
}

pub(super) fn render_script(release: &ExportedRelease<'_>, signatures: &FormatSignatures) -> String {
    // A path is text from outside, so the script has its digest only.
    let comment = Sha256::of(trusted_comment(&release.artifact.path).as_bytes());
    other_format::render_script(release, signatures, HEAD, format!("comment {comment}"), encode_key)
}

/// The second line of the file with the key.
fn encode_key(key: &PublicKey) -> String {
    write_public_key(key).lines().nth(1).unwrap_or_default().to_owned()
}
