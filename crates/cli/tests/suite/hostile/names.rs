//! D6: names that a stranger chooses, in URLs of checksums and signers files, never reach the repository.

use serde_json::json;

use crate::support::{SignersFile, World, alice};

/// One segment each, as it stands in a URL.
fn hostile_segments() -> Vec<String> {
    let mut segments: Vec<String> = [
        ".git",
        ".GIT",
        ".Git",
        "git~1",
        "GIT~1",
        ".git%20",
        ".git.",
        ".git%3a%3a$INDEX_ALLOCATION",
        ".gitmodules",
        ".GITMODULES",
        ".gitattributes",
        ".gitignore",
        ".mailmap",
        "gitmod~1",
        "gi7eba~1",
        "foo~1",
        "a~9",
        ".g%e2%80%8cit",
        ".gi%e2%80%8dt",
        "%e2%80%8e.git",
        ".gitm%ef%bb%bfodules",
        "svc.signers",
        "svc.index.json",
        "SVC.signers",
        "Svc.x",
        "svc%2esigners",
        "svc.",
        "v1.",
        "v1%20",
        "v1...",
        "%20",
        "e%cc%81",
        "%e2%84%ab",
        "a%e2%80%8bb",
        "a%e2%80%aeb",
        "a%e2%80%a8b",
        "a%e2%80%a9b",
        "a%c2%adb",
        "a%c2%85b",
        "a%01b",
        "a%7fb",
        "a%00b",
        "a%2fb",
        "a%2Fb",
        "a%5cb",
        "a\\b",
        "%2e%2e",
        "%2e",
        "..",
        ".",
        ".%2e",
        "%ff",
        "",
    ]
    .map(str::to_owned)
    .into();
    segments.push("x".repeat(201));
    segments.push("%c3%bc".repeat(101));
    segments
}

#[test]
fn a_hostile_directory_in_a_checksums_url_is_refused_and_not_fetched() {
    let world = World::with_project(&SignersFile::of(1, &[&alice()]), &[&alice()]);
    let commits = world.git().commit_count();
    let asked = world.files.asked();
    let mut accepted = Vec::new();
    for segment in hostile_segments() {
        let url = world.files.url(&format!("/acme/app/{segment}/SHA256SUMS"));
        let reply = world.register_assets(&alice(), &[&url]);
        if reply.status == 400 {
            reply.error(400);
        } else {
            accepted.push(format!("{segment} ({})", reply.status));
        }
    }
    assert_eq!(accepted, [""; 0], "not answered with 400");
    assert_eq!(world.files.asked(), asked);
    assert_eq!(world.git().commit_count(), commits);
    world.git().assert_sound();
}

#[test]
fn unusual_but_harmless_names_are_stored_and_git_finds_nothing_wrong() {
    let world = World::with_project(&SignersFile::of(1, &[&alice()]), &[&alice()]);
    for (segment, stored) in [
        ("%c3%bc", "ü"),
        ("a%20b", "a b"),
        ("-rf", "-rf"),
        ("%25", "%"),
        ("%f0%9f%a6%80", "🦀"),
        ("gitmodules", "gitmodules"),
        (".github", ".github"),
        ("asvc.x", "asvc.x"),
        ("con", "con"),
        ("a%22b", "a\"b"),
        ("%3f%23", "?#"),
    ] {
        world.files.put(&format!("/acme/app/{segment}/SUMS"), format!("{}  app\n", "a".repeat(64)));
        let url = world.files.url(&format!("/acme/app/{segment}/SUMS"));
        let answer = world.register_assets(&alice(), &[&url]).ok();
        assert_eq!(answer["index_file_path"], json!(world.index_path(&format!("acme/app/{stored}"))));
    }
    let longest = "x".repeat(200);
    world.files.put(&format!("/acme/app/{longest}/SUMS"), format!("{}  app\n", "a".repeat(64)));
    world.register_assets(&alice(), &[&world.files.url(&format!("/acme/app/{longest}/SUMS"))]).ok();
    world.git().assert_sound();
}

#[test]
fn a_path_too_long_for_the_repository_is_refused() {
    let world = World::with_project(&SignersFile::of(1, &[&alice()]), &[&alice()]);
    for dir in [["x".repeat(190).as_str(); 6].join("/"), ["a"; 70].join("/")] {
        let url = world.publish_checksums(&format!("acme/app/{dir}"), &format!("{}  app\n", "a".repeat(64)));
        world.register_assets(&alice(), &[&url]).error(400);
    }
}

#[test]
fn hosts_and_ports_have_one_spelling() {
    let world = World::start();
    let port = world.files.port();
    let file = SignersFile::of(1, &[&alice()]);
    world.publish("acme/app", &file);
    for authority in [
        format!("127.0.0.1.:{port}"),
        format!("127.0.0.1:+{port}"),
        "b\u{fc}cher.example".to_owned(),
        "host%2eexample".to_owned(),
        String::new(),
        "[::1".to_owned(),
    ] {
        let reply = world.register_url(&alice(), &format!("http://{authority}/acme/app/svc.signers.json"));
        assert_eq!(reply.status, 400, "{authority}: {}", reply.text());
        reply.error(400);
    }
}
