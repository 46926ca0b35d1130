//! `countersign fsck`: which repository is checked, whatever else lies there.

use std::{fs, os::unix::fs::symlink, path::Path, path::PathBuf};

use tempfile::TempDir;

use crate::support::{Git, Launch, fsck::Checked, fsck::fsck, past::past, rewriting::import};

/// A repository with a commit that no server made, and that commit.
fn tampered(dir: &Path) -> String {
    import(dir, &past().commits);
    let git = Git::at(dir);
    git.commit_file("README.md", b"tampered");
    git.run(&["rev-parse", "main"])
}

fn honest(dir: &Path) {
    past().git().run(&["clone", "--quiet", "--mirror", "--no-hardlinks", ".", dir.to_str().unwrap()]);
}

#[track_caller]
fn assert_checked(checked: &Checked, path: &Path) {
    assert_eq!(checked.json["repository"], path.to_str().unwrap(), "{:#}", checked.json);
}

/// Where the files of a work tree come from, no matter who committed them.
fn work_tree(dir: &TempDir) -> (PathBuf, String) {
    let (bare, clone) = (dir.path().join("bare.git"), dir.path().join("clone"));
    let commit = tampered(&bare);
    Git::at(&bare).run(&["clone", "--quiet", ".", clone.to_str().unwrap()]);
    (clone, commit)
}

#[test]
fn no_file_of_a_work_tree_takes_the_place_of_its_repository() {
    let dir = TempDir::new().unwrap();
    let (clone, commit) = work_tree(&dir);
    honest(&clone.join("repo.git"));
    let checked = fsck(&clone, &[]);
    checked.finds(&commit, "README.md", "");
    assert_checked(&checked, &clone.join(".git"));
    assert!(checked.json["warnings"].to_string().contains("repo.git is there as well"), "{:#}", checked.json);

    let dir = TempDir::new().unwrap();
    let (clone, commit) = work_tree(&dir);
    let elsewhere = dir.path().join("honest.git");
    honest(&elsewhere);
    symlink(&elsewhere, clone.join("repo.git")).unwrap();
    fsck(&clone, &[]).finds(&commit, "README.md", "");
    // Nor does it where nothing else is there.
    let data_dir = dir.path().join("data");
    fs::create_dir(&data_dir).unwrap();
    symlink(&elsewhere, data_dir.join("repo.git")).unwrap();
    assert_eq!(fsck(&data_dir, &[]).code, Some(1));

    let dir = TempDir::new().unwrap();
    let (clone, commit) = work_tree(&dir);
    let elsewhere = dir.path().join("honest.git");
    honest(&elsewhere);
    for name in ["HEAD", "objects", "refs", "packed-refs", "config"] {
        fs::rename(elsewhere.join(name), clone.join(name)).unwrap();
    }
    fsck(&clone, &[]).finds(&commit, "README.md", "");
}

#[test]
fn a_repository_inside_a_repository_is_not_the_one_that_is_checked() {
    let dir = TempDir::new().unwrap();
    let repository = dir.path().join("repo.git");
    let commit = tampered(&repository);
    honest(&repository.join("repo.git"));
    for place in [dir.path(), &repository] {
        let checked = fsck(place, &[]);
        checked.finds(&commit, "README.md", "");
        assert_checked(&checked, &repository);
    }
}

#[test]
fn a_bare_repository_cannot_borrow_the_branch_of_another_one() {
    let dir = TempDir::new().unwrap();
    let repository = dir.path().join("repo.git");
    let commit = tampered(&repository);
    honest(&dir.path().join("honest.git"));
    fsck(dir.path(), &[]).finds(&commit, "README.md", "");
    fs::write(repository.join("commondir"), "../honest.git\n").unwrap();
    for place in [dir.path(), &repository] {
        let checked = fsck(place, &[]);
        assert_eq!(checked.code, Some(1), "{:#}", checked.json);
        assert!(checked.json["error"].as_str().unwrap().contains("commondir"), "{:#}", checked.json);
    }
}

#[test]
fn a_linked_work_tree_is_read() {
    let dir = TempDir::new().unwrap();
    let (bare, linked) = (dir.path().join("bare.git"), dir.path().join("linked"));
    honest(&bare);
    Git::at(&bare).run(&["worktree", "add", "--quiet", "--detach", linked.to_str().unwrap(), "main"]);
    let checked = fsck(&linked, &[]);
    assert_eq!(checked.is_clean(), past().git().run(&["rev-parse", "main"]));
    assert_eq!(checked.json["warnings"], serde_json::json!([]), "{:#}", checked.json);
}

#[test]
fn what_git_shows_in_the_place_of_what_was_checked_is_told_to_those_who_like_it_quiet_too() {
    let dir = TempDir::new().unwrap();
    honest(dir.path());
    let git = Git::at(dir.path());
    let main = git.run(&["rev-parse", "main"]);
    let quiet = |words: &str| {
        let output = Launch::default().args(["fsck", dir.path().to_str().unwrap(), "--quiet"]).output();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        assert!(said.contains(words), "{said}");
    };
    git.run(&["replace", &main, "main~1"]);
    quiet("refs/replace/");
    git.run(&["replace", "--delete", &main]);
    git.run(&["update-ref", "refs/heads/other", "main~1"]);
    git.run(&["symbolic-ref", "HEAD", "refs/heads/other"]);
    quiet("HEAD is at");
    git.run(&["symbolic-ref", "HEAD", "refs/heads/main"]);
    fs::create_dir_all(dir.path().join("info")).unwrap();
    fs::write(dir.path().join("info/grafts"), format!("{main}\n")).unwrap();
    quiet("info/grafts");
}

#[test]
fn a_server_s_own_objects_are_checked_and_not_borrowed_ones() {
    let dir = TempDir::new().unwrap();
    let (repository, elsewhere) = (dir.path().join("repo.git"), dir.path().join("honest.git"));
    honest(&repository);
    honest(&elsewhere);
    fsck(dir.path(), &[]).is_clean();
    fs::remove_dir_all(repository.join("objects")).unwrap();
    fs::create_dir_all(repository.join("objects/info")).unwrap();
    let borrowed = format!("{}\n", elsewhere.join("objects").display());
    fs::write(repository.join("objects/info/alternates"), borrowed).unwrap();
    // As a clone, it is whole.
    fsck(&repository, &[]).is_clean();
    assert_eq!(fsck(dir.path(), &[]).code, Some(3));
}
