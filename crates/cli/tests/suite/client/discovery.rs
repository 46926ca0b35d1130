//! A newcomer has the program and a URL: the project's own signers file says whom to ask. More is text
//! (`client_servers.txt`).

use std::{io::ErrorKind, net::TcpListener};

use serde_json::json;

use crate::support::client::{Computer, NO_SERVER, Ran, add_files};
use crate::support::fake_forge::{Asset, ForgeAnswer, ForgeWorld, KINDS, Kind};
use crate::support::{Person, SignersFile, World, alice};

fn file_naming(servers: &[&str]) -> SignersFile {
    SignersFile::of(1, &[&alice()]).with("servers", json!(servers))
}

fn download(computer: &Computer, url: &str) -> Ran {
    Ran::of(&mut computer.newcomer(&["download", url]))
}

/// A project on a forge whose signers file, on `branch`, names the server behind one that is gone.
fn released(kind: Kind, branch: &str, path: &str) -> (ForgeWorld, String) {
    let forge = ForgeWorld::start(kind);
    let server = format!("http://{}", forge.world.server.address());
    let file = file_naming(&[NO_SERVER, &server]);
    forge.forge.put_signers("acme/app", branch, path, &file);
    let signer = Computer::of(&forge.world.server);
    let page = forge.forge.url(&kind.page_of("acme/app", branch, path));
    signer.run_as("alice", &["register", &page]).ok();
    signer.sign_all(&["alice"]);
    let release = forge.forge.put_release("acme/app", "v1.0", &[Asset::new("app.tar.gz", "the archive")]);
    signer.run_as("alice", &["release", &release]).ok();
    signer.sign_all(&["alice"]);
    let url = forge.forge.url(&forge.forge.asset_target("acme/app", "v1.0", "app.tar.gz"));
    (forge, url)
}

#[test]
fn a_download_needs_nothing_but_the_url() {
    let (_forge, url) = released(Kind::Forgejo, "main", "svc.signers.json");
    let user = Computer::offline();
    download(&user, &url).ok().says(&["names its servers", "Verified", "first time"]);
    assert_eq!(user.read("app.tar.gz"), b"the archive");
    // What was found is remembered.
    download(&user, &url).ok().says_nothing_of(&["names its servers"]);
}

#[test]
fn the_default_branch_and_the_known_places_are_looked_at() {
    for kind in KINDS {
        let (forge, url) = released(kind, "trunk", "svc.signers/svc.signers.json");
        download(&Computer::offline(), &url).failed(2).says(&["no server is set"]);
        let api = match kind {
            Kind::GitLab => "/api/v4/projects/acme%2Fapp".to_owned(),
            Kind::GitHub => "/api/v3/repos/acme/app".to_owned(),
            Kind::Forgejo => "/api/v1/repos/acme/app".to_owned(),
        };
        forge.forge.set(&api, ForgeAnswer::json(&json!({"default_branch": "trunk"})));
        download(&Computer::offline(), &url).ok().says(&["Verified"]);
    }
}

#[test]
fn what_the_forge_says_is_not_believed() {
    let (forge, url) = released(Kind::GitHub, "main", "svc.signers.json");
    // The forge's account is stolen: other signers, and their own server.
    let mallory = Person::named("mallory");
    let stranger = World::start();
    let server = format!("http://{}", stranger.server.address());
    let file = SignersFile::of(1, &[&mallory]).with("servers", json!([server]));
    let user = Computer::of(&forge.world.server);
    user.download(&url).ok();
    forge.forge.put_signers("acme/app", "main", "svc.signers.json", &file);
    // A computer that has met the project asks the server that it remembers.
    download(&user, &url).ok();
    // Another one is told of a server that knows nothing of the file.
    download(&Computer::offline(), &url).failed(3).says(&["not signed"]);
}

/// A place of this machine that no project should make its users ask.
struct InnerService(TcpListener);

impl InnerService {
    fn start(host: &str) -> Self {
        let listener = TcpListener::bind((host, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        Self(listener)
    }

    fn port(&self) -> u16 {
        self.0.local_addr().unwrap().port()
    }

    /// Whether a client has connected since the last look. The system accepts for us.
    fn was_asked(&self) -> bool {
        match self.0.accept() {
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_project_does_not_send_its_users_into_their_own_network() {
    let world = World::start();
    let url = world.files.url("/acme/app/1.0/app");
    let other = InnerService::start("127.0.0.2");
    let named = InnerService::start("127.0.0.1");
    for (service, server, reason) in [
        (&other, format!("http://127.0.0.2:{}/chosen", other.port()), "loopback"),
        (&other, format!("https://127.0.0.2:{}/chosen", other.port()), "loopback"),
        (&other, format!("https://[::ffff:127.0.0.2]:{}", other.port()), "loopback"),
        // By a name, and over https only after it was resolved.
        (&named, format!("http://localhost:{}", named.port()), "not https"),
        (&named, format!("https://localhost:{}", named.port()), "loopback"),
        (&other, "http://10.1.2.3".to_owned(), "private"),
        (&other, "https://169.254.169.254/latest".to_owned(), "link-local"),
        (&other, "http://sign.example.org".to_owned(), "not https"),
    ] {
        world.publish("acme/app", &file_naming(&[&server]));
        let ran = download(&Computer::offline(), &url).failed(2);
        ran.says(&["signers file names the server", "does not ask", reason, "--server"]);
        assert!(!service.was_asked(), "{server}");
    }
    // What the user names is the user's own choice.
    let server = format!("http://127.0.0.2:{}", other.port());
    let computer = Computer::offline();
    let (asking, url) = (&server, &url);
    std::thread::scope(|scope| {
        let asked =
            scope.spawn(move || Ran::of(&mut computer.newcomer(&["download", url, "--server", asking])));
        while !other.was_asked() {
            assert!(!asked.is_finished(), "{:?}", asked.join());
            std::thread::yield_now();
        }
        drop(other);
        asked.join().unwrap().failed(5);
    });
}

#[test]
fn a_server_that_was_discovered_stays_a_strangers_choice() {
    let world = World::start();
    let server = format!("http://{}", world.server.address());
    world.activate("acme/app", &file_naming(&[&server]), &[&alice()]);
    add_files(&world, "acme/app/1.0", &[("app", b"content")], &[&alice()]);
    let (user, url) = (Computer::offline(), world.files.url("/acme/app/1.0/app"));
    download(&user, &url).ok();
    let config = user.config().join("config.toml");
    let remembered = std::fs::read_to_string(&config).unwrap();
    assert!(remembered.contains(&server) && remembered.contains("discovered = true"), "{remembered}");
    // Later its name leads elsewhere.
    let service = InnerService::start("127.0.0.2");
    let moved = format!("http://127.0.0.2:{}", service.port());
    std::fs::write(&config, remembered.replace(&server, &moved)).unwrap();
    for args in [&["download", &url][..], &["pending"], &["status", "acme/app"]] {
        let mut command = user.newcomer(args);
        Ran::of(command.env("COUNTERSIGN_KEY", user.key_of("alice"))).failed(2).says(&["does not ask"]);
        assert!(!service.was_asked(), "{args:?}");
    }
    // A user who sets it means it.
    let project = world.id("acme/app");
    Ran::of(&mut user.newcomer(&["config", "set", "server", &server, "--project", &project])).ok();
    let set = std::fs::read_to_string(&config).unwrap();
    assert!(set.contains(&server) && !set.contains("discovered"), "{set}");
    download(&user, &url).ok();
}
