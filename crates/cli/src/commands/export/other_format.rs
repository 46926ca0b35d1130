//! What the exports for ssh-keygen and minisign share: the signatures on `SHA256SUMS`, and how their scripts compute digests.

use std::collections::BTreeSet;

use countersign_core::documents::{layout, other_formats::OtherFormatsFile};
use countersign_core::values::other_format::{OtherFormat, ReleaseSums};
use countersign_core::{rules::quorum, values::key::PublicKey};

use super::directory::ExportedFile;
use super::release::{ExportedRelease, ExportedSigner, SHA256SUMS, ToolScript, expect};
use crate::{client::state::Shown, error::CliError};

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
