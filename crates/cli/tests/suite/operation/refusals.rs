//! The log answers "why was I refused?" (D56), and tells failures of others from those of this server.

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Launch, Person, Reply, Request, SignersFile, World, days_ago, metrics::Page};

fn people() -> (Person, Person) {
    (Person::named("alice"), Person::named("bob"))
}

fn json_log(launch: Launch) -> Launch {
    launch.args(["--dev", "--log-format", "json"])
}

/// The one line about this answer.
#[track_caller]
fn line_of(log: &str, reply: &Reply) -> Value {
    let id = reply.header("x-request-id").expect("every answer has an id");
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let mut lines = lines.filter(|line| line["span"]["id"] == id);
    let line = lines.next().unwrap_or_else(|| panic!("no line of {id}: {log}"));
    assert_eq!(lines.next(), None, "one line for each request");
    assert_eq!(line["status"], reply.status);
    assert_eq!(line["span"]["address"], "127.0.0.1");
    line
}

#[test]
fn a_refusal_is_logged_with_its_reason_key_file_project_and_address() {
    let (alice, bob) = people();
    let mut world = World::start_with(|launch, _| json_log(launch));
    world.activate("acme/app", &SignersFile::of(1, &[&alice]), &[&alice]);
    let index = world.add_release(&alice, "acme/app/v1");
    let not_a_signer = world.sign(&bob, &index);
    let message = not_a_signer.error(403);
    let taken = world.register(&alice, "acme/app", &SignersFile::dated(days_ago(1)).artifact(1, &[&alice]));
    taken.error(409);
    let forbidden = world.status(&bob, &index);
    forbidden.error(403);

    let log = world.server.stop_and_read_log();
    let line = line_of(&log, &not_a_signer);
    assert_eq!((&line["level"], &line["reason"]), (&"INFO".into(), &message.into()));
    assert_eq!((&line["span"]["key"], &line["span"]["file"]), (&bob.key().into(), &index.into()));
    let line = line_of(&log, &taken);
    assert_eq!(line["span"]["project"], world.id("acme/app"));
    assert_eq!(line["span"]["key"], alice.key());
    // A read by someone who says who they are.
    let line = line_of(&log, &forbidden);
    assert_eq!((&line["level"], &line["span"]["key"]), (&"INFO".into(), &bob.key().into()));
}

#[test]
fn a_caller_who_is_not_proved_is_logged_as_who_they_say_they_are() {
    let (alice, _) = people();
    let mut world = World::start_with(|launch, _| json_log(launch));
    let old = alice.sign_at(
        Request::get("/v1/pending_signatures"),
        days_ago(1),
        "8b8c2c3e-5f4e-4a1c-9a55-3a1f0b7c9d10",
    );
    let too_old = world.server.send(&old);
    let message = too_old.error(401);
    let tampered = world.server.send(&alice.sign(Request::post("/v1/assets", &1.into())).with_body("2"));
    tampered.error(401);
    let log = world.server.stop_and_read_log();
    for (reply, reason) in [(&too_old, Some(message)), (&tampered, None)] {
        let line = line_of(&log, reply);
        assert_eq!(line["span"]["claimed_key"], alice.key());
        assert_eq!(line["span"]["key"], Value::Null, "it is not known");
        assert!(reason.is_none_or(|reason| line["reason"] == reason), "{line}");
    }
}

#[test]
fn what_upstreams_do_wrong_is_a_warning_and_counted_apart() {
    let (alice, _) = people();
    let mut world = World::start_with(|launch, _| json_log(launch).with_metrics());
    let address = world.server.metrics_address();
    world.activate("acme/app", &SignersFile::of(1, &[&alice]), &[&alice]);
    let missing = world.register_url(&alice, &world.files.url("/acme/none/svc.signers.json"));
    missing.error(500);
    let bad = world.register_assets(&alice, &[&world.publish_checksums("acme/app/v1", "no digest\n")]);
    bad.error(500);
    world.files.set("/acme/app/v2/SHA256SUMS", crate::support::Answer::Status(503));
    let down = world.register_assets(&alice, &[&world.files.url("/acme/app/v2/SHA256SUMS")]);
    down.error(500);

    let page = Page::read(address);
    for kind in ["missing", "invalid", "unreachable"] {
        assert_eq!(page.value(&format!("countersign_upstream_failures_total{{kind=\"{kind}\"}}")), 1.0);
    }
    let log = world.server.stop_and_read_log();
    for reply in [&missing, &bad, &down] {
        let line = line_of(&log, reply);
        assert_eq!((&line["level"], &line["reason"]), (&"WARN".into(), &reply.error(500).into()));
        assert_eq!(line["span"]["key"], alice.key());
        let (reason, source) = (line["reason"].as_str().unwrap(), line["source"].as_str());
        assert!(source.is_none_or(|source| !reason.contains(source)), "{line}");
    }
}

#[test]
fn times_have_three_digits_that_matter() {
    let mut world = World::start_with(|launch, _| json_log(launch).args(["--log-level", "debug"]));
    for _ in 0..20 {
        world.server.get("/v1/ping").ok();
        world.pending(&people().0);
    }
    let log = world.server.stop_and_read_log();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let times: Vec<f64> = lines.iter().filter_map(|line| line["ms"].as_f64()).collect();
    assert!(times.len() >= 40, "{log}");
    for time in times {
        let decimals = time.to_string().split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let most = if time >= 100.0 {
            0
        } else if time >= 10.0 {
            1
        } else if time >= 1.0 {
            2
        } else {
            3
        };
        assert!(decimals <= most, "{time}");
    }
}

#[test]
fn a_server_that_cannot_start_says_so_in_json_where_the_log_is_json() {
    let dir = TempDir::new().unwrap();
    let config = dir.path().join("countersign.toml");
    std::fs::write(&config, "log_format = \"json\"\nlisten = \"127.0.0.1:0\"\nliste = 1\n").unwrap();
    let config = config.to_str().unwrap();
    let data = dir.path().join("data");
    std::fs::write(&data, "a file").unwrap();
    for launch in [
        Launch::serve(&data).args(["--log-format", "json"]),
        Launch::bare().args(["--config", config]),
        Launch::serve(&data).args([
            "--log-format",
            "json",
            "--tls-cert",
            "none.pem",
            "--tls-key",
            "none.pem",
        ]),
    ] {
        let said = launch.refusal();
        let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
        assert!(lines.iter().any(|line| line["level"] == "ERROR" && line["error"].is_string()), "{said}");
    }
}

#[test]
fn a_url_that_leads_nowhere_is_logged_as_it_was_given() {
    let (alice, _) = people();
    let mut world = World::start_with(|launch, _| json_log(launch));
    let url = "https://github.com/acme/app/tree/main";
    let release = world.post_as(&alice, "/v1/assets", &serde_json::json!({ "forge_release_url": url }));
    release.error(400);
    let signers = world.register_url(&alice, "https://github.com/acme/app");
    signers.error(400);
    let log = world.server.stop_and_read_log();
    assert_eq!(line_of(&log, &release)["span"]["file"], url);
    assert_eq!(line_of(&log, &signers)["span"]["file"], "https://github.com/acme/app");
}

#[test]
fn a_mistake_in_the_configuration_keeps_its_line_apart_in_a_log_of_json() {
    let dir = TempDir::new().unwrap();
    let config = dir.path().join("countersign.toml");
    std::fs::write(&config, "log_format = \"json\"\nlisten_at = \"127.0.0.1:0\"\n").unwrap();
    let launch = Launch::serve(&dir.path().join("data")).args(["--config", config.to_str().unwrap()]);
    let log = String::from_utf8(launch.output().stderr).unwrap();
    let line: Value = serde_json::from_str(&log).expect("one line of JSON");
    assert!(line["error"].as_str().unwrap().contains("unknown key `listen_at`"), "{line}");
    assert_eq!(line["detail"], "2 | listen_at = \"127.0.0.1:0\"");
}
