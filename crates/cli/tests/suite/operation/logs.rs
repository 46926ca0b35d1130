//! The log (D48): short lines, bounded rates, and never in the way of an answer.

use std::{process::Stdio, time::Duration, time::Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::metrics::{Page, free_address};
use crate::support::{
    Connection, Launch, Request, SignersFile, TestServer, World, alice, http, server::LogEnd,
};

const TIMEOUT: Duration = Duration::from_secs(30);

/// Sends so many requests that are refused, each with a path of so many letters, and awaits every answer.
fn flood(server: &TestServer, requests: usize, letters: usize) {
    let mut connection = Connection::open(server.address());
    let head =
        format!("POST /v1/{} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n", "x".repeat(letters));
    for _ in 0..requests {
        connection.write(&head);
        connection.read_reply().error(404);
    }
}

#[test]
fn a_long_path_makes_a_short_line_and_a_line_of_json_is_json() {
    for format in ["text", "json"] {
        let mut server = TestServer::start_with(|launch| launch.args(["--dev", "--log-format", format]));
        flood(&server, 1, 20_000);
        flood(&server, 1, 10);
        server.send(&Request::new("POST", "/v1/%22%5c%e2%80%ae").with_body("{}")).error(404);
        let log = server.stop_and_read_log();
        let line = log.lines().find(|line| line.contains("xxx")).unwrap_or_else(|| panic!("{log}"));
        assert!(line.len() < 1_000 && line.contains("x…") && line.contains("404"), "{line}");
        if format == "json" {
            let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
            let answered: Vec<_> = lines.filter(|line| line["message"] == "answered").collect();
            assert_eq!(answered.len(), 3, "{log}");
            assert_eq!(answered[1]["span"]["path"], "/v1/xxxxxxxxxx");
            assert_eq!((&answered[1]["status"], &answered[1]["level"]), (&404.into(), &"INFO".into()));
        }
    }
}

#[test]
fn a_flood_of_refusals_is_cut_short_and_counted_and_hides_nothing_else() {
    let mut world = World::start_with(|launch, _| launch.arg("--dev").with_metrics());
    let address = world.server.metrics_address();
    flood(&world.server, 3_000, 1_000);
    world.register(&alice(), "acme/app", &SignersFile::of(1, &[&alice()])).ok();
    world.files.set("/acme/two/svc.signers.json", crate::support::Answer::Status(500));
    let failed = world.register_url(&alice(), &world.files.url("/acme/two/svc.signers.json"));
    failed.error(500);
    let left_out = Page::read(address).value("countersign_log_lines_lost_total{reason=\"rate\"}");
    assert!((1.0..3_000.0).contains(&left_out), "{left_out}");

    let log = world.server.stop_and_read_log();
    assert!(log.len() < 1_000_000, "{} bytes", log.len());
    // A line for every ten seconds in which lines were left out.
    let told: f64 = log
        .lines()
        .filter(|line| line.contains("like=answered status=4xx"))
        .map(|line| {
            line.split_once("left out ").unwrap().1.split_once(" lines like this in the last ").unwrap().0
        })
        .map(|lines| lines.parse::<f64>().unwrap())
        .sum();
    assert_eq!(told, left_out, "{log}");
    assert!(log.lines().any(|line| line.contains("path=/v1/register_repo") && line.contains("status=200")));
    let id = failed.header("x-request-id").unwrap();
    assert!(log.lines().any(|line| line.contains(id) && line.contains("WARN")));
}

#[track_caller]
fn await_failing_log(world: &World) {
    let begin = Instant::now();
    loop {
        let ready = world.server.get("/readyz").ok();
        if ready == json!({ "status": "ready", "log": "failing" }) {
            return;
        }
        assert_eq!(ready, json!({ "status": "ready" }));
        assert!(begin.elapsed() < TIMEOUT, "nothing is said about the log");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_log_without_room_loses_lines_and_no_answers() {
    for format in ["text", "json"] {
        let address = free_address();
        let mut world = World::start_with(|launch, _| {
            let launch = launch.args(["--dev", "--log-format", format]);
            launch.args(["--metrics-listen", &address.to_string()]).with_log(LogEnd::File("/dev/full".into()))
        });
        world.activate("acme/app", &SignersFile::of(1, &[&alice()]), &[&alice()]);
        world.add_signed_release("acme/app/v1", &[&alice()]);
        await_failing_log(&world);
        let page = Page::read(address);
        assert_eq!(page.value("countersign_log_failing"), 1.0);
        assert_eq!(page.value("countersign_log_lines_total"), 0.0);
        assert!(page.value("countersign_log_lines_lost_total{reason=\"write\"}") >= 4.0);
        assert_eq!(page.value("countersign_ready"), 1.0);
        assert_eq!(world.server.stop().code(), Some(0));
    }
}

#[test]
fn a_log_that_is_not_read_keeps_no_answer_waiting() {
    let mut world = World::start_with(|launch, _| launch.arg("--dev").with_log(LogEnd::Unread));
    // More than a pipe holds.
    flood(&world.server, 1_000, 1_000);
    world.activate("acme/app", &SignersFile::of(1, &[&alice()]), &[&alice()]);
    await_failing_log(&world);
    world.add_signed_release("acme/app/v1", &[&alice()]);
    let begin = Instant::now();
    assert_eq!(world.server.stop().code(), Some(0));
    assert!(begin.elapsed() < TIMEOUT, "the end waits for the log");

    // Nor does one that is closed.
    let mut world = World::start_with(|launch, _| launch.arg("--dev").with_log(LogEnd::Closed));
    world.activate("acme/app", &SignersFile::of(1, &[&alice()]), &[&alice()]);
    assert_eq!(world.server.get("/readyz").status, 200);
    assert_eq!(world.server.stop().code(), Some(0));
}

#[test]
fn a_ready_line_that_cannot_be_printed_is_logged() {
    let (dir, address) = (TempDir::new().unwrap(), free_address());
    let launch = Launch::serve(&dir.path().join("data")).arg("--dev").at(address);
    let full = || Stdio::from(std::fs::File::options().write(true).open("/dev/full").unwrap());
    for has_log in [true, false] {
        let mut command = launch.command();
        let mut child =
            command.stdout(full()).stderr(if has_log { Stdio::piped() } else { full() }).spawn().unwrap();
        let begin = Instant::now();
        while std::net::TcpStream::connect(address).is_err() {
            assert!(begin.elapsed() < TIMEOUT, "it does not serve");
            assert!(child.try_wait().unwrap().is_none(), "it ended");
            std::thread::sleep(Duration::from_millis(20));
        }
        http::send(address, &Request::get("/v1/ping")).ok();
        let id = child.id().to_string();
        assert!(std::process::Command::new("kill").args(["-s", "TERM", &id]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        let log = String::from_utf8(output.stderr).unwrap();
        assert!(!has_log || log.contains("the ready line could not be printed"), "{log}");
    }
}
