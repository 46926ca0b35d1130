//! How old a proof can be under a policy of one's own (D216), and what a policy says of witnesses (D215).

use serde_json::{Value, json};

use crate::support::client::Ran;
use crate::support::log_scene::{LogScene, THREE, content, policy, policy_file, with_cosignatures};

const DAY: i64 = 86_400;

/// A scene in which three witnesses have cosigned so many seconds ago, with a policy file and a bundle of then.
fn aged(seconds: i64, transparency: Option<Value>) -> LogScene {
    let scene = LogScene::start(transparency);
    let computer = &scene.user.computer;
    computer.write("p.policy", policy_file(3));
    computer.write("app.tar.gz", content("2.0"));
    scene.show_cosigned("2.0");
    scene.user.run(&["bundle", &scene.url("2.0"), "-o", "b.json", "--policy", "p.policy"]).ok();
    let old = with_cosignatures(scene.staple("2.0"), &[(1, seconds), (2, seconds), (3, seconds)]);
    scene.show("2.0", &old);
    computer.write("old.staple.json", old.write());
    scene
}

/// Every command that takes a policy, online and offline, must end with this code.
fn all(scene: &LogScene, code: i32, more: &[&str], words: &[&str]) {
    let url = scene.url("2.0");
    let commands: [&[&str]; 6] = [
        &["download", &url, "-o", "got.tar.gz", "--force"],
        &["verify", "app.tar.gz", "--url", &url],
        &["bundle", &url, "-o", "other.json"],
        &["staple", &url, "-o", "s.json"],
        &["staple", "b.json", "-o", "s2.json"],
        &["verify", "app.tar.gz", "--bundle", "b.json", "--staple", "old.staple.json"],
    ];
    for command in commands {
        let ran: Ran = scene.user.run(&[command, more].concat());
        assert_eq!(ran.code, code, "{command:?} {more:?}: {ran:?}");
        ran.says(words);
    }
}

#[test]
fn a_policy_of_ones_own_accepts_a_day_in_every_command() {
    let scene = aged(400 * DAY, None);
    let old = &["400 days old", "a policy of your own that says nothing else allows 1 day"];
    all(&scene, 3, &["--policy", "p.policy"], old);
    all(&scene, 0, &["--policy", "p.policy", "--max-age", "500d"], &[]);
    // The policy itself, and what is set, say otherwise.
    let computer = &scene.user.computer;
    computer.write("lax.policy", policy_file(3) + "#countersign max-age 500d\n");
    all(&scene, 0, &["--policy", "lax.policy"], &[]);
    all(&scene, 3, &["--policy", "lax.policy", "--max-age", "399d"], &["--max-age allows 399 days"]);
    scene.user.run(&["config", "set", "max-age", "450d"]).ok().says(&["max-age", "450d"]);
    scene.user.run(&["config"]).ok().says(&["max-age", "450d"]);
    let download = ["download", &scene.url("2.0"), "-o", "got.tar.gz", "--force", "--policy", "p.policy"];
    scene.user.run(&download).ok();
    scene.user.run(&["config", "set", "max-age", "399d"]).ok();
    scene.user.run(&download).failed(3).says(&["`max-age` in your configuration allows 399 days"]);
    scene.user.run(&["config", "unset", "max-age"]).ok();
    scene.user.run(&["config", "set", "max-age", "soon"]).failed(2).says(&["30m, 2h or 1d"]);
    // One that is set is one's own as well.
    scene.user.run(&["config", "set", "policy", "p.policy"]).ok();
    all(&scene, 3, &[], old);
    computer.write("app.tar.gz", content("2.0"));
}

#[test]
fn a_day_is_enough_and_less_if_the_project_demands_it() {
    let scene = aged(DAY - 600, None);
    all(&scene, 0, &["--policy", "p.policy"], &[]);
    let mut demand = policy();
    demand["max_age_seconds"] = json!(3_600);
    let scene = aged(2 * 3_600, Some(demand));
    all(&scene, 3, &["--policy", "p.policy"], &["the project's signers file allows 1 hour"]);
}

/// Offline, a signers file's age is told. What is older is not called fresh, or proven.
#[test]
fn without_a_policy_of_ones_own_an_old_proof_of_a_bundle_is_told_and_proves_nothing_now() {
    let scene = aged(400 * DAY, Some(policy()));
    let verify = &["verify", "app.tar.gz", "--bundle", "b.json", "--staple", "old.staple.json"];
    scene
        .user
        .run(verify)
        .ok()
        .says(&["by 3 of 4 witnesses; OLDER than the project's signers file allows, 1 day"]);
    let report = scene.user.computer.json(verify);
    assert_eq!(
        (&report["freshness_proven"], &report["freshness"]["word"]),
        (&json!(false), &json!("witnesses"))
    );
    // A setting makes it shorter, and never longer.
    scene.user.run(&["config", "set", "max-age", "500d"]).ok();
    scene
        .user
        .run(&["download", &scene.url("2.0"), "-o", "x"])
        .failed(3)
        .says(&["signers file allows 1 day"]);
    scene.show("2.0", &scene.cosigned("2.0", &[(1, 7_200), (2, 7_200), (3, 7_200)]));
    scene.user.run(&["config", "set", "max-age", "1h"]).ok();
    scene
        .user
        .run(&["download", &scene.url("2.0"), "-o", "x"])
        .failed(3)
        .says(&["`max-age` in your configuration allows 1 hour"]);
}

#[test]
fn a_report_says_how_many_witnesses_replay_the_rules() {
    let mut demand = policy();
    for n in [0, 2, 3] {
        let key = demand["witnesses"][0]["keys"][n].clone();
        demand["witnesses"][0]["keys"][n] = json!({ "key": key, "replaying": true });
    }
    let scene = LogScene::start(Some(demand));
    scene.show("2.0", &scene.cosigned("2.0", THREE));
    let url = scene.url("2.0");
    scene
        .user
        .run(&["download", &url, "-o", "a"])
        .ok()
        .says(&["by 3 of 4 witnesses, 2 of which replay the rules;"]);
    scene.user.computer.write("app.tar.gz", content("2.0"));
    let ran = scene.user.run(&["--json", "verify", "app.tar.gz", "--url", &url]).ok();
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["freshness"]["replaying"], 2);
    // A policy of one's own has its own word.
    for (line, said) in [
        ("#countersign replaying w1\n", "by 3 of 4 witnesses, 1 of which replays the rules;"),
        ("#countersign replaying w4\n", "by 3 of 4 witnesses, none of which replays the rules;"),
    ] {
        scene.user.computer.write("p.policy", policy_file(3) + line);
        scene.user.run(&["verify", "app.tar.gz", "--url", &url, "--policy", "p.policy"]).ok().says(&[said]);
    }
    scene.user.computer.write("p.policy", policy_file(3) + "#countersign replays w1\n");
    scene
        .user
        .run(&["verify", "app.tar.gz", "--url", &url, "--policy", "p.policy"])
        .failed(2)
        .says(&["not a policy"]);
}
