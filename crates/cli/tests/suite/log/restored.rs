//! A repository from an older backup must not fork the log (D88).

use std::fs;

use super::{await_all, await_that, checkpoint, log_key, start};
use crate::support::{Git, SignersFile, World, alice, metrics::await_value, mirrors::await_readyz};

fn restore(world: &World, backup: &Git) {
    fs::remove_dir_all(world.server.repository()).unwrap();
    backup.run(&["clone", "--quiet", "--mirror", ".", world.server.repository().to_str().unwrap()]);
}

#[test]
fn a_restored_server_signs_nothing_says_what_to_do_and_serves_the_rest() {
    let mut world = start();
    world.activate("acme/app", &SignersFile::of(1, &[&alice()]), &[&alice()]);
    let one = world.add_signed_release("acme/app/1.0", &[&alice()]);
    await_all(&world);
    let dir = tempfile::TempDir::new().unwrap();
    let (older, newer) = (dir.path().join("older.git"), dir.path().join("newer.git"));
    world.git().run(&["clone", "--quiet", "--mirror", ".", older.to_str().unwrap()]);
    world.add_signed_release("acme/app/2.0", &[&alice()]);
    let signed = await_all(&world);
    world.git().run(&["clone", "--quiet", "--mirror", ".", newer.to_str().unwrap()]);
    world.server.stop();
    restore(&world, &Git::at(older));

    world.server.start_again();
    world.server.await_log("it was restored from an older copy", 1);
    world.server.await_log("countersign mirror ADDRESS-OF-A-MIRROR", 1);
    await_value(world.server.metrics_address(), "countersign_log_stopped", 1.0);
    let key = log_key(&world.server);
    assert_eq!(checkpoint(&world.server, &key), Some(signed.clone()), "what was signed stays true");
    world.server.get(&format!("/v1/proof/{one}")).refused(503, "has stopped");
    let said = await_readyz(&world.server, 503).text();
    assert!(said.contains("the log signs nothing"), "{said}");
    assert!(world.exists(&one));
    // New changes are accepted, and make no checkpoint.
    world.add_signed_release("acme/app/3.0", &[&alice()]);
    world.add_signed_release("acme/app/4.0", &[&alice()]);
    world.server.restart();
    world.server.await_log("does not continue the newest checkpoint", 1);
    assert_eq!(checkpoint(&world.server, &key), Some(signed.clone()));

    // With the right history the log goes on by itself.
    world.server.stop();
    restore(&world, &Git::at(newer));
    world.server.start_again();
    world.add_signed_release("acme/app/5.0", &[&alice()]);
    let newest = await_all(&world);
    assert!(newest.size > signed.size);
    await_readyz(&world.server, 200);
    await_that("the staple", || (world.server.get(&format!("/v1/proof/{one}")).status == 200).then_some(()));
}
