//! Keys, times, paths, names, patterns, JSON, rebuilds, signatures and places at the edges of what is accepted: for
//! implementations that have a reader of their own for each.
//!
//! The cases stand in the files alone. Among the keys are all points of small order, every encoding that is not
//! reduced, and texts whose last character has bits that mean nothing. Among the signers files are two witnesses whose
//! name gives their keys the same id, and among the indexes names that are in another order in UTF-16.

use countersign_core::documents::index::{AssetName, ReleaseIndex};
use countersign_core::documents::signers::{FilePattern, Group, RebuildPolicy, SignersFile};
use countersign_core::documents::{signatures::SignatureSet, statement::Rebuild, transparency::WitnessGroup};
use countersign_core::rules::place::{PlaceError, check_place};
use countersign_core::values::key::{PublicKey, Signature};
use countersign_core::values::{digest::Sha512, path::RepoPath, shown::is_unseen, time::Timestamp};
use serde_json::{Value, json};

/// Gives the answer to a case: the field that has it, and its value.
type Judge = fn(&Value) -> (&'static str, Value);

/// The files, each with what judges its cases.
pub(crate) const FILES: [(&str, Judge); 11] = [
    ("keys", |case| reads_as(case, |text| PublicKey::parse(text).ok().map(|key| key.to_string()))),
    ("times", |case| reads_as(case, read_time)),
    ("paths", |case| reads_as(case, read_path)),
    ("names", |case| reads_as(case, |text| AssetName::parse(text).ok().map(|name| name.to_string()))),
    ("patterns", |case| ("fits", fits(case).into())),
    ("json", |case| reads_as(case, read_set)),
    ("signers", |case| reads_as(case, read_signers)),
    ("indexes", |case| reads_as(case, read_index)),
    ("rebuilds", |case| reads_as(case, read_rebuild)),
    ("signatures", |case| ("verifies", verifies(case).into())),
    ("places", |case| ("fault", fault_of_place(case).into())),
];

fn text<'a>(case: &'a Value, field: &str) -> &'a str {
    case[field].as_str().expect("a text")
}

fn reads_as(case: &Value, read: fn(&str) -> Option<String>) -> (&'static str, Value) {
    ("reads_as", read(text(case, "text")).into())
}

fn read_time(text: &str) -> Option<String> {
    let epoch = Timestamp::from_unix_seconds(0).expect("1970 is a year");
    Timestamp::parse(text).ok().map(|time| time.nanos_since(epoch).to_string())
}

fn read_path(text: &str) -> Option<String> {
    RepoPath::parse(text).ok().filter(|path| path.as_str() == text).map(|path| path.to_string())
}

fn read_set(text: &str) -> Option<String> {
    SignatureSet::parse(text.as_bytes()).ok().map(|set| set.signers().len().to_string())
}

fn read_signers(text: &str) -> Option<String> {
    let file = SignersFile::parse(text.as_bytes()).ok()?;
    let log = file.transparency().map(|found| {
        let group = |group: &WitnessGroup| match group.replaying.len() {
            0 => format!(" {}/{}", group.threshold, group.keys.len()),
            replaying => format!(" {}/{} ({replaying} replay)", group.threshold, group.keys.len()),
        };
        let groups: String = found.witnesses().iter().map(group).collect();
        let age = found.max_age().map_or_else(|| "none".to_owned(), |age| age.as_secs().to_string());
        format!(", log {}, witnesses{groups}, age {age}", found.log().name())
    });
    let registrars = match file.registrars().len() {
        0 => String::new(),
        count => format!(", registrars {count}"),
    };
    let built = file.rebuilds().map(|policy| {
        let group = |group: &Group| format!(" {}/{}", group.threshold, group.signers.len());
        let groups: String = policy.builders.iter().map(group).collect();
        let required = if policy.required { ", required" } else { "" };
        format!(", builders{groups}, patterns {}{required}", policy.files.len())
    });
    let registrars = registrars + &built.unwrap_or_default();
    Some(format!("{}{registrars}{}", file.keys().len(), log.unwrap_or_default()))
}

fn read_index(text: &str) -> Option<String> {
    ReleaseIndex::parse(text.as_bytes()).ok().map(|index| index.published_files.len().to_string())
}

fn read_rebuild(text: &str) -> Option<String> {
    Rebuild::parse(text.as_bytes()).ok().map(|rebuild| rebuild.files.len().to_string())
}

/// `None` if the pattern is refused.
fn fits(case: &Value) -> Option<bool> {
    let files = vec![FilePattern::parse(text(case, "text")).ok()?];
    let policy = RebuildPolicy { builders: Vec::new(), files, required: false };
    Some(policy.covers(text(case, "name")))
}

fn verifies(case: &Value) -> bool {
    let key = PublicKey::parse(text(case, "key")).expect("a key");
    let signature = Signature::parse(text(case, "signature"));
    signature.is_ok_and(|signature| key.verify(&Sha512::of(b"content"), &signature).is_ok())
}

fn fault_of_place(case: &Value) -> Option<&'static str> {
    let index = ReleaseIndex::parse(case["index"].to_string().as_bytes()).expect("an index");
    match check_place(&index, &RepoPath::parse(text(case, "path")).expect("a path")) {
        Ok(()) => None,
        Err(PlaceError::NotAnIndex(_)) => Some("not an index"),
        Err(PlaceError::OtherProject(_)) => Some("other project"),
        Err(PlaceError::OtherRelease(_)) => Some("other release"),
        Err(PlaceError::OtherSource { .. }) => Some("other source"),
    }
}

/// Names with the first and the last character of each range that names must not have, and with those beside them.
pub(crate) fn names_at_edges() -> impl Iterator<Item = Value> {
    let is_unseen = |code: u32| char::from_u32(code).is_some_and(is_unseen);
    let edges = (1..=0x10_ffff_u32).filter(move |code| is_unseen(*code) != is_unseen(code - 1));
    let beside = edges.flat_map(|code| [code - 1, code]).filter_map(char::from_u32);
    beside.map(|c| json!(format!("a{c}b")))
}
