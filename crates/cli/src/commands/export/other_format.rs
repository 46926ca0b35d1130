//! What the exports for ssh-keygen and minisign share: the signatures on `SHA256SUMS`, and the end of their scripts.

use std::collections::BTreeSet;

use countersign_core::{
    documents::{layout, other_formats::OtherFormatsFile},
    rules::quorum,
    values::{
        digest::Sha256,
        key::PublicKey,
        other_format::{OtherFormat, ReleaseSums},
    },
};

use super::release::{ExportedRelease, ExportedSigner, ReleaseLines};
use crate::{client::ServerClient, error::CliError};

const SHARED: &str = include_str!("sums.sh");

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
    expected: &[String],
    spell: fn(&PublicKey) -> String,
) -> String {
    let mut lines = ReleaseLines::default();
    lines.comment(release.artifact.path.as_str());
    lines.line(&format!("expect {} SHA256SUMS", Sha256::of(release.sha256sums.as_bytes())));
    for line in expected {
        lines.line(line);
    }
    for signer in &release.signers {
        let is_signed = signatures.text_of(signer).is_some();
        lines.blank();
        let lacks = if signer.signature.is_some() && !is_signed { ", not in this format" } else { "" };
        lines.comment(&format!("{}{lacks}", signer.comment()));
        lines.line(&format!("key {} {}", signer.id, spell(&signer.signer.key)));
        if is_signed {
            lines.line(&format!("signature {}", signer.id));
        }
    }
    lines.blank();
    for group in release.groups() {
        lines.comment(&format!("any {} of these {}", group.threshold, group.signers.len()));
        lines.line(&format!("group {} {}", group.threshold, release.ids_of(group)));
    }
    lines.fill(&format!("{head}{SHARED}"))
}
