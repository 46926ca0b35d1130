//! D25–D28: what the server fetches, from where, and how far it follows.

use serde_json::json;

use crate::support::{Answer, FileServer, Person, Reply, SignersFile, World, world::checksums};

const SIGNERS: &str = "/acme/app/svc.signers.json";

fn alice() -> Person {
    Person::named("alice")
}

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

#[test]
fn without_dev_mode_a_loopback_file_server_is_refused() {
    let (world, reply) = register_with(&[]);
    reply.refused(400, "--file-server");
    assert_eq!(world.files.asked(), [""; 0]);
}

#[test]
fn allowing_the_file_server_does_not_allow_the_address_and_the_other_way_round() {
    for flags in [
        &["--file-server", "127.0.0.1:PORT"][..],
        &["--file-server", "*"],
        &["--allow-fetch", "127.0.0.1:*"],
        &["--allow-fetch", "127.0.0.0/8:*"],
        &["--allow-fetch", "127.0.0.1:*", "--file-server", "127.0.0.1:1"],
        &["--allow-fetch", "127.0.0.1:*", "--file-server", "127.0.0.1"],
        &["--allow-fetch", "127.0.0.2:*", "--file-server", "*"],
        &["--allow-fetch", "127.0.0.1", "--file-server", "*"],
        &["--allow-fetch", "127.0.0.0/8", "--file-server", "*"],
        &["--allow-fetch", "127.0.0.1:1", "--file-server", "*"],
        &["--allow-fetch", "10.0.0.0/8:*", "--file-server", "*"],
    ] {
        let (world, reply) = register_with(flags);
        assert_eq!(reply.status, 400, "{flags:?}: {}", reply.text());
        reply.error(400);
        assert_eq!(world.files.asked(), [""; 0], "{flags:?}");
    }
}

#[test]
fn both_flags_together_open_it() {
    for flags in [
        &["--file-server", "127.0.0.1:PORT", "--allow-fetch", "127.0.0.1:*"][..],
        &["--file-server", "127.0.0.1:PORT", "--allow-fetch", "127.0.0.1:PORT"],
        &["--file-server", "127.0.0.1:PORT", "--allow-fetch", "127.0.0.0/8:PORT"],
        &["--file-server", "*", "--allow-fetch", "127.0.0.0/8:*"],
        &[
            "--file-server",
            "x.example",
            "--file-server",
            "127.0.0.1:PORT",
            "--allow-fetch",
            "10.0.0.1",
            "--allow-fetch",
            "127.0.0.1/32:PORT",
        ],
    ] {
        let (world, reply) = register_with(flags);
        reply.ok();
        assert_eq!(world.files.asked(), [SIGNERS]);
    }
}

#[test]
fn loopback_is_recognised_in_every_spelling() {
    let world = World::start_with(|launch, _| launch.args(["--file-server", "*"]));
    world.publish("acme/app", &file());
    for host in [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "127.9.9.9",
        "0.0.0.0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::127.0.0.1]",
        "[2002:7f00:1::]",
        "[::]",
        "localhost",
        "LOCALHOST",
        "10.0.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "[fe80::1]",
        "[fd00::1]",
    ] {
        let reply = world.register_url(&alice(), &format!("http://{host}:{}{SIGNERS}", world.files.port()));
        assert_eq!(reply.status, 400, "{host}: {}", reply.text());
        reply.error(400);
    }
    assert_eq!(world.files.asked(), [""; 0]);
}

#[test]
fn dev_mode_opens_loopback_and_nothing_else() {
    let world = World::start();
    for host in
        ["10.0.0.1", "192.168.0.1", "169.254.169.254", "100.64.0.1", "[fd00::1]", "0.0.0.0", "224.0.0.1"]
    {
        let reply = world.register_url(&alice(), &format!("http://{host}:9{SIGNERS}"));
        assert_eq!(reply.status, 400, "{host}: {}", reply.text());
        reply.error(400);
    }
}

#[test]
fn a_signers_file_follows_redirects_within_its_own_origin() {
    let world = World::start();
    world.files.set(SIGNERS, Answer::Redirect("/mirror/one".to_owned()));
    world.files.set("/mirror/one", Answer::Redirect(world.files.url("/mirror/two")));
    world.files.put("/mirror/two", file().bytes());
    let url = world.files.url(SIGNERS);
    let answer = world.register_url(&alice(), &url).ok();
    assert_eq!(answer["project_id"], json!(world.id("acme/app")));
    let metadata = world.read_json(&format!("{}.metadata.json", world.pending_path("acme/app")));
    assert_eq!(metadata["origin"]["retrieval_url"], json!(url), "as requested, not where a redirect led");
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
    assert_eq!(world.git().commit_count(), 1);
}

#[test]
fn five_redirects_are_followed_and_no_more() {
    let world = World::start();
    for step in 0..6 {
        world.files.set(
            &format!("/hop/{step}/svc.signers.json"),
            Answer::Redirect(format!("/hop/{}/svc.signers.json", step + 1)),
        );
    }
    world.files.put("/hop/6/svc.signers.json", file().bytes());
    world.register_url(&alice(), &world.files.url("/hop/0/svc.signers.json")).error(500);
    world.register_url(&alice(), &world.files.url("/hop/1/svc.signers.json")).ok();
    world.files.set("/loop/svc.signers.json", Answer::Redirect("/loop/svc.signers.json".to_owned()));
    world.register_url(&alice(), &world.files.url("/loop/svc.signers.json")).error(500);
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
fn proxy_variables_of_the_environment_are_ignored() {
    let proxy = FileServer::start();
    let address = proxy.url("");
    let world = World::start_with(|launch, _| {
        ["http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"]
            .iter()
            .fold(launch.arg("--dev"), |launch, name| launch.env(name, &address))
    });
    world.register(&alice(), "acme/app", &file()).ok();
    assert_eq!(proxy.asked(), [""; 0]);
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

#[test]
fn an_upstream_that_stalls_or_drips_is_given_up() {
    let config = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(config.path(), "[fetch]\nidle_timeout_seconds = 1\ntotal_timeout_seconds = 2\n").unwrap();
    let path = config.path().to_str().unwrap().to_owned();
    let world = World::start_with(|launch, _| launch.arg("--dev").args(["--config", &path]));
    let url = world.files.url(SIGNERS);
    let (stalled, _keeper) = Answer::held("never sent");
    for answer in [stalled, Answer::Dripping] {
        world.files.set(SIGNERS, answer);
        world.register_url(&alice(), &url).refused(500, &url);
    }
    world.register(&alice(), "acme/app", &file()).ok();
}

#[test]
fn a_port_where_nothing_listens_is_an_upstream_failure() {
    let world = World::start();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{closed}{SIGNERS}");
    world.register_url(&alice(), &url).refused(500, &url);
}
