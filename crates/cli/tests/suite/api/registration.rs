//! POST /v1/register_repo: spec §3 and §4.1, D10, D13–D15, D27, D35.

use countersign_core::values::{digest::Sha512, key::PublicKey, key::Signature};
use serde_json::{Value, json};

use crate::support::{Answer, Person, Request, SignersFile, World, seconds_from_now};

fn people() -> (Person, Person, Person) {
    (Person::named("alice"), Person::named("bob"), Person::named("carol"))
}

#[test]
fn a_registration_stores_the_exact_bytes_their_metadata_and_the_signed_request() {
    let (alice, ..) = people();
    let world = World::start();
    let file = SignersFile::of(1, &[&alice]);
    let url = world.publish("acme/app", &file);
    let body = json!({ "signers_file_url": url, "public_key": alice.body_key() }).to_string();
    let request = alice.sign(Request::new("POST", "/v1/register_repo").with_body(body.clone()));
    world.server.send(&request).ok();

    let pending = world.pending_path("acme/app");
    assert_eq!(world.read(&pending), file.bytes());

    let metadata = world.read_json(&format!("{pending}.metadata.json"));
    assert_eq!(metadata["version"], json!(1));
    assert_eq!(metadata["origin"]["kind"], json!("file_server"));
    assert_eq!(metadata["origin"]["url"], json!(url));
    assert_eq!(metadata["origin"]["retrieval_url"], json!(url));
    assert!(metadata["origin"]["retrieved_at"].as_str().unwrap().ends_with('Z'), "{metadata}");
    assert_eq!(metadata["project_id"], json!(world.id("acme/app")));
    assert_eq!(metadata["signers_file_digest"], json!(Sha512::of(&file.bytes()).to_prefixed()));
    assert_eq!(metadata["previous"], Value::Null);

    let registration = world.read_json(&format!("{pending}.registration.json"));
    let text = |field: &str| registration[field].as_str().unwrap().to_owned();
    assert_eq!(text("payload"), body);
    assert_eq!(text("nonce"), request.header("X-svc-nonce"));
    assert_eq!(text("timestamp"), request.header("X-svc-timestamp"));
    let signed = format!("{}##{}##{}", text("timestamp"), text("nonce"), text("payload"));
    let key = PublicKey::parse(&text("public_key")).unwrap();
    let signature = Signature::parse(&text("signature")).unwrap();
    key.verify(&Sha512::of(signed.as_bytes()), &signature).expect("anyone can re-verify the request");
    assert_eq!(key.to_string(), alice.key());
}

#[test]
fn of_two_registrations_at_once_one_wins() {
    let (alice, ..) = people();
    let world = World::start();
    let file = SignersFile::of(1, &[&alice]);
    let (answer, keeper) = Answer::held(file.bytes());
    world.files.set("/acme/app/svc.signers.json", answer);
    let url = world.files.url("/acme/app/svc.signers.json");
    let mut statuses: Vec<_> = std::thread::scope(|scope| {
        let sent: Vec<_> = (0..2).map(|_| scope.spawn(|| world.register_url(&alice, &url).status)).collect();
        // The second one may be refused as "in progress" before it asks the file server.
        keeper.await_request();
        keeper.release();
        keeper.release();
        sent.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    statuses.sort();
    assert_eq!(statuses, [200, 409]);
}

#[test]
fn a_signers_file_at_the_root_registers_the_whole_host() {
    let (alice, ..) = people();
    for path in ["/svc.signers.json", "/.svc.signers/keys.json"] {
        let world = World::start();
        world.files.put(path, SignersFile::of(1, &[&alice]).bytes());
        let answer = world.register_url(&alice, &world.files.url(path)).ok();
        assert_eq!(answer["project_id"], json!(world.files.mirror_path("")));
        world
            .register(&alice, "acme/app", &SignersFile::of(1, &[&alice]))
            .refused(409, &world.files.mirror_path(""));
    }
}

#[test]
fn a_registration_that_is_not_complete_after_14_days_may_be_made_anew() {
    const DAY: i64 = 24 * 3600;
    let (alice, bob, _) = people();
    for (age, status) in [(13 * DAY, 409), (15 * DAY, 200)] {
        let mut world = World::start();
        world.register(&alice, "acme/app", &SignersFile::of(1, &[&alice, &bob])).ok();
        world.sign(&alice, &world.pending_path("acme/app")).ok();
        let path = format!("{}.metadata.json", world.pending_path("acme/app"));
        let mut metadata = world.read_json(&path);
        metadata["origin"]["retrieved_at"] = json!(seconds_from_now(-age).to_string());
        world.server.stop();
        world.git().commit_file(&path, format!("{metadata:#}\n").as_bytes());
        world.server.start_again();

        let reply = world.register(&bob, "acme/app", &SignersFile::of(1, &[&bob]));
        assert_eq!(reply.status, status, "{age} seconds old: {}", reply.text());
        if status == 200 {
            world.sign_all(&world.pending_path("acme/app"), &[&bob]);
            assert_eq!(world.read(&world.active_path("acme/app")), SignersFile::of(1, &[&bob]).bytes());
        }
    }
}
