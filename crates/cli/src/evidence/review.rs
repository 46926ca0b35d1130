//! What a signer reads before signing.

use std::collections::BTreeSet;

use countersign_api::state::DroppedReleases;
use countersign_core::documents::index::{Digests, PublishedFile, ReleaseIndex};
use countersign_core::proof::to_sign::{Subject, ToSign};
use countersign_core::rules::reproduction::Reproduction;
use countersign_core::rules::{chain::VerifiedChain, place::path_of_url, place::release_tag, quorum};
use countersign_core::values::shown::{marked_name, plural, quoted, shown_text};
use countersign_core::values::{key::KeyFormat, key::PublicKey, other_format::OtherFormat};
use countersign_explain::describe::{Description, proposal::BegunVeto, proposal::ProposalDescription};
use countersign_explain::difference::{SignersChange, list_changes};
use countersign_explain::reproduction::{different_text, reproduction_text};
use countersign_explain::words::shown_hours;

use crate::client::{now, state::dropped_text, state::due_text};
use crate::evidence::comparison::{Comparison, MatchOutcome};
use crate::evidence::release::{describe_different, describe_earlier_objections, describe_objections};
use crate::words::{error::shown_path, output::Output, table::People, table::when_text};

/// How many of the signer's own files are named that the release lacks.
const MOST_NAMED: usize = 20;

/// Something to sign, as it is shown to one signer.
pub(crate) struct Review<'a> {
    pub(crate) to_sign: &'a ToSign,
    /// How far it has come, by what was shown and verifies.
    pub(crate) description: &'a Description,
    /// The releases whose signatures the proposed signers would drop. Without a network nothing is known of them.
    pub(crate) drops: &'a DroppedReleases,
    pub(crate) comparison: Option<&'a Comparison>,
    pub(crate) you: PublicKey,
    pub(crate) format: KeyFormat,
    /// The formats to sign besides our own.
    pub(crate) formats: &'a BTreeSet<OtherFormat>,
    /// How many files are signed by themselves for OpenPGP.
    pub(crate) openpgp_files: usize,
}

impl Review<'_> {
    pub(crate) fn text(&self, output: Output) -> String {
        let people = People { names: self.description.names(), you: Some(self.you) };
        let mut lines = Vec::new();
        match self.description {
            Description::Release(release) => {
                let reproduction = release.reproduction.as_ref();
                let mut said = describe_different(reproduction, &release.names, output);
                said.extend(describe_objections(&release.objections, Some(self.you), output));
                said.extend(describe_earlier_objections(&release.earlier_objections, Some(self.you)));
                lines.extend(said.iter().map(|line| output.list(line)));
                lines.push(output.strong(&format!("Release {}", marked_name(release.path.as_str()))));
                describe_release(&mut lines, &release.index, self.comparison);
            }
            Description::Proposal(proposal) => {
                lines.push(output.strong(&format!("Signers file {}", marked_name(proposal.path.as_str()))));
                lines.push(format!("  project    {}", marked_name(proposal.project.as_str())));
                lines.extend(self.describe_proposal(proposal, output));
                lines.extend(self.describe_waiting(proposal, &people, output));
            }
        }
        lines.push(format!("  signatures {}", self.description.progress()));
        let signed = output.list(&people.list_or(self.description.signed(), "no one yet"));
        lines.push(format!("  signed     {signed}"));
        let missing = output.list(&people.list_or(self.description.missing(), "no one who is needed"));
        lines.push(format!("  missing    {missing}"));
        if let Description::Release(release) = self.description
            && let Some(reproduction) = &release.reproduction
        {
            lines.push(format!("  rebuilds   {}", reproduction_text(reproduction, &release.names)));
        }
        lines.extend(self.describe_formats());
        if let Some(comparison) = self.comparison {
            lines.extend(describe_comparison(comparison, output));
        }
        lines.join("\n")
    }

    /// What proposed signers change, and when.
    fn describe_proposal(&self, proposal: &ProposalDescription, output: Output) -> Vec<String> {
        let mut lines = vec![
            format!("  from       {}", shown_text(&proposal.origin.url)),
            format!("  digest     {}", proposal.digest.to_prefixed()),
        ];
        let current = self.to_sign.chain().map(VerifiedChain::last);
        lines.push(match current {
            None => "  A first registration: everyone in the file has to sign.".to_owned(),
            Some(link) => format!("  replaces   {}", link.digest.to_prefixed()),
        });
        lines.extend(change_lines(&proposal.changes, output));
        if let Some(hours) = current.and_then(|link| link.signers.rotation_delay_hours()) {
            lines.push(format!(
                "  waits      {} once all have signed, unless the masters in force sign as well",
                shown_hours(hours)
            ));
        }
        lines
    }

    /// What everyone should know before they sign what waits or is about to be vetoed.
    fn describe_waiting(
        &self,
        proposal: &ProposalDescription,
        people: &People<'_>,
        output: Output,
    ) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(until) = proposal.waits_until {
            lines.push(match now().is_ok_and(|now| until <= now) {
                true => format!("  in force   it {}", due_text(until)),
                false => format!("  in force   on {}: all signatures are there", when_text(until)),
            });
        }
        if let Some(BegunVeto { reason, signed, .. }) = &proposal.veto {
            let signed = people.list(signed.iter().map(|member| member.signer.key));
            let begun = format!("BEGUN by {signed}, for the reason {}", quoted(reason));
            lines.push(format!("  veto       {}", output.bad(&begun)));
        }
        if let Some(dropped) = dropped_text(self.drops) {
            lines.push(format!("  drops      the signatures on {dropped}"));
        }
        lines
    }

    /// Whether this very signature ends the wait (D130).
    fn ends_wait(&self, proposal: &ProposalDescription) -> bool {
        let Some(chain) = self.to_sign.chain().filter(|_| proposal.waits_until.is_some()) else {
            return false;
        };
        let mut signed = self.description.signed();
        signed.insert(self.you);
        quorum::is_met(chain.last().signers.master_groups(), &signed)
    }

    /// An agent can ask before each signature, and its user should know how often.
    fn describe_formats(&self) -> Option<String> {
        let names: Vec<&str> = self.formats.iter().map(|format| format.name()).collect();
        let also = self.formats.iter().map(|format| format.signature_count()).sum::<usize>();
        let count = self.to_sign.signature_count() + also + self.openpgp_files;
        let mut times = format!("your key signs {count} time{}", plural(count));
        if self.format == KeyFormat::Fido {
            times += ", and wants a touch for each";
        }
        if names.is_empty() {
            return (self.format == KeyFormat::Fido).then(|| format!("  touch      {times}"));
        }
        let files = match self.openpgp_files {
            0 => String::new(),
            files => format!(
                ", and {files} file{} by {} for openpgp",
                plural(files),
                if files == 1 { "itself" } else { "themselves" }
            ),
        };
        Some(format!("  also       SHA256SUMS for {}{files}; {times}", names.join(", ")))
    }

    /// The question tells as whom one signs, and what was not looked at.
    pub(crate) fn question(&self) -> String {
        let (before, what, objections) = match self.description {
            Description::Proposal(proposal) if self.ends_wait(proposal) => {
                ("With your signature it takes effect AT ONCE. ".to_owned(), "signers file", 0)
            }
            Description::Proposal(_) => (String::new(), "signers file", 0),
            Description::Release(release) => {
                // One that differs is not asked about (D244).
                let compared = match self.comparison {
                    None => "The files have NOT been compared with any of yours. ",
                    Some(_) => "All files are the same as yours. ",
                };
                let before = format!("{}{compared}", say_rebuilds(release.reproduction.as_ref()));
                (before, "release", release.objections.len())
            }
        };
        let objected = match objections {
            0 => String::new(),
            count => format!("{count} objection{} above. ", plural(count)),
        };
        let people = People { names: self.description.names(), you: None };
        format!("{objected}{before}Sign this {what} as {}?", people.name(self.you))
    }
}

/// What a signer should weigh before the question: that a builder got something else, or that too few have reported.
fn say_rebuilds(reproduction: Option<&Reproduction>) -> String {
    let Some(reproduction) = reproduction else { return String::new() };
    let different = different_text(reproduction).map(|different| format!("{different}. "));
    let lacking = match (reproduction.files.is_empty(), reproduction.is_required) {
        (true, true) => "It has no file that builders make, so clients will refuse it. ",
        (true, false) => "It has no file that builders make. ",
        (false, _) if reproduction.is_reproduced() => "",
        (false, true) => {
            "Too few builders have reproduced it so far, and clients refuse it until they have. "
        }
        (false, false) => "Too few builders have reproduced it so far. ",
    };
    different.unwrap_or_default() + lacking
}

fn describe_release(lines: &mut Vec<String>, index: &ReleaseIndex, comparison: Option<&Comparison>) {
    lines.push(format!("  project    {}", marked_name(index.project_id.as_str())));
    if let Some(url) = &index.release_url {
        let tag = release_tag(url, &index.project_id).unwrap_or_default();
        lines.push(format!("  tag        {} ({})", marked_name(&tag), shown_text(url)));
    }
    if let Some(time) = index.published_on {
        lines.push(format!("  published  {time}"));
    }
    lines.push(format!("  files      {}", index.published_files.len()));
    for file in &index.published_files {
        // A link may lead anywhere: signers should know where the bytes came from.
        let is_elsewhere = !path_of_url(&file.source).is_some_and(|path| path.is_inside(&index.project_id));
        // What is compared comes last, and what is the same need not be read.
        if comparison.is_none() || is_elsewhere {
            lines.push(format!("    {} ({})", marked_name(file.file_name.as_str()), size_text(file.size)));
        }
        if comparison.is_none() {
            lines.extend(digest_lines(&file.digests, "      "));
        }
        if is_elsewhere {
            lines.push(format!("      from another place: {}", shown_text(&file.source)));
        }
    }
}

/// Matches are counted; of what differs, both sides are shown.
pub(crate) fn describe_comparison(comparison: &Comparison, output: Output) -> Vec<String> {
    let count = |outcome| comparison.count(outcome);
    let mut lines = vec![format!(
        "  compared   {} match, {} differ, {} missing, with {}",
        count(MatchOutcome::Match),
        count(MatchOutcome::Differ),
        count(MatchOutcome::Missing),
        shown_path(&comparison.dir),
    )];
    let not_released = &comparison.not_released;
    for name in not_released.iter().take(MOST_NAMED) {
        lines.push(format!("    {} is yours, and not in the release", shown_text(name)));
    }
    if let Some(more) = not_released.len().checked_sub(MOST_NAMED).filter(|more| *more > 0) {
        lines.push(format!("    and {more} more of yours are not in the release"));
    }
    for file in comparison.mismatches() {
        let name = marked_name(file.listed.file_name.as_str());
        let outcome = if file.outcome == MatchOutcome::Missing { "is MISSING here" } else { "DIFFERS" };
        lines.push(format!("    {name} {}", output.bad(outcome)));
        lines.extend(describe_side("release", file.listed.size, &file.listed.digests, &file.listed));
        match &file.own {
            Some(own) => lines.extend(describe_side("yours", Some(own.size), &own.digests, &file.listed)),
            None if file.outcome == MatchOutcome::Differ => {
                lines.push("      yours    not a plain file".to_owned());
            }
            None => {}
        }
    }
    lines
}

/// The size, and the digests that the index lists.
fn describe_side(side: &str, size: Option<u64>, digests: &Digests, listed: &PublishedFile) -> Vec<String> {
    let shown = Digests {
        sha256: digests.sha256.filter(|_| listed.digests.sha256.is_some()),
        sha512: digests.sha512.filter(|_| listed.digests.sha512.is_some()),
    };
    let mut lines = vec![format!("      {side:<8} {}", size_text(size))];
    lines.extend(digest_lines(&shown, "               "));
    lines
}

fn digest_lines(digests: &Digests, indent: &str) -> Vec<String> {
    let sha256 = digests.sha256.map(|digest| format!("{indent}sha256:{digest}"));
    let sha512 = digests.sha512.map(|digest| format!("{indent}sha512:{digest}"));
    sha256.into_iter().chain(sha512).collect()
}

fn size_text(size: Option<u64>) -> String {
    size.map_or_else(|| "size not known".to_owned(), |size| format!("{size} bytes"))
}

/// What a proposal changes, where something is there to change.
pub(crate) fn describe_changes(to_sign: &ToSign, output: Output) -> Vec<String> {
    match &to_sign.subject {
        Subject::Proposal { signers, current, .. } => {
            let before = current.as_ref().map(|chain| &chain.last().signers);
            change_lines(&list_changes(before, signers), output)
        }
        Subject::Release { .. } => Vec::new(),
    }
}

pub(crate) fn change_lines(changes: &[SignersChange], output: Output) -> Vec<String> {
    if changes.is_empty() {
        return vec!["  - nothing changes but the time".to_owned()];
    }
    let line = |change: &SignersChange| {
        let text = change.to_string();
        let text = if change.is_alarming() { output.bad(&text) } else { text };
        format!("  - {text}")
    };
    changes.iter().map(line).collect()
}
