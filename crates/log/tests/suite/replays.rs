//! What a witness keeps of the log that it replays (D270): a start goes on from there, and whatever is wrong with it,
//! the witness counts the same root and cosigns no other.

use std::{fs, path::Path, path::PathBuf, thread, time::Duration, time::Instant, time::SystemTime};

use countersign_core::log::checkpoint::{Checkpoint, WitnessRequest};
use countersign_core::log::{note::Note, tree::Hash, tree::Tree, tree::leaf_hash};
use countersign_core::values::digest::Sha256;
use countersign_log::{CosignRefusal, LogReplay, LogWitness};
use countersign_testing::log_reader::{derive_leaves, root_of};
use countersign_testing::{await_until, copy_dir};

use crate::support::{Fixture, NamedKey, complete, log_key, publish, register, witness};

const NOW: u64 = 1_700_000_000;
const FILES: [&str; 3] = ["leaves", "records", "checkpoint"];

/// A witness with the directory `dir`, which has replayed all that `fixture` has.
struct Replaying<'a> {
    fixture: &'a Fixture,
    dir: PathBuf,
    witness: LogWitness,
    replay: LogReplay,
}

impl<'a> Replaying<'a> {
    fn start(fixture: &'a Fixture, dir: PathBuf) -> Self {
        let witness = LogWitness::open(&dir, vec![witness(1).signer()]).unwrap();
        let replay = LogReplay::start(fixture.store(), &dir.join("replay"), log_key().public).unwrap();
        witness.add_replay(replay.clone()).unwrap();
        let begun = Self { fixture, dir, witness, replay };
        begun.await_all();
        begun
    }

    fn await_all(&self) {
        let size = self.fixture.commits();
        await_until("the replay", || self.replay.size() == size);
    }

    /// Cosigns the whole log, and waits until what was derived of it counts after a start.
    fn cosign_all(&self) {
        let (size, root) = (self.replay.size(), self.true_root());
        assert_eq!(self.replay.root_at(size), Some(root), "it has counted the root that `git` gives");
        let signed = sign(&log_key(), size, root);
        self.witness.check(&signed).unwrap();
        let old = match self.ask(&signed, 0) {
            Err(CosignRefusal::OtherSize(old)) => old,
            other => return other.unwrap(),
        };
        let mut tree = Tree::default();
        derive_leaves(&self.fixture.repository())
            .iter()
            .for_each(|leaf| tree.push(leaf_hash(leaf.as_bytes())));
        let request = WitnessRequest { old, proof: tree.consistency(old, size).unwrap(), note: signed };
        self.witness.add_checkpoint(&request, NOW).unwrap();
        assert!(self.witness.stops().is_empty());
    }

    fn await_kept(&self) {
        let (file, size) = (self.dir.join("replay/checkpoint"), format!("\n{}\n", self.replay.size()));
        await_until("what is kept", || fs::read_to_string(&file).is_ok_and(|note| note.contains(&size)));
    }

    fn ask(&self, note: &Note, old: u64) -> Result<(), CosignRefusal> {
        let request = WitnessRequest { old, proof: Vec::new(), note: note.clone() };
        self.witness.add_checkpoint(&request, NOW).map(drop)
    }

    fn true_root(&self) -> Hash {
        root_of(&derive_leaves(&self.fixture.repository()))
    }
}

fn sign(key: &NamedKey, size: u64, root: Hash) -> Note {
    Checkpoint { origin: key.public.name().to_owned(), size, root }.sign(&key.public, &key.secret).log_note()
}

fn written_at(dir: &Path) -> SystemTime {
    fs::metadata(dir.join("replay/leaves")).unwrap().modified().unwrap()
}

fn dir_of(fixture: &Fixture) -> PathBuf {
    fixture.dir.path().join("witness")
}

#[test]
fn a_start_goes_on_from_the_last_checkpoint_that_it_has_seen() {
    let fixture = Fixture::new();
    fixture.fill();
    let dir = dir_of(&fixture);
    let begun = Replaying::start(&fixture, dir.clone());
    begun.cosign_all();
    begun.await_kept();
    drop(begun);
    for number in 6..9 {
        let before = written_at(&dir);
        let begun = Replaying::start(&fixture, dir.clone());
        assert_eq!(written_at(&dir), before, "it derives nothing again");
        begun.cosign_all();
        fixture.commit(publish(&format!("https/a.example/443/two/releases/v{number}")));
        fixture.commit(complete(&format!("https/a.example/443/two/releases/v{number}")));
        begun.await_all();
        begun.cosign_all();
        begun.await_kept();
    }
}

#[test]
fn whatever_is_wrong_with_what_was_kept_the_root_is_the_same() {
    let fixture = Fixture::new();
    fixture.commit(register("https/a.example/443/zero"));
    let (dir, earlier, whole) =
        (dir_of(&fixture), fixture.dir.path().join("earlier"), fixture.dir.path().join("whole"));
    let keep = |copy: &Path| {
        let begun = Replaying::start(&fixture, dir.clone());
        begun.cosign_all();
        begun.await_kept();
        drop(begun);
        copy_dir(&dir, copy);
    };
    keep(&earlier);
    fixture.fill();
    keep(&whole);
    // Another repository, whose log has the same key.
    let other = Fixture::new();
    other.commit(publish("https/b.example/443/x/releases/v1"));
    let foreign = Replaying::start(&other, dir_of(&other));
    let size = foreign.replay.size();
    let note = sign(&log_key(), size, foreign.true_root());
    foreign.witness.check(&note).unwrap();
    foreign.await_kept();
    drop(foreign);

    let check = |case: &str, damage: &dyn Fn(&Path)| {
        fs::remove_dir_all(&dir).unwrap();
        copy_dir(&whole, &dir);
        damage(&dir.join("replay"));
        let begun = Replaying::start(&fixture, dir.clone());
        begun.cosign_all();
        begun.await_kept();
        let size = begun.replay.size();
        let lie = sign(&log_key(), size, Sha256::of(case.as_bytes()));
        assert!(matches!(begun.ask(&lie, size), Err(CosignRefusal::OtherRoot(_))), "{case}");
        drop(begun);
        let before = written_at(&dir);
        let begun = Replaying::start(&fixture, dir.clone());
        assert_eq!(written_at(&dir), before, "{case}: it derives everything again once, not twice");
        assert_eq!(begun.replay.root_at(size), Some(begun.true_root()), "{case}");
    };
    for name in FILES {
        let bytes = fs::read(whole.join("replay").join(name)).unwrap();
        let middle = bytes.len() / 2;
        let mut flipped = bytes.clone();
        flipped[middle] ^= 0x10;
        let mut longer = bytes.clone();
        longer.extend([0xff; 100_000]);
        let versions = [("a wrong bit", flipped), ("half", bytes[..middle].to_vec()), ("a tail", longer)];
        for (case, version) in versions {
            check(&format!("{case} in {name}"), &|dir| fs::write(dir.join(name), &version).unwrap());
        }
        check(&format!("{name} is gone"), &|dir| fs::remove_file(dir.join(name)).unwrap());
        for (case, from) in [("of an earlier time", &earlier), ("of another log", &dir_of(&other))] {
            let from = from.join("replay").join(name);
            let bytes = fs::read(&from).unwrap();
            check(&format!("{name} {case}"), &|dir| fs::write(dir.join(name), &bytes).unwrap());
        }
    }
    for (case, from) in [("of an earlier time", &earlier), ("of another log", &dir_of(&other))] {
        check(&format!("everything is {case}"), &|dir| copy_dir(&from.join("replay"), dir));
    }
    let mut stranger = witness(7);
    stranger.public = log_key().public;
    let signed = sign(&stranger, fixture.commits(), root_of(&derive_leaves(&fixture.repository())));
    check("a checkpoint that no log has signed", &|dir| {
        fs::write(dir.join("checkpoint"), signed.to_string()).unwrap();
    });
}

#[test]
fn a_root_that_the_replay_has_not_counted_is_never_kept() {
    let fixture = Fixture::new();
    fixture.fill();
    let begun = Replaying::start(&fixture, dir_of(&fixture));
    let size = begun.replay.size();
    let lie = sign(&log_key(), size, Sha256::of(b"another state"));
    assert!(matches!(begun.witness.check(&lie), Err(CosignRefusal::OtherRoot(_))));
    // The copy looks every second. By then it has the honest one, which came later.
    begun.witness.check(&sign(&log_key(), size, begun.true_root())).unwrap();
    begun.await_kept();
    assert!(
        !fs::read_to_string(dir_of(&fixture).join("replay/checkpoint")).unwrap().contains(&lie.to_string())
    );
}

/// How long a start takes with what was kept, and without it. It prints the figures when it is asked to:
/// `COUNTERSIGN_COMMITS=100000 cargo test --release -p countersign-log --test suite replays::the_start -- --nocapture`.
#[test]
fn the_start_of_a_replay_is_measured() {
    let asked = std::env::var("COUNTERSIGN_COMMITS").ok().and_then(|count| count.parse().ok());
    let Some(commits): Option<u64> = asked else { return };
    let fixture = Fixture::in_memory();
    // A project has a hundred releases, and a release is two commits.
    for number in 0..commits - 1 {
        let (project, release) = (number / 201, number % 201);
        let project = format!("https/a.example/443/owner{}/p{project}", project % 50);
        let name = format!("{project}/releases/v{}", release.div_ceil(2));
        fixture.commit(match release {
            0 => register(&project),
            _ if release % 2 == 1 => publish(&name),
            _ => complete(&name),
        });
    }
    let dir = dir_of(&fixture);
    let started = |what: &str| {
        let begun = Instant::now();
        let replay = LogReplay::start(fixture.store(), &dir.join("replay"), log_key().public).unwrap();
        while replay.size() < commits {
            thread::sleep(Duration::from_millis(1));
        }
        println!("{what}: {:.2} s", begun.elapsed().as_secs_f64());
        replay
    };
    let replay = started(&format!("{commits} commits, derived anew"));
    let keeping = LogWitness::open(&dir, vec![witness(1).signer()]).unwrap();
    keeping.add_replay(replay.clone()).unwrap();
    keeping.check(&sign(&log_key(), commits, replay.root_at(commits).unwrap())).unwrap();
    await_until("what is kept", || dir.join("replay/checkpoint").exists());
    drop((keeping, replay));
    for name in ["leaves", "records"] {
        println!("{name}: {} bytes", fs::metadata(dir.join("replay").join(name)).unwrap().len());
    }
    started("from what was kept");
}
