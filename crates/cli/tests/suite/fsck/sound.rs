//! `countersign fsck` on histories without tampering.

use std::path::PathBuf;

use countersign_core::rules::snapshot::TITLES;
use tempfile::TempDir;

use super::damage::unpack;
use crate::support::{
    Git, Launch, Person, SignersFile, World, days_ago, fsck::fsck, past::past, rewriting::import,
};

/// A clone of the past, made in this way.
fn clone(dir: &TempDir, args: &[&str]) -> PathBuf {
    let to = dir.path().join("clone");
    past().git().run(&[&["clone", "--quiet"], args, &[".", to.to_str().unwrap()]].concat());
    to
}

#[test]
fn everything_that_a_server_does_is_legal() {
    let past = past();
    let dir = TempDir::new().unwrap();
    let checked = fsck(&clone(&dir, &["--mirror"]), &[]);
    checked.is_clean();
    assert_eq!(checked.json["commits"], past.commits.len());
    for title in TITLES {
        let begins = format!("{title} http");
        let is_there = past.subjects().iter().any(|subject| subject.starts_with(&begins));
        assert!(is_there, "the past has nothing that begins with {title}: {:#?}", past.subjects());
    }
}

#[test]
fn clones_of_every_kind_are_read() {
    let head = past().git().run(&["rev-parse", "main"]);
    for args in [
        &[][..],
        &["--bare"],
        &["--mirror"],
        &["--shared"],
        &["--no-hardlinks"],
        &["--no-local", "--no-checkout"],
    ] {
        let dir = TempDir::new().unwrap();
        let clone = clone(&dir, args);
        assert_eq!(fsck(&clone, &[]).is_clean(), head, "git clone {args:?}");
    }
}

#[test]
fn packs_and_loose_objects_of_other_programs_are_read() {
    let dir = TempDir::new().unwrap();
    let to = clone(&dir, &["--mirror"]);
    let git = Git::at(&to);
    git.run(&["repack", "--quiet", "-a", "-d", "-f", "--depth=50", "--window=50"]);
    git.run(&["pack-refs", "--all"]);
    fsck(&to, &[]).is_clean();
    unpack(&to, &git);
    fsck(&to, &[]).is_clean();
}

#[test]
fn a_check_goes_on_from_any_commit_that_was_checked_before() {
    let dir = TempDir::new().unwrap();
    let clone = clone(&dir, &["--bare"]);
    let listed = past().git().run(&["rev-list", "--reverse", "main"]);
    let ids: Vec<&str> = listed.lines().collect();
    for (position, id) in ids.iter().enumerate().step_by(20).chain([(ids.len() - 1, ids.last().unwrap())]) {
        let checked = fsck(&clone, &["--since", id]);
        assert_eq!(checked.is_clean(), *ids.last().unwrap());
        assert_eq!(checked.json["commits"], ids.len() - 1 - position);
    }

    let head = fsck(&clone, &[]).is_clean();
    Git::at(&clone).run(&["update-ref", "refs/heads/main", "main~3"]);
    fsck(&clone, &[]).is_clean();
    let checked = fsck(&clone, &["--since", &head]);
    assert_eq!(checked.code, Some(3), "{}", checked.json);
    assert!(checked.json["error"].as_str().unwrap().contains(&head), "{}", checked.json);
    for wrong in ["main", &head[..8], ""] {
        let usage = fsck(&clone, &["--since", wrong]);
        assert_eq!(usage.code, Some(2), "{}", usage.json);
        assert!(usage.json["error"].as_str().unwrap().contains("40"), "{}", usage.json);
    }
}

/// The limit of any check that has only the repository: an attacker who can rewrite all of it can leave out what
/// nothing that came later depends on.
#[test]
fn a_revocation_that_was_left_out_of_the_history_is_missed_by_those_who_checked_it_before() {
    let past = past();
    let checked_before = past.git().run(&["rev-parse", "main"]);
    let mut commits = past.commits.clone();
    commits.remove(past.find("Revoke", "acme/app/v1/svc.index.json"));
    let dir = TempDir::new().unwrap();
    import(dir.path(), &commits);
    fsck(dir.path(), &[]).is_clean();
    assert_eq!(fsck(dir.path(), &["--since", &checked_before]).code, Some(3));
}

#[test]
fn it_runs_beside_a_server_at_work_and_changes_nothing() {
    let alice = Person::named("alice");
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let data_dir = world.server.data_dir();
    let mut since = fsck(&data_dir, &[]).is_clean();
    for number in 0..12 {
        world.add_signed_release(&format!("acme/app/v{number}"), &[&alice]);
        if number % 6 == 0 {
            since = fsck(&data_dir, &["--since", &since]).is_clean();
        }
    }
    assert_eq!(fsck(&data_dir, &[]).is_clean(), world.git().run(&["rev-parse", "main"]));
    world.rotate("acme/app", &SignersFile::dated(days_ago(1)).artifact(1, &[&alice]), &[&alice]);
    let files = || walk(&world.server.repository());
    let before = files();
    fsck(&world.server.repository(), &[]).is_clean();
    assert_eq!(files(), before);
}

/// Every file below a directory, but the packs, which a running server folds.
fn walk(dir: &std::path::Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() && !entry.ends_with("pack") {
            files.extend(walk(&entry));
        } else {
            files.push(entry);
        }
    }
    files.sort();
    files
}

#[test]
fn the_last_line_is_the_commit_to_go_on_from() {
    let dir = TempDir::new().unwrap();
    let clone = clone(&dir, &["--bare"]);
    Git::at(&clone).run(&["update-ref", "refs/heads/other", "main~1"]);
    let output = Launch::default().args(["fsck", clone.to_str().unwrap()]).output();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().last().unwrap(), past().git().run(&["rev-parse", "main"]));
    let notes = String::from_utf8(output.stderr).unwrap();
    assert!(notes.contains("refs/heads/other"), "{notes}");

    let empty = Git::init_bare(&dir.path().join("empty.git"));
    empty.run(&["rev-parse", "--git-dir"]);
    for name in ["none", "", "empty.git"] {
        let checked = fsck(&dir.path().join(name), &[]);
        assert_eq!(checked.code, Some(1), "{name}: {}", checked.json);
        assert!(!checked.json["hint"].as_str().unwrap().is_empty());
    }
}
