//! A revocation counts for everyone once witnesses have seen it.

use std::{process::Child, time::Duration};

use countersign_core::{log::record::LoggedState, proof::bundle::Staple, values::time::Timestamp};
use serde_json::{Value, json};

use crate::support::log_scene::{LogScene, THREE, log_key, policy, with_cosignatures, witness_key};
use crate::support::{client::Ran, client::text, hostile::Asked, people::now, waiting::wait_until};

fn revoke(scene: &LogScene, more: &[&str]) -> Child {
    let (index, key) = (scene.index("2.0"), scene.user.computer.key_of("alice"));
    let args = ["revoke", &index, "--reason", "key leaked", "--yes", "--key", text(&key)];
    scene.user.spawn(&[&args[..], more].concat())
}

fn end(child: Child) -> Ran {
    Ran::from(child.wait_with_output().expect("it ends"))
}

/// The server's own staple once it has the revocation.
fn revoked_staple(scene: &LogScene) -> Staple {
    for _ in 0..200 {
        let staple = scene.staple("2.0");
        if staple.statuses.release.state != LoggedState::Complete {
            return staple;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("no revocation in the log");
}

fn any_of_four(threshold: usize) -> Value {
    let keys: Vec<String> = (1..=4).map(|n| witness_key(n).to_string()).collect();
    json!({
        "log": log_key().to_string(),
        "witnesses": [{ "threshold": threshold, "keys": keys }],
        "max_age_seconds": 3_600,
    })
}

#[test]
fn revoke_waits_for_witnesses_and_says_until_when_the_old_state_can_be_shown() {
    let scene = LogScene::start(Some(policy()));
    let child = revoke(&scene, &[]);
    let staple = revoked_staple(&scene);
    // It has seen that there are no witnesses yet, and asks again.
    let is_change = |asked: &Asked| asked.method == "POST";
    let questions = || scene.hostile.asked().iter().rev().take_while(|asked| !is_change(asked)).count();
    // The first one sees that the release is revoked.
    wait_until("it asks again", || questions() >= 3);
    scene.show("2.0", &with_cosignatures(staple, THREE));
    let said = end(child).ok();
    let said = said.says(&["Revoked", "by 3 of 4 witnesses", "Waiting for witnesses"]);
    said.says(&["No one with a maximum age of 1 day accepts this release after "]);
    // The past may have been cosigned by a clock that was five minutes ahead, and the minute is not over at its
    // beginning.
    let begun = now();
    let shown = end(revoke(&scene, &[])).ok().stdout;
    let (_, shown) = shown.split_once("accepts this release after ").unwrap();
    let (date, minute) = shown.trim().trim_end_matches(" UTC.").split_once(' ').unwrap();
    let until = Timestamp::parse(&format!("{date}T{minute}:00Z")).unwrap();
    let lead = Duration::from_secs(5 * 60 + 24 * 60 * 60);
    assert!(until > begun.later(lead), "{shown}, and it was {begun}");
    // Again: nothing is left to do, and the same is said.
    let report = end(revoke(&scene, &["--json"])).ok().json();
    assert_eq!((&report["revoked"], &report["log"]["cosigned"]), (&json!(true), &json!(3)));
    assert!(report["log"]["accepted_until"].as_str().is_some_and(|time| time.ends_with('Z')), "{report}");
}

#[test]
fn witnesses_that_could_go_on_cosigning_the_past_are_waited_for() {
    // Two are enough, and the two that have not seen it are two.
    let scene = LogScene::start(Some(any_of_four(2)));
    let child = revoke(&scene, &["--timeout", "6s"]);
    let staple = revoked_staple(&scene);
    scene.show("2.0", &with_cosignatures(staple.clone(), &THREE[..2]));
    let ended = end(child);
    assert_eq!(ended.code, 6, "{ended:?}");
    let ended = ended.says(&["is revoked, but 6 seconds later", "the others are enough", "hint: "]);
    ended.says_nothing_of(&["No one with"]);
    scene.show("2.0", &with_cosignatures(staple, THREE));
    end(revoke(&scene, &[])).ok().says(&["is revoked already", "maximum age of 1 hour"]);
}

#[test]
fn without_witnesses_or_with_no_wait_it_says_what_is_missing() {
    let scene = LogScene::start(None);
    end(revoke(&scene, &[])).ok().says(&["Revoked", "names no log with witnesses"]);
    let scene = LogScene::start(Some(policy()));
    end(revoke(&scene, &["--no-wait"])).ok().says(&["Revoked", "Not waited for witnesses"]);
}
