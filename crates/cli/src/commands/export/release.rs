//! What every format exports: a release that this computer accepts, with its signers under names of ours.

use std::collections::BTreeSet;

use countersign_core::documents::{index::render_sha256sums, layout, signers::Group, signers::Signer};
use countersign_core::proof::verify::{Evidence, VerifiedArtifact};
use countersign_core::rules::quorum::Tally;
use countersign_core::values::digest::{Sha256, Sha512};
use countersign_core::values::{
    key::PublicKey, key::Signature, other_format::ReleaseSums, shown::plural, shown::quoted,
};
use countersign_explain::describe::release::RevocationDescription;
use countersign_explain::words::{shown_signer_name, shown_url};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::commands::export::{files::comment, rebuilds::ExportedRebuilds, rebuilds::named};
use crate::words::error::CliError;

const HEAD: &str = include_str!("head.sh");
const SHARED: &str = include_str!("shared.sh");

pub(super) const SHA256SUMS: &str = "SHA256SUMS";

/// The characters to encode in a name that is one word of a script: all that mean something to a shell, and more.
const IN_SCRIPT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'/')
    .remove(b':')
    .remove(b'@')
    .remove(b'+');

/// A verified release to export.
#[derive(Debug)]
pub(super) struct ExportedRelease<'a> {
    pub(super) artifact: &'a VerifiedArtifact,
    /// The exact text that was signed.
    pub(super) index: &'a str,
    /// The exact text of the signers file that the index was signed under.
    pub(super) signers_file: &'a str,
    pub(super) sha256sums: String,
    /// The artifact signers, each once, in the order of the signers file.
    pub(super) signers: Vec<ExportedSigner<'a>>,
    /// What builders state, if the signers file asks any.
    pub(super) rebuilds: Option<ExportedRebuilds<'a>>,
    /// A revocation that waits for more signatures.
    begun: Option<&'a RevocationDescription>,
}

#[derive(Debug)]
pub(super) struct ExportedSigner<'a> {
    /// `signer-1`: people's own names never become the name of a file, or a word of a script.
    pub(super) id: String,
    pub(super) signer: &'a Signer,
    /// The signature on the index, if the signer has signed it.
    pub(super) signature: Option<Signature>,
}

impl<'a> ExportedRelease<'a> {
    pub(super) fn new(
        artifact: &'a VerifiedArtifact,
        evidence: &'a Evidence,
        begun: Option<&'a RevocationDescription>,
    ) -> Result<Self, CliError> {
        let sha256sums = render_sha256sums(&artifact.index).map_err(|error| {
            CliError::other(
                format!("{} has no SHA256SUMS", artifact.path),
                "`countersign bundle` saves the evidence for any release",
            )
            .because(error)
        })?;
        let mut signers_files = evidence.history.entries.iter().map(|entry| entry.signers_config.as_str());
        let signers_file = signers_files
            .find(|text| Sha512::of(text.as_bytes()) == evidence.governed_by)
            .expect("core has found it in the history");
        let signers = number_signers(artifact, evidence);
        let rebuilds = ExportedRebuilds::find(artifact, evidence);
        let index = &evidence.index;
        Ok(Self { artifact, index, signers_file, sha256sums, signers, rebuilds, begun })
    }

    /// How far the groups are, if only these keys count.
    pub(super) fn lacking_text(&self, signed: &BTreeSet<PublicKey>) -> String {
        let groups = self.groups().iter().map(|group| {
            let Tally { collected, needed } = Tally::of([group], signed);
            format!("has {collected} of {needed}")
        });
        let groups = groups.collect::<Vec<_>>().join(" and ");
        format!("it {groups}, and no one can add a signature to a complete release")
    }

    /// What was signed for other programs.
    pub(super) fn sums(&self) -> ReleaseSums<'_> {
        let VerifiedArtifact { path, index, .. } = self.artifact;
        ReleaseSums { index: path, mirrored_on: index.mirrored_on, text: &self.sha256sums }
    }

    pub(super) fn groups(&self) -> &'a [Group] {
        self.artifact.governing().signers.artifact_groups()
    }

    /// The ids of a group's members.
    fn ids_of(&self, group: &Group) -> String {
        let ids = group.signers.iter().map(|member| {
            let found = self.signers.iter().find(|listed| listed.signer.key == member.key);
            found.expect("every member was numbered").id.as_str()
        });
        ids.collect::<Vec<_>>().join(" ")
    }
}

fn number_signers<'a>(artifact: &'a VerifiedArtifact, evidence: &Evidence) -> Vec<ExportedSigner<'a>> {
    // A key that is in two groups is one signer.
    let mut seen = BTreeSet::new();
    let members = artifact.governing().signers.artifact_groups().iter().flat_map(|group| &group.signers);
    let signers = members.filter(|signer| seen.insert(signer.key)).zip(1..).map(|(signer, number)| {
        let signature = evidence.signatures.entries.get(&signer.key).map(|collected| collected.signature);
        ExportedSigner { id: format!("signer-{number}"), signer, signature }
    });
    signers.collect()
}

/// A tool's part of the script. The beginning and the end are the same for all.
pub(super) struct ToolScript<'a> {
    /// What people need besides a shell.
    pub(super) needs: &'static str,
    /// What the script checks with it, as lines of the comment at the beginning.
    pub(super) checks: &'static str,
    pub(super) functions: String,
    /// Lines about the files beside it, before those about signers.
    pub(super) expected: Vec<String>,
    /// The tool's form of a signer's key.
    pub(super) spell: &'a dyn Fn(&ExportedSigner<'_>) -> String,
}

impl ToolScript<'_> {
    /// Renders the script. `check` names the function that checks a signature of the signer, if there is one. The
    /// script has no time in it, so another export gives the same script until a revocation begins or a builder adds a
    /// statement. Text from outside stands in comments alone, where line breaks and control characters are escaped, so
    /// that it cannot leave its line. Only hexadecimal digits, base64, numbers, our own ids, and names in percent code
    /// are code.
    pub(super) fn render(
        &self,
        release: &ExportedRelease<'_>,
        check: impl Fn(&ExportedSigner<'_>) -> Option<&'static str>,
    ) -> String {
        let (path, project) = (&release.artifact.path, &release.artifact.index.project_id);
        let [name, of] = [layout::release_name(path, project), shown_url(project)]
            .map(|name| utf8_percent_encode(&name, IN_SCRIPT).to_string());
        let about = format!("about {name} {of}");
        let mut lines = vec![comment(path.as_str()), about];
        if let Some(count) = release.artifact.reproduction.as_ref().map(|found| found.different.len())
            && count > 0
        {
            lines.push(format!("differs='{count} builder{}'", plural(count)));
            lines.push(
                r#"printf 'DIFFERENT: %s got something else from the source.\n' "$differs""#.to_owned(),
            );
        }
        lines.push(expect(SHA256SUMS, release.sha256sums.as_bytes()));
        if let Some(RevocationDescription { tally, reason, .. }) = release.begun {
            lines.push(comment(&format!("The revocation has begun: {}", quoted(reason))));
            lines.push(format!("begun='{} of {}'", tally.collected, tally.needed));
        }
        lines.extend(self.expected.iter().cloned());
        for signer in &release.signers {
            let check = check(signer);
            let is_other = signer.signature.is_some() && check.is_none();
            let lacks = if is_other { ", not in this format" } else { "" };
            lines.extend([String::new(), comment(&format!("{}{lacks}", signer.comment()))]);
            lines.push(format!("key {} {}", signer.id, (self.spell)(signer)));
            lines.extend(check.map(|check| format!("{check} {}", signer.id)));
        }
        lines.push(String::new());
        for group in release.groups() {
            lines.push(comment(&format!("any {} of these {}", group.threshold, group.signers.len())));
            lines.push(format!("group {} {}", group.threshold, release.ids_of(group)));
        }
        let line = |line: &String| if line.is_empty() { "\n".to_owned() } else { format!("    {line}\n") };
        let lines: String = lines.iter().map(line).collect();
        let head = HEAD.replacen("@NEEDS@", self.needs, 1).replacen("@CHECKS@", self.checks, 1);
        let template = format!("{head}{}{SHARED}", self.functions);
        // The template is cut, so nothing in the lines is replaced.
        let (before, after) = template.split_once("@RELEASE@\n").expect("every template has the place");
        enclose(&format!("{before}{lines}{after}"))
    }
}

/// A script that runs whole or not at all: one command from its second line to its last letter. A shell reads all of it
/// before it runs anything, so each beginning of it is an error (D225). Nothing stands behind the brace, not even a
/// line end.
fn enclose(commands: &str) -> String {
    format!(
        "#!/bin/sh\n{{ # Half of this script is an error, which the shell tells before it runs anything.\n{commands}exit 0\n}}"
    )
}

/// The line by which the script compares a file of the export.
pub(super) fn expect(name: &str, bytes: &[u8]) -> String {
    format!("expect {} {name}", Sha256::of(bytes))
}

impl ExportedSigner<'_> {
    /// The name for a message, or the key of a signer without one.
    pub(super) fn name(&self) -> String {
        shown_signer_name(self.signer).unwrap_or_else(|| self.signer.key.to_string())
    }

    /// The comment that says who it is.
    pub(super) fn comment(&self) -> String {
        let state = if self.signature.is_some() { "" } else { ", has not signed" };
        format!("{}{state}", named(self.signer))
    }
}
