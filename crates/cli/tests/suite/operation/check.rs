//! `countersign serve --check` (D58). Single mistakes are in `scenarios/mistakes.txt`.

use std::process::Output;

use tempfile::TempDir;

use crate::support::{Launch, TestServer};

struct Checked {
    code: Option<i32>,
    said: String,
}

#[track_caller]
fn check(dir: &TempDir, config: &str, args: &[&str]) -> Checked {
    let path = dir.path().join("countersign.toml");
    std::fs::write(&path, config).unwrap();
    let launch = Launch::bare().args(["--check", "--config", path.to_str().unwrap()]);
    let Output { status, stdout, stderr } = launch.args(args.iter().copied()).output();
    let said = [stdout, stderr].concat();
    Checked { code: status.code(), said: String::from_utf8(said).unwrap() }
}

fn data_line(dir: &TempDir) -> String {
    format!("data_dir = {:?}\nlisten = \"127.0.0.1:0\"\n", dir.path().join("data"))
}

#[test]
fn what_is_in_order_is_told_and_nothing_is_made() {
    let dir = TempDir::new().unwrap();
    let token = dir.path().join("token");
    std::fs::write(&token, "a-token\n").unwrap();
    let forge = format!(
        "[[forge]]\nhost = \"git.example.org\"\nkind = \"forgejo\"\ntoken_file = {token:?}\n\
         [[webhook]]\nname = \"ci\"\nurl = \"https://ci.example.org/x\"\nsecret = \"s0-secret-of-many-bytes\"\n"
    );
    let checked = check(&dir, &(data_line(&dir) + &forge), &[]);
    assert_eq!(checked.code, Some(0), "{}", checked.said);
    for words in
        ["http://127.0.0.1:0", "data", "git.example.org, with a token", "ci, to ci.example.org", "in order"]
    {
        assert!(checked.said.contains(words), "{words}: {}", checked.said);
    }
    assert!(!checked.said.contains("a-token") && !checked.said.contains("s0-secret"), "{}", checked.said);
    assert!(!dir.path().join("data").exists());
}

#[test]
fn a_running_server_is_told_and_left_alone() {
    let mut server = TestServer::start();
    let dir = TempDir::new().unwrap();
    let data = server.data_dir();
    let args = ["--data-dir", data.to_str().unwrap(), "--listen", &server.address().to_string()];
    let checked = check(&dir, "", &args);
    assert_eq!(checked.code, Some(0), "{}", checked.said);
    assert!(checked.said.contains("in use by a running server"), "{}", checked.said);
    server.get("/v1/ping").ok();
    server.stop();
    let checked = check(&dir, "", &args);
    assert!(checked.said.contains("with a repository of a known format"), "{}", checked.said);
}

#[test]
fn every_problem_is_told_with_exit_code_2() {
    let dir = TempDir::new().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let file = dir.path().join("a-file");
    std::fs::write(&file, "").unwrap();
    let config = format!(
        "listen = \"{}\"\ndata_dir = {file:?}\n[tls]\ncert_file = \"/nowhere/cert.pem\"\nkey_file = \"/nowhere/key.pem\"\n\
         [log]\norigin = \"sign.test/log\"\nkey_file = \"/nowhere/key\"\n",
        taken.local_addr().unwrap()
    );
    let checked = check(&dir, &config, &[]);
    assert_eq!(checked.code, Some(2), "{}", checked.said);
    for words in [
        "4 things are wrong:\n- ",
        "/nowhere/cert.pem",
        "countersign.toml, line 4)",
        "/nowhere/key ",
        "countersign.toml, line 8)",
        "is not a directory",
        "cannot listen on 127.0.0.1",
    ] {
        assert!(checked.said.contains(words), "{words}: {}", checked.said);
    }
    let other = dir.path().join("other");
    std::fs::create_dir_all(other.join("repo.git")).unwrap();
    let checked = check(&dir, "", &["--data-dir", other.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
    assert_eq!(checked.code, Some(2), "{}", checked.said);
    assert!(checked.said.contains("cannot be read as a Git repository"), "{}", checked.said);
}

#[test]
fn a_data_directory_that_cannot_be_made_is_told_before_the_server_tries() {
    let dir = TempDir::new().unwrap();
    // Not even root can make a directory there.
    let args = ["--data-dir", "/proc/countersign/data", "--listen", "127.0.0.1:0"];
    let checked = check(&dir, "", &args);
    assert_eq!(checked.code, Some(2), "{}", checked.said);
    assert!(checked.said.contains("the data directory /proc/countersign/data"), "{}", checked.said);
    assert!(!checked.said.contains("in order"), "{}", checked.said);
}
