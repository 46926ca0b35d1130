//! Prometheus metrics, on a listener of their own.

use crate::support::metrics::{Page, free_address};
use crate::support::witnesses::{LogSetup, TestWitness};
use crate::support::{
    Connection, Launch, Person, Request, SignersFile, TestServer, World, http, waiting::wait_until,
};

#[test]
fn what_happens_is_counted() {
    let alice = Person::named("alice");
    let world = World::start_with(|launch, _| launch.arg("--dev").with_metrics());
    let address = world.server.metrics_address();
    let before = Page::read(address);
    assert_eq!(before.value("countersign_commits_total"), 1.0, "the first commit");
    world.register(&alice, "acme/app", &SignersFile::of(1, &[&alice])).ok();
    world.files.set("/acme/two/svc.signers.json", crate::support::Answer::Status(500));
    world.register_url(&alice, &world.files.url("/acme/two/svc.signers.json")).error(500);
    let request = alice.sign(Request::get("/v1/pending_signatures"));
    world.server.send(&request).ok();
    world.server.send(&request).error(401);
    for _ in 0..3 {
        world.server.get(&format!("/v1/files/{}", world.pending_path("acme/app")));
        world.server.get("/v1/files/https/nowhere").error(404);
    }
    world.server.get("/no/such/route/of/ours").error(404);

    let page = Page::read(address);
    for (sample, value) in [
        ("countersign_build_info{version=\"0.1.0\"}", 1.0),
        ("countersign_ready", 1.0),
        ("countersign_commits_total", 2.0),
        ("countersign_batch_commits_bucket{le=\"1\"}", 2.0),
        ("countersign_batch_commits_bucket{le=\"+Inf\"}", 2.0),
        ("countersign_batch_commits_sum", 2.0),
        ("countersign_batch_commits_count", 2.0),
        ("countersign_writer_queue_length", 0.0),
        ("countersign_packs", 2.0),
        ("countersign_nonces_stored_total", 3.0),
        ("countersign_nonces_repeated_total", 1.0),
        ("countersign_nonces_kept", 3.0),
        ("countersign_fetches_total{kind=\"signers\",outcome=\"fetched\"}", 1.0),
        ("countersign_fetches_total{kind=\"signers\",outcome=\"failed\"}", 1.0),
        ("countersign_http_requests_total{route=\"files\",status=\"200\"}", 3.0),
        ("countersign_http_requests_total{route=\"files\",status=\"404\"}", 3.0),
        ("countersign_http_requests_total{route=\"register_repo\",status=\"500\"}", 1.0),
        ("countersign_http_requests_total{route=\"pending_signatures\",status=\"401\"}", 1.0),
        ("countersign_http_requests_total{route=\"other\",status=\"404\"}", 1.0),
        ("countersign_http_request_duration_seconds_count{route=\"files\"}", 6.0),
        ("countersign_http_request_duration_seconds_bucket{route=\"files\",le=\"+Inf\"}", 6.0),
        ("countersign_rate_limited_total{limit=\"address\"}", 0.0),
    ] {
        assert_eq!(page.value(sample), value, "{sample}");
    }
    assert!(page.value("countersign_connections_accepted_total") >= 10.0);
    assert!(page.value("countersign_http_request_duration_seconds_sum{route=\"files\"}") > 0.0);
    assert!(!page.0.contains("nowhere") && !page.0.contains("such"), "no paths: {}", page.0);

    // Every line is in the form that Prometheus reads.
    let mut families = Vec::new();
    for line in page.0.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, text) = help.split_once(' ').unwrap();
            assert!(!text.is_empty() && !families.contains(&name.to_owned()), "{line}");
            families.push(name.to_owned());
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!(Some(name), families.last().map(String::as_str));
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
        } else {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            value.parse::<f64>().unwrap();
            assert!(sample.starts_with(families.last().unwrap().as_str()), "{line}");
        }
    }
    assert!(families.len() > 15, "{families:?}");

    // Metrics are not for everyone.
    world.server.get("/metrics").error(404);
    http::send(address, &Request::get("/v1/ping")).error(404);
    http::send(address, &Request::new("POST", "/metrics")).error(405);

    // A refused head is counted when its connection has ended.
    let long = format!("GET / HTTP/1.1\r\nhost: localhost\r\nx-long: {}\r\n\r\n", "a".repeat(33_000));
    for (status, head) in [(400, "nonsense\r\n\r\n"), (431, &long)] {
        let mut connection = Connection::open(world.server.address());
        connection.write(head);
        connection.read_reply().error(status);
        drop(connection);
        let counted = format!("countersign_http_requests_total{{route=\"other\",status=\"{status}\"}} 1\n");
        wait_until(&format!("no {status} is counted"), || Page::read(address).0.contains(&counted));
    }
}

/// The rules and the dashboard in packaging, and the table for operators.
#[test]
fn alerts_and_the_dashboard_name_metrics_that_exist() {
    let server = TestServer::start_with(Launch::with_metrics);
    // A log and a witness have metrics of their own.
    let origin = free_address();
    let mut witness = TestWitness::prepare(origin, "one.example", &[]);
    let launch = witness.server.launch().clone().with_metrics();
    witness.server.change_launch(|_| launch);
    let with_log = LogSetup::at(origin).witnessed(&[&witness], &[]).start();
    witness.server.start_again();
    let servers = [&server, &with_log.server, &witness.server];
    let served = servers.map(|server| Page::read(server.metrics_address()).0).concat();
    for (file, text) in [
        ("rules", include_str!("../../../../../packaging/prometheus/countersign.rules.yml")),
        ("dashboard", include_str!("../../../../../packaging/grafana/countersign.json")),
        ("operations.md", include_str!("../../../../../docs/operations.md")),
    ] {
        let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
        let names = text.split(|c| !is_name(c)).filter(|word| word.starts_with("countersign_"));
        for name in names.map(|name| name.trim_end_matches("_bucket")) {
            assert!(
                served.contains(&format!("# TYPE {name} ")),
                "{name} of {file} is no metric of the server"
            );
        }
    }
}
