//! Thieves of admin keys have used up everything that a project may store. Its masters can still veto, and what the
//! team agreed to still takes effect (D172).

use countersign_core::rules::snapshot::Change;
use countersign_store::{BudgetScope, Options, Repository, StorageLimits, Store, StoreError};
use countersign_testing::{PENDING, PROJECT, Signers, World, alice, bob, carol, dave, key, signers};

use crate::support::{Fixture, commit, options, path};

const DELAY: i128 = 48 * 3_600;
const LIMITS: StorageLimits = StorageLimits {
    project: 200_000,
    owner: 300_000,
    host: 400_000,
    total: 500_000,
    project_reserved: 60_000,
};

fn team(time: &str) -> Signers {
    let admins = [&bob(), &carol()];
    signers(time).artifact(1, [&alice()]).admin(2, admins).master(2, [&dave(), &key(6)]).delay(48)
}

/// New signers, proposed by the admins, wait.
fn waiting() -> World {
    let people = [alice(), bob(), carol(), dave(), key(6)];
    let mut world = World::with(&team("2026-01-31T10:00:00Z"), &people.iter().collect::<Vec<_>>());
    world.update(&team("2026-02-01T09:00:00Z"), &bob()).expect("an update");
    world.sign_all(PENDING, &[&bob(), &carol()]);
    world
}

/// A store with what the world has.
async fn store_of(fixture: &Fixture, world: &World) -> Store {
    let repository = Repository::open(&fixture.repository()).unwrap();
    let store = Store::start(repository, Options { budget: Some(LIMITS), ..options() }).unwrap();
    let mut all = Change::new("Write");
    for name in world.repo.names() {
        all.write(path(name), world.repo.bytes(name));
    }
    commit(&store, all).await.expect("room");
    store
}

/// Writes until nothing more fits.
async fn use_up(store: &Store, message: &str, file: &str) {
    for bytes in [50_000, 5_000, 500, 50, 1] {
        loop {
            let mut change = Change::new(message.to_owned());
            let content = format!("{:?}", std::time::Instant::now()).repeat(bytes);
            change.write(path(file), content.as_bytes()[..bytes].to_vec());
            match commit(store, change).await {
                Ok(()) => {}
                Err(StoreError::OverBudget(over)) => {
                    assert_eq!(over.scope, BudgetScope::Project);
                    break;
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
}

#[tokio::test]
async fn what_admins_have_used_up_stops_neither_the_masters_nor_what_has_waited() {
    let (fixture, waiting) = (Fixture::in_memory(), waiting());
    let store = store_of(&fixture, &waiting).await;
    // First with releases, then with proposals.
    use_up(&store, "Write", &format!("{PROJECT}/1.0/svc.index.json")).await;
    let thief = bob().public_key();
    let proposal =
        format!("Replace the proposed signers of {PROJECT}\n\nBy: {thief}\nFrom: https://example.org\n");
    use_up(&store, &proposal, &format!("{PROJECT}/svc.signers.pending/other")).await;
    let last = async |world: &World| commit(&store, world.last.clone()).await;
    // Admins have no part in the reserve of the masters.
    let mut world = waiting.clone();
    world.update(&team("2026-02-01T09:00:01Z"), &carol()).expect("an update");
    let refused = last(&world).await;
    assert!(matches!(refused, Err(StoreError::OverBudget(_))), "{refused:?}");
    // The masters veto, or rotate themselves.
    let mut world = waiting.clone();
    let document = world.veto_document("no one of us has asked for this");
    for master in [dave(), key(6)] {
        world.veto(&world.veto_request(&document, &master)).expect("a veto");
        last(&world).await.expect("a reserve for masters");
    }
    let mut world = waiting.clone();
    world.update(&team("2026-02-01T09:00:01Z"), &dave()).expect("an update");
    last(&world).await.expect("a reserve for masters");
    for master in [dave(), key(6)] {
        world.sign(PENDING, &master).expect("a signature");
        last(&world).await.expect("a reserve for masters");
    }
    // And what has waited takes effect.
    let mut world = waiting;
    world.pass(DELAY);
    world.activate_due().expect("it is due");
    last(&world).await.expect("a reserve for what has waited");
}
