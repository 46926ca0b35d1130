//! Mirrors repeat what their origin did, and do nothing by themselves.

use super::scene::{APP, DELAY, Scene, takeover, team};
use crate::support::mirrors::{await_same, url_of};
use crate::support::{fsck::fsck, machine_clock::MachineClock, server::Launch, server::TestServer};

#[test]
fn a_mirror_whose_clock_is_ahead_waits_for_its_origin() {
    let (Some(scene), Some(ahead)) = (Scene::new(), MachineClock::new()) else { return };
    ahead.set(2 * DELAY);
    let origin = url_of(&scene.world.server);
    let mut mirror = TestServer::prepare_as(|dir| ahead.give_to(Launch::mirror(&origin, dir)));
    mirror.start_again();
    scene.agree(&takeover(), &["mallory"]);
    await_same(&mirror, &scene.world.server);
    let signers = || mirror.get(&format!("/v1/get_signers/{}", scene.world.id(APP))).body;
    assert_eq!(signers(), team(10).bytes(), "only the origin decides");
    scene.set(DELAY + 60);
    assert_eq!(scene.signers(), takeover().bytes());
    await_same(&mirror, &scene.world.server);
    assert_eq!(signers(), takeover().bytes());
    fsck(&mirror.data_dir(), &[]).is_clean();
}

#[test]
fn a_mirror_repeats_a_veto() {
    let Some(scene) = Scene::new() else { return };
    let origin = url_of(&scene.world.server);
    let mut mirror = TestServer::prepare_as(|dir| Launch::mirror(&origin, dir));
    mirror.start_again();
    scene.agree(&takeover(), &["mallory"]);
    let document = scene.veto_document("not ours");
    scene.veto("mia", &document);
    scene.veto("moe", &document).ok();
    await_same(&mirror, &scene.world.server);
    assert_eq!(mirror.get(&format!("/v1/files/{}", scene.pending())).status, 404);
}
