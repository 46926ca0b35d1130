//! What builders state about an exported release (D259–D262), for `verify.sh` to check.

use std::collections::BTreeSet;

use countersign_core::documents::index::{AssetName, Digests};
use countersign_core::documents::{said::StoredRebuild, signers::Signer};
use countersign_core::proof::verify::{Evidence, VerifiedArtifact};
use countersign_core::rules::{quorum, reproduction::Reproduction};
use countersign_core::values::{digest::Sha512, key::PublicKey, key::Signature};
use countersign_explain::{progress::Names, reproduction::builder_text, words::shown_signer_name};

use crate::commands::export::files::{ExportedFile, comment};
use crate::words::error::CliError;

/// The script's function that checks a signature of this kind.
type SignatureCheck = fn(&Signature) -> &'static str;

/// What builders state about a release, whether they got the same or not.
#[derive(Debug)]
pub(super) struct ExportedRebuilds<'a> {
    artifact: &'a VerifiedArtifact,
    reproduction: &'a Reproduction,
    pub(super) builders: Vec<ExportedBuilder<'a>>,
    /// Which builders are left out, because the script cannot read their texts.
    pub(super) warnings: Vec<String>,
}

/// A builder with its statement, under an id such as `builder-1`.
#[derive(Debug)]
pub(super) struct ExportedBuilder<'a> {
    id: String,
    signer: Signer,
    pub(super) said: &'a StoredRebuild,
}

impl<'a> ExportedRebuilds<'a> {
    /// Finds the statements that verify. JSON can write a digest with escapes, and a shell script looks for the digest
    /// as it is. So a builder who writes like that is left out, and the others count without it.
    pub(super) fn find(artifact: &'a VerifiedArtifact, evidence: &'a Evidence) -> Option<Self> {
        let reproduction = artifact.reproduction.as_ref()?;
        let listed =
            Names::of([&artifact.governing().signers]).in_order(reproduction.commits.keys().copied());
        let said = |signer: &Signer| &evidence.rebuilds.entries[&signer.key];
        let is_readable = |signer: &Signer| {
            let mut agreed = reproduction.files.iter().filter(|(_, agreed)| agreed.contains(&signer.key));
            shows(said(signer), &artifact.index_digest.to_prefixed())
                && agreed.all(|(name, _)| find_shown(artifact, name, said(signer)).is_some())
        };
        let (readable, left_out): (Vec<_>, Vec<_>) = listed.into_iter().partition(is_readable);
        let builders = readable.into_iter().zip(1..).map(|(signer, number)| {
            let (id, said) = (format!("builder-{number}"), said(&signer));
            ExportedBuilder { id, signer, said }
        });
        let warning = |signer: &Signer| {
            format!("{} writes digests with escapes, which verify.sh does not read", named(signer))
        };
        let (builders, warnings) = (builders.collect(), left_out.iter().map(warning).collect());
        Some(Self { artifact, reproduction, builders, warnings })
    }

    /// Refuses an export whose script would refuse the release, although the client accepts it.
    pub(super) fn refuse_unreadable(&self) -> Result<(), CliError> {
        let keys: BTreeSet<PublicKey> = self.builders.iter().map(|builder| builder.signer.key).collect();
        let is_enough = |agreed: &BTreeSet<PublicKey>| {
            quorum::is_met(self.reproduction.groups(), &agreed.intersection(&keys).copied().collect())
        };
        if !self.reproduction.is_required || self.reproduction.files.values().all(is_enough) {
            return Ok(());
        }
        Err(CliError::other(
            format!(
                "verify.sh cannot show that {} is reproduced. {}",
                self.artifact.path,
                self.warnings.join(". ")
            ),
            "`countersign bundle` saves the evidence for any release",
        ))
    }

    /// The files of the statements, their signatures and keys. `pem` is the form of a key.
    pub(super) fn files(&self, pem: impl Fn(&PublicKey) -> String) -> Vec<ExportedFile> {
        let mut files = Vec::new();
        for ExportedBuilder { id, signer, said } in &self.builders {
            let digest = Sha512::of(said.text.as_bytes());
            files.push(ExportedFile::new(format!("keys/{id}.pem"), pem(&signer.key)));
            files.push(ExportedFile::new(format!("rebuilds/{id}.json"), said.text.as_str()));
            files.push(ExportedFile::new(format!("rebuilds/{id}.json.sha512"), *digest.as_bytes()));
            files.extend(ExportedFile::of_signature(id, &said.signature, &digest));
        }
        files
    }

    /// The lines by which the script checks the statements and counts builders for each file (D261).
    pub(super) fn lines(&self, spell: impl Fn(&PublicKey) -> String, check: SignatureCheck) -> Vec<String> {
        let mut lines: Vec<String> = self.warnings.iter().map(|warning| comment(warning)).collect();
        if self.reproduction.files.is_empty() {
            lines.push("lacks='no file that builders make'".to_owned());
        } else if self.builders.is_empty() {
            let needed = self.reproduction.tally.needed;
            lines.push(format!("lacks='0 of {needed} builders who got the same from the source'"));
        }
        if self.builders.is_empty() {
            return lines;
        }
        if self.reproduction.is_required {
            lines.push("required=yes".to_owned());
        }
        for ExportedBuilder { id, signer, said } in &self.builders {
            let got = builder_text(self.reproduction, &signer.key);
            lines.extend([String::new(), comment(&format!("{}, a builder, {got}", named(signer)))]);
            lines.push(format!("key {id} {}", spell(&signer.key)));
            let digest = Sha512::of(said.text.as_bytes());
            lines.push(format!("rebuild {id} {digest}"));
            lines.push(format!("{} {id} rebuilds/{id}.json", check(&said.signature)));
        }
        lines.push(String::new());
        for (name, agreed) in &self.reproduction.files {
            for group in self.reproduction.groups() {
                let is_counted = |builder: &&ExportedBuilder<'_>| {
                    agreed.contains(&builder.signer.key) && group.contains(&builder.signer.key)
                };
                let counted: Vec<_> = self.builders.iter().filter(is_counted).collect();
                lines.push(format!("reproduced {}{}", group.threshold, self.spell_counted(name, &counted)));
            }
        }
        let (made, all) = (self.reproduction.files.len(), self.artifact.index.published_files.len());
        lines.push(format!("rebuilt='{made} of its {all} files'"));
        lines
    }

    /// The digests of a file in the index, each with the ids of those who state it. One who states both stands behind
    /// the first.
    fn spell_counted(&self, name: &AssetName, counted: &[&ExportedBuilder<'_>]) -> String {
        let digests = digests_of(self.artifact, name);
        let mut text = String::new();
        for (place, digest) in digests.iter().enumerate() {
            let is_shown = |builder: &&&ExportedBuilder<'_>| {
                find_shown(self.artifact, name, builder.said).as_ref() == Some(digest)
            };
            let ids: Vec<&str> = counted.iter().filter(is_shown).map(|builder| builder.id.as_str()).collect();
            if place == 0 || !ids.is_empty() {
                text = [text.as_str(), digest].into_iter().chain(ids).collect::<Vec<_>>().join(" ");
            }
        }
        text
    }
}

/// The name of a signer, and the key.
pub(super) fn named(signer: &Signer) -> String {
    format!("{}, {}", shown_signer_name(signer).unwrap_or_else(|| "no name".to_owned()), signer.key)
}

/// The digests that the index has of a file, SHA-256 first.
fn digests_of(artifact: &VerifiedArtifact, name: &AssetName) -> Vec<String> {
    let Digests { sha256, sha512 } =
        artifact.file(name.as_str()).map(|file| file.digests).unwrap_or_default();
    let sha256 = sha256.map(|digest| digest.to_string());
    sha256.into_iter().chain(sha512.map(|digest| digest.to_string())).collect()
}

/// The first digest of a file that stands in a statement as the index has it.
fn find_shown(artifact: &VerifiedArtifact, name: &AssetName, said: &StoredRebuild) -> Option<String> {
    digests_of(artifact, name).into_iter().find(|digest| shows(said, digest))
}

/// Whether `verify.sh` finds a digest in the text.
fn shows(said: &StoredRebuild, digest: &str) -> bool {
    said.text.contains(&format!("\"{digest}\""))
}
