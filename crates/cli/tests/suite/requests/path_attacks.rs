//! D6 over the raw socket: no request target reaches anything but a stored file.

use crate::support::{Git, Person, Reply, Request, SignersFile, TestServer, World};

/// The routes that take a path; the last two need authentication.
const ROUTES: [&str; 6] = [
    "/v1/files/",
    "/v1/get_signers/",
    "/v1/get_signers_chain/",
    "/v1/get_artifact_signers_chain/",
    "/v1/signatures/",
    "/v1/files-to-sign/",
];

fn attack(server: &TestServer, route: &str, path: &[u8]) -> Reply {
    let target = [route.as_bytes(), path].concat();
    server.send(&Person::named("alice").sign(Request::get(target)))
}

/// Every route answers 400, in JSON, with these words.
#[track_caller]
fn assert_refused_everywhere(server: &TestServer, path: &[u8], words: &str) {
    for route in ROUTES {
        let reply = attack(server, route, path);
        let shown = String::from_utf8_lossy(path);
        assert_eq!(reply.status, 400, "{route}{shown}: {}", reply.text());
        reply.refused(400, words);
    }
}

#[test]
fn dot_segments_are_path_traversal_in_every_spelling() {
    let server = TestServer::start();
    for path in [
        "..",
        ".",
        "../nonces.sqlite",
        "../../etc/passwd",
        "a/../b",
        "a/./b",
        "a/..",
        "%2e%2e",
        "%2E%2e/nonces.sqlite",
        ".%2e/x",
        "%2e",
        "a/%2e%2e/%2e%2e/x",
        "..%2fnonces.sqlite",
        "a%2f..%2fb",
        "http/example.org/80/../../../x",
    ] {
        assert_refused_everywhere(&server, path.as_bytes(), "path traversal");
    }
}

#[test]
fn a_path_is_decoded_once() {
    let server = TestServer::start();
    for path in ["%252e%252e/nonces.sqlite", "%252e%252e%252fx", "%25%32%65/x", "%2525"] {
        server.get(&format!("/v1/files/{path}")).error(404);
    }
    assert_refused_everywhere(&server, b"a%00b", "");
}

#[test]
fn the_git_directory_is_refused_in_any_letter_case() {
    let server = TestServer::start();
    for path in [
        ".git/config",
        ".GIT/config",
        ".Git",
        ".gIt/HEAD",
        "%2egit/config",
        "a/.git/config",
        ".g%69t/x",
        "a/b/.GIT",
    ] {
        assert_refused_everywhere(&server, path.as_bytes(), "");
    }
}

#[test]
fn nothing_of_the_data_directory_is_served() {
    let server = TestServer::start();
    let mut names =
        vec!["nonces.sqlite".to_owned(), "repo.git/config".to_owned(), "repo.git/HEAD".to_owned()];
    for entry in std::fs::read_dir(server.data_dir()).unwrap() {
        names.push(entry.unwrap().file_name().into_string().unwrap());
    }
    for entry in std::fs::read_dir(server.repository()).unwrap() {
        names.push(entry.unwrap().file_name().into_string().unwrap());
    }
    let absolute = server.data_dir().to_str().unwrap().to_owned();
    for name in names {
        server.get(&format!("/v1/files/{name}")).error(404);
        server.get(&format!("/v1/files/../{name}")).error(400);
        server.get(&format!("/v1/files/{absolute}/{name}")).error(400);
    }
}

#[test]
fn what_is_not_utf8_is_refused() {
    let server = TestServer::start();
    for path in ["%ff", "a/%c3%28", "%ed%a0%80", "%c0%ae%c0%ae/x", "%f8%80%80%80%80", "%c3"] {
        assert_refused_everywhere(&server, path.as_bytes(), "");
    }
    let raw = attack(&server, "/v1/files/", b"a\xff\xfe");
    assert_eq!(raw.status, 400, "{}", raw.text());
}

#[test]
fn bytes_that_http_forbids_in_a_target_do_not_get_through() {
    let server = TestServer::start();
    for path in [&b"a\0b"[..], b"a b", b"a\x01b"] {
        let reply = attack(&server, "/v1/files/", path);
        assert_eq!(reply.status, 400, "{path:?}: {}", reply.text());
    }
    server.get("/v1/ping").ok();
}

#[test]
fn a_stray_percent_sign_breaks_nothing() {
    let server = TestServer::start();
    for path in ["%", "%4", "%zz", "a%", "%%%"] {
        let reply = attack(&server, "/v1/files/", path.as_bytes());
        assert!(matches!(reply.status, 400 | 404), "{path}: {}", reply.text());
        reply.error(reply.status);
    }
}

#[test]
fn queries_and_absolute_targets_do_not_change_the_path() {
    let alice = Person::named("alice");
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let path = world.active_path("acme/app");
    let plain = world.read(&path);
    let query = world.file(&format!("{path}?../../x"));
    assert_eq!((query.status, query.body), (200, plain.clone()));
    let absolute = world.server.get(&format!("http://elsewhere.example/v1/files/{path}"));
    assert_eq!((absolute.status, absolute.body), (200, plain));
    world.server.get("http://elsewhere.example/v1/files/../x").refused(400, "path traversal");
}

#[test]
fn a_symbolic_link_in_one_project_is_not_followed_and_stops_nothing_else() {
    let alice = Person::named("alice");
    let mut world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    let secret = world.server.data_dir().join("secret");
    std::fs::write(&secret, "hidden").unwrap();
    let (active, dir) = (world.active_path("acme/app"), world.id("acme/app"));
    world.server.stop();
    let git = Git::at(world.server.repository());
    git.commit_symlink(&format!("{dir}/outside"), secret.to_str().unwrap());
    git.commit_symlink(&format!("{dir}/up"), "../../../../../../secret");
    git.commit_symlink(&format!("{dir}/inside"), "svc.signers/svc.signers.json");
    git.commit_symlink(&format!("{dir}/dir"), "svc.signers");
    world.server.start_again();
    for name in ["outside", "up", "inside", "dir", "dir/svc.signers.json"] {
        let reply = world.file(&format!("{dir}/{name}"));
        assert_ne!(reply.status, 200, "{name}: {}", reply.text());
        reply.error(reply.status);
    }
    assert!(world.exists(&active));
}
