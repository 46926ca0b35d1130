//! When each key last signed: in the API, in `signers check`, and on pages.

use serde_json::{Value, json};

use super::scene::{signer, start_team};
use crate::support::client::{Computer, Ran};
use crate::support::{SignersFile, World, html::key_page, html::open, machine_clock::MachineClock, person};

const DAY: i64 = 86_400;

#[track_caller]
fn key_answer(world: &World, name: &str) -> Value {
    let key = person(name).key().replace('/', "%2F").replace('+', "%2B");
    world.server.get(&format!("/v1/keys/{key}")).ok()
}

#[test]
fn signers_check_of_a_project_says_when_each_key_last_signed() {
    let [alice, bob] = ["alice", "bob"].map(person);
    let world = start_team();
    world.add_signed_release("acme/app/1.0", &[&alice, &bob]);
    let computer = Computer::of(&world.server);
    let repository = world.server.repository();
    let online = computer.json(&["signers", "check", "acme/app"]);
    let offline = Computer::offline().json(&[
        "signers",
        "check",
        "acme/app",
        "--repository",
        repository.to_str().unwrap(),
    ]);
    assert_eq!(offline, online);
    for name in ["alice", "bob", "carol"] {
        let told = &online["last_signed"][person(name).key()];
        assert_eq!(told["last_signed_at"], key_answer(&world, name)["last_signed_at"], "{name}: {online}");
        assert_eq!(told["idle"], json!(false));
    }
    assert_eq!(online["lockout"], json!([]));
    computer
        .run(&["signers", "check", "acme/app"])
        .ok()
        .says(&["Last signed", "stolen keys that do not suffice"]);
    // A file says as much as before, and asks no server.
    computer.write("signers.json", world.read(&world.active_path("acme/app")));
    let file =
        Computer::offline().json(&["signers", "check", computer.path("signers.json").to_str().unwrap()]);
    assert_eq!((file["valid"].clone(), file.get("last_signed")), (json!(true), None));
    computer.run(&["signers", "check", "acme/none"]).failed_with(1);
}

#[test]
fn after_a_year_the_lock_out_is_foreseen_by_the_client_and_on_pages() {
    let Some(clock) = MachineClock::new() else { return };
    let people = ["alice", "bob", "carol", "dave", "erin"].map(person);
    let everyone: Vec<_> = people.iter().collect();
    let world = World::start_with(|launch, _| clock.give_to(launch.arg("--dev")));
    world.activate("acme/app", &SignersFile::of(2, &everyone), &everyone);
    let computer = Computer::of(&world.server);
    let check = |ahead: i64| -> Ran {
        let client = MachineClock::new().expect("there was one before");
        client.set(ahead);
        let mut command = computer.command(&["signers", "check", "acme/app"]);
        client.lend_to(&mut command);
        Ran::of(&mut command).ok()
    };
    check(364 * DAY).says_nothing_of(&["for a year"]);
    check(366 * DAY).says(&[
        "5 of 5 keys have not signed for a year: if they are lost, you are locked out",
        "no one can ever release again",
    ]);
    let page = format!("/p/{}", world.id("acme/app"));
    open(&world.server, &page).says(&["last signed"]).lacks(&["idle", "lock-out"]);
    clock.set(366 * DAY);
    open(&world.server, &page).says(&["idle", "lock-out To rotate the signers: 5 of 5 keys"]);
    clock.set(0);
    world.add_signed_release("acme/app/1.0", &[&people[0], &people[1]]);
    open(&world.server, &key_page(&people[0])).says(&[
        "It last signed something that counts",
        "Is this key stolen or lost?",
        "countersign incident",
        "needed",
    ]);
}

#[test]
fn the_page_of_a_key_says_what_it_completes_and_where_it_was_listed() {
    let [alice, bob, carol] = ["alice", "bob", "carol"].map(person);
    let world = start_team();
    let index = world.add_release(&alice, "acme/app/1.0");
    world.sign(&alice, &index).ok();
    open(&world.server, &key_page(&bob)).says(&["this key completes it"]);
    world.sign(&carol, &index).ok();
    open(&world.server, &key_page(&carol)).says(&["needed"]);
    let next = SignersFile::dated(crate::support::days_ago(5)).artifact(2, &[&alice, &bob]);
    world.rotate("acme/app", &next, &[&alice, &bob]);
    open(&world.server, &key_page(&carol)).says(&["No longer listed in", "countersign incident"]);
    let answer = key_answer(&world, "carol");
    assert_eq!(answer["formerly"], json!([world.id("acme/app")]));
    assert_eq!(answer["signed"][0]["decisive"], json!(true));
}

#[test]
fn the_page_of_a_registrar_says_where_it_is_one() {
    let [alice, ci] = ["alice", "ci"].map(person);
    let file = SignersFile::of(1, &[&alice]).with("registrars", json!([signer(&ci.key(), "ci")]));
    let world = World::with_project(&file, &[&alice]);
    open(&world.server, &key_page(&ci)).says(&["Listed in", "registrar ci", "countersign incident"]);
    let listed = &key_answer(&world, "ci")["listed"][0];
    assert_eq!((&listed["registrar"], &listed["roles"]), (&json!(true), &json!([])));
    assert_eq!(key_answer(&world, "ci").get("last_signed_at"), None);
}

#[test]
fn what_a_key_signed_is_asked_with_right_parameters_only() {
    let world = start_team();
    let [alice, bob] = ["alice", "bob"].map(person);
    let index = world.add_signed_release("acme/app/1.0", &[&alice, &bob]);
    let key = alice.key().replace('/', "%2F").replace('+', "%2B");
    let ask = |query: &str| world.server.get(&format!("/v1/keys/{key}/signed{query}"));
    assert_eq!(ask("").ok()["signed"][0]["index_path"], json!(index));
    assert_eq!(ask("?since=9000-01-01T00:00:00Z").ok()["signed"], json!([]));
    assert_eq!(ask(&format!("?after={index}")).ok()["signed"], json!([]));
    for wrong in [
        "?since=today",
        "?after=a%2F..%2Fb",
        "?after=https/nowhere/443/svc.index.json",
        "?what=1",
        "?since=9000-01-01T00:00:00Z&since=9000-01-01T00:00:00Z",
    ] {
        assert_eq!(ask(wrong).status, 400, "{wrong}");
    }
}
