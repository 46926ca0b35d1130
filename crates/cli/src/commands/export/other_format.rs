//! What the exports for ssh-keygen and minisign share: the signatures on `SHA256SUMS`, and how their scripts compute digests.

use std::collections::BTreeSet;

use countersign_core::{
    documents::{layout, other_formats::OtherFormatsFile},
    rules::quorum,
    values::{
        key::PublicKey,
        other_format::{OtherFormat, ReleaseSums},
    },
};

use super::release::{ExportedRelease, ExportedSigner, ToolScript};
use crate::{client::ServerClient, error::CliError};

/// Digests with the programs that every system has.
const PLAIN: &str = include_str!("plain.sh");

/// The signatures of a release in one format. They verify, and they are enough.
#[derive(Debug)]
pub(super) struct FormatSignatures {
    format: OtherFormat,
    file: OtherFormatsFile,
}

impl FormatSignatures {
    pub(super) async fn find(
        client: &ServerClient,
        release: &ExportedRelease<'_>,
        format: OtherFormat,
    ) -> Result<Self, CliError> {
        let index = &release.artifact.path;
        let file = client.parsed(&layout::other_formats_of(index), OtherFormatsFile::parse).await?;
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

/// A script: `head` is the tool's part, and `spell` gives its form of a key.
pub(super) fn render_script(
    release: &ExportedRelease<'_>,
    signatures: &FormatSignatures,
    head: &str,
    expected: String,
    spell: fn(&PublicKey) -> String,
) -> String {
    let is_signed = |signer: &ExportedSigner<'_>| signatures.text_of(signer).is_some();
    let script =
        ToolScript { head: format!("{head}{PLAIN}"), expected: vec![expected], spell, is_signed: &is_signed };
    script.render(release)
}
