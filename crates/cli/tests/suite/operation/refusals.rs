//! The log answers "why was I refused?" (D56), and tells failures of others from those of this server.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{
    Answer, Launch, Reply, Request, SignersFile, World, alice, bob, days_ago, metrics::Page,
};

/// The one line about this answer.
#[track_caller]
fn line_of(log: &str, reply: &Reply) -> Value {
    let id = reply.header("x-request-id").expect("every answer has an id");
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let mut lines = lines.filter(|line| line["span"]["id"] == id && line["level"] != "DEBUG");
    let line = lines.next().unwrap_or_else(|| panic!("no line of {id}: {log}"));
    assert_eq!(lines.next(), None, "one line for each request");
    assert_eq!(line["status"], reply.status);
    assert_eq!(line["span"]["address"], "127.0.0.1");
    line
}

#[test]
fn a_refusal_is_logged_with_its_reason_key_file_project_and_address_and_upstreams_are_told_apart() {
    let (alice, bob) = (alice(), bob());
    let mut world = World::start_with(|launch, _| {
        launch.args(["--dev", "--log-format", "json", "--log-level", "debug"]).with_metrics()
    });
    let metrics = world.server.metrics_address();
    world.activate("acme/app", &SignersFile::of(1, &[&alice]), &[&alice]);
    let index = world.add_release(&alice, "acme/app/v1");
    let not_a_signer = world.sign(&bob, &index);
    let taken = world.register(&alice, "acme/app", &SignersFile::of(1, &[&alice]).redated(days_ago(1)));
    taken.error(409);
    let forbidden = world.status(&bob, &index);
    forbidden.error(403);
    // Callers who are not proved.
    let nonce = "8b8c2c3e-5f4e-4a1c-9a55-3a1f0b7c9d10";
    let too_old =
        world.server.send(&alice.sign_at(Request::get("/v1/pending_signatures"), days_ago(1), nonce));
    let tampered = world.server.send(&alice.sign(Request::post("/v1/assets", &1.into())).with_body("2"));
    tampered.error(401);
    // URLs that lead nowhere.
    let page = "https://github.com/acme/app/tree/main";
    let release = world.post_as(&alice, "/v1/assets", &json!({ "forge_release_url": page }));
    release.error(400);
    let signers = world.register_url(&alice, "https://github.com/acme/app");
    signers.error(400);
    // Upstreams that fail.
    let missing = world.register_url(&alice, &world.files.url("/acme/none/svc.signers.json"));
    let bad = world.register_assets(&alice, &[&world.publish_checksums("acme/app/v2", "no digest\n")]);
    world.files.set("/acme/app/v3/SHA256SUMS", Answer::Status(503));
    let down = world.register_assets(&alice, &[&world.files.url("/acme/app/v3/SHA256SUMS")]);
    for _ in 0..20 {
        world.server.get("/v1/ping").ok();
        world.pending(&alice);
    }

    let counted = Page::read(metrics);
    for kind in ["missing", "invalid", "unreachable"] {
        assert_eq!(counted.value(&format!("countersign_upstream_failures_total{{kind=\"{kind}\"}}")), 1.0);
    }
    let log = world.server.stop_and_read_log();
    let line = line_of(&log, &not_a_signer);
    assert_eq!((&line["level"], &line["reason"]), (&"INFO".into(), &not_a_signer.error(403).into()));
    assert_eq!((&line["span"]["key"], &line["span"]["file"]), (&bob.key().into(), &index.into()));
    let line = line_of(&log, &taken);
    assert_eq!(line["span"]["project"], world.id("acme/app"));
    assert_eq!(line["span"]["key"], alice.key());
    // A read by someone who says who they are.
    let line = line_of(&log, &forbidden);
    assert_eq!((&line["level"], &line["span"]["key"]), (&"INFO".into(), &bob.key().into()));
    assert_eq!(line_of(&log, &too_old)["reason"], too_old.error(401));
    for reply in [&too_old, &tampered] {
        let line = line_of(&log, reply);
        assert_eq!(line["span"]["claimed_key"], alice.key());
        assert_eq!(line["span"]["key"], Value::Null, "it is not known");
    }
    assert_eq!(line_of(&log, &release)["span"]["file"], page);
    assert_eq!(line_of(&log, &signers)["span"]["file"], "https://github.com/acme/app");
    for reply in [&missing, &bad, &down] {
        let line = line_of(&log, reply);
        assert_eq!((&line["level"], &line["reason"]), (&"WARN".into(), &reply.error(500).into()));
        assert_eq!(line["span"]["key"], alice.key());
        let (reason, source) = (line["reason"].as_str().unwrap(), line["source"].as_str());
        assert!(source.is_none_or(|source| !reason.contains(source)), "{line}");
    }

    // Times have three digits that matter.
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let times: Vec<f64> = lines.filter_map(|line| line["ms"].as_f64()).collect();
    assert!(times.len() >= 40, "{log}");
    for time in times {
        let decimals = time.to_string().split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let most = [100.0, 10.0, 1.0].iter().filter(|bound| time < **bound).count();
        assert!(decimals <= most, "{time}");
    }
}

#[test]
fn a_server_that_cannot_start_says_so_in_json_where_the_log_is_json() {
    let dir = TempDir::new().unwrap();
    let config = dir.path().join("countersign.toml");
    std::fs::write(&config, "log_format = \"json\"\nlisten_at = \"127.0.0.1:0\"\n").unwrap();
    let config = config.to_str().unwrap();
    let data = dir.path().join("data");
    std::fs::write(&data, "a file").unwrap();
    let json_log = Launch::serve(&data).args(["--log-format", "json"]);
    for launch in [
        json_log.clone(),
        Launch::bare().args(["--config", config]),
        json_log.args(["--tls-cert", "none.pem", "--tls-key", "none.pem"]),
    ] {
        let said = launch.refusal();
        let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
        assert!(lines.iter().any(|line| line["level"] == "ERROR" && line["error"].is_string()), "{said}");
        // A mistake in the configuration keeps its line apart.
        if said.contains("unknown key `listen_at`") {
            assert_eq!(lines[0]["detail"], "2 | listen_at = \"127.0.0.1:0\"");
        }
    }
}
