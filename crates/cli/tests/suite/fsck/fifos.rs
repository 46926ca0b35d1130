//! `countersign fsck` on a clone with files that never end, or never begin.

use std::path::{Path, PathBuf};
use std::{fs, os::unix::fs::symlink, process::Command, process::Stdio, time::Duration, time::Instant};

use tempfile::TempDir;

use crate::support::{Launch, fsck::fsck, past::past};

const TIMEOUT: Duration = Duration::from_secs(60);

fn clone(dir: &Path, args: &[&str]) {
    let to = dir.to_str().unwrap();
    let args = [&["clone", "--quiet", "--mirror"], args, &[".", to]].concat();
    past().git().run(&args);
}

/// Puts a FIFO in the place of whatever is there.
fn put_fifo(path: &Path) {
    let _ = fs::remove_file(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert!(Command::new("mkfifo").arg(path).status().expect("`mkfifo` is there").success());
}

/// That the check ends by itself, with an error that names the file.
#[track_caller]
fn assert_refused(dir: &Path, name: &str) {
    let mut command = Launch::default().args(["fsck", dir.to_str().unwrap()]).command();
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > TIMEOUT {
            child.kill().unwrap();
            panic!("it hangs on {name}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{name}: {said}");
    assert!(said.contains(name), "{name} is missing in: {said}");
}

/// The one pack of a fresh clone.
fn pack(dir: &Path, ending: &str) -> PathBuf {
    let packs = fs::read_dir(dir.join("objects/pack")).unwrap().map(|entry| entry.unwrap().path());
    packs.into_iter().find(|path| path.extension().is_some_and(|found| found == ending)).expect("a pack")
}

#[test]
fn a_fifo_anywhere_in_a_clone_is_refused_at_once() {
    const LOOSE: &str = "objects/ab/cdef0123456789abcdef0123456789abcdef01";
    for name in [
        "HEAD",
        "config",
        "packed-refs",
        "shallow",
        "refs/heads/main",
        "refs/tags/v1",
        "objects/info/alternates",
        "objects/pack/pack-0123456789abcdef0123456789abcdef01234567.idx",
        LOOSE,
    ] {
        let dir = TempDir::new().unwrap();
        let bare = dir.path().join("clone.git");
        clone(&bare, &["--no-local"]);
        put_fifo(&bare.join(name));
        assert_refused(&bare, name);
    }
    for ending in ["pack", "idx"] {
        let dir = TempDir::new().unwrap();
        let bare = dir.path().join("clone.git");
        clone(&bare, &["--no-local"]);
        put_fifo(&pack(&bare, ending));
        assert_refused(&bare, ending);
    }
}

#[test]
fn a_file_that_leads_to_the_repository_may_be_no_fifo_either() {
    let dir = TempDir::new().unwrap();
    put_fifo(&dir.path().join("tree/.git"));
    assert_refused(&dir.path().join("tree"), ".git");

    // As in a linked work tree, whose repository has the FIFO.
    let bare = dir.path().join("clone.git");
    clone(&bare, &["--no-local"]);
    let linked = bare.join("worktrees/linked");
    fs::create_dir_all(&linked).unwrap();
    fs::create_dir(dir.path().join("linked")).unwrap();
    fs::write(dir.path().join("linked/.git"), format!("gitdir: {}\n", linked.display())).unwrap();
    fs::write(linked.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(linked.join("gitdir"), format!("{}\n", dir.path().join("linked/.git").display())).unwrap();
    fs::write(linked.join("commondir"), "../..\n").unwrap();
    fsck(&dir.path().join("linked"), &[]).is_clean();
    put_fifo(&bare.join("packed-refs"));
    assert_refused(&dir.path().join("linked"), "packed-refs");
    put_fifo(&linked.join("commondir"));
    assert_refused(&dir.path().join("linked"), "commondir");
}

#[test]
fn what_a_clone_borrows_from_is_looked_at_as_well() {
    let dir = TempDir::new().unwrap();
    let (lender, borrower) = (dir.path().join("lender.git"), dir.path().join("borrower.git"));
    clone(&lender, &["--no-local"]);
    clone(&borrower, &["--no-local"]);
    fs::remove_dir_all(borrower.join("objects/pack")).unwrap();
    fs::create_dir_all(borrower.join("objects/info")).unwrap();
    let list = format!("{}\n", lender.join("objects").display());
    fs::write(borrower.join("objects/info/alternates"), list).unwrap();
    fsck(&borrower, &[]).is_clean();
    put_fifo(&lender.join("objects/info/alternates"));
    assert_refused(&borrower, "alternates");
    fs::remove_file(lender.join("objects/info/alternates")).unwrap();
    put_fifo(&pack(&lender, "idx"));
    assert_refused(&borrower, "idx");
}

#[test]
fn links_to_devices_and_files_without_end_are_refused() {
    let dir = TempDir::new().unwrap();
    let bare = dir.path().join("clone.git");
    clone(&bare, &["--no-local"]);
    fs::remove_file(bare.join("HEAD")).unwrap();
    symlink("/dev/zero", bare.join("HEAD")).unwrap();
    assert_refused(&bare, "HEAD");
    fs::remove_file(bare.join("HEAD")).unwrap();
    fs::write(bare.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fsck(&bare, &[]).is_clean();
    // Takes no room on the disk.
    fs::File::create(bare.join("shallow")).unwrap().set_len(1 << 40).unwrap();
    assert_refused(&bare, "shallow");
}
