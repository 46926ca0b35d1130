//! The file of records is written anew when replaced ones have piled up (D271). Nothing is derived again because of
//! that, wherever it is interrupted.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, io, path::Path, path::PathBuf, sync::Arc, time::SystemTime};

use countersign_core::log::checkpoint::Checkpoint;
use countersign_core::rules::snapshot::Change;
use countersign_core::values::bounds::REPLACED_RECORDS;
use countersign_log::TransparencyLog;
use countersign_store::{Disk, DiskStep};
use countersign_testing::{await_until, copy_dir};

use crate::support::{Fixture, rotate, wait_for};

const PROJECTS: usize = 600;
/// From so many on, the file is written anew.
const MOST: usize = 2 * PROJECTS + REPLACED_RECORDS;

/// New signers of all projects in one commit, so that each of them gets a new record.
fn rotate_all(number: usize) -> Change {
    let mut all = Change::new(format!("Signers {number} of all"));
    for project in 0..PROJECTS {
        all.files.extend(rotate(&format!("https/a.example/443/p{project}"), number).files);
    }
    all
}

fn count_records(log_dir: &Path) -> usize {
    let bytes = fs::read(log_dir.join("records")).unwrap();
    let (mut rest, mut count) = (bytes.as_slice(), 0);
    while let Some((head, text)) = rest.split_at_checked(10) {
        let length = usize::from(u16::from_be_bytes([head[8], head[9]]));
        let Some(next) = text.get(length..) else { break };
        (rest, count) = (next, count + 1);
    }
    count
}

fn written_at(fixture: &Fixture, name: &str) -> SystemTime {
    fs::metadata(fixture.log_dir().join(name)).unwrap().modified().unwrap()
}

/// Waits for the checkpoint after so many rotations, of which each is a commit, as is the beginning.
fn await_rotations(log: &TransparencyLog, number: usize) -> Checkpoint {
    let size = number as u64 + 1;
    let newest =
        wait_for(log, |log| log.newest_checkpoint().filter(|newest| newest.checkpoint().size == size));
    newest.checkpoint().clone()
}

#[test]
fn replaced_records_never_pile_up_beyond_their_bound() {
    let fixture = Fixture::in_memory();
    let log = fixture.start_log();
    let (mut most, mut fell) = (0, 0);
    for number in 1..=26 {
        let before = count_records(&fixture.log_dir());
        fixture.commit(rotate_all(number));
        await_rotations(&log, number);
        await_until("fewer records", || count_records(&fixture.log_dir()) <= MOST);
        let count = count_records(&fixture.log_dir());
        (most, fell) = (most.max(count), fell + usize::from(count < before));
    }
    assert!(most > MOST - PROJECTS, "it is written anew at the bound, not earlier: {most}");
    assert!((2..6).contains(&fell), "and not at each checkpoint: {fell}");
    drop(log);
    let before = (written_at(&fixture, "leaves"), count_records(&fixture.log_dir()));
    let log = fixture.start_log();
    await_rotations(&log, 26);
    let after = (written_at(&fixture, "leaves"), count_records(&fixture.log_dir()));
    assert_eq!(after, before, "a start derives nothing again");
    // The file was loaded with replaced records in it, and they still count.
    for number in 27..=36 {
        fixture.commit(rotate_all(number));
        await_rotations(&log, number);
        await_until("fewer records", || count_records(&fixture.log_dir()) <= MOST);
    }
}

#[test]
fn a_crash_at_any_step_of_compaction_loses_nothing() {
    let mut fixture = Fixture::in_memory();
    let (dir, images) = (fixture.log_dir(), fixture.dir.path().join("images"));
    let taken = Arc::new(AtomicUsize::new(0));
    let image = {
        let (taken, images) = (Arc::clone(&taken), images.clone());
        move || copy_dir(&dir, &images.join(taken.fetch_add(1, Ordering::Relaxed).to_string()))
    };
    // What a kill would leave, before and after each step, and in the middle of a write.
    fixture.close();
    fixture.open_on(Disk::with_fault(Arc::new(move |step, _, path| {
        let is_new = path.ends_with("log/records.new");
        if is_new || (step == DiskStep::Rename && path.ends_with("log/records")) {
            image();
        }
        Ok(())
    })));
    let log = fixture.start_log();
    let (mut number, mut newest) = (0, None);
    while taken.load(Ordering::Relaxed) == 0 {
        number += 1;
        fixture.commit(rotate_all(number));
        newest = Some(await_rotations(&log, number));
        // Nothing was needed when the log began, so this is when the file is written anew. No commit comes meanwhile:
        // each image has all leaves.
        if count_records(&fixture.log_dir()) > REPLACED_RECORDS {
            await_until("fewer records", || count_records(&fixture.log_dir()) <= REPLACED_RECORDS);
        }
    }
    drop(log);
    fixture.close();
    fixture.open();
    let taken = taken.load(Ordering::Relaxed);
    assert!(taken >= 8, "{taken}");
    let rotations = number;
    for number in 0..taken {
        let from: PathBuf = images.join(number.to_string());
        fs::remove_dir_all(fixture.log_dir()).unwrap();
        copy_dir(&from, &fixture.log_dir());
        let before = written_at(&fixture, "leaves");
        let log = fixture.start_log();
        assert_eq!(Some(await_rotations(&log, rotations)), newest, "the image {number}");
        assert_eq!(written_at(&fixture, "leaves"), before, "the image {number} was derived again");
        assert!(log.trouble().is_none());
    }
}

#[test]
fn a_disk_that_fails_while_the_file_is_written_anew_stops_nothing() {
    let mut fixture = Fixture::in_memory();
    fixture.close();
    fixture.open_on(Disk::with_fault(Arc::new(|step, _, path| {
        let is_it = step == DiskStep::WriteAt && path.ends_with("log/records.new");
        if is_it { Err(io::Error::from(io::ErrorKind::StorageFull)) } else { Ok(()) }
    })));
    let log = fixture.start_log();
    for number in 1..=12 {
        fixture.commit(rotate_all(number));
        await_rotations(&log, number);
        assert!(log.trouble().is_none());
    }
    drop(log);
    assert!(count_records(&fixture.log_dir()) > MOST, "it stays as it is");
    assert!(!fixture.log_dir().join("records.new").exists(), "no half of it takes room");
    fixture.close();
    fixture.open();
    let before = written_at(&fixture, "leaves");
    let log = fixture.start_log();
    await_rotations(&log, 12);
    assert_eq!(written_at(&fixture, "leaves"), before);
    await_until("fewer records", || count_records(&fixture.log_dir()) <= MOST);
}
