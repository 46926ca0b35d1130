//! Thieves of admin keys have used up everything that a project may store. Its masters can still veto, and what the team
//! agreed to still takes effect (D172).

use countersign_core::rules::snapshot::Change;
use countersign_store::{BudgetScope, Options, Repository, StorageLimits, Store, StoreError};
use countersign_testing::{PENDING, PROJECT, Signers, World, alice, bob, carol, dave, key, signers};

use crate::support::{Fixture, options, path};

const DELAY: i128 = 48 * 3_600;
const LIMITS: StorageLimits = StorageLimits {
    project: 200_000,
    owner: 300_000,
    host: 400_000,
    total: 500_000,
    project_reserved: 20_000,
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

async fn put(store: &Store, change: &Change) -> Result<(), StoreError> {
    let change = change.clone();
    let stored = store.transact(move |_, _| Ok::<_, ()>((change.clone(), ()))).await?;
    stored.expect("this decision refuses nothing");
    Ok(())
}

/// A store with what the world has.
async fn store_of(fixture: &Fixture, world: &World) -> Store {
    let repository = Repository::open(&fixture.repository()).unwrap();
    let store = Store::start(repository, Options { budget: Some(LIMITS), ..options() }).unwrap();
    let mut all = Change::new("Write");
    for name in world.repo.names() {
        all.write(path(name), world.repo.bytes(name));
    }
    put(&store, &all).await.expect("room");
    store
}

/// Writes until nothing more fits.
async fn use_up(store: &Store, message: &str, file: &str) {
    for bytes in [50_000, 5_000, 500, 50, 1] {
        loop {
            let mut change = Change::new(message.to_owned());
            let content = format!("{:?}", std::time::Instant::now()).repeat(bytes);
            change.write(path(file), content.as_bytes()[..bytes].to_vec());
            match put(store, &change).await {
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

/// First with releases, then with proposals.
async fn use_up_all(store: &Store) {
    let thief = bob().public_key();
    use_up(store, "Write", &format!("{PROJECT}/1.0/svc.index.json")).await;
    let proposal =
        format!("Replace the proposed signers of {PROJECT}\n\nBy: {thief}\nFrom: https://example.org\n");
    use_up(store, &proposal, &format!("{PROJECT}/svc.signers.pending/other")).await;
}

#[tokio::test]
async fn the_masters_still_veto() {
    let (fixture, mut world) = (Fixture::in_memory(), waiting());
    let store = store_of(&fixture, &world).await;
    use_up_all(&store).await;
    let document = world.veto_document("no one of us has asked for this");
    for master in [dave(), key(6)] {
        world.veto(&world.veto_request(&document, &master)).expect("a veto");
        put(&store, &world.last).await.expect("a reserve for masters");
    }
}

#[tokio::test]
async fn the_masters_still_rotate() {
    let (fixture, mut world) = (Fixture::in_memory(), waiting());
    let store = store_of(&fixture, &world).await;
    use_up_all(&store).await;
    world.update(&team("2026-02-01T09:00:01Z"), &dave()).expect("an update");
    put(&store, &world.last).await.expect("a reserve for masters");
    for master in [dave(), key(6)] {
        world.sign(PENDING, &master).expect("a signature");
        put(&store, &world.last).await.expect("a reserve for masters");
    }
}

#[tokio::test]
async fn what_has_waited_still_takes_force() {
    let (fixture, mut world) = (Fixture::in_memory(), waiting());
    let store = store_of(&fixture, &world).await;
    use_up_all(&store).await;
    world.pass(DELAY);
    world.activate_due().expect("it is due");
    put(&store, &world.last).await.expect("a reserve for what has waited");
}

#[tokio::test]
async fn admins_have_no_part_in_the_reserve_of_the_masters() {
    let (fixture, mut world) = (Fixture::in_memory(), waiting());
    let store = store_of(&fixture, &world).await;
    use_up_all(&store).await;
    world.update(&team("2026-02-01T09:00:01Z"), &carol()).expect("an update");
    let refused = put(&store, &world.last).await;
    assert!(matches!(refused, Err(StoreError::OverBudget(_))), "{refused:?}");
}
