//! Mirrors as processes of their own, and what tests wait for.

use std::path::Path;

use super::server::{Launch, TestServer};
use super::{git::Git, http::Reply, metrics::free_address, waiting::wait_until, world::World};

/// A world whose server keeps its address when it is started again.
#[track_caller]
pub(crate) fn start_origin() -> World {
    World::start_with(|launch, _| launch.arg("--dev").at(free_address()))
}

pub(crate) fn url_of(server: &TestServer) -> String {
    format!("http://{}", server.address())
}

#[track_caller]
pub(crate) fn start_mirror(origin: &str) -> TestServer {
    let mut mirror = TestServer::prepare_as(|dir| Launch::mirror(origin, dir));
    mirror.start_again();
    mirror
}

/// A mirror that is not ready when it was not up to date for so many seconds.
pub(crate) fn prepare_impatient(origin: &str, max_lag_seconds: u64) -> TestServer {
    TestServer::prepare_as(|dir| launch_impatient(origin, dir, max_lag_seconds))
}

pub(crate) fn launch_impatient(origin: &str, data_dir: &Path, max_lag_seconds: u64) -> Launch {
    let config = format!("[mirror]\nmax_lag_seconds = {max_lag_seconds}\n");
    Launch::mirror(origin, data_dir).configured(&config)
}

/// The newest commit on disk; `None` before the first.
pub(crate) fn tip_of(server: &TestServer) -> Option<String> {
    let tip = std::fs::read_to_string(server.repository().join("refs/heads/main")).ok()?;
    Some(tip.trim().to_owned())
}

pub(crate) fn commits_of(server: &TestServer) -> usize {
    if tip_of(server).is_none() { 0 } else { Git::at(server.repository()).commit_count() }
}

/// Waits until the mirror has what the origin has, and serves it.
#[track_caller]
pub(crate) fn await_same(mirror: &TestServer, origin: &TestServer) {
    let tip = tip_of(origin).expect("the origin has commits");
    await_tip(mirror, &tip);
}

#[track_caller]
pub(crate) fn await_tip(mirror: &TestServer, tip: &str) {
    let served = || mirror.get(&format!("/v1/journal?after={tip}")).status == 200;
    wait_until(&format!("{tip} does not arrive"), || tip_of(mirror).as_deref() == Some(tip) && served());
}

/// The answer of `/readyz` once it has this status.
#[track_caller]
pub(crate) fn await_readyz(mirror: &TestServer, status: u16) -> Reply {
    let mut reply = mirror.get("/readyz");
    wait_until(&format!("/readyz is never {status}"), || {
        reply = mirror.get("/readyz");
        reply.status == status
    });
    reply
}
