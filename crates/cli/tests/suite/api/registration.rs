//! POST /v1/register_repo: spec §3 and §4.1, D10, D13–D15, D27, D35.

use countersign_core::values::{
    digest::Sha512,
    key::{PublicKey, Signature},
};
use serde_json::{Value, json};

use crate::support::{Answer, Person, Request, SignersFile, World, seconds_from_now};

fn people() -> (Person, Person, Person) {
    (Person::named("alice"), Person::named("bob"), Person::named("carol"))
}

fn sorted(keys: &Value) -> Vec<String> {
    let mut keys: Vec<String> = serde_json::from_value(keys.clone()).unwrap();
    keys.sort();
    keys
}

#[test]
fn a_registration_lists_everyone_who_still_must_sign() {
    let (alice, bob, carol) = people();
    let world = World::start();
    let file = SignersFile::of(1, &[&alice, &bob]).master(1, &[&carol]);
    let answer = world.register(&alice, "acme/app", &file).ok();

    let mut everyone = [alice.body_key(), bob.body_key(), carol.body_key()];
    everyone.sort();
    assert_eq!(sorted(&answer["required_signers"]), everyone);
    assert_eq!(answer["success"], json!(true));
    assert_eq!(answer["project_id"], json!(world.id("acme/app")));
    assert_eq!(answer["message"], json!("Project registered successfully. Collect signatures to activate."));
    assert_eq!(answer["signature_submission_url"], json!("/v1/signatures"));
    assert_eq!(answer.as_object().unwrap().len(), 5, "{answer}");
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
fn a_project_is_registered_only_once() {
    let (alice, bob, _) = people();
    let world = World::start();
    let file = SignersFile::of(1, &[&alice, &bob]);
    world.register(&alice, "acme/app", &file).ok();
    world.register(&alice, "acme/app", &file).refused(409, &world.id("acme/app"));
    world.register(&bob, "acme/app", &file).refused(409, &world.id("acme/app"));
    world.sign_all(&world.pending_path("acme/app"), &[&alice, &bob]);
    world.register(&alice, "acme/app", &file).refused(409, &world.id("acme/app"));
    assert_eq!(world.read(&world.active_path("acme/app")), file.bytes());
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
fn a_registration_becomes_active_when_every_key_of_every_role_has_signed() {
    let (alice, bob, carol) = people();
    let dave = Person::named("dave");
    let file =
        SignersFile::of(1, &[&alice, &bob]).admin(1, &[&alice]).master(1, &[&carol]).revocation(1, &[&dave]);
    let world = World::start();
    world.register(&dave, "acme/app", &file).ok();
    let pending = world.pending_path("acme/app");
    world.sign_all(&pending, &[&alice, &dave, &carol, &bob]);

    assert_eq!(world.read(&world.active_path("acme/app")), file.bytes());
    world.file(&pending).error(404);
    world.file(&format!("{pending}.metadata.json")).error(404);
    world.file(&format!("{pending}.signatures.json.pending")).error(404);
    assert!(world.git().paths().iter().all(|path| !path.contains("pending")), "{:?}", world.git().paths());
}

#[test]
fn the_submitter_must_be_listed_and_be_the_one_who_calls() {
    let (alice, bob, _) = people();
    let world = World::start();
    let file = SignersFile::of(1, &[&alice]);
    world.register(&bob, "acme/app", &file).error(400);
    let url = world.publish("acme/app", &file);
    let for_alice = json!({ "signers_file_url": url, "public_key": alice.body_key() });
    world.post_as(&bob, "/v1/register_repo", &for_alice).error(400);
    world.register(&alice, "acme/app", &file).ok();
}

#[test]
fn the_submitters_key_is_read_in_every_spelling() {
    let (alice, ..) = people();
    let world = World::start();
    let file = SignersFile::of(1, &[&alice]);
    for (project, key) in
        [("a", alice.key()), ("b", alice.ssh_key()), ("c", alice.body_key().replace('=', ""))]
    {
        let url = world.publish(project, &file);
        let body = json!({ "signers_file_url": url, "public_key": key });
        world.post_as(&alice, "/v1/register_repo", &body).ok();
    }
}

#[test]
fn an_invalid_public_key_is_refused() {
    let (alice, ..) = people();
    let world = World::start();
    let url = world.publish("acme/app", &SignersFile::of(1, &[&alice]));
    let weak = "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    for key in
        [json!(""), json!("x"), json!("svc-pub:"), json!("ssh-rsa AAAA"), json!(weak), json!(7), Value::Null]
    {
        let body = json!({ "signers_file_url": url, "public_key": key });
        world.post_as(&alice, "/v1/register_repo", &body).error(400);
    }
    world.post_as(&alice, "/v1/register_repo", &json!({ "signers_file_url": url })).error(400);
}

#[test]
fn a_url_that_names_no_signers_file_is_refused() {
    let (alice, ..) = people();
    let world = World::start();
    let base = world.files.url("");
    for url in [
        String::new(),
        "no url".to_owned(),
        "acme/app/svc.signers.json".to_owned(),
        "ftp://127.0.0.1/acme/svc.signers.json".to_owned(),
        "file:///etc/passwd".to_owned(),
        "http:///svc.signers.json".to_owned(),
        "http://127.0.0.1:99999/acme/svc.signers.json".to_owned(),
        base.clone(),
        format!("{base}/"),
        format!("{base}/acme/app/"),
        format!("{base}/acme/svc.signers.json?x=1"),
        format!("{base}/acme/svc.signers.json#x"),
        format!("{}/acme/svc.signers.json", base.replace("http://", "http://me:pw@")),
        format!("{base}/other.json"),
        format!("{base}/acme/app/-/blob/main/svc.signers.json"),
        format!("{base}/acme/app/-/raw/main/svc.signers.json"),
        format!("{base}/acme/app/blob/main/svc.signers.json"),
        format!("{base}/acme/app/src/branch/main/svc.signers.json"),
        format!("{base}/acme/app/raw/branch/main/svc.signers.json"),
        "https://github.com/acme/app/blob/0123456789012345678901234567890123456789/svc.signers.json"
            .to_owned(),
    ] {
        let reply = world.register_url(&alice, &url);
        assert_eq!(reply.status, 400, "{url}: {}", reply.text());
        reply.error(400);
    }
    for url in [json!(7), Value::Null, json!(["http://a/b"])] {
        let body = json!({ "signers_file_url": url, "public_key": alice.body_key() });
        world.post_as(&alice, "/v1/register_repo", &body).error(400);
    }
    assert_eq!(world.files.asked(), [""; 0], "nothing is fetched for a URL that the rules refuse");
    assert_eq!(world.git().commit_count(), 1, "the format marker is the only commit");
}

#[test]
fn the_project_is_the_directory_of_the_file_less_a_signers_directory() {
    let (alice, ..) = people();
    let world = World::start();
    let file = SignersFile::of(1, &[&alice]);
    for (path, project) in [
        ("/one/svc.signers/svc.signers.json", "one"),
        ("/two/.svc.signers/keys.json", "two"),
        ("/three/.svc_signers/svc.signers.json", "three"),
        ("/four/five/any-name.json", "four/five"),
    ] {
        world.files.put(path, file.bytes());
        let answer = world.register_url(&alice, &world.files.url(path)).ok();
        assert_eq!(answer["project_id"], json!(world.id(project)));
    }
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
fn projects_do_not_nest_and_do_not_differ_only_in_letter_case() {
    let (alice, ..) = people();
    let file = SignersFile::of(1, &[&alice]);
    let world = World::start();
    world.register(&alice, "acme/app", &file).ok();
    for state in ["pending", "active"] {
        for other in
            ["acme", "acme/app/sub", "acme/app/sub/deep", "acme/App", "ACME/app", "Acme", "acme/APP/sub"]
        {
            let reply = world.register(&alice, other, &file);
            assert_eq!(reply.status, 409, "{other} beside a project that is {state}: {}", reply.text());
            reply.refused(409, &world.id("acme/app"));
        }
        if state == "pending" {
            world.sign_all(&world.pending_path("acme/app"), &[&alice]);
        }
    }
    world.register(&alice, "acme/app2", &file).ok();
    world.register(&alice, "acme/ap", &file).ok();
}

#[test]
fn a_signers_file_from_the_future_is_refused() {
    let (alice, ..) = people();
    let world = World::start();
    let file = SignersFile::dated(seconds_from_now(15 * 60)).artifact(1, &[&alice]);
    world.register(&alice, "acme/app", &file).error(400);
    let file = file.redated(seconds_from_now(8 * 60));
    world.register(&alice, "acme/app", &file).ok();
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
