//! What the operator of a mirror sets, asks and is told.

use crate::support::client::Computer;
use crate::support::mirrors::{await_same, start_mirror, start_origin, tip_of, url_of};
use crate::support::{Person, SignersFile, metrics::free_address, server::Launch, server::TestServer};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn only_addresses_of_servers_are_followed() {
    let dir = tempfile::TempDir::new().unwrap();
    for address in [
        "sign.example.org", "ftp://sign.example.org", "https://", "https://user@sign.example.org",
        "https://sign.example.org/?a=b", "https://sign.example.org/#a", "https://sign.example.org/$(reboot)",
        "https://sign.example.org/a'b",
    ] {
        let said = Launch::mirror(address, &dir.path().join("data")).refusal();
        assert!(said.contains("is not the address of a signing server"), "{address}: {said}");
    }
    assert!(!dir.path().join("data").exists());
}

#[test]
fn the_origin_can_be_configured() {
    let origin = start_origin();
    let mut mirror = TestServer::prepare_as(|dir| {
        let dir = dir.to_str().unwrap();
        let launch = Launch::default().args(["mirror", "--listen", "127.0.0.1:0", "--data-dir", dir]);
        launch.env("COUNTERSIGN_MIRROR_OF", &format!("{}/", url_of(&origin.server)))
    });
    mirror.start_again();
    await_same(&mirror, &origin.server);
    let kept = std::fs::read_to_string(mirror.data_dir().join("mirror.origin")).unwrap();
    assert_eq!(kept, format!("{}\n", url_of(&origin.server)));
}

#[test]
fn a_check_says_what_would_become_of_the_directory() {
    let origin = start_origin();
    let url = url_of(&origin.server);
    let mut mirror = start_mirror(&url);
    await_same(&mirror, &origin.server);
    mirror.stop();
    let dir = mirror.data_dir();
    let check = |launch: Launch| {
        let output = launch.arg("--check").output();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let said = check(Launch::mirror(&url, &dir));
    assert!(said.contains(&format!("a mirror of {url}\n")), "{said}");
    let other = format!("http://{}", free_address());
    let said = check(Launch::mirror(&other, &dir));
    assert!(said.contains(&format!("a mirror of {other}, which followed {url} so far")), "{said}");
    assert!(said.contains(&format!("the server {other} cannot be reached")), "{said}");
    let said = check(Launch::serve(&dir));
    assert!(said.contains(&format!("this mirror of {url} would become a server of its own")), "{said}");
    assert!(dir.join("mirror.origin").exists(), "a check changes nothing");
    let said = check(Launch::mirror(&format!("http://{}", free_address()), &dir.with_extension("new")));
    assert!(said.contains("a mirror of"), "{said}");
    // A witness shows its name and key as well.
    let computer = Computer::offline();
    let key = computer.key_of("alice");
    let witness = ["witness", &url, "--name", "w.example", "--key", key.to_str().unwrap()];
    let data = dir.with_extension("witness");
    let place = ["--listen", "127.0.0.1:0", "--data-dir", data.to_str().unwrap()];
    let said = check(Launch::default().args(witness).args(place));
    assert!(said.contains(&format!("a witness of {url}\nkey           w.example+")), "{said}");
}

#[test]
fn the_operators_commands_change_nothing_on_a_mirror() {
    let alice = Person::named("alice");
    let origin = start_origin();
    origin.register(&alice, "acme/app", &SignersFile::of(1, &[&alice])).ok();
    let mut mirror = start_mirror(&url_of(&origin.server));
    await_same(&mirror, &origin.server);
    let (id, tip) = (origin.id("acme/app"), tip_of(&mirror));
    let stats = mirror.admin(&["stats"]).output();
    assert!(text(&stats.stdout).contains(&url_of(&origin.server)), "{}", text(&stats.stdout));
    for _ in 0..2 {
        let dropped = mirror.admin(&["drop", &id]).output();
        assert!(!dropped.status.success());
        assert!(text(&dropped.stderr).contains("mirror"), "{}", text(&dropped.stderr));
        let listed = mirror.admin(&["projects"]).output();
        assert!(text(&listed.stdout).contains(&id), "{}", text(&listed.stdout));
        let resumed = mirror.admin(&["mirror", "resume"]).output();
        assert!(text(&resumed.stderr).contains("has not stopped following"), "{}", text(&resumed.stderr));
        if mirror.is_running() {
            mirror.stop();
        }
    }
    assert_eq!(tip_of(&mirror), tip);
    assert!(!mirror.data_dir().join("nonces.sqlite").exists());
    let said = text(&origin.server.admin(&["mirror", "resume"]).output().stderr);
    assert!(said.contains("is not a mirror"), "{said}");
}
