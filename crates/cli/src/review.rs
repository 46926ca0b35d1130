//! What a signer reads before signing.

use std::collections::BTreeSet;

use countersign_core::{
    documents::{
        index::{PublishedFile, ReleaseIndex},
        metadata::Metadata,
        signers::SignersFile,
    },
    proof::{
        to_sign::{Subject, ToSign},
        verify::count_groups,
    },
    rules::{
        chain::VerifiedChain,
        place::{path_of_url, release_tag},
    },
    values::{key::PublicKey, shown::shown_text},
};
use countersign_explain::{
    difference::list_changes,
    signers::{named_signer, shown_signer},
};

use crate::{
    comparison::{Comparison, MatchOutcome},
    output::Output,
};

pub(crate) fn describe(to_sign: &ToSign, comparison: Option<&Comparison>, output: Output) -> String {
    let mut lines = Vec::new();
    match &to_sign.subject {
        Subject::Release { index, chain } => {
            lines.push(output.strong(&format!("Release {}", to_sign.path())));
            describe_release(&mut lines, index, comparison, output);
            describe_progress(&mut lines, to_sign, &chain.last().signers);
        }
        Subject::Proposal { project, signers, metadata, current } => {
            lines.push(output.strong(&format!("Signers file {}", to_sign.path())));
            lines.push(format!("  project    {project}"));
            lines.extend(describe_proposal(signers, metadata, current.as_ref(), output));
            let files: Vec<&SignersFile> = std::iter::once(&**signers)
                .chain(current.as_ref().map(|chain| &chain.last().signers))
                .collect();
            let signed = names(&to_sign.signed, &files);
            lines.push(format!("  signed     {}", if signed.is_empty() { "no one yet" } else { &signed }));
            lines.push(format!("  missing    {}", names(&to_sign.missing_signers(), &files)));
        }
    }
    lines.join("\n")
}

/// The question tells what was not looked at.
pub(crate) fn question(to_sign: &ToSign, comparison: Option<&Comparison>) -> &'static str {
    match (&to_sign.subject, comparison) {
        (Subject::Proposal { .. }, _) => "Sign this signers file?",
        (Subject::Release { .. }, None) => {
            "The files have NOT been compared with any of yours. Sign this release?"
        }
        (Subject::Release { .. }, Some(comparison)) if comparison.is_match() => {
            "All files are the same as yours. Sign this release?"
        }
        (Subject::Release { .. }, Some(_)) => "NOT all files are the same as yours. Sign this release?",
    }
}

fn describe_release(
    lines: &mut Vec<String>,
    index: &ReleaseIndex,
    comparison: Option<&Comparison>,
    output: Output,
) {
    lines.push(format!("  project    {}", index.project_id));
    if let Some(url) = &index.release_url {
        let tag = release_tag(url, &index.project_id).unwrap_or_default();
        lines.push(format!("  tag        {} ({})", shown_text(&tag), shown_text(url)));
    }
    if let Some(time) = index.published_on {
        lines.push(format!("  published  {time}"));
    }
    lines.push(format!("  files      {}", index.published_files.len()));
    for (i, file) in index.published_files.iter().enumerate() {
        let outcome = comparison.and_then(|comparison| comparison.files.get(i)).map(|(_, outcome)| *outcome);
        lines.extend(describe_file(file, index, outcome, output));
    }
    if let Some(comparison) = comparison {
        let count = |outcome| comparison.count(outcome);
        lines.push(format!(
            "  compared   {} match, {} differ, {} missing",
            count(MatchOutcome::Match),
            count(MatchOutcome::Differ),
            count(MatchOutcome::Missing)
        ));
    }
}

fn describe_file(
    file: &PublishedFile,
    index: &ReleaseIndex,
    outcome: Option<MatchOutcome>,
    output: Output,
) -> Vec<String> {
    let size = file.size.map_or_else(|| "size not known".to_owned(), |size| format!("{size} bytes"));
    let outcome = match outcome {
        None => String::new(),
        Some(MatchOutcome::Match) => output.good(" match"),
        Some(MatchOutcome::Differ) => output.bad(" DIFFER"),
        Some(MatchOutcome::Missing) => output.bad(" missing"),
    };
    let mut lines = vec![format!("    {} ({size}){outcome}", shown_text(file.file_name.as_str()))];
    if let Some(digest) = file.digests.sha256 {
        lines.push(format!("      sha256:{digest}"));
    }
    if let Some(digest) = file.digests.sha512 {
        lines.push(format!("      sha512:{digest}"));
    }
    // A link may lead anywhere: signers should know where the bytes came from.
    if !path_of_url(&file.source).is_some_and(|place| place.is_inside(&index.project_id)) {
        lines.push(format!("      from another place: {}", shown_text(&file.source)));
    }
    lines
}

fn describe_progress(lines: &mut Vec<String>, to_sign: &ToSign, signers: &SignersFile) {
    for group in count_groups(signers, &to_sign.signed) {
        lines.push(format!("  needs      {group}"));
    }
    let signed = names(&to_sign.signed, &[signers]);
    lines.push(format!("  signed     {}", if signed.is_empty() { "no one yet" } else { &signed }));
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
    let changes = list_changes(before, signers);
    if changes.is_empty() {
        lines.push("  - nothing changes but the time".to_owned());
    }
    for change in &changes {
        let text = change.to_string();
        let text = if change.is_alarming() { output.bad(&text) } else { text };
        lines.push(format!("  - {text}"));
    }
    lines
}

pub(crate) fn names(keys: &BTreeSet<PublicKey>, files: &[&SignersFile]) -> String {
    let name = |key: &PublicKey| {
        let file = files.iter().find(|file| file.lists(key));
        file.map_or_else(|| key.to_string(), |file| shown_signer(&named_signer(file, *key)))
    };
    keys.iter().map(name).collect::<Vec<_>>().join(", ")
}
