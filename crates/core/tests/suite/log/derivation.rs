//! The status map as the changes of real decisions make it.

use std::{collections::BTreeSet, sync::Arc};

use countersign_core::log::record::{LoggedState, Record, project_key, release_key};
use countersign_core::log::{
    status::LoggedRelease, status::StatusFault, status::Statuses, tree::leaf_hash, trie::EMPTY,
};
use countersign_core::values::{bounds::NEWEST_RELEASES, digest::Sha512};
use countersign_core::{documents::layout, rules::snapshot::Change};
use countersign_testing::evidence::{OTHER_PROJECT, founded, founders, index_path, rotated, successors};
use countersign_testing::{
    ACTIVE, INDEX, PENDING, PROJECT, World, alice, bob, carol, dave, key, path, release,
};

use super::world::LogWorld;

/// A world whose every decision goes into the map.
struct Derived {
    world: World,
    statuses: Statuses,
    records: Vec<Record>,
}

impl Derived {
    /// Does something and gives the records that it changed.
    fn after<T>(&mut self, act: impl FnOnce(&mut World) -> T) -> Vec<Record> {
        act(&mut self.world);
        let world = &self.world;
        let (statuses, records) =
            self.statuses.apply(&world.last, |index| Some(world.repo.bytes(index.as_str()))).unwrap();
        self.statuses = statuses;
        self.records.extend(records.clone());
        // What a cache of the records gives at the next start.
        assert_eq!(Statuses::of_records(self.records.clone()).root(), self.statuses.root());
        let keys: BTreeSet<_> = self.records.iter().map(|record| record.leaf().0).collect();
        assert_eq!(self.statuses.count(), keys.len() as u64);
        for (key, hash) in records.iter().map(Record::leaf) {
            assert!(self.statuses.holds(&(key, hash)) && !self.statuses.holds(&(key, leaf_hash(b"other"))));
        }
        records
    }
}

#[test]
fn statuses_follow_registration_completion_rotation_and_revocation() {
    let mut derived = Derived { world: World::new(), statuses: Statuses::default(), records: Vec::new() };
    assert_eq!(derived.statuses.root().as_bytes(), &EMPTY);
    assert!(derived.after(|world| world.register(&founders(), &alice()).unwrap()).is_empty());
    for person in [alice(), bob(), carol()] {
        assert!(derived.after(|world| world.sign(PENDING, &person).unwrap()).is_empty());
    }
    let records = derived.after(|world| world.sign(PENDING, &dave()).unwrap());
    let project = derived.statuses.project(&path(PROJECT)).unwrap().clone();
    assert_eq!(records, [Record::Project(project.clone())]);
    assert_eq!(project.signers, Sha512::of(&derived.world.repo.bytes(ACTIVE)));
    assert_eq!((project.history, project.completed, project.newest.len()), (1, 0, 0));

    assert!(derived.after(|world| world.add_release(&release("v1", "one"), &alice()).unwrap()).is_empty());
    assert!(derived.after(|world| world.sign(INDEX, &alice()).unwrap()).is_empty());
    assert_eq!(derived.statuses.release(&path(INDEX)), None);
    let records = derived.after(|world| world.sign(INDEX, &bob()).unwrap());
    assert_eq!(records.len(), 2);
    assert_eq!(
        derived.statuses.release(&path(INDEX)),
        Some(LoggedRelease { number: 1, state: LoggedState::Complete })
    );
    assert_eq!(derived.statuses.project(&path(PROJECT)).unwrap().newest, [path(INDEX)]);

    assert!(derived.after(|world| world.update(&successors(), &alice()).unwrap()).is_empty());
    for person in [alice(), carol(), key(5), key(6)] {
        derived.after(|world| world.sign(PENDING, &person).unwrap());
    }
    // Alice and Bob agree as the admins of before.
    let records = derived.after(|world| world.sign(PENDING, &bob()).unwrap());
    let project = derived.statuses.project(&path(PROJECT)).unwrap().clone();
    assert_eq!(records, [Record::Project(project.clone())]);
    assert_eq!((project.history, project.completed, project.newest.len()), (2, 1, 1));
    assert_eq!(project.signers, Sha512::of(successors().text().as_bytes()));

    let document = derived.world.revocation_document("a bad build");
    let records = derived.after(|world| world.revoke_index(&alice()));
    let revoked = LoggedState::Revoked(Sha512::of(document.as_bytes()));
    assert_eq!(derived.statuses.release(&path(INDEX)), Some(LoggedRelease { number: 1, state: revoked }));
    assert!(matches!(&records[..], [Record::Release(release)] if release.state == revoked));
    assert_eq!(derived.statuses.project(&path(PROJECT)), Some(&project), "revoked, it stays a completed one");
}

#[test]
fn releases_are_numbered_by_completion_and_the_last_eight_are_named() {
    let mut log = LogWorld::default();
    log.rotate(&founded(PROJECT));
    log.rotate(&founded(OTHER_PROJECT));
    // Tags have no order: the last to be completed is the newest.
    for (n, tag) in ["v9", "v1", "v8", "v2", "v7", "v3", "v6", "v4", "v5", "v0"].into_iter().enumerate() {
        log.complete(&index_path(tag), tag);
        let number = log.statuses().release(&path(&index_path(tag))).unwrap().number;
        assert_eq!(number as usize, n + 1);
    }
    let statuses = log.statuses();
    let project = statuses.project(&path(PROJECT)).unwrap();
    let named: Vec<(u32, &str)> = project.newest().map(|(n, index)| (n, index.as_str())).collect();
    assert_eq!((project.completed, named.len()), (10, NEWEST_RELEASES));
    assert_eq!((named[0], named[7]), ((10, index_path("v0").as_str()), (3, index_path("v8").as_str())));
    assert_eq!(statuses.project(&path(OTHER_PROJECT)).unwrap().completed, 0);
    assert_eq!(statuses.project_of(&path(&index_path("v3"))), Some(project));
}

#[test]
fn a_proof_leads_to_the_root_and_only_with_the_right_index() {
    let mut log = LogWorld::default();
    log.rotate(&rotated(PROJECT));
    for n in 0..40 {
        log.complete(&index_path(&format!("v{n}")), &format!("index {n}"));
    }
    log.revoke(&index_path("v7"), "document");
    let statuses = log.statuses();
    for n in 0..40 {
        let index = path(&index_path(&format!("v{n}")));
        let proof = statuses.prove_release(&index, Sha512::of(format!("index {n}").as_bytes())).unwrap();
        let release = proof.release_path.root(&release_key(&index), proof.release.text().as_bytes());
        assert_eq!(release, Ok(statuses.root()));
        let project = proof.project_path.root(&project_key(&path(PROJECT)), proof.project.text().as_bytes());
        assert_eq!(project, Ok(statuses.root()));
        assert_eq!(proof.release.state == LoggedState::Complete, n != 7);
        assert_eq!(statuses.prove_release(&index, Sha512::of(b"another")), None);
    }
    assert_eq!(statuses.prove_release(&path(&index_path("v40")), Sha512::of(b"index 40")), None);
}

#[test]
fn older_versions_stay_as_they_were() {
    let mut log = LogWorld::default();
    log.rotate(&founded(PROJECT));
    log.complete(INDEX, "index");
    let before = log.statuses();
    log.revoke(INDEX, "document");
    assert_eq!(before.release(&path(INDEX)), Some(LoggedRelease { number: 1, state: LoggedState::Complete }));
    assert_eq!(before.root(), log.versions[1].root());
    assert_ne!(before.root(), log.statuses().root());
    log.idle();
    assert_eq!(log.versions[2].root(), log.versions[3].root());
}

#[test]
fn a_change_that_no_rules_make_is_refused() {
    let mut log = LogWorld::default();
    log.rotate(&founded(PROJECT));
    log.complete(INDEX, "index");
    let other = index_path("v2");
    let write = |file: &dyn Fn() -> countersign_core::values::path::RepoPath| {
        let mut change = Change::new("x");
        change.write(file(), b"x".as_slice());
        change
    };
    let fault = |log: &LogWorld, change: &Change| {
        let error = log.clone().commit(change).expect_err("a refusal");
        assert!(error.to_string().contains(error.path.as_str()));
        error.fault
    };
    let completed = |index: &str| write(&|| layout::signatures_of(&path(index)));
    let revoked = |index: &str| write(&|| layout::revocation_of(&path(index)));
    assert_eq!(fault(&log, &completed(INDEX)), StatusFault::CompletedTwice);
    assert_eq!(fault(&log, &completed(&other)), StatusFault::NoIndex);
    assert_eq!(fault(&log, &completed(&other.replace("acme/app", "acme/none"))), StatusFault::NoProject);
    assert_eq!(fault(&log, &revoked(&other)), StatusFault::NotComplete);
    assert_eq!(fault(&log, &write(&|| path(ACTIVE))), StatusFault::NoHistoryEntry);
    // Entries are counted from 1.
    let mut before_first = write(&|| path(ACTIVE));
    before_first.write(layout::history_entry(&path(PROJECT), 0), b"x".as_slice());
    assert_eq!(fault(&log, &before_first), StatusFault::NoHistoryEntry);
    let mut changed = log.clone();
    changed.indexes.insert(path(INDEX), Arc::from(b"changed".as_slice()));
    assert_eq!(fault(&changed, &revoked(INDEX)), StatusFault::OtherIndex);
    changed.indexes.clear();
    assert_eq!(fault(&changed, &revoked(INDEX)), StatusFault::NoIndex);
    log.revoke(INDEX, "document");
    assert_eq!(fault(&log, &revoked(INDEX)), StatusFault::NotComplete);
    assert_eq!(fault(&log, &completed(INDEX)), StatusFault::CompletedTwice);
}

#[test]
fn files_that_look_alike_change_no_status() {
    let mut log = LogWorld::default();
    log.rotate(&founded(PROJECT));
    log.complete(INDEX, "index");
    let mut change = Change::new("x");
    for name in [
        ".metadata.json", ".signatures.json.pending", ".signatures.json.revoked", ".revocation.json.pending",
        ".revocation.json.signatures.json", ".revocation.json.signatures.json.pending",
        ".revocation.json.request.json", ".signers.json", "",
    ] {
        change.write(path(&format!("{INDEX}{name}")), b"x".as_slice());
    }
    for name in ["svc.signers.pending/svc.signers.json", "svc.signers.superseded/00/svc.signers.json"] {
        change.write(path(&format!("{PROJECT}/{name}")), b"x".as_slice());
    }
    change.write(path(&format!("{PROJECT}/svc.signers/svc.signers.json.signatures.json")), b"x".as_slice());
    change.delete(layout::signatures_of(&path(INDEX)));
    assert_eq!(log.commit(&change), Ok(Vec::new()));
}
