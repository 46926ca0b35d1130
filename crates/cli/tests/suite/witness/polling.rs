//! Witnesses that no one can reach post their cosignatures (D96).

use countersign_core::log::note::{Note, NoteSignature};
use countersign_core::values::verifier_key::{KeyKind, VerifierKey};
use countersign_core::values::{bounds::NOTE_BYTES, key::SecretKey};

use super::asking::{await_staple, release};
use crate::support::witnesses::{LogSetup, TestWitness, await_logged};
use crate::support::{Reply, Request, World, metrics::Page, metrics::free_address};

fn post(world: &World, body: impl Into<Vec<u8>>) -> Reply {
    world.server.send(&Request::new("POST", "/log/cosignature").with_body(body))
}

#[test]
fn a_witness_behind_a_wall_polls() {
    let origin = free_address();
    let mut witness = TestWitness::prepare(origin, "poll.example", &["--poll"]);
    let world = LogSetup::at(origin).witnessed(&[], &[&witness]).start();
    witness.server.start_again();
    let index = release(&world, "1.0");
    await_staple(&world, &index, &[&witness]);
    let second = release(&world, "1.1");
    let staple = await_staple(&world, &second, &[&witness]);
    let page = Page::read(world.server.metrics_address());
    let size = page.value("countersign_log_witness_size{witness=\"p0\"}");
    assert_eq!(size, (staple.proof.index + 1) as f64);
}

#[test]
fn only_configured_witnesses_are_accepted() {
    let origin = free_address();
    let witness = TestWitness::prepare(origin, "poll.example", &["--poll"]);
    let world = LogSetup::at(origin).witnessed(&[], &[&witness]).start();
    release(&world, "1.0");
    let newest = await_logged(&world.server);
    let secret = SecretKey::from_seed(&[9; 32]);
    let stranger = VerifierKey::new("stranger.example", KeyKind::Witness, secret.public_key()).unwrap();
    let mut note = Note::new(newest.text().to_owned());
    note.add(NoteSignature::sign(newest.text(), &stranger, &secret, 1_700_000_000));
    assert_eq!(post(&world, note.to_string()).status, 403);
    // The name and the id of the real one, and not its key.
    let mut forged = Note::new(newest.text().to_owned());
    let signature = secret.sign(&countersign_core::values::digest::Sha512::of(b"x"));
    forged.add(NoteSignature::of_witness(&witness.key, 1_700_000_000, signature));
    assert_eq!(post(&world, forged.to_string()).status, 403);
    assert_eq!(post(&world, "nothing").status, 400);
    assert_eq!(post(&world, "a\n\n— b c\n").status, 400);
    assert_eq!(post(&world, vec![b'a'; NOTE_BYTES + 1]).status, 413);
    let shown = world.server.get("/log/checkpoint").text();
    assert!(!shown.contains("stranger") && !shown.contains("poll.example"), "{shown}");
    let without_log = World::start();
    assert_eq!(post(&without_log, note.to_string()).status, 404);
}
