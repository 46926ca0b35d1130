//! A server asks its witnesses, which replay what it does.

use countersign_core::values::{digest::Sha256, verifier_key::VerifierKey};
use countersign_core::{log::policy::Policy, proof::bundle::Staple};

use crate::support::metrics::{Page, free_address};
use crate::support::witnesses::{LogSetup, TestWitness, await_logged, log_key_of, start_witnessed};
use crate::support::{
    Git, SignersFile, World, alice, client::add_files, mirrors::await_same, waiting::wait_until,
};

/// A complete release; the path of its index.
pub(super) fn release(world: &World, name: &str) -> String {
    if name == "1.0" {
        world.activate("acme/app", &SignersFile::of(1, &[&alice()]), &[&alice()]);
    }
    add_files(world, &format!("acme/app/{name}"), &[("app.tar.gz", name.as_bytes())], &[&alice()]);
    world.index_path(&format!("acme/app/{name}"))
}

/// Waits until these witnesses have cosigned a checkpoint with everything, and the staple shows it.
#[track_caller]
pub(super) fn await_staple(world: &World, index: &str, witnesses: &[&TestWitness]) -> Staple {
    let commits = Git::at(world.server.repository()).commit_count() as u64;
    let keys: Vec<VerifierKey> = witnesses.iter().flat_map(|witness| witness.keys()).collect();
    let mut found = None;
    wait_until("the witnesses do not cosign", || {
        let reply = world.server.get(&format!("/v1/proof/{index}"));
        if reply.status != 200 {
            return false;
        }
        let staple = Staple::parse(&reply.body).unwrap();
        let is_whole = staple.proof.index + 1 == commits;
        let has_all = staple.proof.note.signers(&keys).unwrap().len() == keys.len();
        found = Some(staple);
        is_whole && has_all
    });
    found.expect("it was just there")
}

#[test]
fn a_server_and_two_witnesses_reach_a_quorum() {
    let origin = free_address();
    let mut witnesses = ["one.example", "two.example"].map(|name| TestWitness::prepare(origin, name, &[]));
    let [one, two] = &witnesses;
    let setup = LogSetup::at(origin).witnessed(&[one, two], &[]);
    let policy = setup.witnesses.clone().unwrap();
    let world = setup.start();
    let index = release(&world, "1.0");
    // Those who come late are asked as well.
    witnesses.iter_mut().for_each(|witness| witness.server.start_again());
    let [one, two] = &witnesses;
    let staple = await_staple(&world, &index, &[one, two]);
    let log = log_key_of(&world.server);
    let policy = Policy::parse(format!("log {log}\n{policy}").as_bytes()).unwrap();
    let keys = staple.proof.note.signers(&policy.witness_keys()).unwrap();
    assert!(policy.is_met(&keys.into_iter().map(|signer| signer.key).collect()));
    // And again after each change, also while one of them was away.
    let second = release(&world, "1.1");
    await_staple(&world, &second, &[one, two]);
    witnesses[0].server.kill9();
    let third = release(&world, "1.2");
    await_logged(&world.server);
    witnesses[0].server.start_again();
    let [one, two] = &witnesses;
    let staple = await_staple(&world, &third, &[one, two]);
    // A witness is a mirror.
    await_same(&one.server, &world.server);
    let read = one.server.get(&format!("/v1/files/{index}"));
    assert_eq!(read.body, world.read(&index));
    for witness in [one, two] {
        let cosigned = witness.cosigned(&log).unwrap();
        assert!(cosigned.checkpoint().size > staple.proof.index, "{cosigned:?}");
    }
    let page = Page::read(world.server.metrics_address());
    for name in ["w0", "w1"] {
        let size = page.value(&format!("countersign_log_witness_size{{witness=\"{name}\"}}"));
        assert_eq!(size, (staple.proof.index + 1) as f64);
    }
    assert!(page.value("countersign_log_witness_failures_total{witness=\"w0\"}") > 0.0);
}

#[test]
fn a_witness_that_was_rolled_back_recovers_by_following_and_one_that_cannot_read_its_record_does_not_start() {
    let (world, mut witness) = start_witnessed();
    let index = release(&world, "1.0");
    // A heartbeat moves the time while nothing happens.
    let time = || {
        let staple = await_staple(&world, &index, &[&witness]);
        let signers = staple.proof.note.signers(std::slice::from_ref(&witness.key)).unwrap();
        signers[0].time.unwrap()
    };
    let first = time();
    wait_until("the time stands still", || time() > first);
    witness.server.stop();
    let (dir, copy) = (witness.server.data_dir(), witness.server.data_dir().with_extension("copy"));
    copy_dir(&dir, &copy);
    witness.server.start_again();
    let second = release(&world, "1.1");
    await_staple(&world, &second, &[&witness]);
    witness.server.kill9();
    std::fs::remove_dir_all(&dir).unwrap();
    copy_dir(&copy, &dir);
    witness.server.start_again();
    // The server believes that it knows more, and learns from a 409 that it does not.
    let third = release(&world, "1.2");
    await_staple(&world, &third, &[&witness]);
    assert!(witness.evidence().is_empty());

    let name = Sha256::of(log_key_of(&world.server).name().as_bytes()).to_string();
    let record = dir.join("witness").join(&name);
    let kept = std::fs::read(&record).unwrap();
    witness.server.kill9();
    std::fs::write(&record, &kept[..kept.len() / 2]).unwrap();
    let said = witness.server.launch().refusal();
    assert!(said.contains(&name) && said.contains("put the file back"), "{said}");
    std::fs::write(&record, &kept).unwrap();
    witness.server.start_again();
    let fourth = release(&world, "1.3");
    await_staple(&world, &fourth, &[&witness]);
}

pub(super) fn copy_dir(from: &std::path::Path, to: &std::path::Path) {
    let copied = std::process::Command::new("cp").arg("-a").args([from, to]).status().expect("`cp` is there");
    assert!(copied.success());
}
