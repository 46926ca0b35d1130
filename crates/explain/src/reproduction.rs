//! How far builders have reproduced a release, in words (D261, D262). Client and pages say the same.

use std::collections::BTreeSet;

use countersign_core::documents::index::AssetName;
use countersign_core::rules::{quorum, quorum::Tally, reproduction::Reproduction, stored::ReleaseState};
use countersign_core::values::{key::PublicKey, shown::marked_name, shown::plural};

use crate::{progress::Names, words::list_called};

/// The most files and commits that a sentence names.
const MOST_NAMED: usize = 4;
/// A sentence shows so many digits of a commit, which tell commits apart.
const COMMIT_DIGITS: usize = 12;

/// The builders who are asked, because a file lacks them. Where builders make none of the files, no one is.
pub fn list_asked(reproduction: &Reproduction) -> BTreeSet<PublicKey> {
    let lacks = |key: &PublicKey| reproduction.lacking_files().any(|(_, agreed)| !agreed.contains(key));
    reproduction.missing().into_iter().filter(lacks).collect()
}

/// Whether builders can still reproduce the release, or have. While it collects signatures, each can replace what it
/// stated.
pub fn is_reproducible(reproduction: &Reproduction, state: ReleaseState) -> bool {
    let asked = list_asked(reproduction);
    let can_be_met = |agreed: &BTreeSet<PublicKey>| quorum::is_met(reproduction.groups(), &(agreed | &asked));
    !reproduction.files.is_empty()
        && (state == ReleaseState::Collecting || reproduction.files.values().all(can_be_met))
}

/// Why a release is not reproduced that lists nothing for builders.
const NO_FILE: &str = "it has no file that builders make";

/// Says why a release is not reproduced, as in `it has 1 of 2; 1 more, and 1 builder got something else: app.tar.gz` or
/// `it has no file that builders make`.
pub fn lack_text(reproduction: &Reproduction) -> String {
    match reproduction.files.is_empty() {
        true => NO_FILE.to_owned(),
        false => match different_text(reproduction) {
            Some(different) => format!("it {}, and {different}", reproduction.tally),
            None => format!("it {}", reproduction.tally),
        },
    }
}

/// Says how far, as in `reproduced by 2 of 2 (any 2 of 3 builders) from commit 0123456789ab…`, or
/// `reproduced by 1 of 2 (any 2 of 3 builders) from commit 0123456789ab…; 1 more from bob or carol`.
pub fn reproduction_text(reproduction: &Reproduction, names: &Names) -> String {
    if reproduction.files.is_empty() {
        return format!("not reproduced: {NO_FILE}");
    }
    let tally = reproduction.tally;
    let rules = reproduction.groups().iter().map(|group| {
        let size = group.signers.len();
        format!("any {} of {size} builder{}", group.threshold, plural(size))
    });
    let rules: Vec<String> = rules.collect();
    let (collected, needed) = (tally.collected, tally.needed);
    let text = format!("reproduced by {collected} of {needed} ({})", rules.join(", and "));
    let text = format!("{text}{}", from_commits(&reproduction.sources()));
    if reproduction.is_reproduced() {
        return text;
    }
    let more = needed.saturating_sub(collected);
    let least = |agreed: &BTreeSet<PublicKey>| Tally::of(reproduction.groups(), agreed) == tally;
    let lacking: Vec<_> = reproduction.files.iter().filter(|(_, agreed)| least(agreed)).collect();
    let lacks = |key: &PublicKey| lacking.iter().any(|(_, agreed)| !agreed.contains(key));
    let asked: BTreeSet<PublicKey> = reproduction.missing().into_iter().filter(lacks).collect();
    let of_files = match lacking.len() == reproduction.files.len() {
        true if lacking.iter().all(|(_, agreed)| agreed.is_disjoint(&asked)) => String::new(),
        true => " of each file".to_owned(),
        false => {
            format!(" of {}", list_files(lacking.iter().map(|(name, _)| *name)))
        }
    };
    let called: Vec<String> = names.in_order(asked).iter().map(|signer| names.called(signer.key)).collect();
    match called.is_empty() {
        true => format!("{text}; {more} more"),
        false => {
            let called = list_called(called.iter().map(String::as_str), " or ");
            format!("{text}; {more} more{of_files} from {called}")
        }
    }
}

/// Says of a file that builders do not make it; `None` if they do, or if they make none of the release's.
pub fn not_built_text(reproduction: &Reproduction, file: &AssetName) -> Option<String> {
    let is_outside = !reproduction.files.is_empty() && !reproduction.files.contains_key(file);
    is_outside.then(|| format!("{} is not a file that builders make", marked_name(file.as_str())))
}

/// Says what each builder found who got something else, as in `carol got something else: app.tar.gz from commit …`.
pub fn different_lines(reproduction: &Reproduction, names: &Names) -> Vec<String> {
    let builders = names.in_order(reproduction.different.keys().copied());
    let line = |key| format!("{} {}", names.called(key), builder_text(reproduction, &key));
    builders.iter().map(|signer| line(signer.key)).collect()
}

/// Says what a builder got, as in `got something else: app.tar.gz from commit …` or
/// `got 2 of 3 files the same from commit …`.
pub fn builder_text(reproduction: &Reproduction, key: &PublicKey) -> String {
    let Some(commit) = reproduction.commits.get(key) else { return "has stated nothing".to_owned() };
    let from = from_commits(&[commit.as_str()].into());
    let all = reproduction.files.len();
    let same = reproduction.files.values().filter(|agreed| agreed.contains(key)).count();
    match reproduction.different.get(key) {
        Some(files) => format!("got something else: {}{from}", list_files(files)),
        None if same == all => format!("got the same{from}"),
        None => format!("got {same} of {all} files the same{from}"),
    }
}

/// Says in a headline that builders got something else, as in `1 builder got something else: app.tar.gz`.
pub fn different_text(reproduction: &Reproduction) -> Option<String> {
    let different = &reproduction.different;
    let files: BTreeSet<&AssetName> = different.values().flatten().collect();
    Some(format!("{}: {}", count_different(different.len())?, list_files(files)))
}

/// Says how many builders got something else, as in `1 builder got something else`; `None` if none did.
pub fn count_different(builders: usize) -> Option<String> {
    (builders > 0).then(|| format!("{builders} builder{} got something else", plural(builders)))
}

/// Lists names of files, as in `app.tar.gz, app.zip`. A long list ends with a number.
pub fn list_files<'a>(files: impl IntoIterator<Item = &'a AssetName>) -> String {
    let files: Vec<&AssetName> = files.into_iter().collect();
    let shown = files.iter().take(MOST_NAMED).map(|name| marked_name(name.as_str()));
    let shown = shown.collect::<Vec<_>>().join(", ");
    match files.len().saturating_sub(MOST_NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn from_commits(commits: &BTreeSet<&str>) -> String {
    let short = |commit: &&str| format!("{}…", &commit[..COMMIT_DIGITS]);
    let mut shown: Vec<String> = commits.iter().take(MOST_NAMED).map(short).collect();
    if commits.len() > MOST_NAMED {
        shown.push(format!("{} more", commits.len() - MOST_NAMED));
    }
    match shown.len() {
        0 => String::new(),
        1 => format!(" from commit {}", shown[0]),
        _ => format!(" from commits {}", shown.join(", ")),
    }
}
