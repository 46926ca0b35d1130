//! The log of the origin, copied by mirrors (D118): they prove the newest state when the origin is away.

use serde_json::json;

use crate::support::client::{Computer, add_files};
use crate::support::mirrors::{start_mirror, url_of};
use crate::support::witnesses::{log_key_of, start_witnessed};
use crate::support::{SignersFile, alice, waiting::wait_until};

#[test]
fn a_mirror_proves_the_newest_state_when_the_origin_is_away() {
    let (mut world, witness) = start_witnessed();
    let file = SignersFile::of(1, &[&alice()]).with(
        "transparency",
        json!({
            "log": log_key_of(&world.server).to_string(),
            "witnesses": [{ "threshold": 1, "keys": [witness.key.to_string()] }],
            "max_age_seconds": 3_600,
        }),
    );
    world.activate("acme/app", &file, &[&alice()]);
    let index = add_files(&world, "acme/app/1.0", &[("app", b"content")], &[&alice()]);
    let mut mirror = start_mirror(&url_of(&world.server));
    let second = start_mirror(&url_of(&mirror));
    let proof = format!("/v1/proof/{index}");
    for server in [&mirror, &second] {
        wait_until("the mirror has no proof", || server.get(&proof).status == 200);
        assert_eq!(log_key_of(server), log_key_of(&world.server));
        assert!(
            server.get("/log/cosigned").text().contains("\u{2014} one.example "),
            "as the origin shows it"
        );
    }
    let url = world.files.url("/acme/app/1.0/app");
    let fresh = ["fresh as of ", "by 1 of 1 witness; the release completed last; not revoked"];
    // One computer that goes from one to the other: the log continues.
    let computer = Computer::of(&world.server);
    computer.download(&url).ok().says(&fresh);
    world.server.kill9();
    computer.run(&["download", &url, "--force", "--server", &url_of(&mirror)]).ok().says(&fresh);
    Computer::of(&second).download(&url).ok().says(&fresh);
    // What it has copied is on its disk.
    mirror.kill9();
    mirror.start_again();
    wait_until("the mirror has no proof after a restart", || mirror.get(&proof).status == 200);
    Computer::of(&mirror).download(&url).ok().says(&fresh);
}

#[test]
fn a_mirror_of_a_server_without_a_log_has_none() {
    let world = crate::support::World::start();
    let mirror = start_mirror(&url_of(&world.server));
    for target in ["/log/checkpoint", "/log/cosigned", "/log/key"] {
        mirror.get(target).refused(404, "keeps no log");
    }
    assert!(!mirror.data_dir().join("log-copy").exists());
}
