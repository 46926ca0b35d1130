//! Objecting to a release, and taking it back (D123–D125).

use countersign_core::documents::statement::{Objection, SignedStatement, StatementKind};
use countersign_core::rules::{decide::statement::Stated, decide::statement::StatementRefusal, stored};
use countersign_core::values::bounds::{EARLIER_OBJECTIONS, FILE_BYTES, OBJECTION_BYTES, OBJECTIONS};
use countersign_core::values::{digest::Sha512, key::PublicKey, key::SecretKey};
use countersign_testing::{
    ACTIVE, INDEX, PROJECT, World, alice, assert_mentions, bob, carol, dave, key, mallory, path, release,
    shifted_seconds, signers,
};

use super::machine;

fn collecting() -> World {
    let team = signers("2026-01-31T10:00:00Z")
        .artifact(2, [&alice(), &bob()])
        .admin(1, [&carol()])
        .master(1, [&dave()])
        .revocation(1, [&key(6)])
        .registrars([&machine()]);
    let mut world = World::with(&team, &[&alice(), &bob(), &carol(), &dave(), &key(6)]);
    world.add_release(&release("v1", "one"), &alice()).expect("a release");
    world.pass(60);
    world
}

fn standing(world: &World) -> Vec<(PublicKey, String)> {
    let file = stored::objections(&world.repo, &path(INDEX)).expect("readable");
    file.standing().iter().map(|objection| (objection.key, objection.text.to_owned())).collect()
}

#[test]
fn a_key_of_any_role_may_object_and_no_other_and_it_blocks_nothing() {
    let mut world = collecting();
    for person in [alice(), carol(), dave(), key(6)] {
        assert_eq!(world.object(Some("it does not match my build"), &person), Ok(Stated { in_force: true }));
        world.pass(1);
    }
    for person in [machine(), mallory()] {
        let expected = StatementRefusal::NotASigner { key: person.public_key(), project: path(PROJECT) };
        assert_eq!(world.object(Some("no"), &person), Err(expected.clone()));
        assert_eq!(world.object(None, &person), Err(expected));
    }
    assert_eq!(standing(&world).len(), 4);
    assert_eq!(standing(&world)[0].0, alice().public_key(), "the oldest is first");
    world.sign_all(INDEX, &[&alice(), &bob()]);
    assert!(world.repo.has(&format!("{INDEX}.signatures.json")));
    assert_eq!(standing(&world).len(), 4, "completion keeps them");
    assert_eq!(world.object(Some("a complete one, too"), &bob()), Ok(Stated { in_force: true }));
}

#[test]
fn a_later_word_replaces_an_earlier_one_and_an_equal_or_older_one_is_refused() {
    let mut world = collecting();
    let first = world.objection(Some("first"), &bob());
    world.object_as(&first).unwrap();
    let newest = world.now;
    assert_eq!(
        world.object(Some("at the same time"), &bob()),
        Err(StatementRefusal::NotLater { kind: StatementKind::Objection, key: bob().public_key(), newest })
    );
    world.pass(1);
    world.object(Some("second"), &bob()).unwrap();
    assert_eq!(standing(&world), [(bob().public_key(), "second".to_owned())]);
    let newest = world.now;
    let expected =
        Err(StatementRefusal::NotLater { kind: StatementKind::Objection, key: bob().public_key(), newest });
    assert_eq!(world.object_as(&first), expected);
}

#[test]
fn what_was_taken_back_cannot_be_submitted_again() {
    let mut world = collecting();
    let nothing = Err(StatementRefusal::NothingToTakeBack(bob().public_key()));
    world.object(Some("no"), &alice()).unwrap();
    assert_eq!(world.object(None, &bob()), nothing, "only others objected");
    let objection = world.objection(Some("no"), &bob());
    world.object_as(&objection).unwrap();
    world.pass(1);
    assert_eq!(world.object(None, &bob()), Ok(Stated { in_force: false }));
    assert_mentions(&world.last.message, &["Take back the objection to", INDEX]);
    assert_eq!(standing(&world).len(), 1, "the other one stands");
    world.pass(1);
    // By anyone, now or later.
    assert!(matches!(world.object_as(&objection), Err(StatementRefusal::NotLater { .. })));
    assert_eq!(world.object(None, &bob()), nothing, "it is taken back already");
    assert_eq!(world.object(Some("again"), &bob()), Ok(Stated { in_force: true }));
}

#[test]
fn a_removed_signer_takes_back_but_says_nothing_new() {
    let mut world = collecting();
    world.object(Some("no"), &bob()).unwrap();
    let next =
        signers("2026-02-01T11:00:00Z").artifact(1, [&alice()]).admin(1, [&carol()]).master(1, [&dave()]);
    world.rotate(&next, &[&carol()]);
    assert_eq!(standing(&world).len(), 1, "a rotation keeps it");
    world.pass(1);
    let expected = StatementRefusal::NotASigner { key: bob().public_key(), project: path(PROJECT) };
    assert_eq!(world.object(Some("more"), &bob()), Err(expected));
    assert_eq!(world.object(None, &bob()), Ok(Stated { in_force: false }));
}

#[test]
fn a_correction_and_a_withdrawal_set_objections_aside_and_a_revocation_ends_them() {
    let file = format!("{INDEX}.objections.json");
    let mut world = collecting();
    let old = world.objection(Some("no"), &bob());
    world.object_as(&old).unwrap();
    world.add_release(&release("v1", "two"), &alice()).unwrap();
    assert!(!world.repo.has(&file));
    assert_eq!(world.object_as(&old), Err(StatementRefusal::OtherIndex(path(INDEX))));
    world.object(Some("no"), &bob()).unwrap();
    world.withdraw(&alice()).unwrap();
    assert!(!world.repo.has(&file));
    let mut world = collecting();
    world.object(Some("no"), &bob()).unwrap();
    let (stands, taken) = (world.objection(Some("yes"), &alice()), world.objection(None, &bob()));
    world.sign_all(INDEX, &[&alice(), &bob()]);
    world.revoke_index(&key(6));
    assert!(world.repo.has(&file), "what was said stays");
    world.pass(1);
    for request in [stands, taken] {
        assert_eq!(world.object_as(&request), Err(StatementRefusal::Revoked(path(INDEX))));
    }
}

/// What was said of contents before: of which, by whom, and what.
fn earlier(world: &World) -> Vec<(Sha512, PublicKey, String)> {
    let file = stored::earlier_objections(&world.repo, &path(INDEX)).expect("readable");
    assert_eq!(file.keep_verifying(), file, "each has its signature");
    let subjects = file.entries.iter().map(|entry| entry.said.document.subject_digest);
    file.said().zip(subjects).map(|(said, subject)| (subject, said.key, said.text.to_owned())).collect()
}

#[test]
fn objections_to_an_index_stay_readable_after_it_was_corrected_or_withdrawn() {
    let mut world = collecting();
    let first = Sha512::of(&world.repo.bytes(INDEX));
    world.object(Some("not my build"), &bob()).unwrap();
    world.object(Some("by mistake"), &dave()).unwrap();
    world.pass(1);
    world.object(None, &dave()).unwrap();
    world.object(Some("nor mine"), &carol()).unwrap();
    world.add_release(&release("v1", "two"), &alice()).unwrap();
    let of_first = vec![
        (first, bob().public_key(), "not my build".to_owned()),
        (first, carol().public_key(), "nor mine".to_owned()),
    ];
    assert_eq!(earlier(&world), of_first, "what was taken back is not kept");
    assert!(standing(&world).is_empty(), "they are not about the new content");
    let second = Sha512::of(&world.repo.bytes(INDEX));
    world.object(Some("still not"), &bob()).unwrap();
    world.withdraw(&carol()).unwrap();
    let of_both = [of_first, vec![(second, bob().public_key(), "still not".to_owned())]].concat();
    assert_eq!(earlier(&world), of_both);
    world.pass(1);
    world.add_release(&release("v1", "three"), &machine()).unwrap();
    assert_eq!(earlier(&world), of_both, "another release in its place");
    world.withdraw(&machine()).unwrap();
    world.pass(1);
    world.add_release(&release("v1", "four"), &alice()).unwrap();
    world.sign_all(INDEX, &[&alice(), &bob()]);
    world.revoke_index(&key(6));
    assert_eq!(earlier(&world), of_both, "also of a complete or revoked release");
}

#[test]
fn a_release_keeps_a_hundred_earlier_objections_and_no_key_pushes_out_the_word_of_another() {
    let mut world = collecting();
    world.object(Some("the only word"), &bob()).unwrap();
    for round in 0..EARLIER_OBJECTIONS + 5 {
        world.add_release(&release("v1", &format!("content {round}")), &alice()).unwrap();
        world.pass(1);
        world.object(Some(&format!("word {round}")), &dave()).unwrap();
        assert_eq!(earlier(&world).len(), (round + 1).min(EARLIER_OBJECTIONS));
    }
    world.withdraw(&carol()).unwrap();
    let kept = earlier(&world);
    assert_eq!(kept.len(), EARLIER_OBJECTIONS);
    assert_eq!(kept[0].2, "the only word");
    let words: Vec<&str> = kept[1..].iter().map(|(_, _, text)| text.as_str()).collect();
    let newest: Vec<String> = (6..EARLIER_OBJECTIONS + 5).map(|round| format!("word {round}")).collect();
    assert_eq!(words, newest, "the oldest of the key that said most went");
}

#[test]
fn only_releases_that_are_there_are_objected_to() {
    let mut world = collecting();
    let right = world.objection(Some("no"), &bob());
    let at = |file: &str| SignedStatement { file_path: path(file), ..right.clone() };
    assert_eq!(world.object_as(&at(ACTIVE)), Err(StatementRefusal::NotARelease(path(ACTIVE))));
    let missing = format!("{PROJECT}/releases/tag/v9/svc.index.json");
    assert_eq!(world.object_as(&at(&missing)), Err(StatementRefusal::NotFound(path(&missing))));
    world.withdraw(&alice()).unwrap();
    assert_eq!(world.object_as(&right), Err(StatementRefusal::NotFound(path(INDEX))));
}

#[test]
fn the_signature_must_be_of_the_objector_over_the_exact_text() {
    let mut world = collecting();
    let right = world.objection(Some("no"), &bob());
    let spaced = SignedStatement { text: format!("{} ", right.text), ..right.clone() };
    let in_anothers_name = SignedStatement { public_key: alice().public_key(), ..right.clone() };
    for wrong in [spaced, in_anothers_name] {
        assert_eq!(world.object_as(&wrong), Err(StatementRefusal::BadSignature(StatementKind::Objection)));
    }
    assert!(world.object_as(&right).is_ok());
}

#[test]
fn a_time_can_be_ten_minutes_ahead_and_no_more() {
    let mut world = collecting();
    world.now = countersign_testing::at("2026-02-01T13:00:00.9Z");
    let subject_digest = Sha512::of(&world.repo.bytes(INDEX));
    // What is stored has whole seconds, and must allow the same decision again.
    let whole = world.now.to_whole_seconds();
    let ahead = |seconds| Objection {
        text: Some("no".to_owned()),
        subject_digest,
        timestamp: shifted_seconds(whole, seconds),
    };
    let late = world.objection_of(&ahead(601), &bob());
    assert_eq!(
        world.object_as(&late),
        Err(StatementRefusal::TimestampAhead {
            kind: StatementKind::Objection,
            timestamp: ahead(601).timestamp
        })
    );
    let limit = world.objection_of(&ahead(600), &bob());
    assert_eq!(world.object_as(&limit), Ok(Stated { in_force: true }));
}

#[test]
fn a_release_has_a_hundred_objections_and_no_more() {
    let people: [SecretKey; OBJECTIONS + 1] = std::array::from_fn(|i| key(100 + u8::try_from(i).unwrap()));
    let everyone = people.each_ref();
    let team = signers("2026-01-31T10:00:00Z").artifact(1, everyone);
    let mut world = World::with(&team, &everyone);
    world.add_release(&release("v1", "one"), everyone[0]).unwrap();
    let (last, others) = people.split_last().unwrap();
    for person in others {
        // Line ends take the most room in the file: each is escaped.
        let mut request = world.objection(Some("no"), person);
        let short = OBJECTION_BYTES - request.text.len();
        request.text.push_str(&"\n".repeat(short));
        request.signature = person.sign(&Sha512::of(request.text.as_bytes()));
        world.object_as(&request).unwrap();
    }
    assert_eq!(world.object(Some("one more"), last), Err(StatementRefusal::Full(path(INDEX))));
    let bytes = world.repo.bytes(&format!("{INDEX}.objections.json")).len();
    assert!((FILE_BYTES / 2..FILE_BYTES).contains(&bytes), "{bytes}");
    let mut replaced = world.clone();
    replaced.pass(1);
    replaced.add_release(&release("v1", "two"), everyone[0]).unwrap();
    let bytes = replaced.repo.bytes(&format!("{INDEX}.earlier-objections.json")).len();
    assert!((FILE_BYTES / 2..FILE_BYTES).contains(&bytes), "{bytes}");
    world.pass(1);
    world.object(None, &others[0]).unwrap();
    assert_eq!(
        world.object(Some("one more"), last),
        Err(StatementRefusal::Full(path(INDEX))),
        "one that was taken back still takes a place"
    );
}
