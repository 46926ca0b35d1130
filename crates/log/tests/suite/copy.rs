//! The copy of another server's log.

use std::sync::Arc;

use countersign_core::log::{checkpoint::Checkpoint, checkpoint::SignedCheckpoint, note::Note, tree::Hash};
use countersign_core::values::digest::Sha256;
use countersign_log::{LogCopy, LogRefusal, NoStaple};

use crate::support::{Fixture, index, log_key, refusal, wait_for, witness};

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
    assert_eq!(refusal(&copy.log), LogRefusal::Forked { signed: size });
    let refused = copy.log.staple(|| fixture.store().head(), &release).1.unwrap_err();
    assert!(matches!(refused, NoStaple::Stopped(_)), "{refused}");
}
