//! Everything real: a server with a log, witnesses that follow it, and a client that has met none of them.

use serde_json::json;

use crate::support::client::{Computer, add_files, text};
use crate::support::witnesses::{LogSetup, TestWitness, log_key_of};
use crate::support::{SignersFile, alice, metrics::free_address, mirrors::url_of, waiting::wait_until};

#[test]
fn a_download_is_fresh_by_real_witnesses_and_a_revocation_reaches_them() {
    let address = free_address();
    // One of them has two keys, and counts once; the other one has ML-DSA-44 alone.
    let mut witnesses = [("both", "one.example"), ("ml-dsa-44", "two.example")]
        .map(|(key_type, name)| TestWitness::prepare_with(key_type, address, name, &[]));
    let [one, two] = &witnesses;
    let keys: Vec<String> = [one, two].iter().flat_map(|by| by.keys()).map(|key| key.to_string()).collect();
    let world = LogSetup::at(address).witnessed(&[one, two], &[]).start();
    witnesses.iter_mut().for_each(|witness| witness.server.start_again());
    let file = SignersFile::of(1, &[&alice()]).with(
        "transparency",
        json!({
            "log": log_key_of(&world.server).to_string(),
            "witnesses": [{ "threshold": 2, "keys": keys }],
            "max_age_seconds": 3_600,
        }),
    );
    world.activate("acme/app", &file, &[&alice()]);
    let index = add_files(&world, "acme/app/1.0", &[("app", b"content")], &[&alice()]);
    wait_until("witnesses have not cosigned", || {
        world.server.get(&format!("/v1/proof/{index}")).status == 200
    });
    let computer = Computer::of(&world.server);
    let url = world.files.url("/acme/app/1.0/app");
    let said = computer.download(&url).ok();
    said.says(&["fresh as of ", "by 2 of 2 witnesses; the release completed last; not revoked"]);
    // A release that is complete, and not in a cosigned checkpoint yet, is waited for.
    add_files(&world, "acme/app/1.1", &[("app-1.1", b"more")], &[&alice()]);
    let said = computer.download(&world.files.url("/acme/app/1.1/app-1.1")).ok();
    said.says(&["by 2 of 2 witnesses; the release completed last; not revoked"]);
    // Two of two: as soon as one has seen it, no quorum is left for the past, and the wait ends with both.
    let key = computer.key_of("alice");
    let revoked =
        computer.run(&["revoke", &index, "--reason", "key leaked", "--yes", "--key", text(&key)]).ok();
    revoked.says(&["Revoked", "by 2 of 2 witnesses", "No one with a maximum age of 1 hour accepts"]);
    computer.download(&url).failed(4).says(&["key leaked"]);
    let monitor = || computer.run(&["monitor", &url_of(&world.server), "acme/app", "--once"]);
    monitor().ok().says(&["Following the log sign.example.org/log"]);
    monitor().ok();
    let pins = computer.pins();
    assert!(pins["logs"][log_key_of(&world.server).to_string()].is_object(), "{pins}");
}
