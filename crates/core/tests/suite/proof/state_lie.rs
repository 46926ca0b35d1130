//! The proof that a log lied about the state, and everything that is no such proof.

use std::sync::Arc;

use countersign_core::documents::{layout, signatures::SignatureSet};
use countersign_core::log::record::{LoggedState, Record, ReleaseRecord};
use countersign_core::log::{checkpoint::InclusionProof, status::Statuses};
use countersign_core::proof::state_lie::{LeafBefore, NoLie, ProvenLie, StateLie};
use countersign_core::rules::snapshot::Change;
use countersign_core::values::{bounds::PROOF_HASHES, digest::Sha256, digest::Sha512};
use countersign_testing::evidence::{founded, index_path, rotated, signed_by};
use countersign_testing::{PROJECT, alice, path};

use crate::log::world::{LogWorld, log_key, seed};

/// A log with two projects' worth of releases, and all records that it ever had.
struct Told {
    world: LogWorld,
    records: Vec<Record>,
}

impl Told {
    fn new() -> Self {
        let mut told = Self { world: LogWorld::default(), records: Vec::new() };
        let records = told.world.rotate(&founded(PROJECT));
        told.records.extend(records);
        for n in 1..=5 {
            let records = told.world.complete(&index_path(&format!("v{n}")), &format!("index {n}"));
            told.records.extend(records);
        }
        told
    }

    /// A commit after which the log says that the state is `claimed`, and what that proves once two more commits came.
    fn lie(&self, change: &Change, claimed: Statuses) -> StateLie {
        let before = self.world.statuses();
        let mut world = self.world.clone();
        world.push(change, claimed);
        let index = world.tree.len() - 1;
        world.idle();
        world.idle();
        let size = world.tree.len();
        let records = before.decisive_paths(change).into_iter().map(|(key, path)| {
            let record = self.records.iter().rev().find(|record| record.key() == key).expect("a record");
            (record.clone(), path)
        });
        StateLie {
            log: log_key(),
            leaf: world.leaves[usize::try_from(index).unwrap()].clone(),
            proof: InclusionProof {
                index,
                hashes: world.tree.inclusion(index, size).unwrap(),
                note: world.checkpoint().sign(&log_key(), &seed(0)).note(),
            },
            before: index.checked_sub(1).map(|before| LeafBefore {
                leaf: world.leaves[usize::try_from(before).unwrap()].clone(),
                hashes: world.tree.inclusion(before, size).unwrap(),
            }),
            change: change.clone(),
            records: records.collect(),
            indexes: Default::default(),
        }
    }

    fn right(&self, change: &Change) -> Statuses {
        self.world.statuses().apply(change, |index| self.world.indexes.get(index).cloned()).unwrap().0
    }
}

fn revocation(version: &str) -> Change {
    let mut change = Change::new("revoke");
    change.write(layout::revocation_of(&path(&index_path(version))), b"it was stolen".as_slice());
    change.delete(layout::signatures_of(&path(&index_path(version))));
    change
}

/// A release that was registered before, and that alice completes.
fn completion(version: &str, text: &str) -> Change {
    let mut change = Change::new("complete");
    change.write(layout::signatures_of(&path(&index_path(version))), signed_by(text, &[&alice()]).write());
    change
}

fn proven(lie: &StateLie) -> ProvenLie {
    let read = StateLie::parse(&lie.write()).expect("what we write can be read");
    assert!(read.write() == lie.write());
    read.verify().expect("a proof")
}

#[test]
fn a_hidden_revocation_is_proven_by_what_the_log_has_signed() {
    let told = Told::new();
    let change = revocation("v2");
    // The state of before, and some other one.
    let other = told.world.statuses().insert_record(&told.records[1]);
    for claimed in [told.world.statuses(), other, Statuses::default()] {
        let lie = told.lie(&change, claimed.clone());
        let found = proven(&lie);
        assert_eq!((found.signed, found.derived), (claimed.root(), told.right(&change).root()));
        let [Record::Release(ReleaseRecord { path: revoked, state, .. })] = found.records.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!(*revoked, path(&index_path("v2")));
        assert_eq!(*state, LoggedState::Revoked(Sha512::of(b"it was stolen")));
        assert!(lie.write().len() < 20_000, "it is a small file");
    }
    assert_eq!(told.lie(&change, told.right(&change)).verify(), Err(NoLie::Right));
}

#[test]
fn a_hidden_rotation_and_a_state_that_changes_without_a_reason_are_proven() {
    let told = Told::new();
    let past = rotated(PROJECT);
    let mut change = Change::new("rotate");
    let entry = past.history.entries.last().unwrap();
    change.write(layout::active_signers(&past.project), entry.signers_config.as_bytes());
    change.write(layout::history_entry(&past.project, past.history.entries.len()), entry.write());
    let lie = told.lie(&change, told.world.statuses());
    let [Record::Project(project)] = &proven(&lie).records[..] else { panic!("{lie:?}") };
    assert_eq!((project.path.as_str(), project.history), (PROJECT, 2));
    // A commit that changes no status, after which the map is an older one: a revocation is undone later.
    let mut idle = Change::new("idle");
    idle.write(path("https/github.com/443/acme/app/other"), b"other".as_slice());
    let lie = told.lie(&idle, told.world.versions[2].clone());
    assert_eq!(lie.records, []);
    assert_eq!(proven(&lie).records, []);
}

#[test]
fn a_hidden_release_is_proven_with_the_index_that_was_signed() {
    let told = Told::new();
    let (index, text) = (path(&index_path("v6")), "index 6");
    let change = completion("v6", text);
    let lie = told.lie(&change, told.world.statuses());
    assert!(matches!(lie.verify(), Err(NoLie::Underivable(_))), "the index is missing");
    let with = |bytes: &str| StateLie {
        indexes: [(index.clone(), Arc::from(bytes.as_bytes()))].into(),
        ..lie.clone()
    };
    assert_eq!(proven(&with(text)).records.len(), 2);
    // No one proves a lie of an honest log with another index.
    assert_eq!(with("index 7").verify(), Err(NoLie::OtherIndex(index.clone())));
    let mut honest = told.world.clone();
    honest.indexes.insert(index.clone(), text.as_bytes().into());
    let right = honest.statuses().apply(&change, |index| honest.indexes.get(index).cloned()).unwrap().0;
    let honest = StateLie {
        indexes: [(index.clone(), Arc::from(text.as_bytes()))].into(),
        ..told.lie(&change, right)
    };
    assert_eq!(honest.verify(), Err(NoLie::Right));
    // Signatures that no one made bind nothing.
    let mut unsigned = Change::new("complete");
    unsigned.write(layout::signatures_of(&index), SignatureSet::default().write());
    let lie = told.lie(&unsigned, told.world.statuses());
    let lie = StateLie { indexes: [(index.clone(), Arc::from(text.as_bytes()))].into(), ..lie };
    assert_eq!(lie.verify(), Err(NoLie::OtherIndex(index)));
}

#[test]
fn the_first_leaf_has_none_before_it() {
    let told = Told { world: LogWorld::default(), records: Vec::new() };
    let past = founded(PROJECT);
    let entry = past.history.entries.last().unwrap();
    let mut change = Change::new("register");
    change.write(layout::active_signers(&past.project), entry.signers_config.as_bytes());
    change.write(layout::history_entry(&past.project, 1), entry.write());
    let lie = told.lie(&change, Statuses::default());
    assert_eq!(proven(&lie).records.len(), 1);
    let leaf = lie.leaf.clone();
    let before = Some(LeafBefore { leaf, hashes: lie.proof.hashes.clone() });
    assert_eq!(StateLie { before, ..lie }.verify(), Err(NoLie::LeafBefore));
}

#[test]
fn nothing_else_proves_a_lie() {
    let told = Told::new();
    let change = revocation("v2");
    let lie = told.lie(&change, told.world.statuses());
    proven(&lie);
    let refused =
        |name: &str, lie: StateLie, expected: NoLie| assert_eq!(lie.verify(), Err(expected), "{name}");
    // Someone who does not have the log's key proves nothing.
    let mut forged = lie.clone();
    forged.proof.note = told.world.checkpoint().sign(&log_key(), &seed(9)).note();
    assert!(matches!(forged.verify(), Err(NoLie::Checkpoint(_))));
    let mut other = lie.clone();
    other.leaf.state = Sha256::of(b"another state");
    refused("another leaf", other, NoLie::NotInTheLog);
    let mut other = lie.clone();
    other.proof.index -= 1;
    refused("another place", other, NoLie::NotInTheLog);
    let mut other = lie.clone();
    other.before.as_mut().unwrap().leaf.state = Statuses::default().root();
    refused("another leaf before", other, NoLie::NotInTheLog);
    refused("no leaf before", StateLie { before: None, ..lie.clone() }, NoLie::LeafBefore);
    let skipped = told.world.leaves.first().cloned();
    let mut other = lie.clone();
    other.before.as_mut().unwrap().leaf = skipped.unwrap();
    refused("an earlier leaf in its place", other, NoLie::NotInTheLog);
    let mut other = lie.clone();
    other.change = revocation("v3");
    refused("another change", other, NoLie::OtherChange);
    // Each record that the change looks at is needed, with its own path.
    for at in 0..lie.records.len() {
        let mut other = lie.clone();
        other.records.remove(at);
        let fault = other.verify().unwrap_err();
        assert!(
            matches!(fault, NoLie::Incomplete | NoLie::OtherMap | NoLie::Underivable(_)),
            "{at}: {fault}"
        );
        let mut other = lie.clone();
        other.records[at].1.siblings.pop();
        refused("a path of another map", other, NoLie::OtherMap);
    }
    let mut other = lie.clone();
    let Record::Release(release) =
        &mut other.records.iter_mut().find(|(record, _)| matches!(record, Record::Release(_))).unwrap().0
    else {
        unreachable!()
    };
    release.number += 1;
    refused("another record", other, NoLie::OtherMap);
    refused("no records", StateLie { records: Vec::new(), ..lie }, NoLie::Incomplete);
}

/// That a revocation is hidden.
pub(crate) fn example() -> StateLie {
    let told = Told::new();
    told.lie(&revocation("v2"), told.world.statuses())
}

#[test]
fn a_file_is_read_strictly() {
    let text = String::from_utf8(example().write()).unwrap();
    for (from, to) in [("\"version\": 1", "\"version\": 2"), ("countersign/leaf/v1", "countersign/leaf/v2")] {
        assert!(StateLie::parse(text.replacen(from, to, 1).as_bytes()).is_err(), "{to}");
    }
    assert!(StateLie::parse(b"{}").is_err());
    // An inclusion is proven by as many hashes as a tree has levels, and no more.
    for (count, is_read) in [(PROOF_HASHES, true), (PROOF_HASHES + 1, false)] {
        let mut lie = example();
        let before = lie.before.as_mut().expect("a leaf before");
        before.hashes = vec![before.leaf.hash(); count];
        assert_eq!(StateLie::parse(&lie.write()).is_ok(), is_read, "{count}");
    }
}
