//! Prepared statements that several people hand in, in every order (D218).

use countersign_core::documents::statement::{Revocation, StatementKind};
use countersign_core::values::{digest::Sha512, key::SecretKey, path::RepoPath};
use countersign_explorer::action::{Statement, hand_in_all};
use countersign_testing::{
    PENDING, RevokeRequest, Signers, World, alice, bob, carol, release, revocation_text, signed_request,
    signed_statement, signers,
};

const TAGS: [&str; 3] = ["v1", "v2", "v3"];

/// Any two of alice, bob and carol do everything; bob's key is stolen.
fn team() -> Signers {
    let everyone = [alice(), bob(), carol()];
    signers("2026-01-01T00:00:00Z").artifact(2, everyone.each_ref()).revocation(2, everyone.each_ref())
}

/// The team without bob.
fn others() -> Signers {
    let others = [alice(), carol()];
    signers("2026-01-02T00:00:00Z").artifact(2, others.each_ref()).revocation(2, others.each_ref())
}

/// Releases that would not be complete without bob.
fn released() -> (World, Vec<RepoPath>) {
    let mut world = World::with(&team(), &[&alice(), &bob(), &carol()]);
    let add = |tag: &&str| {
        let index = world.add_release(&release(tag, tag), &alice()).expect("a release");
        world.sign_all(index.as_str(), &[&alice(), &bob()]);
        index
    };
    let indexes = TAGS.iter().map(add).collect();
    (world, indexes)
}

fn document(world: &World, index: &RepoPath, reason: &str) -> String {
    revocation_text(&Revocation {
        reason: reason.to_owned(),
        timestamp: world.now,
        subject_digest: Some(Sha512::of(&world.repo.bytes(index.as_str()))),
        initiator: None,
    })
}

fn revocation(world: &World, index: &RepoPath, document: &str, by: &SecretKey) -> RevokeRequest {
    let statement = signed_statement(StatementKind::Revocation, index, document.as_bytes(), by);
    RevokeRequest { statement, request: signed_request(by, world.now, "{}") }
}

/// What alice and carol prepare: they join what one of them has begun.
fn prepare(world: &World, indexes: &[RepoPath], begun: Option<(usize, &str)>) -> [Vec<Statement>; 2] {
    [alice(), carol()].map(|person| {
        let sign = |(i, index): (usize, &RepoPath)| {
            let text = match begun {
                Some((number, text)) if number == i => text.to_owned(),
                Some(_) | None => document(world, index, "bob's laptop was stolen"),
            };
            Statement::Revoke(Box::new(revocation(world, index, &text, &person)))
        };
        indexes.iter().enumerate().map(sign).collect()
    })
}

#[track_caller]
fn assert_all_revoked(world: &World, indexes: &[RepoPath], refused: &[String]) {
    assert_eq!(refused, [""; 0]);
    for index in indexes {
        assert!(world.repo.has(&format!("{index}.revocation.json")), "{index}");
    }
}

#[test]
fn all_releases_are_revoked_in_every_order_of_those_who_began() {
    let (world, indexes) = released();
    let mut beginnings = vec![None];
    for number in 0..indexes.len() {
        beginnings.extend([alice(), carol()].map(|person| Some((number, person))));
    }
    for beginning in beginnings {
        let mut world = world.clone();
        let begun = beginning.map(|(number, person)| {
            let text = document(&world, &indexes[number], "do not use");
            let request = revocation(&world, &indexes[number], &text, &person);
            world.revoke(&request).expect("a revocation that is begun");
            (number, text)
        });
        let [first, second] = prepare(&world, &indexes, begun.as_ref().map(|(n, text)| (*n, text.as_str())));
        let hands = [first, second];
        let orders = hand_in_all(&world, &hands, &mut |world, refused| {
            assert_all_revoked(world, &indexes, refused);
        });
        assert_eq!(orders, 20, "six requests, three of each");
    }
}

/// Answers are lost, and both hand everything in once more.
#[test]
fn a_second_time_changes_nothing() {
    let (world, indexes) = released();
    let indexes = &indexes[..2];
    let hands = prepare(&world, indexes, None).map(|hand| [hand.clone(), hand].concat());
    let orders =
        hand_in_all(&world, &hands, &mut |world, refused| assert_all_revoked(world, indexes, refused));
    assert_eq!(orders, 70);
}

/// The rotation comes in between, at any time. What only the stolen key began is in the way until it is over, and no
/// longer.
#[test]
fn a_rotation_can_come_in_between() {
    let (mut world, indexes) = released();
    let indexes = &indexes[..2];
    let thief = document(&world, &indexes[0], "words of the thief");
    world.update(&others(), &alice()).expect("a proposal");
    let [first, second] = prepare(&world, indexes, None);
    let rotation: Vec<Statement> =
        [alice(), carol()].map(|person| Statement::Sign(world.submission(PENDING, &person))).into();
    let hands = [first.clone(), second.clone(), rotation.clone()];
    hand_in_all(&world, &hands, &mut |world, refused| assert_all_revoked(world, indexes, refused));
    world.revoke(&revocation(&world, &indexes[0], &thief, &bob())).expect("the thief begins");
    hand_in_all(&world, &hands, &mut |world, refused| {
        let is_harmless = |reason: &String| reason.contains("Another revocation");
        assert!(refused.iter().all(is_harmless), "{refused:?}");
        // Once more, as the client says.
        hand_in_all(world, &[first.clone(), second.clone()], &mut |world, refused| {
            assert_all_revoked(world, indexes, refused);
        });
    });
    // After the rotation, nothing is refused.
    hand_in_all(&world, &[rotation], &mut |world, refused| {
        assert_eq!(refused, [""; 0]);
        hand_in_all(world, &[first.clone(), second.clone()], &mut |world, refused| {
            assert_all_revoked(world, indexes, refused);
        });
    });
}
