//! A server that was restored from an older copy must not sign what contradicts its witnesses.

use std::path::PathBuf;

use super::asking::{await_staple, copy_dir, release};
use crate::support::witnesses::{
    ORIGIN, TestWitness, await_logged, checkpoint_of, log_key_of, start_witnessed,
};
use crate::support::{
    Git, Launch, TestServer, World, metrics::await_value, mirrors::await_readyz, waiting::wait_until,
};

/// A server whose data directory is a copy from before the last two releases.
struct Copied {
    world: World,
    witness: TestWitness,
    copy: PathBuf,
    /// A release that the copy has.
    index: String,
    /// Commits that the copy has signed, and that the witness has seen.
    old: u64,
    seen: u64,
}

fn start_copied() -> Copied {
    let (mut world, witness) = start_witnessed();
    let index = release(&world, "1.0");
    let old = await_staple(&world, &index, &[&witness]).proof.index + 1;
    world.server.stop();
    let (dir, copy) = (world.server.data_dir(), world.server.data_dir().with_extension("copy"));
    copy_dir(&dir, &copy);
    world.server.start_again();
    release(&world, "1.1");
    let last = release(&world, "1.2");
    let seen = await_staple(&world, &last, &[&witness]).proof.index + 1;
    world.server.stop();
    let mut copied = Copied { world, witness, copy, index, old, seen };
    copied.restore();
    copied
}

impl Copied {
    fn restore(&mut self) {
        let dir = self.world.server.data_dir();
        std::fs::remove_dir_all(&dir).unwrap();
        copy_dir(&self.copy, &dir);
    }

    /// It has signed nothing, and says so wherever someone looks.
    #[track_caller]
    fn assert_stopped(&self) {
        let server = &self.world.server;
        // After a start it is not ready either, until it has compared itself with what its witnesses have seen.
        await_value(server.metrics_address(), "countersign_log_stopped", 1.0);
        let said = await_readyz(server, 503).text();
        assert!(said.contains("the log signs nothing") && said.contains(&self.seen.to_string()), "{said}");
        await_value(server.metrics_address(), "countersign_log_lost_size", self.seen as f64);
        await_value(server.metrics_address(), "countersign_ready", 0.0);
        assert_eq!(checkpoint_of(server).checkpoint().size, self.old);
        server.get(&format!("/v1/proof/{}", self.index)).refused(503, "has stopped");
    }

    fn accept_loss(&self, options: &[&str]) -> std::process::Output {
        self.world.server.admin(&[&["log", "accept-loss", "--yes"], options].concat()).output()
    }
}

#[test]
fn a_restored_server_signs_nothing_below_what_its_witnesses_have_seen() {
    let Copied { mut world, witness, seen, .. } = start_copied();
    // Without its nonces and its checkpoint, as a backup of the repository has it.
    for name in ["log/checkpoint", "log/cosigned", "nonces.sqlite"] {
        std::fs::remove_file(world.server.data_dir().join(name)).unwrap();
    }
    world.server.start_again();
    world.server.await_log(&format!("has seen {seen} commits"), 1);
    await_value(world.server.metrics_address(), "countersign_log_stopped", 1.0);
    // Everything else goes on.
    release(&world, "2.0");
    let reply = world.server.get("/log/checkpoint");
    assert_eq!(reply.status, 503, "it has signed nothing");
    assert!(reply.header("retry-after").is_some());
    assert_eq!(witness.cosigned(&log_key_of(&world.server)).unwrap().checkpoint().size, seen);
    assert!(witness.evidence().is_empty(), "it was never asked to cosign a fork");
}

#[test]
fn a_restored_copy_never_signs_a_fork_until_its_operator_gives_up_what_is_lost() {
    let mut copied = start_copied();
    copied.world.server.start_again();
    copied.world.server.await_log(&format!("has seen {} commits", copied.seen), 1);
    copied.world.server.await_log("countersign mirror ADDRESS-OF-A-MIRROR", 1);
    copied.assert_stopped();
    // It grows beyond what the witness has seen.
    for name in ["2.0", "2.1", "2.2"] {
        release(&copied.world, name);
    }
    copied.assert_stopped();
    // The witness answers, or is away for longer than the log waits for it.
    copied.world.server.restart();
    copied.assert_stopped();
    copied.witness.server.stop();
    copied.world.server.restart();
    copied.assert_stopped();
    release(&copied.world, "2.3");
    copied.assert_stopped();
    copied.witness.server.start_again();
    let cosigned = copied.witness.cosigned(&log_key_of(&copied.world.server)).unwrap();
    assert_eq!(cosigned.checkpoint().size, copied.seen);
    assert!(copied.witness.evidence().is_empty(), "it was never asked to cosign a fork");

    // Only the whole name of the loss ends it.
    let size = copied.seen.to_string();
    for wrong in [["--origin", "other.example/log", "--size", &size], ["--origin", ORIGIN, "--size", "3"]] {
        let refused = copied.accept_loss(&wrong);
        assert!(!refused.status.success(), "{refused:?}");
    }
    copied.assert_stopped();
    let accepted = copied.accept_loss(&["--origin", ORIGIN, "--size", &size]);
    assert!(accepted.status.success(), "{accepted:?}");
    let said = String::from_utf8_lossy(&accepted.stdout).into_owned();
    assert!(said.contains("signs again") && said.contains(&format!("log/lost-{size}")), "{said}");
    assert!(copied.world.server.data_dir().join(format!("log/lost-{size}")).exists());
    copied.world.server.await_log("the operator gives up commits of the log", 1);
    assert!(await_logged(&copied.world.server).checkpoint().size > copied.seen);
    await_readyz(&copied.world.server, 200);
    copied.world.server.restart();
    release(&copied.world, "2.4");
    await_logged(&copied.world.server);
    await_readyz(&copied.world.server, 200);
}

#[test]
fn a_restored_copy_signs_again_with_the_missing_commits_of_a_mirror() {
    let mut copied = start_copied();
    copied.world.server.start_again();
    copied.assert_stopped();
    copied.world.server.stop();
    // The witness is a mirror too.
    let (dir, origin) = (copied.world.server.data_dir(), format!("http://{}", copied.witness.address));
    let mut mirror = TestServer::prepare_as(|_| Launch::mirror(&origin, &dir));
    mirror.start_again();
    let commits = || Git::at(copied.world.server.repository()).commit_count() as u64;
    wait_until("the missing commits do not come", || commits() == copied.seen);
    mirror.stop();
    copied.world.server.start_again();
    let index = release(&copied.world, "1.3");
    assert!(await_logged(&copied.world.server).checkpoint().size > copied.seen);
    await_readyz(&copied.world.server, 200);
    await_value(copied.world.server.metrics_address(), "countersign_log_stopped", 0.0);
    await_staple(&copied.world, &index, &[&copied.witness]);
    assert!(copied.witness.evidence().is_empty());
}
