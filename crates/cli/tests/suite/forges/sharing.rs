//! Registrations of the same release share one download, survive their client, and show progress.

use std::{io::Write as _, net::TcpStream};

use serde_json::json;

use crate::support::fake_forge::{Asset, ForgeAnswer, ForgeWorld, GateKeeper, Kind};
use crate::support::{Person, Reply, SignersFile, alice};

const REPOSITORY: &str = "acme/app";
const TAG: &str = "v1.0";

/// A release whose only asset the forge holds back.
fn held_release(kind: Kind) -> (ForgeWorld, String, GateKeeper) {
    let forge = ForgeWorld::with_project(kind);
    let url = forge.forge.put_release(REPOSITORY, TAG, &[Asset::new("app.bin", "content")]);
    let (answer, keeper) = ForgeAnswer::bytes("content").held();
    forge.forge.set(&forge.forge.asset_target(REPOSITORY, TAG, "app.bin"), answer);
    (forge, url, keeper)
}

fn asset_requests(forge: &ForgeWorld) -> usize {
    forge.forge.count(&forge.forge.asset_target(REPOSITORY, TAG, "app.bin"))
}

/// Sends a request and does not read the answer.
fn send_unread(forge: &ForgeWorld, person: &Person, url: &str) -> TcpStream {
    let request = forge.release_request(person, url);
    let mut head = "POST /v1/assets HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n".to_owned();
    for (name, value) in &request.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("content-length: {}\r\n\r\n", request.body.len()));
    let mut stream = TcpStream::connect(forge.world.server.address()).unwrap();
    stream.write_all(&[head.as_bytes(), &request.body].concat()).unwrap();
    stream
}

/// Whole requests, each answered after a durable nonce: one that was sent before them has been taken up.
fn let_earlier_requests_arrive(forge: &ForgeWorld) {
    for _ in 0..50 {
        forge.world.pending(&alice());
    }
}

#[track_caller]
fn assert_one_registered(first: &Reply, second: &Reply) {
    let mut statuses = [first.status, second.status];
    statuses.sort_unstable();
    assert!([[200, 200], [200, 409]].contains(&statuses), "{} and {}", first.text(), second.text());
}

#[test]
fn registrations_of_one_release_in_any_spelling_share_one_download_and_others_do_not_wait() {
    let (forge, url, keeper) = held_release(Kind::GitHub);
    let spelled = url.replace("/v1.0", "/v1%2E0");
    let before = forge.world.git().commit_count();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| forge.register_release(&url));
        keeper.await_request();
        let second = scope.spawn(|| forge.register_release(&spelled));
        let_earlier_requests_arrive(&forge);
        assert!(!first.is_finished() && !second.is_finished(), "both wait for the asset");
        let mallory = Person::named("mallory");
        forge.world.server.send(&forge.release_request(&mallory, &url)).error(403);
        let other = forge.forge.put_release(REPOSITORY, "v2.0", &[Asset::new("app.bin", "two")]);
        forge.register_release(&other).ok();
        keeper.open();
        assert_one_registered(&first.join().unwrap(), &second.join().unwrap());
    });
    assert_eq!(asset_requests(&forge), 1, "{:?}", forge.forge.targets());
    assert_eq!(forge.world.git().commit_count(), before + 2);
}

/// Each of them keeps a connection for as long as the download takes.
#[test]
fn a_key_cannot_have_waiters_without_number_at_one_download() {
    let (forge, url, keeper) = held_release(Kind::Forgejo);
    let first = send_unread(&forge, &alice(), &url);
    keeper.await_request();
    let waiting: Vec<_> = (0..7).map(|_| send_unread(&forge, &alice(), &url)).collect();
    let_earlier_requests_arrive(&forge);
    forge.register_release(&url).refused(429, "of this key fetch at the same time");
    drop((first, waiting));
    keeper.open();
}

#[test]
fn a_failure_is_shared_too_and_leaves_room_for_the_next_attempt() {
    let (forge, url, keeper) = held_release(Kind::GitHub);
    let (answer, failing) = ForgeAnswer::bytes("CONTENT").held();
    forge.forge.set(&forge.forge.asset_target(REPOSITORY, TAG, "app.bin"), answer);
    drop(keeper);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| forge.register_release(&url));
        failing.await_request();
        let second = scope.spawn(|| forge.register_release(&url));
        let_earlier_requests_arrive(&forge);
        failing.open();
        let (first, second) = (first.join().unwrap(), second.join().unwrap());
        assert_eq!(first.error(500), second.error(500));
    });
    assert_eq!(asset_requests(&forge), 1);
    forge.forge.put_release(REPOSITORY, TAG, &[Asset::new("app.bin", "content")]);
    forge.register_release(&url).ok();
}

#[test]
fn a_client_that_disconnects_does_not_lose_the_work_and_a_retry_joins() {
    for retries_early in [true, false] {
        let (forge, url, keeper) = held_release(Kind::GitLab);
        let lost = send_unread(&forge, &alice(), &url);
        keeper.await_request();
        lost.shutdown(std::net::Shutdown::Both).unwrap();
        drop(lost);
        let_earlier_requests_arrive(&forge);
        if !retries_early {
            keeper.open();
            let_earlier_requests_arrive(&forge);
        }
        let retry = std::thread::scope(|scope| {
            let retry = scope.spawn(|| forge.register_release(&url));
            let_earlier_requests_arrive(&forge);
            keeper.open();
            retry.join().unwrap()
        });
        // Registered already, or registered now: the texts leave it open whether a registration needs a waiter to be
        // stored.
        assert!(retry.status == 200 || !retries_early && retry.status == 409, "{}", retry.text());
        assert!(forge.world.exists(&forge.forge.index_path(REPOSITORY, TAG)));
        assert_eq!(asset_requests(&forge), 1, "{:?}", forge.forge.targets());
    }
}

#[test]
fn a_crash_during_the_download_leaves_nothing_and_the_retry_works() {
    let (mut forge, url, keeper) = held_release(Kind::Forgejo);
    let before = forge.world.git().commit_count();
    let _lost = send_unread(&forge, &alice(), &url);
    keeper.await_request();
    forge.world.server.crash_and_restart();
    assert_eq!(forge.world.git().commit_count(), before);
    forge.world.git().assert_sound();
    keeper.open();
    forge.register_release(&url).ok();
}

#[test]
fn several_assets_are_fetched_at_a_time() {
    let forge = ForgeWorld::with_project(Kind::GitHub);
    let assets = ["a", "b", "c"].map(|name| Asset::new(name, format!("content of {name}")));
    let url = forge.forge.put_release(REPOSITORY, TAG, &assets);
    let keepers = ["a", "b", "c"].map(|name| {
        let (answer, keeper) = ForgeAnswer::bytes(format!("content of {name}")).held();
        forge.forge.set(&forge.forge.asset_target(REPOSITORY, TAG, name), answer);
        keeper
    });
    std::thread::scope(|scope| {
        let reply = scope.spawn(|| forge.register_release(&url));
        // The first two in the release's order are on their way before either has ended.
        keepers[0].await_request();
        keepers[1].await_request();
        keepers.iter().for_each(GateKeeper::open);
        reply.join().unwrap().ok();
    });
}

#[test]
fn a_rotation_during_the_download_governs_the_index() {
    let (forge, url, keeper) = held_release(Kind::GitHub);
    let bob = Person::named("bob");
    let next = SignersFile::of(1, &[&bob]).redated(crate::support::days_ago(1));
    forge.forge.put_signers(REPOSITORY, "next", "svc.signers.json", &next);
    std::thread::scope(|scope| {
        let reply = scope.spawn(|| forge.register_release(&url));
        keeper.await_request();
        let page = forge.forge.url(&Kind::GitHub.page_of(REPOSITORY, "next", "svc.signers.json"));
        let body = json!({ "signers_file_url": page, "public_key": alice().body_key() });
        forge.world.post_as(&alice(), "/v1/update_signers", &body).ok();
        let pending = format!("{}/svc.signers.pending/svc.signers.json", forge.forge.project(REPOSITORY));
        forge.world.sign_all(&pending, &[&alice(), &bob]);
        keeper.open();
        let reply = reply.join().unwrap();
        // Alice is in no role any more: either she is refused now, or the index is governed by the new file (D16, D23).
        let index = forge.forge.index_path(REPOSITORY, TAG);
        if reply.status == 200 {
            assert_eq!(forge.world.read(&format!("{index}.signers.json")), next.bytes());
        } else {
            reply.error(403);
            assert!(!forge.world.exists(&index));
        }
    });
}

#[test]
fn the_log_shows_the_progress_of_every_asset() {
    let mut forge = ForgeWorld::with_project(Kind::Forgejo);
    let assets = [1, 2, 3].map(|n| Asset::new(&format!("app{n}"), vec![n; 3 * 1024 * 1024]));
    let url = forge.forge.put_release(REPOSITORY, TAG, &assets);
    forge.register_release(&url).ok();
    let log = forge.world.server.stop_and_read_log();
    for n in 1..=3 {
        let start = format!("asset {n} of 3, ");
        let line = log.lines().find_map(|line| line.split_once(&start)).map(|(_, rest)| rest);
        let line = line.unwrap_or_else(|| panic!("no line with `{start}`: {log}"));
        let (amount, _) = line.split_once(" MiB").unwrap_or_else(|| panic!("no MiB: {line}"));
        assert!(amount.parse::<f64>().is_ok(), "{line}");
    }
}
