//! `countersign admin` leaves no files in a data directory whose server runs as another user (D59).

use std::{ffi::OsString, fs, os::unix::fs::MetadataExt as _, os::unix::fs::chown, path::Path};

use countersign_testing::assert_mentions;

use crate::support::{Launch, TestServer};

/// The id of some other user. It needs no name.
const OTHER: u32 = 54_321;

#[test]
fn another_users_data_directory_is_not_written_to() {
    let mut server = TestServer::start();
    server.stop();
    let (dir, repository) = (server.data_dir(), server.repository());
    if chown(&repository, Some(OTHER), None).is_err() {
        println!("skipped: only root can give a directory to another user");
        return;
    }
    let before = names(&dir);
    for command in [
        &["block", "spam.example"] as &[&str],
        &["drop", "https/github.com/443/acme/app"],
        &["reset-nonces", "--yes"],
        &["log", "init", "--origin", "sign.example.org/log"],
    ] {
        let admin = Launch::default().args(["admin"]).args(command.iter().copied());
        let refusal = admin.args(["--data-dir", dir.to_str().unwrap()]).refusal();
        assert_mentions(&refusal, &["54321", "sudo -u"]);
    }
    assert_eq!(names(&dir), before);
    chown(&repository, Some(fs::metadata(&dir).unwrap().uid()), None).unwrap();
    let block = Launch::default().args(["admin", "block", "spam.example"]);
    assert!(block.args(["--data-dir", dir.to_str().unwrap()]).output().status.success());
}

fn names(dir: &Path) -> Vec<OsString> {
    let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}
