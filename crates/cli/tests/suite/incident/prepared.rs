//! The prepared answer: the team that is left uses it as it was printed.

use std::{path::Path, process::Command};

use serde_json::json;

use super::scene::{ask, start_team};
use crate::support::signers::named_group;
use crate::support::{SignersFile, World, client::Computer, client::Ran, days_ago, person};

/// Runs a line as it was printed, in a shell, with someone's key. Questions are answered with yes.
#[track_caller]
fn paste(computer: &Computer, who: &str, line: &str) -> Ran {
    let program = Path::new(env!("CARGO_BIN_EXE_countersign")).parent().expect("a directory");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("sh");
    shell.env_clear().env("PATH", format!("{}:{path}", program.display()));
    computer.settle(&mut shell);
    shell.env("COUNTERSIGN_KEY", computer.key_of(who)).args(["-c", &format!("{line} --yes")]);
    Ran::of(&mut shell).ok()
}

/// The lines that are commands.
#[track_caller]
fn commands(computer: &Computer) -> Vec<String> {
    let written = String::from_utf8(computer.read("answer/commands.txt")).unwrap();
    written.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

#[test]
fn a_team_without_the_stolen_key_rotates_and_revokes_with_what_was_prepared() {
    let [alice, bob, carol] = ["alice", "bob", "carol"].map(person);
    let world = start_team();
    world.add_signed_release("acme/app/0.9", &[&alice, &bob]);
    let bad = world.add_signed_release("acme/app/1.0", &[&alice, &carol]);
    let worse = world.add_signed_release("acme/app/1.1", &[&carol, &bob]);
    // Who has carol's key began to revoke one of them.
    world.revoke_with(&carol, &worse, &world.revocation_of(&worse, "do not use"));
    let collecting = world.add_release(&carol, "acme/app/2.0");
    world.sign(&carol, &collecting).ok();
    let computer = Computer::of(&world.server);
    let report = computer.json(&[
        "incident",
        "--steal",
        &carol.key(),
        "-o",
        "answer",
        "--reason",
        "carol's laptop was stolen",
    ]);
    assert_eq!(report["prepared"], json!("answer"));

    let next = computer.read("answer/1-acme-app/svc.signers.json");
    computer
        .run(&["signers", "check", "answer/1-acme-app/svc.signers.json"])
        .ok()
        .says_nothing_of(&[&carol.key()]);
    world.files.put("/acme/app/svc.signers/next.json", next.clone());
    let lines = commands(&computer);
    let [update, sign, by_first, submit_first, by_second, submit_second] = lines.as_slice() else {
        panic!("{lines:?}")
    };
    paste(&computer, "alice", update);
    paste(&computer, "alice", sign);
    paste(&computer, "bob", sign).says(&["complete"]);
    assert_eq!(world.read(&world.active_path("acme/app")), next);
    for (who, signing, submitting) in [("alice", by_first, submit_first), ("bob", by_second, submit_second)] {
        paste(&computer, who, signing);
        paste(&computer, who, submitting);
    }
    for index in [&bad, &worse] {
        assert!(world.exists(&format!("{index}.revocation.json")), "{index} is revoked");
    }
    assert_eq!(
        world.read_json(&format!("{bad}.revocation.json"))["reason"],
        json!("carol's laptop was stolen")
    );
    assert_eq!(
        world.read_json(&format!("{worse}.revocation.json"))["reason"],
        json!("carol's laptop was stolen"),
        "what only her key began is not joined"
    );
    assert!(world.is_complete(&alice, &world.index_path("acme/app/0.9")), "what did not need carol stays");
    assert_eq!(world.sign(&carol, &collecting).status, 403);
    // What she registered still collects, and may be hers.
    let withdraw = format!("withdraw {collecting}");
    computer.run(&["incident", "--steal", &carol.key()]).ok().says(&[&withdraw]);
    computer.run_as("alice", &["withdraw", &collecting, "--reason", "not hers", "--yes"]).ok();
    computer
        .run(&["incident", "--steal", &carol.key()])
        .ok()
        .says(&["nothing to rotate and nothing to revoke"]);
}

/// The steps can come in any order, and any key can have begun a revocation before the plan was made.
#[test]
fn the_plan_works_in_every_order() {
    let [alice, bob, carol] = ["alice", "bob", "carol"].map(person);
    for (beginner, begun, is_reversed) in [(&carol, "1.1", false), (&bob, "1.0", true)] {
        let world = start_team();
        let indexes =
            ["1.0", "1.1"].map(|tag| world.add_signed_release(&format!("acme/app/{tag}"), &[&alice, &bob]));
        let first = world.index_path(&format!("acme/app/{begun}"));
        let begun_with = world.revocation_of(&first, "words of the thief");
        assert_eq!(world.revoke_with(beginner, &first, &begun_with).status, 202);
        let computer = Computer::of(&world.server);
        let prepare =
            ["incident", "--steal", &bob.key(), "-o", "answer", "--reason", "bob's laptop was stolen"];
        let shown = computer.run(&prepare).ok();
        let next = computer.read("answer/1-acme-app/svc.signers.json");
        world.files.put("/acme/app/svc.signers/next.json", next);
        let lines = commands(&computer);
        let [update, sign, revoking @ ..] = lines.as_slice() else { panic!("{lines:?}") };
        // In the order in which the plan names them, and in the other one.
        let mut turns: Vec<(&str, &[String])> =
            ["alice", "carol"].into_iter().zip(revoking.chunks(2)).collect();
        assert_eq!(turns.len(), 2, "{lines:?}");
        if is_reversed {
            turns.reverse();
        }
        paste(&computer, turns[0].0, update);
        for (who, _) in &turns {
            paste(&computer, who, sign);
        }
        for (who, lines) in &turns {
            lines.iter().for_each(|line| drop(paste(&computer, who, line)));
        }
        for index in &indexes {
            assert!(world.exists(&format!("{index}.revocation.json")), "{index}, begun {begun}");
        }
        computer
            .run(&["incident", "--steal", &bob.key()])
            .ok()
            .says(&["nothing to rotate and nothing to revoke"]);
        // What only the stolen key began says what the thief says. It is replaced, once the rotation has taken its key out.
        if beginner.key() == bob.key() {
            shown.says(&["Only named keys began to revoke 1 of them"]);
            let reason = &world.read_json(&format!("{first}.revocation.json"))["reason"];
            assert_eq!(*reason, json!("bob's laptop was stolen"));
        }
    }
}

#[test]
fn a_clone_without_a_network_prepares_the_same() {
    let [alice, carol] = ["alice", "carol"].map(person);
    let world = start_team();
    world.add_signed_release("acme/app/1.0", &[&alice, &carol]);
    let repository = world.server.repository();
    let offline = Computer::offline();
    let key = carol.key();
    let args = ["incident", "--steal", &key, "--repository", repository.to_str().unwrap(), "-o", "answer"];
    offline.run(&args).ok();
    // The same revocation is signed here and taken there.
    offline
        .run_as(
            "alice",
            &["revoke", "--detached", "answer/1-acme-app/revocations.json", "-o", "signed.json", "--yes"],
        )
        .ok();
    let online = Computer::of(&world.server);
    online.write("signed.json", offline.read("signed.json"));
    online.run_as("bob", &["revoke", "--submit", "signed.json"]).ok().says(&["Others join it with"]);
    // Nothing is overwritten.
    offline.run(&args).failed(2).says(&["not empty"]);
}

#[test]
fn a_group_that_would_be_too_small_is_a_decision_for_people() {
    let [alice, bob, mary] = ["alice", "bob", "mary"].map(person);
    let file = SignersFile::new()
        .with("artifact_signers", named_group(2, &["alice", "bob"]))
        .with("master_keys", named_group(1, &["mary"]));
    let world = World::with_project(&file, &[&alice, &bob, &mary]);
    let computer = Computer::of(&world.server);
    let shown = computer.run(&["incident", "--steal", &bob.key(), "-o", "answer"]).ok();
    shown.says(&[
        "Decide: artifact signers need 2 signatures, and without these keys 1 would be left",
        "--threshold artifact:1",
    ]);
    assert!(!computer.path("answer/1-acme-app/svc.signers.json").exists());
    let written = String::from_utf8(computer.read("answer/commands.txt")).unwrap();
    // As printed, with what the people decided: a new key for bob. The admins are too few, so the master agrees.
    let line = written.lines().find(|line| line.contains("--replace")).unwrap().trim_start_matches("# ");
    let new = computer.key_of("bob-new").with_extension("pub");
    paste(&computer, "alice", &line.replace("NEW.pub", new.to_str().unwrap()));
    let next = computer.read("answer/1-acme-app/svc.signers.json");
    world.files.put("/acme/app/svc.signers/next.json", next);
    let lines = commands(&computer);
    paste(&computer, "mary", &lines[0]);
    paste(&computer, "mary", &lines[1]);
    paste(&computer, "bob-new", &lines[1]).says(&["complete"]);
    let told = ask(&computer, &[&bob.key()]);
    assert_eq!(told["listed"][0]["standing"], json!("removed"));
}

#[test]
fn if_no_one_else_can_rotate_it_says_so() {
    let [alice, bob] = ["alice", "bob"].map(person);
    let world = World::with_project(&SignersFile::of(2, &[&alice, &bob]), &[&alice, &bob]);
    let computer = Computer::of(&world.server);
    computer
        .run(&["incident", "--steal", &bob.key()])
        .ok()
        .says(&["cannot rotate without a named key", "be first"]);
}

/// What the keys signed and still waits is stopped with the commands that were printed, by those who may.
#[test]
fn what_waits_is_vetoed_and_withdrawn_by_those_who_are_left() {
    let [alice, bob, carol, mary] = ["alice", "bob", "carol", "mary"].map(person);
    let file = |date| {
        SignersFile::dated(date)
            .with("artifact_signers", named_group(2, &["alice", "bob", "carol"]))
            .with("master_keys", named_group(1, &["mary"]))
            .with("rotation_delay_hours", json!(72))
    };
    let world = World::with_project(&file(days_ago(5)), &[&alice, &bob, &carol, &mary]);
    let index = world.add_release(&alice, "acme/app/1.0");
    world.sign(&alice, &index).ok();
    // The thief's own signers, to whom two stolen keys agree.
    let theirs = SignersFile::dated(days_ago(1)).with("artifact_signers", named_group(1, &["alice"]));
    world.propose(&alice, "acme/app", &theirs).ok();
    for person in [&alice, &bob] {
        world.sign(person, &world.pending_path("acme/app")).ok();
    }
    assert_eq!(world.read(&world.active_path("acme/app")), file(days_ago(5)).bytes(), "it waits");
    let computer = Computer::of(&world.server);
    let stolen = [alice.key(), bob.key()];
    let shown = computer.run(&["incident", "--steal", &stolen[0], &stolen[1], "-o", "answer"]).ok();
    shown.says(&["enough of these have to veto it: mary", "wait 72 hours", "an admin can withdraw"]);
    let written = String::from_utf8(computer.read("answer/commands.txt")).unwrap();
    let line = |word: &str| {
        let mut lines = written.lines().filter(|line| line.contains(word) && line.contains(" --reason "));
        lines.next().unwrap_or_else(|| panic!("{word}: {written}")).trim_start_matches("# ").to_owned()
    };
    paste(&computer, "mary", &line(" veto "));
    assert!(!world.exists(&world.pending_path("acme/app")), "it is vetoed");
    paste(&computer, "carol", &line(" withdraw "));
    assert!(!world.exists(&index), "it is withdrawn");
}
