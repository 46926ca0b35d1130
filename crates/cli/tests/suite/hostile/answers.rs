//! Answers that are too long, too slow, of the wrong kind or lead elsewhere: bounded, reported, and nothing is kept.

use std::thread;

use countersign_core::values::{bounds::STATE_BYTES, digest::Sha512};
use serde_json::json;

use crate::support::hostile::{HostileServer, Lie, Scene, Victim, assert_harmless};
use crate::support::{
    FileServer, alice, client::put_release, machine_clock::MachineClock, running::Running,
    waiting::wait_until,
};

/// Each answer, in the place of the state that a download asks for, ends it with one of these exit codes. Many
/// downloads try again after a while, so all go on at the same time.
fn assert_ends(scene: &Scene, lies: &[(&str, Lie)], codes: &[i32]) {
    let (url, target) = (&scene.url("2.0"), &format!("/v1/state/{}", scene.index("2.0")));
    thread::scope(|scope| {
        for (label, lie) in lies {
            scope.spawn(move || {
                let hostile = HostileServer::before(&scene.world.server);
                hostile.answer(target, lie.clone());
                let newcomer = Victim::of(&hostile);
                let ran = newcomer.run(&["download", "--force", url]);
                assert!(codes.contains(&ran.code), "{label}: {ran:?}");
                assert_harmless(&ran);
                let code = ran.code;
                ran.failed(code);
                newcomer.assert_untouched();
                assert!(newcomer.memory().is_empty(), "{label}");
            });
        }
    });
}

#[test]
fn whatever_is_answered_in_the_place_of_a_state_is_bounded_and_nothing_is_kept() {
    let scene = Scene::start();
    let elsewhere = FileServer::start();
    let redirects = [301, 304, 307];
    let redirects = redirects.map(|status| ("a redirect", Lie::redirect(status, &elsewhere.url("/x"))));
    assert_ends(&scene, &redirects, &[1, 3]);
    let honest = format!("http://{}", scene.world.server.address());
    assert_ends(&scene, &[("to the honest server", Lie::redirect(302, &honest))], &[1, 3]);
    assert_eq!(elsewhere.asked(), [""; 0]);

    // Only 404 says that there is nothing, and only where there may be nothing.
    let errors = [400, 410, 500];
    assert_ends(&scene, &errors.map(|status| ("an error", Lie::error(status, "no"))), &[1, 3]);
    assert_ends(&scene, &[429, 502, 503, 504].map(|status| ("busy", Lie::error(status, "no"))), &[5]);
    assert_ends(&scene, &[("a long error", Lie::error(500, &"x".repeat(1 << 20)))], &[1, 3]);

    let wide = format!("{{\"entries\":{{{}\"x\":1}}}}", "\"x\":1,".repeat(100_000));
    let kinds = [
        ("nothing", Lie::bytes("")),
        ("a page", Lie::bytes("<!DOCTYPE html><html></html>").with_header("content-type", "text/html")),
        ("null", Lie::bytes("null")),
        ("a number", Lie::bytes("1e999999")),
        ("not UTF-8", Lie::bytes(b"{\"entries\": \"\xff\"}".as_slice())),
        ("deep", Lie::bytes("[".repeat(200_000))),
        ("wide", Lie::bytes(wide)),
        ("no content", Lie::Answer { status: 204, headers: Vec::new(), body: Vec::new() }),
        ("endless", Lie::Endless),
    ];
    assert_ends(&scene, &kinds, &[3]);
    let encoded = Lie::bytes("\u{1f}").with_header("content-encoding", "gzip");
    assert_ends(&scene, &[("encoded", encoded), ("an endless head", Lie::EndlessHead)], &[1, 3, 5]);

    let path = format!("/v1/state/{}", scene.index("2.0"));
    let breaks = [
        ("hung up", Lie::HungUp),
        ("broken off", Lie::BrokenOff(b"{}".to_vec())),
        ("broken off at once", Lie::BrokenOff(Vec::new())),
        // Right to the last byte, but announced as longer.
        ("announced as longer", Lie::BrokenOff(scene.world.server.get(&path).body)),
    ];
    assert_ends(&scene, &breaks, &[5]);
}

#[test]
fn a_state_that_was_not_asked_for_or_is_too_long_is_refused_and_programs_are_told_why() {
    let scene = Scene::start();
    let [first, second] = ["1.0", "2.0"].map(|version| format!("/v1/state/{}", scene.index(version)));
    let mut later = scene.world.server.get(&second).json();
    later["history_after"] = json!(Sha512::of(b"another file").to_prefixed());
    let lies = [
        (Lie::bytes(scene.world.server.get(&first).body), "it is about something else"),
        (Lie::json(&later), "it was not asked for"),
    ];
    for (lie, words) in lies {
        scene.hostile.answer(&second, lie);
        scene.newcomer.refuses(&scene.url("2.0"), 3, &[words]);
    }

    // It may have so many bytes, and not one more.
    let path = format!("/v1/state/{}", scene.index("2.0"));
    let state = scene.world.server.get(&path).body;
    let padded = |length: usize| Lie::bytes([&state[..], &b" ".repeat(length - state.len())].concat());
    scene.hostile.answer(&path, padded(STATE_BYTES + 1));
    scene.newcomer.refuses(&scene.url("2.0"), 3, &["answers with more than", &STATE_BYTES.to_string()]);
    scene.hostile.answer(&path, padded(STATE_BYTES));
    Victim::of(&scene.hostile).takes(&scene.url("2.0"), &Scene::content("2.0"));

    // With --json every failure is one object that names its kind.
    let index = scene.index("2.0");
    let evil = "\u{1b}[2J\n\u{9b}1m\u{202e}{\"verified\":true}\u{2028}";
    for (lie, code, kind) in [
        (Lie::error(500, evil), 1, "other"),
        (Lie::error(503, evil), 5, "unreachable"),
        (Lie::redirect(302, "http://127.0.0.1:9/x"), 1, "other"),
        (Lie::bytes(evil), 3, "verification"),
        (Lie::Endless, 3, "verification"),
        (Lie::HungUp, 5, "unreachable"),
    ] {
        scene.hostile.answer(&format!("/v1/state/{index}"), lie);
        let ran = scene.newcomer.run(&["download", "--force", &scene.url("2.0"), "--json"]);
        let error = ran.json_error(code);
        assert_eq!(error["kind"], json!(kind));
        assert_harmless(&ran);
        scene.newcomer.assert_untouched();
    }
    scene.hostile.be_honest();
    scene.world.revoke(&alice(), &index).ok();
    let ran = scene.newcomer.run(&["download", "--force", &scene.url("2.0"), "--json"]);
    assert_eq!(ran.json_error(4)["kind"], json!("revoked"));
}

#[test]
fn an_answer_that_drips_is_given_up() {
    let server = HostileServer::alone();
    server.lie(|_| Some(Lie::Dripping));
    let Some(clock) = MachineClock::new() else { return };
    let victim = Victim::of(&server);
    let mut command = victim.command(&["ping"]);
    clock.lend_long_to(&mut command);
    let running = Running::start(command);
    wait_until("it is not asked", || !server.asked().is_empty());
    clock.set(60);
    let (code, stdout, stderr) = running.end();
    assert_eq!(code, Some(5), "{stdout}{stderr}");
    assert!(stderr.contains(&server.url()), "{stderr}");
}

#[test]
fn every_signed_command_bears_every_answer() {
    let scene = Scene::start();
    let sums = put_release(&scene.world.files, "acme/app/3.0", &[("app.tar.gz", b"three")]);
    let (index, signers) = (scene.index("2.0"), scene.signers_url());
    let regular = &scene.regular;
    regular.computer.key_of("alice");
    let commands: [&[&str]; 8] = [
        &["ping"],
        &["pending"],
        &["register", &signers],
        &["update", &signers],
        &["release", "--checksums", &sums],
        &["sign", "--all", "--yes"],
        &["revoke", &index, "--reason", "x", "--yes"],
        &["status", &index],
    ];
    for (lie, codes) in [
        (Lie::redirect(307, "http://127.0.0.1:9/x"), &[1][..]),
        (Lie::error(500, "\u{1b}[2J\u{202e}"), &[1]),
        (Lie::bytes("{}"), &[3]),
        (Lie::Endless, &[3]),
        (Lie::HungUp, &[5]),
    ] {
        let is_error = matches!(&lie, Lie::Answer { status: 500, .. });
        scene.hostile.be_honest();
        scene.hostile.lie(move |_| Some(lie.clone()));
        thread::scope(|scope| {
            for command in commands {
                scope.spawn(move || {
                    let ran = regular.run_as("alice", command);
                    assert!(codes.contains(&ran.code), "{command:?}: {ran:?}");
                    assert_harmless(&ran);
                    let code = ran.code;
                    ran.failed(code);
                    // As JSON it has the same form, whatever went wrong.
                    if is_error {
                        let ran = regular.run_as("alice", &[command, &["--json"]].concat());
                        ran.json_error(code);
                    }
                });
            }
        });
    }
}
