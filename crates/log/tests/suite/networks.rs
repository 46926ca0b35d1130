//! The logs of lists (D272): on disk before they are served, and bounded.

use std::{fs, io, path::Path, sync::Arc};

use countersign_core::log::checkpoint::{Checkpoint, WitnessRequest};
use countersign_core::log::network::{ListedLog, LogList, NotTaken};
use countersign_core::log::tree::leaf_hash;
use countersign_core::values::bounds::LISTED_LOGS;
use countersign_core::values::{verifier_key::KeyKind, verifier_key::VerifierKey};
use countersign_log::{CosignRefusal, LogWitness};
use countersign_store::{Disk, DiskStep};
use countersign_testing::memory_dir;
use tempfile::TempDir;

use crate::support::{ORIGIN, log_key, witness};

const NOW: u64 = 1_700_000_000;

fn open_on(disk: Disk, dir: &Path) -> LogWitness {
    LogWitness::open_on(disk, dir, vec![witness(1).signer()]).unwrap()
}

fn list(logs: impl IntoIterator<Item = VerifierKey>) -> LogList {
    let logs = logs.into_iter();
    let listed = |key| ListedLog { key, per_day: 24, contact: "alice@example.org".to_owned() };
    LogList { logs: logs.map(listed).collect(), skipped: Vec::new() }
}

fn named(number: usize) -> VerifierKey {
    VerifierKey::new(&format!("log-{number}.example"), KeyKind::Log, log_key().public.ed25519().unwrap())
        .unwrap()
}

fn ask(witness: &LogWitness) -> Result<(), CosignRefusal> {
    let key = log_key();
    let checkpoint = Checkpoint { origin: ORIGIN.to_owned(), size: 1, root: leaf_hash(b"leaf") };
    let note = checkpoint.sign(&key.public, &key.secret).log_note();
    witness.add_checkpoint(&WitnessRequest { old: 0, proof: Vec::new(), note }, NOW).map(drop)
}

#[test]
fn a_log_is_on_disk_before_it_is_served() {
    let dir = TempDir::new().unwrap();
    let failing = Disk::with_fault(Arc::new(|step, _, path: &Path| {
        let is_it = step == DiskStep::Rename && path.ends_with("known-logs");
        if is_it { Err(io::Error::other("the disk fails")) } else { Ok(()) }
    }));
    let opened = open_on(failing, dir.path());
    assert!(opened.take_list(&list([log_key().public])).is_err());
    assert!(matches!(ask(&opened), Err(CosignRefusal::UnknownLog(_))));
    assert_eq!(opened.count_known(), 0);
    drop(opened);
    let opened = open_on(Disk::default(), dir.path());
    assert_eq!(opened.take_list(&list([log_key().public])).unwrap().new, 1);
    assert!(fs::read_to_string(dir.path().join("known-logs")).unwrap().contains(ORIGIN));
    ask(&opened).unwrap();
    drop(opened);
    let opened = open_on(Disk::default(), dir.path());
    assert_eq!(opened.add_known().unwrap(), 1);
    assert!(matches!(ask(&opened), Err(CosignRefusal::OtherSize(1))), "with what it has cosigned");
}

#[test]
fn lists_fill_a_witness_up_to_its_bound_and_no_further() {
    let dir = memory_dir();
    let opened = open_on(Disk::default(), dir.path());
    assert_eq!(opened.take_list(&list((0..LISTED_LOGS - 1).map(named))).unwrap().new, LISTED_LOGS - 1);
    let more = list([log_key().public, named(LISTED_LOGS), named(LISTED_LOGS + 1), named(0)]);
    let taken = opened.take_list(&more).unwrap();
    assert_eq!((taken.new, taken.refused, opened.count_known()), (1, 2, LISTED_LOGS));
    assert!(taken.named.iter().all(|untaken| untaken.reason == NotTaken::Full), "{taken:?}");
    let others = list((0..100).map(|number| {
        VerifierKey::new(&format!("log-{number}.example"), KeyKind::Log, witness(9).public.ed25519().unwrap())
            .unwrap()
    }));
    let taken = opened.take_list(&others).unwrap();
    assert_eq!(
        (taken.new, taken.refused, taken.named.len()),
        (0, 100, 8),
        "a log line for each would be many"
    );
    ask(&opened).unwrap();
    assert!(opened.figures().is_empty(), "there is no figure for each of so many");
    drop(opened);
    let opened = open_on(Disk::default(), dir.path());
    assert_eq!(opened.add_known().unwrap(), LISTED_LOGS);
    assert!(matches!(ask(&opened), Err(CosignRefusal::OtherSize(1))));
}
