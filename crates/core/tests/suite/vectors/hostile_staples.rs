//! Lies about leaves, records and the map, one each.

use countersign_core::log::record::{Leaf, LoggedState, ProjectRecord, Record, ReleaseRecord, release_key};
use countersign_core::log::{tree::Hash, trie, trie::TriePath, trie::TrieSibling};
use countersign_core::values::{digest::Sha256, digest::Sha512, path::RepoPath};
use countersign_core::{proof::bundle::Staple, proof::freshness::StapleSubject, rules::snapshot::Change};
use countersign_testing::{INDEX, PROJECT, evidence::index_path, evidence::rotated, path};
use serde_json::Value;

use super::staples::{StapleVector, log, seconds, staple_of, subject, vector, written};
use crate::log::world::LogWorld;

pub(super) fn all() -> Vec<StapleVector> {
    [of_leaves(), of_records(), of_maps(), of_forms()].concat()
}

/// The log after a revocation, which the server would like to hide.
fn revoked() -> LogWorld {
    let mut log = log();
    log.revoke(INDEX, "the revocation document");
    log
}

fn of_leaves() -> Vec<StapleVector> {
    let (before, after) = (log(), revoked());
    let (old, new) = (staple_of(&before), staple_of(&after));
    let mut stale = old.clone();
    stale.proof.note = new.proof.note.clone();
    stale.proof.hashes = after.tree.inclusion(old.proof.index, after.tree.len()).expect("a leaf");
    let mut renumbered = stale.clone();
    renumbered.proof.index = new.proof.index;
    let mut old_leaf = new.clone();
    (old_leaf.leaf, old_leaf.statuses) = (old.leaf.clone(), old.statuses.clone());
    let mut short = new.clone();
    short.proof.hashes.pop();
    let mut made_up = new.clone();
    made_up.leaf.state = old.leaf.state;
    made_up.statuses = old.statuses.clone();
    vec![
        vector("stale-leaf-under-a-fresh-checkpoint", &stale),
        vector("stale-leaf-with-the-last-index", &renumbered),
        vector("stale-leaf-with-the-proof-of-the-last", &old_leaf),
        vector("proof-that-is-too-short", &short),
        vector("leaf-with-another-state", &made_up),
    ]
}

fn of_records() -> Vec<StapleVector> {
    let (before, after) = (log(), revoked());
    let (old, new) = (staple_of(&before), staple_of(&after));
    let mut hidden = new.clone();
    (hidden.statuses.release, hidden.statuses.release_path) =
        (old.statuses.release.clone(), old.statuses.release_path.clone());
    let mut unrevoked = new.clone();
    unrevoked.statuses.release.state = LoggedState::Complete;
    let mut rotated_log = log();
    rotated_log.rotate(&rotated(PROJECT));
    let mut hidden_rotation = staple_of(&rotated_log);
    (hidden_rotation.statuses.project, hidden_rotation.statuses.project_path) =
        (old.statuses.project.clone(), old.statuses.project_path.clone());
    let times = [(1, seconds(-60)), (2, seconds(-60))];
    let other_release = before.staple(&index_path("v0.2"), &before.cosigned(&times));
    let mut other_record = old.clone();
    other_record.statuses.release = other_release.statuses.release.clone();
    let of_other = before.staple(&INDEX.replace("/app/", "/other/"), &before.cosigned(&times));
    let mut other_project = old.clone();
    (other_project.statuses.project, other_project.statuses.project_path) =
        (of_other.statuses.project.clone(), of_other.statuses.project_path.clone());
    vec![
        vector("hidden-revocation", &hidden),
        vector("revoked-record-that-says-complete", &unrevoked),
        vector("hidden-rotation", &hidden_rotation),
        vector("record-of-another-leaf", &other_record),
        vector("staple-of-another-release", &other_release),
        vector("record-of-another-project", &other_project),
        StapleVector {
            subject: StapleSubject { index_digest: Sha512::of(b"another index"), ..subject() },
            ..vector("another-index", &old)
        },
        StapleVector {
            subject: StapleSubject { signers: vec![Sha512::of(b"other signers")], ..subject() },
            ..vector("signers-of-another-chain", &old)
        },
    ]
}

/// A log that says what it likes: with a record that no commit gives.
fn with_records(records: &[Record]) -> Staple {
    let mut log = log();
    let statuses = records.iter().fold(log.statuses(), |statuses, record| statuses.insert_record(record));
    log.push(&Change::new("a lie"), statuses);
    staple_of(&log)
}

/// A log whose last leaf has this root of the map, with this path to the record of the release.
fn with_root(root: Hash, release: ReleaseRecord, path: TriePath) -> Staple {
    let mut log = log();
    let last = log.leaves.last().expect("a leaf").clone();
    log.push_leaf(Leaf { state: root, ..last });
    let mut staple = staple_of(&log);
    (staple.statuses.release, staple.statuses.release_path) = (release, path);
    staple
}

fn inner(bit: u8, children: [&Hash; 2]) -> Hash {
    Sha256::of(&[&[3, bit], children[0].as_bytes().as_slice(), children[1].as_bytes()].concat())
}

/// The two hashes in the order in which an honest map has them: `near` on the side of the key's bit.
fn ordered<'a>(index: &RepoPath, bit: u8, near: &'a Hash, far: &'a Hash) -> [&'a Hash; 2] {
    let is_set = release_key(index)[usize::from(bit / 8)] & (0x80 >> (bit % 8)) != 0;
    if is_set { [far, near] } else { [near, far] }
}

fn of_maps() -> Vec<StapleVector> {
    let (complete, withdrawn) = {
        let complete = staple_of(&log()).statuses.release;
        let state = LoggedState::Revoked(Sha512::of(b"the revocation document"));
        (complete.clone(), ReleaseRecord { state, ..complete })
    };
    let index = path(INDEX);
    let leaf = |record: &ReleaseRecord| trie::leaf_hash(&release_key(&index), record.text().as_bytes());
    let (shown, hidden) = (leaf(&complete), leaf(&withdrawn));
    let path_of = |turns: &[(u8, Hash)]| {
        let sibling = |(bit, hash): &(u8, Hash)| TrieSibling { bit: *bit, hash: *hash };
        TriePath { siblings: turns.iter().map(sibling).collect() }
    };
    // The revoked record is where the key leads, and the complete one on the other side.
    let two_paths = inner(9, ordered(&index, 9, &hidden, &shown));
    let below = inner(9, ordered(&index, 9, &shown, &hidden));
    let falling = inner(20, ordered(&index, 20, &below, &hidden));
    let twice = inner(9, ordered(&index, 9, &below, &hidden));
    let project = staple_of(&log()).statuses.project;
    let uncounted = ReleaseRecord { number: project.completed + 1, ..complete.clone() };
    let unlisted = ProjectRecord { newest: vec![path(&index_path("v9")); 5], ..project.clone() };
    let renumbered = ReleaseRecord { number: 2, ..complete.clone() };
    vec![
        vector(
            "map-with-two-paths-to-a-key",
            &with_root(two_paths, complete.clone(), path_of(&[(9, hidden)])),
        ),
        vector(
            "map-whose-bits-fall",
            &with_root(falling, complete.clone(), path_of(&[(20, hidden), (9, hidden)])),
        ),
        vector(
            "map-with-a-bit-twice",
            &with_root(twice, complete.clone(), path_of(&[(9, hidden), (9, hidden)])),
        ),
        vector("number-that-is-not-counted", &with_records(&[Record::Release(uncounted)])),
        vector("number-of-another-release", &with_records(&[Record::Release(renumbered)])),
        vector("newest-release-that-is-not-named", &with_records(&[Record::Project(unlisted)])),
    ]
}

fn of_forms() -> Vec<StapleVector> {
    let staple = written(&staple_of(&log()));
    let edited = |name, edit: &dyn Fn(&mut Value)| {
        let mut changed = staple.clone();
        edit(&mut changed);
        assert_ne!(changed, staple, "{name} is edited");
        StapleVector { staple: changed, ..vector(name, &staple_of(&log())) }
    };
    let replace = |field: &'static str, from: &'static str, to: &'static str| {
        move |staple: &mut Value| {
            let text = staple.pointer_mut(field).expect("a field");
            *text = Value::String(text.as_str().expect("text").replacen(from, to, 1));
        }
    };
    vec![
        edited("staple-of-a-later-version", &|staple| {
            staple["version"] = 2.into();
        }),
        edited("staple-with-an-unknown-field", &|staple| {
            staple["extra"] = Value::Null;
        }),
        edited("staple-without-the-project", &|staple| {
            _ = staple.as_object_mut().expect("an object").remove("project");
        }),
        edited("bit-with-a-leading-zero", &|staple| {
            let sibling = &mut staple["release"]["siblings"][0];
            *sibling = Value::String(format!("0{}", sibling.as_str().expect("text")));
        }),
        edited("bit-behind-the-end-of-a-key", &|staple| {
            let sibling = &mut staple["release"]["siblings"][0];
            let (_, hash) = sibling.as_str().expect("text").split_once(' ').expect("two words");
            *sibling = Value::String(format!("256 {hash}"));
        }),
        edited("proof-with-extra-data", &replace("/proof", "\nindex", "\nextra AAAA\nindex")),
        edited("record-with-another-line", &replace("/release/record", "\nstate", "\nother line\nstate")),
        edited("record-of-the-wrong-kind", &|staple| {
            staple["release"]["record"] = staple["project"]["record"].clone()
        }),
        edited("leaf-with-capital-digits", &|staple| {
            let leaf = staple["leaf"].as_str().expect("text");
            let (before, digest) = leaf.rsplit_once(' ').expect("two words");
            staple["leaf"] = Value::String(format!("{before} {}", digest.to_uppercase()));
        }),
    ]
}
