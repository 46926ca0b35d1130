//! D25–D28: what the server fetches, from where, and how far it follows.

use serde_json::json;

use crate::support::{Answer, FileServer, Reply, SignersFile, World, alice, world::checksums};

const SIGNERS: &str = "/acme/app/svc.signers.json";

fn file() -> SignersFile {
    SignersFile::of(1, &[&alice()])
}

/// Registers a project with a server that was started with these flags; `PORT` is the file server's.
fn register_with(flags: &[&str]) -> (World, Reply) {
    let world = World::start_with(|launch, files| {
        let port = files.port().to_string();
        flags.iter().fold(launch, |launch, flag| launch.arg(&flag.replace("PORT", &port)))
    });
    let reply = world.register(&alice(), "acme/app", &file());
    (world, reply)
}

/// What each flag covers is tested in crates/forge.
#[test]
fn a_loopback_file_server_is_fetched_from_if_both_flags_allow_it() {
    for (flags, is_open) in [
        (&[][..], false),
        (&["--file-server", "*"], false),
        (&["--allow-fetch", "127.0.0.0/8:*"], false),
        (&["--allow-fetch", "127.0.0.1:*", "--file-server", "127.0.0.1:1"], false),
        (&["--allow-fetch", "127.0.0.1:1", "--file-server", "*"], false),
        (&["--file-server", "127.0.0.1:PORT", "--allow-fetch", "127.0.0.1:PORT"], true),
        (&["--file-server", "x.example,127.0.0.1:PORT", "--allow-fetch", "10.0.0.1,127.0.0.1/32:PORT"], true),
    ] {
        let (world, reply) = register_with(flags);
        assert_eq!(reply.status, if is_open { 200 } else { 400 }, "{flags:?}: {}", reply.text());
        assert_eq!(world.files.asked().len(), usize::from(is_open), "{flags:?}");
        if flags.is_empty() {
            reply.refused(400, "--file-server");
        }
    }
}

#[test]
fn a_signers_file_does_not_follow_a_redirect_elsewhere() {
    let world = World::start();
    let elsewhere = FileServer::start();
    elsewhere.put("/x", file().bytes());
    for location in [
        elsewhere.url("/x"),
        format!("http://localhost:{}/x", world.files.port()),
        format!("http://127.0.0.2:{}/x", world.files.port()),
        format!("https://127.0.0.1:{}/x", world.files.port()),
        "file:///etc/passwd".to_owned(),
        "http://169.254.169.254/x".to_owned(),
    ] {
        world.files.set(SIGNERS, Answer::Redirect(location.clone()));
        let reply = world.register_url(&alice(), &world.files.url(SIGNERS));
        assert_eq!(reply.status, 500, "{location}: {}", reply.text());
        reply.refused(500, &world.files.url(SIGNERS));
    }
    assert_eq!(elsewhere.asked(), [""; 0]);
    // Nor does a port where nothing listens give one.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{closed}{SIGNERS}");
    world.register_url(&alice(), &url).refused(500, &url);
    assert_eq!(world.git().commit_count(), 1);
}

#[test]
fn a_checksums_file_may_be_redirected_to_an_allowed_address_only() {
    let world =
        World::start_with(|launch, _| launch.args(["--file-server", "*", "--allow-fetch", "127.0.0.1:*"]));
    world.activate("acme/app", &file(), &[&alice()]);
    let elsewhere = FileServer::start();
    elsewhere.put("/x", checksums("v1"));
    let url = world.files.url("/acme/app/v1/SHA256SUMS");
    for location in
        [elsewhere.url("/x").replace("127.0.0.1", "127.0.0.2"), "http://169.254.169.254/x".to_owned()]
    {
        world.files.set("/acme/app/v1/SHA256SUMS", Answer::Redirect(location));
        world.register_assets(&alice(), &[&url]).refused(500, &url);
    }
    world.files.set("/acme/app/v1/SHA256SUMS", Answer::Redirect(elsewhere.url("/x")));
    world.register_assets(&alice(), &[&url]).ok();
    let index = world.read_json(&world.index_path("acme/app/v1"));
    assert_eq!(index["published_files"][0]["source"], json!(world.files.url("/acme/app/v1/app.tar.gz")));
}

#[test]
fn an_upstream_that_answers_nothing_does_not_hold_up_anyone_else() {
    let world = World::start();
    world.activate("other", &file(), &[&alice()]);
    let (answer, keeper) = Answer::held(file().bytes());
    world.files.set(SIGNERS, answer);
    std::thread::scope(|scope| {
        let held = scope.spawn(|| world.register_url(&alice(), &world.files.url(SIGNERS)));
        keeper.await_request();
        world.server.get("/v1/ping").ok();
        let index = world.add_signed_release("other/v1", &[&alice()]);
        assert!(world.is_complete(&alice(), &index));
        keeper.release();
        held.join().unwrap().ok();
    });
}
