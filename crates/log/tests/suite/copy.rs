//! The copy of another server's log.

use std::sync::Arc;

use countersign_core::log::{checkpoint::Checkpoint, checkpoint::SignedCheckpoint, note::Note};
use countersign_core::log::{tile::TileName, tree::Hash};
use countersign_core::values::digest::Sha256;
use countersign_log::{LogCopy, LogError, NoStaple, TransparencyLog};
use countersign_testing::log_reader::{derive_leaves, root_of};

use crate::support::{Fixture, index, log_key, publish, wait_for, witness};

fn start(fixture: &Fixture) -> LogCopy {
    LogCopy::start(fixture.store(), &fixture.dir.path().join("log-copy"), log_key().public).unwrap()
}

fn sign(size: u64, root: Hash) -> SignedCheckpoint {
    let key = log_key();
    Checkpoint { origin: key.public.name().to_owned(), size, root }.sign(&key.public, &key.secret)
}

/// The checkpoint with a cosignature of a witness that the copy does not know.
fn cosign(signed: &SignedCheckpoint, time: u64) -> Note {
    let (key, mut note) = (witness(1), signed.log_note());
    note.add(signed.cosign(&key.public, &key.secret, time).line);
    note
}

#[test]
fn it_proves_what_it_has_counted_with_the_cosignatures_that_it_was_shown() {
    let mut fixture = Fixture::new();
    fixture.fill();
    let original = fixture.start_log();
    let signed = fixture.wait_for_all(&original);
    let release = index("https/a.example/443/one/releases/v4");
    let copy = start(&fixture);
    let staple = |copy: &LogCopy| copy.log.staple(|| fixture.store().head(), &release).1;
    assert!(matches!(staple(&copy), Err(NoStaple::CatchingUp | NoStaple::NotCosigned)));
    for time in [1_700_000_000, 1_700_000_060] {
        let shown = cosign(&signed, time);
        copy.offer(shown.to_string().into_bytes());
        wait_for(&copy.log, |_| staple(&copy).ok().filter(|staple| staple.proof.note == shown));
        assert_eq!(copy.log.cosigned_note(), Some(shown.to_string()));
        assert_eq!(copy.log.checkpoint_note(), Some(Arc::new(shown.to_string())));
    }
    // An older one of the same log is nothing new.
    let older = sign(1, original.root_at(1).unwrap());
    copy.offer(older.note().to_string().into_bytes());
    drop(copy);
    // What it had is there again before anything is offered.
    let copy = start(&fixture);
    let again = wait_for(&copy.log, |_| staple(&copy).ok());
    assert_eq!(again.proof.note, cosign(&signed, 1_700_000_060));
    drop((copy, original));
    fixture.close();
}

#[test]
fn it_proves_nothing_by_a_checkpoint_of_other_commits() {
    let fixture = Fixture::new();
    fixture.fill();
    let copy = start(&fixture);
    let (size, release) = (fixture.commits(), index("https/a.example/443/one/releases/v4"));
    copy.offer(sign(size, Sha256::of(b"other")).note().to_string().into_bytes());
    await_contradiction(&copy, size);
    let refused = copy.log.staple(|| fixture.store().head(), &release).1.unwrap_err();
    assert!(matches!(refused, NoStaple::Stopped(_)), "{refused}");
    assert_eq!((copy.log.checkpoint_note(), copy.log.cosigned_note()), (None, None));
}

fn await_contradiction(copy: &LogCopy, lie: u64) {
    wait_for(&copy.log, |log| {
        let trouble = log.trouble()?;
        matches!(*trouble, LogError::Contradicted { size } if size == lie).then_some(())
    });
}

#[test]
fn it_keeps_showing_what_it_has_counted_when_the_origin_begins_to_lie() {
    let fixture = Fixture::new();
    fixture.fill();
    let sign_all =
        || sign(fixture.commits(), root_of(&derive_leaves(&fixture.repository()))).note().to_string();
    let good = sign_all();
    let (size, release) = (fixture.commits(), index("https/a.example/443/one/releases/v4"));
    let copy = start(&fixture);
    copy.offer(good.clone().into_bytes());
    let is_good = |log: &TransparencyLog| {
        let shown = log.checkpoint_note().is_some_and(|note| *note == good)
            && log.cosigned_note() == Some(good.clone());
        let proof = log.staple(|| fixture.store().head(), &release).1.ok()?.proof;
        let tile = TileName::parse(&format!("entries/000.p/{size}")).and_then(|name| log.tile(&name).ok());
        (shown && proof.note.to_string() == good && tile.is_some()).then_some(())
    };
    wait_for(&copy.log, is_good);
    // Another root for the same commits, or for fewer, is a lie that is seen at once.
    for lie in [size, 1] {
        copy.offer(sign(lie, Sha256::of(b"other")).note().to_string().into_bytes());
        await_contradiction(&copy, lie);
        assert!(is_good(&copy.log).is_some(), "{lie}");
    }
    // A checkpoint of more commits than there are is not shown. True ones still are.
    copy.offer(sign(size + 1_000, Sha256::of(b"other")).note().to_string().into_bytes());
    wait_for(&copy.log, |log| log.trouble().is_none().then_some(()));
    assert!(is_good(&copy.log).is_some());
    fixture.commit(publish("https/a.example/443/one/releases/v9"));
    let better = sign_all();
    copy.offer(better.clone().into_bytes());
    wait_for(&copy.log, |log| (log.cosigned_note() == Some(better.clone())).then_some(()));
    assert!(copy.log.trouble().is_none());
}
