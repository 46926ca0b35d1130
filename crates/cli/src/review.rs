//! What a signer reads before signing.

use std::collections::BTreeSet;

use countersign_core::{
    documents::{
        index::{Digests, PublishedFile, ReleaseIndex},
        metadata::Metadata,
        signatures::SignatureSet,
        signers::SignersFile,
    },
    proof::to_sign::{Subject, ToSign},
    rules::{
        chain::VerifiedChain,
        consent::Consent,
        place::{path_of_url, release_tag},
        quorum,
    },
    values::{
        key::PublicKey,
        other_format::OtherFormat,
        shown::{marked_name, plural, quoted, shown_text},
    },
};
use countersign_explain::{
    delay::shown_hours,
    describe::release::list_objections,
    difference::{SignersChange, list_changes},
    progress::{Names, condition_text, describe_conditions, describe_groups},
};

use crate::{
    client::now,
    comparison::{Comparison, MatchOutcome},
    output::Output,
    paths::shown_path,
    people::{People, when_text},
    shown_release::{describe_earlier_objections, describe_objections},
    waiting::{Waiting, due_text},
};

/// How many of the signer's own files are named that the release lacks.
const MOST_NAMED: usize = 20;

/// Something to sign, as it is shown to one signer.
pub(crate) struct Review<'a> {
    pub(crate) to_sign: &'a ToSign,
    /// The signatures so far, all of which verify.
    pub(crate) collected: &'a SignatureSet,
    pub(crate) comparison: Option<&'a Comparison>,
    pub(crate) you: PublicKey,
    /// Besides our own.
    pub(crate) formats: &'a BTreeSet<OtherFormat>,
    pub(crate) waiting: &'a Waiting,
}

impl Review<'_> {
    pub(crate) fn text(&self, output: Output) -> String {
        let names = self.names();
        let people = People { names: &names, you: Some(self.you) };
        let mut lines = Vec::new();
        let path = self.to_sign.path();
        match &self.to_sign.subject {
            Subject::Release { index, chain } => {
                let current = &chain.last().signers;
                let standing = list_objections(current, self.to_sign.objections.standing());
                let earlier = list_objections(current, self.to_sign.earlier.said());
                lines.extend(describe_objections(&standing, Some(self.you), output));
                lines.extend(describe_earlier_objections(&earlier, Some(self.you)));
                lines.push(output.strong(&format!("Release {}", marked_name(path.as_str()))));
                describe_release(&mut lines, index, self.comparison);
                let groups = chain.last().signers.artifact_groups();
                let groups = describe_groups(groups, self.collected, &names);
                lines.extend(groups.iter().map(|group| format!("  needs      {group}")));
            }
            Subject::Proposal { project, signers, metadata, current } => {
                lines.push(output.strong(&format!("Signers file {}", marked_name(path.as_str()))));
                lines.push(format!("  project    {}", marked_name(project.as_str())));
                lines.extend(describe_proposal(signers, metadata, current.as_ref(), output));
                lines.extend(self.describe_waiting(&people, output));
                let current = current.as_ref().map(|chain| &chain.last().signers);
                let conditions =
                    describe_conditions(&Consent { current, proposed: signers }, self.collected, &names);
                lines.extend(conditions.iter().map(|condition| {
                    format!("  needs      {}: {}", condition_text(condition.kind), condition.tally)
                }));
            }
        }
        let signed = self.to_sign.signed.iter().copied();
        lines.push(format!("  signed     {}", people.list_or(signed, "no one yet")));
        let missing = people.list_or(self.to_sign.missing_signers(), "no one who is needed");
        lines.push(format!("  missing    {missing}"));
        lines.extend(self.describe_formats());
        if let Some(comparison) = self.comparison {
            lines.extend(describe_comparison(comparison, output));
        }
        lines.join("\n")
    }

    /// What everyone should know before they sign what waits or is about to be vetoed.
    fn describe_waiting(&self, people: &People<'_>, output: Output) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(until) = self.waiting.until {
            lines.push(match now().is_ok_and(|now| until <= now) {
                true => format!("  in force   it {}", due_text(until)),
                false => format!("  in force   on {}: all signatures are there", when_text(until)),
            });
        }
        if let Some(veto) = &self.waiting.veto {
            let reason = veto.reason().map(|reason| format!(", for the reason {}", quoted(&reason)));
            let begun = format!("BEGUN by {}{}", people.list(veto.signed()), reason.unwrap_or_default());
            lines.push(format!("  veto       {}", output.bad(&begun)));
        }
        if let Some(dropped) = self.waiting.drops.text() {
            lines.push(format!("  drops      the signatures on {dropped}"));
        }
        lines
    }

    /// Whether this very signature ends the wait (D130).
    fn ends_wait(&self) -> bool {
        let Some(chain) = self.to_sign.chain().filter(|_| self.waiting.until.is_some()) else { return false };
        let mut signed = self.to_sign.signed.clone();
        signed.insert(self.you);
        quorum::is_met(chain.last().signers.master_groups(), &signed)
    }

    /// An agent can ask before each signature, and its user should know how often.
    fn describe_formats(&self) -> Option<String> {
        if self.formats.is_empty() {
            return None;
        }
        let names: Vec<&str> = self.formats.iter().map(|format| format.name()).collect();
        let count = 1 + self.formats.iter().map(|format| format.signature_count()).sum::<usize>();
        Some(format!("  also       SHA256SUMS for {}; your key signs {count} times", names.join(" and ")))
    }

    /// The question tells as whom one signs, and what was not looked at.
    pub(crate) fn question(&self) -> String {
        let (before, what) = match (&self.to_sign.subject, self.comparison) {
            (Subject::Proposal { .. }, _) if self.ends_wait() => {
                ("With your signature it takes effect AT ONCE. ", "signers file")
            }
            (Subject::Proposal { .. }, _) => ("", "signers file"),
            (Subject::Release { .. }, None) => {
                ("The files have NOT been compared with any of yours. ", "release")
            }
            (Subject::Release { .. }, Some(comparison)) if comparison.is_match() => {
                ("All files are the same as yours. ", "release")
            }
            (Subject::Release { .. }, Some(_)) => ("NOT all files are the same as yours. ", "release"),
        };
        let count = self.to_sign.objections.standing().len();
        let objected =
            if count > 0 { format!("{count} objection{} above. ", plural(count)) } else { String::new() };
        let names = self.names();
        format!(
            "{objected}{before}Sign this {what} as {}?",
            People { names: &names, you: None }.name(self.you)
        )
    }

    /// The file in force first: names in a proposed one are part of the proposal.
    fn names(&self) -> Names {
        match &self.to_sign.subject {
            Subject::Release { chain, .. } => Names::of([&chain.last().signers]),
            Subject::Proposal { signers, current, .. } => {
                let current = current.as_ref().map(|chain| &chain.last().signers);
                Names::of(current.into_iter().chain([&**signers]))
            }
        }
    }
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
        let is_elsewhere = !path_of_url(&file.source).is_some_and(|place| place.is_inside(&index.project_id));
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
fn describe_comparison(comparison: &Comparison, output: Output) -> Vec<String> {
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
            change_lines(current.as_ref().map(|chain| &chain.last().signers), signers, output)
        }
        Subject::Release { .. } => Vec::new(),
    }
}

fn change_lines(before: Option<&SignersFile>, signers: &SignersFile, output: Output) -> Vec<String> {
    let changes = list_changes(before, signers);
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

fn describe_proposal(
    signers: &SignersFile,
    metadata: &Metadata,
    current: Option<&VerifiedChain>,
    output: Output,
) -> Vec<String> {
    let mut lines = vec![
        format!("  from       {}", shown_text(&metadata.origin.url)),
        format!("  digest     {}", metadata.signers_file_digest.to_prefixed()),
    ];
    let before = current.map(|chain| &chain.last().signers);
    match current {
        None => lines.push("  A first registration: everyone in the file has to sign.".to_owned()),
        Some(chain) => lines.push(format!("  replaces   {}", chain.last().digest.to_prefixed())),
    }
    lines.extend(change_lines(before, signers, output));
    if let Some(hours) = before.and_then(SignersFile::rotation_delay_hours) {
        lines.push(format!(
            "  waits      {} once all have signed, unless the masters in force sign as well",
            shown_hours(hours)
        ));
    }
    lines
}
