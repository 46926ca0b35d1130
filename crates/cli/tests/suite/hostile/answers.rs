//! Answers that are too long, too slow, of the wrong kind or lead elsewhere: bounded, reported, and nothing is kept.

use std::thread;

use countersign_core::values::{bounds::STATE_BYTES, digest::Sha512};
use serde_json::json;

use crate::support::hostile::{HostileServer, Lie, Scene, Victim, assert_harmless};
use crate::support::{
    FileServer, alice, client::put_release, machine_clock::MachineClock, running::Running,
    waiting::wait_until,
};

/// Every target that a download asks the server for.
fn targets(scene: &Scene) -> Vec<String> {
    let index = scene.index("2.0");
    vec![format!("/v1/state/{index}")]
}

/// Each answer, in the place of each that belongs to a download, ends it with one of these exit codes. Many downloads try
/// again after a while, so those of different places go on at the same time.
fn assert_ends(scene: &Scene, lies: &[(&str, Lie)], codes: &[i32]) {
    let url = &scene.url("2.0");
    thread::scope(|scope| {
        for target in targets(scene) {
            let hostile = HostileServer::before(&scene.world.server);
            scope.spawn(move || {
                let newcomer = Victim::of(&hostile);
                for (label, lie) in lies {
                    hostile.be_honest();
                    hostile.answer(&target, lie.clone());
                    let ran = newcomer.run(&["download", "--force", url]);
                    assert!(codes.contains(&ran.code), "{label} for {target}: {ran:?}");
                    assert_harmless(&ran);
                    let code = ran.code;
                    ran.failed(code);
                    newcomer.assert_untouched();
                    assert!(newcomer.memory().is_empty(), "{label} for {target}");
                }
            });
        }
    });
}

#[test]
fn a_redirect_is_not_followed_wherever_it_stands() {
    let scene = Scene::start();
    let elsewhere = FileServer::start();
    let honest = format!("http://{}", scene.world.server.address());
    let lies: Vec<_> = [300, 301, 302, 303, 304, 307, 308]
        .into_iter()
        .map(|status| ("a redirect", Lie::redirect(status, &elsewhere.url("/x"))))
        .chain([("to the honest server", Lie::redirect(302, &honest))])
        .collect();
    assert_ends(&scene, &lies, &[1, 3]);
    assert_eq!(elsewhere.asked(), [""; 0]);
}

#[test]
fn a_state_that_was_not_asked_for_is_refused() {
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
}

#[test]
fn an_error_is_not_taken_for_absence() {
    // Only 404 says that there is nothing, and only where there may be nothing.
    let scene = Scene::start();
    let lies: Vec<_> = [400, 401, 403, 405, 409, 410, 418, 500, 501]
        .into_iter()
        .map(|status| ("an error", Lie::error(status, "no")))
        .collect();
    assert_ends(&scene, &lies, &[1, 3]);
    let lies: Vec<_> =
        [429, 502, 503, 504].into_iter().map(|status| ("busy", Lie::error(status, "no"))).collect();
    assert_ends(&scene, &lies, &[5]);
}

#[test]
fn an_answer_of_another_kind_is_refused() {
    let scene = Scene::start();
    let deep = "[".repeat(200_000);
    let wide = format!("{{\"entries\":{{{}\"x\":1}}}}", "\"x\":1,".repeat(100_000));
    assert_ends(
        &scene,
        &[
            ("nothing", Lie::bytes("")),
            ("a page", Lie::bytes("<!DOCTYPE html><html></html>").with_header("content-type", "text/html")),
            ("null", Lie::bytes("null")),
            ("a number", Lie::bytes("1e999999")),
            ("not UTF-8", Lie::bytes(b"{\"entries\": \"\xff\"}".as_slice())),
            ("deep", Lie::bytes(deep)),
            ("wide", Lie::bytes(wide)),
            ("no content", Lie::Answer { status: 204, headers: Vec::new(), body: Vec::new() }),
        ],
        &[3],
    );
}

#[test]
fn an_answer_without_end_is_cut_off() {
    let scene = Scene::start();
    assert_ends(
        &scene,
        &[("endless", Lie::Endless), ("large", Lie::bytes(vec![b' '; STATE_BYTES + 1]))],
        &[3],
    );
    assert_ends(&scene, &[("an endless head", Lie::EndlessHead)], &[1, 3, 5]);
    let error = Lie::error(500, &"x".repeat(1 << 20));
    assert_ends(&scene, &[("a long error", error)], &[1, 3]);
}

#[test]
fn an_answer_may_have_as_many_bytes_as_a_state_and_not_one_more() {
    let scene = Scene::start();
    let path = format!("/v1/state/{}", scene.index("2.0"));
    let state = scene.world.server.get(&path).body;
    let padded = |length: usize| Lie::bytes([&state[..], &b" ".repeat(length - state.len())].concat());
    scene.hostile.answer(&path, padded(STATE_BYTES + 1));
    scene.newcomer.refuses(&scene.url("2.0"), 3, &["answers with more than", &STATE_BYTES.to_string()]);
    scene.hostile.answer(&path, padded(STATE_BYTES));
    scene.newcomer.takes(&scene.url("2.0"), &Scene::content("2.0"));
}

#[test]
fn an_answer_that_breaks_off_is_not_used() {
    let scene = Scene::start();
    assert_ends(
        &scene,
        &[
            ("hung up", Lie::HungUp),
            ("broken off", Lie::BrokenOff(b"{}".to_vec())),
            ("broken off at once", Lie::BrokenOff(Vec::new())),
        ],
        &[5],
    );
    // Right to the last byte, but announced as longer.
    let index = scene.index("2.0");
    scene.hostile.be_honest();
    let path = format!("/v1/state/{index}");
    scene.hostile.answer(&path, Lie::BrokenOff(scene.world.server.get(&path).body));
    scene.refused(5, &["cannot be reached"]);
}

#[test]
fn an_answer_that_was_encoded_is_bounded_too() {
    let scene = Scene::start();
    let encoded = Lie::bytes("\u{1f}").with_header("content-encoding", "gzip");
    assert_ends(&scene, &[("encoded", encoded)], &[1, 3, 5]);
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
fn with_json_every_failure_is_one_object_that_names_the_kind() {
    let scene = Scene::start();
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
        (Lie::bytes("null"), &[3]),
        (Lie::Endless, &[3]),
        (Lie::HungUp, &[5]),
        (Lie::BrokenOff(b"{}".to_vec()), &[5]),
    ] {
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
                    let ran = regular.run_as("alice", &[command, &["--json"]].concat());
                    ran.json_error(code);
                });
            }
        });
    }
}
