//! What these tests share.

use serde_json::Value;

use crate::support::{SignersFile, World, client::Computer, person, signers::named_group};

/// Two of three sign and rotate, and any two revoke.
pub(super) fn team_file() -> SignersFile {
    let group = named_group(2, &["alice", "bob", "carol"]);
    SignersFile::new().with("artifact_signers", group.clone()).with("revocation_keys", group)
}

pub(super) fn start_team() -> World {
    let [alice, bob, carol] = ["alice", "bob", "carol"].map(person);
    World::with_project(&team_file(), &[&alice, &bob, &carol])
}

/// The report for programs, about the one project that it must have.
#[track_caller]
pub(super) fn ask(computer: &Computer, args: &[&str]) -> Value {
    let report = computer.json(&[&["incident", "--steal"], args].concat());
    assert_eq!(report["projects"].as_array().map(Vec::len), Some(1), "{report}");
    report["projects"][0].clone()
}

/// By the directories of releases: which of them the keys were needed for.
#[track_caller]
pub(super) fn decisive(list: &Value) -> Vec<(String, bool)> {
    let list = list.as_array().expect("a list");
    let mut found: Vec<(String, bool)> = list
        .iter()
        .map(|entry| {
            let path = entry["index_path"].as_str().expect("a path").trim_end_matches("/svc.index.json");
            let name = path.rsplit('/').next().expect("a name").to_owned();
            (name, entry["decisive"].as_bool().expect("a boolean"))
        })
        .collect();
    found.sort();
    found
}

pub(super) fn expect(list: &[(&str, bool)]) -> Vec<(String, bool)> {
    list.iter().map(|(name, decisive)| ((*name).to_owned(), *decisive)).collect()
}
