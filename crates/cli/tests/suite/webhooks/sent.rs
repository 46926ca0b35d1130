//! Webhooks: what is sent, to whom, and from when on.

use std::{io::Write as _, path::Path, process::Command, process::Stdio};

use crate::support::receiver::{Delivery, Manner, Receiver};
use crate::support::webhooks::{HookedWorld, SECRET, webhook};
use crate::support::{FileServer, Launch, Person, SignersFile, metrics::Page, metrics::free_address};

fn events(deliveries: &[Delivery]) -> Vec<[String; 3]> {
    deliveries.iter().map(Delivery::event).collect()
}

#[test]
fn every_event_is_sent_in_the_order_of_the_commits_with_its_headers_and_a_signature() {
    let receiver = Receiver::start(Manner::Accept);
    let hooked = HookedWorld::start(&webhook("ci", &receiver, ""));
    let alice = hooked.activate();
    let index = hooked.world.add_signed_release("acme/app/v1", &[&alice]);
    hooked.world.revoke(&alice, &index).ok();

    let expected = hooked.history();
    assert_eq!(expected.len(), 7);
    let deliveries = receiver.await_accepted(expected.len());
    assert_eq!(events(&deliveries), expected);
    let mut ids = Vec::new();
    for delivery in &deliveries {
        assert_eq!(delivery.heard.target, "/hook");
        assert_eq!(delivery.header("content-type"), "application/json");
        assert_eq!(delivery.header("user-agent"), concat!("countersign/", env!("CARGO_PKG_VERSION")));
        let [kind, _, commit] = delivery.event();
        assert_eq!(delivery.header("X-svc-Event"), kind);
        assert_eq!(delivery.header("X-svc-Signature-256"), delivery.expected_signature(SECRET));
        let json = delivery.json();
        assert_eq!(json.as_object().unwrap().len(), 5, "{json}");
        assert_eq!(json["key"], alice.key());
        let time = hooked.world.git().run(&["log", "-1", "--format=%ct", &commit]);
        let said = countersign_core::values::time::Timestamp::parse(json["time"].as_str().unwrap()).unwrap();
        assert_eq!(said.unix_seconds().to_string(), time);
        ids.push((delivery.id().to_owned(), commit));
    }
    let numbers: Vec<_> = ids.iter().map(|(id, commit)| id.strip_prefix(commit.as_str()).unwrap()).collect();
    assert_eq!(numbers, [".0", ".0", ".1", ".0", ".0", ".1", ".0"]);

    // Also of changes that are made at the same time.
    std::thread::scope(|scope| {
        for number in 2..18 {
            let (world, alice) = (&hooked.world, &alice);
            scope.spawn(move || world.add_signed_release(&format!("acme/app/v{number}"), &[alice]));
        }
    });
    let expected = hooked.history();
    assert_eq!(events(&receiver.await_accepted(expected.len())), expected);
}

#[test]
fn signers_that_wait_are_sent_with_the_time_at_which_they_take_force() {
    let receiver = Receiver::start(Manner::Accept);
    let hooked = HookedWorld::start(&webhook("ci", &receiver, "types = [\"agreed\"]\n"));
    let (world, alice) = (&hooked.world, Person::named("alice"));
    let file = |days| {
        let file = SignersFile::dated(crate::support::days_ago(days)).artifact(1, &[&alice]);
        file.with("rotation_delay_hours", serde_json::json!(720))
    };
    world.activate("acme/app", &file(10), &[&alice]);
    world.propose(&alice, "acme/app", &file(5)).ok();
    let answer = world.sign(&alice, &world.pending_path("acme/app")).ok();
    let told = receiver.await_accepted(1)[0].json();
    assert_eq!((&told["type"], &told["due"]), (&serde_json::json!("agreed"), &answer["waits_until"]));
}

#[test]
fn only_what_the_filters_let_pass_is_sent() {
    let receivers: [Receiver; 4] = std::array::from_fn(|_| Receiver::start(Manner::Accept));
    let [all, types, prefix, key] = &receivers;
    let bob = Person::named("bob");
    let files = FileServer::start();
    let path = |project: &str| files.mirror_path(&format!("/{project}"));
    let config = [
        webhook("all", all, ""),
        webhook("types", types, "types = [\"complete\", \"revoked\"]"),
        webhook("prefix", prefix, &format!("prefix = [{:?}, {:?}]", path("acme/app/v2"), path("acme/ap"))),
        webhook(
            "key",
            key,
            &format!("types = [\"registration\", \"signature\", \"release\"]\nkey = {:?}", bob.key()),
        ),
    ];
    let mut hooked = HookedWorld::start(&config.concat());
    hooked.world.files = files;
    let alice = Person::named("alice");
    hooked.world.register(&alice, "acme/app", &SignersFile::of(1, &[&alice, &bob])).ok();
    // Each while it waits for bob.
    key.await_accepted(1);
    let pending = hooked.world.pending_path("acme/app");
    hooked.world.sign(&alice, &pending).ok();
    key.await_accepted(2);
    hooked.world.sign(&bob, &pending).ok();
    let first = hooked.world.add_release(&alice, "acme/app/v1");
    let of_bob = key.await_accepted(3);
    hooked.world.sign_all(&first, &[&alice]);
    let second = hooked.world.add_signed_release("acme/app/v2", &[&alice]);

    let expected = hooked.history();
    assert_eq!(events(&all.await_accepted(expected.len())), expected);
    let some = |is_wanted: &dyn Fn(&[String; 3]) -> bool| -> Vec<_> {
        expected.iter().filter(|event| is_wanted(event)).cloned().collect()
    };
    assert_eq!(events(&types.await_accepted(2)), some(&|event| event[0] == "complete"));
    assert_eq!(events(&prefix.await_accepted(3)), some(&|event| event[1] == second), "whole segments");
    let waited = [&expected[0], &expected[1], &expected[4]].map(Clone::clone);
    assert_eq!(events(&of_bob), waited, "not bob's own signature, nor what needs no more");
}

#[test]
fn a_new_webhook_hears_of_what_comes_after_it_and_one_that_was_away_of_what_it_missed() {
    let receiver = Receiver::start(Manner::Accept);
    let with = webhook("ci", &receiver, "types = [\"complete\"]");
    let mut hooked = HookedWorld::start("");
    let alice = hooked.activate();
    hooked.world.add_signed_release("acme/app/v1", &[&alice]);
    for (config, version) in [(&*with, "v2"), ("", "v3"), (&*with, "v4")] {
        hooked.configure(config);
        hooked.world.server.restart();
        hooked.world.add_signed_release(&format!("acme/app/{version}"), &[&alice]);
        if !config.is_empty() {
            hooked.await_recorded("ci");
        }
    }
    let paths: Vec<_> =
        receiver.await_accepted(3).iter().map(|delivery| delivery.event()[1].clone()).collect();
    assert_eq!(
        paths,
        ["v2", "v3", "v4"].map(|version| hooked.world.index_path(&format!("acme/app/{version}")))
    );
}

#[test]
fn what_an_operator_did_while_the_server_was_stopped_is_sent_when_it_starts() {
    let receiver = Receiver::start(Manner::Accept);
    let mut hooked = HookedWorld::start(&webhook("ci", &receiver, "types = [\"dropped\"]"));
    let alice = Person::named("alice");
    hooked.world.register(&alice, "acme/app", &SignersFile::of(1, &[&alice])).ok();
    hooked.world.server.stop();
    let id = hooked.world.id("acme/app");
    let dropped = hooked.world.server.admin(&["drop", &id]).output();
    assert!(dropped.status.success(), "{}", String::from_utf8_lossy(&dropped.stderr));
    hooked.world.server.start_again();
    let [delivery] = receiver.await_accepted(1).try_into().unwrap();
    assert_eq!(delivery.event(), *hooked.history().last().unwrap());
    assert!(delivery.json()["key"].is_null());
    let repository = hooked.world.server.repository();
    let checked = Launch::default().args(["fsck", repository.to_str().unwrap()]).output();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}

#[test]
fn how_webhooks_fare_is_counted() {
    let (fine, broken) = (Receiver::start(Manner::Accept), Receiver::start(Manner::Fail(500)));
    let address = free_address();
    let config = [webhook("fine", &fine, ""), webhook("broken", &broken, "")].concat();
    let hooked = HookedWorld::start_with(&config, &["--dev", "--metrics-listen", &address.to_string()]);
    hooked.activate();
    fine.await_accepted(3);
    broken.await_tries(2);
    hooked.world.server.get("/v1/ping").ok();
    let page = Page::read(address);
    let value = |name: &str, labels: &str| page.value(&format!("countersign_webhook_{name}{{{labels}}}"));
    assert_eq!(value("failing", "webhook=\"broken\""), 1.0);
    assert_eq!(value("failing", "webhook=\"fine\""), 0.0);
    assert_eq!(value("commits_behind", "webhook=\"broken\""), 2.0);
    assert_eq!(value("deliveries_total", "webhook=\"broken\",outcome=\"delivered\""), 0.0);
    assert!(value("deliveries_total", "webhook=\"broken\",outcome=\"failed\"") >= 1.0);
    assert!(value("deliveries_total", "webhook=\"fine\",outcome=\"delivered\"") >= 2.0);
}

/// The only block of this language on the page.
fn block(language: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/webhooks.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, rest) = page.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

#[test]
fn the_page_about_webhooks_shows_a_configuration_that_works_and_commands_that_verify() {
    let receiver = Receiver::start(Manner::Accept);
    let files = FileServer::start();
    let secret_file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret_file.path(), format!("{SECRET}\n")).unwrap();
    let config = block("toml")
        .replace("https://ci.example.org/hooks/countersign", &receiver.url())
        .replace("/etc/countersign/ci-secret", secret_file.path().to_str().unwrap())
        .replace("https/github.com/443/acme", &files.mirror_path("/acme"));
    let mut hooked = HookedWorld::start(&config);
    hooked.world.files = files;
    let alice = hooked.activate();
    hooked.world.add_signed_release("acme/app/v1", &[&alice]);
    let delivery = receiver.await_accepted(1).remove(0);

    let signature = delivery.header("X-svc-Signature-256");
    for (program, script, needed) in
        [("bash", block("sh"), "openssl"), ("python3", block("python"), "python3")]
    {
        if [program, needed].iter().any(|needed| Command::new(needed).arg("--version").output().is_err()) {
            eprintln!("skipped: `{program}` or `{needed}` is not here");
            continue;
        }
        let script = match program {
            "python3" => format!(
                "{script}\nimport sys\nsys.exit(0 if is_genuine(b'{SECRET}', sys.stdin.buffer.read(), '{signature}') else 1)"
            ),
            _ => script,
        };
        let mut command = Command::new(program);
        command.args(["-c", &script]).env("SECRET", SECRET).env("SIGNATURE", signature);
        for is_genuine in [true, false] {
            let mut body = delivery.heard.body.clone();
            body.extend(if is_genuine { "" } else { " " }.as_bytes());
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
            child.stdin.take().unwrap().write_all(&body).unwrap();
            assert_eq!(child.wait().unwrap().success(), is_genuine, "{program}");
        }
    }
}

#[test]
fn nothing_is_sent_to_an_address_that_is_not_public_unless_it_is_allowed() {
    let receiver = Receiver::start_at("127.0.0.2:0".parse().unwrap(), Manner::Accept);
    let config = webhook("ci", &receiver, "");
    let flags = ["--file-server", "127.0.0.1:PORT", "--log-level", "debug"];
    let closed = format!("allow_fetch = [\"127.0.0.1:*\"]\n{config}");
    let mut hooked = HookedWorld::start_with(&closed, &flags);
    hooked.activate();
    hooked.world.server.get("/v1/ping").ok();
    let log = hooked.world.server.stop_and_read_log();
    assert!(log.contains("nothing of this webhook will be delivered"), "{log}");
    assert!(log.contains("--allow-fetch 127.0.0.2"), "{log}");
    assert_eq!(receiver.tries().len(), 0);

    hooked.configure(&format!("allow_fetch = [\"127.0.0.1:*\", \"127.0.0.2:*\"]\n{config}"));
    hooked.world.server.start_again();
    let deliveries = receiver.await_accepted(3);
    assert_eq!(deliveries.iter().map(|delivery| delivery.event()).collect::<Vec<_>>(), hooked.history());
}
