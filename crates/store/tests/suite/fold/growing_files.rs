//! A set of signatures grows by one at a time, and each time the whole file is written. The disk must not keep every
//! version whole.

use std::{fs, sync::Arc, time::Instant};

use countersign_core::documents::signatures::{Collected, SignatureSet};
use countersign_core::rules::snapshot::{Change, Snapshot as _};
use countersign_core::values::{
    bounds::SIGNERS_FILE_ENTRIES, digest::Sha512, key::SecretKey, time::Timestamp,
};

use crate::support::{Fixture, await_folding, commit_together, path};

/// The most that is on disk of 220 MB that are written. Packs that were folded and stay for a while are included.
const MAX_DISK_BYTES: u64 = 20_000_000;

/// So many differences lead to any version, however often it was folded.
const MAX_DEPTH: usize = 50;

const SIGNATURES: &str = "team/svc.signers.json.signatures.json.pending";
const METADATA_SIGNATURES: &str = "team/svc.signers.json.metadata.json.signatures.json.pending";

/// Two sets that the same keys sign, one key after the other: the changes of a signers file that collects.
struct Signing {
    keys: Vec<SecretKey>,
    sets: [(&'static str, SignatureSet); 2],
}

impl Signing {
    fn new() -> Self {
        let mut keys: Vec<SecretKey> = (0..SIGNERS_FILE_ENTRIES).map(key).collect();
        // Each of the first half becomes the smallest one, so that the beginning of the file changes each time.
        keys[..SIGNERS_FILE_ENTRIES / 2].sort_by_key(|key| std::cmp::Reverse(key.public_key().to_string()));
        Self {
            keys,
            sets: [(SIGNATURES, SignatureSet::default()), (METADATA_SIGNATURES, SignatureSet::default())],
        }
    }

    /// Key `n` signs.
    fn sign(&mut self, n: usize) -> Change {
        let mut change = Change::new(format!("Sign {n}"));
        for (name, set) in &mut self.sets {
            let signature = self.keys[n].sign(&Sha512::of(name.as_bytes()));
            let collected_at = Timestamp::from_unix_seconds(1_700_000_000 + n as i64).unwrap();
            set.add(self.keys[n].public_key(), Collected { signature, collected_at });
            change.write(path(name), set.write());
        }
        change
    }
}

fn key(n: usize) -> SecretKey {
    let mut seed = [7; 32];
    seed[..8].copy_from_slice(&(n as u64).to_le_bytes());
    SecretKey::from_seed(&seed)
}

fn disk_used(fixture: &Fixture) -> u64 {
    let names = fs::read_dir(fixture.repository().join("objects/pack")).unwrap();
    names.map(|name| name.unwrap().metadata().map_or(0, |file| file.len())).sum()
}

/// How many differences lead to a version at most.
fn longest_chain(fixture: &Fixture) -> usize {
    let packs = fixture.packs();
    let listings = packs.iter().map(|pack| fixture.git(&["verify-pack", "-s", pack.to_str().unwrap()]));
    let longest = |listing: String| {
        let lengths = listing
            .lines()
            .filter_map(|line| line.strip_prefix("chain length = ")?.split(':').next()?.parse().ok());
        lengths.max().unwrap_or(0)
    };
    listings.map(longest).max().unwrap_or(0)
}

/// Everything is there, and `git` agrees.
fn check(fixture: &Fixture, signing: &Signing, commits: usize) {
    let store = fixture.start();
    let head = store.head();
    for (name, set) in &signing.sets {
        let begun = Instant::now();
        let read = head.read(&path(name)).unwrap().unwrap();
        println!("the newest version was read in {:?}", begun.elapsed());
        assert_eq!(*read, *set.write());
    }
    drop(store);
    fixture.check(&head);
    let depth = longest_chain(fixture);
    println!("at most {depth} differences lead to a version");
    assert!(depth <= MAX_DEPTH, "{depth} differences");
    assert_eq!(fixture.log().len(), commits + 1);
}

#[tokio::test]
async fn the_signatures_of_a_thousand_keys_take_little_room_on_disk() {
    let fixture = Fixture::in_memory();
    let store = Arc::new(fixture.start());
    let mut signing = Signing::new();
    let (mut packs, mut most) = (0, 0);
    // A few at a time come together, as under load.
    for first in (0..SIGNERS_FILE_ENTRIES).step_by(5) {
        let stored = commit_together(&store, (first..first + 5).map(|n| signing.sign(n))).await;
        assert!(stored.iter().all(Result::is_ok));
        (packs, most) = (packs.max(store.packs()), most.max(disk_used(&fixture)));
        // What remains must not depend on how busy the machine is. Fifteen small packs can stay, and a few that were
        // folded.
        await_folding(&store, 22);
    }
    println!("at most {most} bytes, and {packs} packs in use");
    println!("{} bytes, and {} packs in use", disk_used(&fixture), store.packs());
    assert!(disk_used(&fixture) < MAX_DISK_BYTES, "{} bytes", disk_used(&fixture));
    drop(store);
    fixture.let_time_pass();
    drop(fixture.start());
    println!("{} bytes without packs that were folded", disk_used(&fixture));
    check(&fixture, &signing, SIGNERS_FILE_ENTRIES);
}

#[tokio::test]
async fn versions_that_come_together_are_differences_from_the_start() {
    let fixture = Fixture::in_memory();
    let store = Arc::new(fixture.start());
    let mut signing = Signing::new();
    let before = disk_used(&fixture);
    let stored = commit_together(&store, (0..200).map(|n| signing.sign(n))).await;
    assert!(stored.iter().all(Result::is_ok));
    let used = disk_used(&fixture) - before;
    println!("{used} bytes for 200 changes in {} rounds", store.publishes());
    // Whole they would take 2.6 MB; every 51st is whole.
    assert!(used < 700_000, "{used} bytes");
    drop(store);
    check(&fixture, &signing, 200);
}
