//! What goes wrong between the client and a server, in the client's words, with the way out.

use countersign_api::error_code::ErrorCode;
use countersign_testing::literals::FIRST;
use tempfile::TempDir;

use crate::support::client::{Computer, Ran, put_release, text};
use crate::support::{SignersFile, TestServer, World, hostile::HostileServer, hostile::Lie, person};

#[track_caller]
fn project() -> (World, Computer) {
    let (alice, bob) = (person("alice"), person("bob"));
    let world = World::with_project(&SignersFile::of(2, &[&alice, &bob]), &[&alice, &bob]);
    let computer = Computer::of(&world.server);
    (world, computer)
}

/// A client that looked into the words would do something else (D230).
#[test]
fn a_refusal_says_which_case_it_is_and_nothing_depends_on_the_words_of_the_server() {
    let (alice, bob, carol) = (person("alice"), person("bob"), person("carol"));
    let world = World::with_project(&SignersFile::of(2, &[&alice, &bob]), &[&alice, &bob]);
    let computer = Computer::of(&world.server);
    let between = HostileServer::before(&world.server);
    let words = "words that no version of the server has said";
    between.reword(words);
    let registered = world.files.url("/acme/app/svc.signers.json");
    world.files.put("/acme/app/svc.signers/next.json", SignersFile::of(1, &[&alice]).bytes());
    let not_later = world.files.url("/acme/app/svc.signers/next.json");
    let pending = world.publish("acme/new", &SignersFile::of(1, &[&alice]));
    world.register_url(&alice, &pending).ok();
    let nested = world.publish("acme/app/inner", &SignersFile::of(1, &[&alice]));
    let strangers = world.publish("acme/others", &SignersFile::of(1, &[&carol]));
    let done = world.add_signed_release("acme/app/1.0", &[&alice, &bob]);
    let complete = world.files.url("/acme/app/1.0/SHA256SUMS");
    world.add_release(&alice, "acme/app/2.0");
    let same = world.files.url("/acme/app/2.0/SHA256SUMS");
    let missing = world.files.url("/acme/app/9.9/SHA256SUMS");
    world.files.put("/acme/app/8.8/SHA256SUMS", "no checksum\n");
    let broken = world.files.url("/acme/app/8.8/SHA256SUMS");
    let unregistered = put_release(&world.files, "other/1.0", &[("app", b"content")]);
    let file_url = "https://dl.example.org/SHA256SUMS?x=1";
    let cases: [(&str, &str, &[&str]); 13] = [
        ("project_registered", "alice", &["register", &registered]),
        ("registration_pending", "alice", &["register", &pending]),
        ("project_overlaps", "alice", &["register", &nested]),
        ("key_not_listed", "alice", &["register", &strangers]),
        ("key_not_listed", "carol", &["update", &not_later]),
        ("timestamp_not_later", "alice", &["update", &not_later]),
        ("release_registered", "alice", &["release", "--checksums", &complete]),
        ("release_registered", "alice", &["release", "--checksums", &same]),
        ("not_a_signer", "carol", &["release", "--checksums", &complete]),
        ("project_not_registered", "alice", &["release", "--checksums", &unregistered]),
        ("upstream_missing", "alice", &["release", "--checksums", &missing]),
        ("upstream_invalid", "alice", &["release", "--checksums", &broken]),
        ("url_refused", "alice", &["release", "--checksums", file_url]),
    ];
    let mut hints = Vec::new();
    for (code, who, args) in cases {
        let told = |server: &str| {
            let mut error =
                computer.run_as(who, &[args, &["--json", "--server", server]].concat()).json_error(1);
            let said = error["error"].take();
            error["request_id"].take();
            assert_eq!(error["code"], code, "{said}");
            (error, said)
        };
        let (honest, said) = told(&format!("http://{}", world.server.address()));
        if honest["status"] == 409 && code != "timestamp_not_later" {
            hints.push((honest["conflict"].clone(), honest["hint"].clone()));
        }
        let (reworded, other) = told(&between.url());
        assert_eq!(reworded, honest, "{said}");
        // `release` looks itself what is there, and says it in its own words.
        let is_told = other.as_str().unwrap().contains(words);
        assert_eq!(is_told, code != "release_registered", "{other}");
    }
    // The words are the client's, and the request can be found in the server's log.
    let args = ["release", "--checksums", &unregistered];
    let refused =
        computer.run_as("alice", &args).failed(1).says(&["`countersign register`", "\nrequest id: "]);
    refused.says_nothing_of(&["/v1/", "register_repo", "POST"]);
    let error = computer.run_as("alice", &[&args[..], &["--json"]].concat()).json_error(1);
    let id = error["request_id"].as_str().unwrap();
    assert!(id.len() == 25 && id.contains('-'), "{error}");
    assert_eq!(error["status"], 400);
    assert!(!error["error"].as_str().unwrap().contains("/v1/"), "{error}");
    for url in [&missing, &broken] {
        let ran = computer.run_as("alice", &["release", "--checksums", url]).failed(1);
        ran.says(&["cannot use what it was told to fetch", url, "correct the file"])
            .says_nothing_of(&["operator", "failed:"]);
    }
    // Each conflict has a name and a next step of its own.
    let names = ["project_registered", "registration_pending", "project_overlaps", "already_complete"];
    let names = [&names[..], &["release_registered"]].concat();
    assert_eq!(hints.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>(), names);
    hints.sort_by_key(|(_, hint)| hint.to_string());
    hints.dedup_by_key(|(_, hint)| hint.clone());
    assert_eq!(hints.len(), names.len(), "{hints:?}");
    world.revoke(&alice, &done).ok();
    let error = computer.run_as("alice", &["release", "--checksums", &complete, "--json"]).json_error(1);
    assert_eq!(error["conflict"], "revoked", "{error}");
}

#[test]
fn refusals_of_a_mirror_and_of_a_server_without_codes_are_told_to_their_end() {
    let server = HostileServer::alone();
    let ping = || Computer::offline().run(&["ping", "--server", &server.url()]).failed(1);
    let said = "this is a mirror of http://127.0.0.1:1. It accepts no signed requests: send them to \
                http://127.0.0.1:1";
    server.answer("/v1/ping", Lie::refusal(ErrorCode::ReadOnlyMirror, said));
    ping().says(&["name the other server with --server"]).says_nothing_of(&["check --key"]);
    // Of a server that has no codes, the client knows the status.
    let long = format!("{} and then it ends", "a long sentence ".repeat(30));
    for said in [said, &long] {
        server.answer("/v1/ping", Lie::error(403, said));
        ping().says(&[said, "check --key"]);
    }
    server.answer("/v1/ping", Lie::redirect(301, "https://sign.example.org/v1/ping"));
    ping().says(&["redirects to https://sign.example.org\n", "use https://sign.example.org with --server"]);
    // A path keeps its words, whatever they mean to the API.
    let said = "csum_files: `http/x/80/csum_files/a` and http/x/80/public_key-tool have a subject_digest.";
    server.answer("/v1/ping", Lie::error(400, said));
    ping().says(&[
        "--checksums: `http/x/80/csum_files/a` and http/x/80/public_key-tool have a the digest of what was shown.",
    ]);
}

#[test]
fn what_is_no_countersign_server_or_a_proxy_is_told_as_such() {
    let (world, computer) = project();
    // A file server answers 404 to everything, which does not mean that a release is not there.
    let server = world.files.url("");
    let index = world.index_path("acme/app/1.0");
    for args in [&["ping"][..], &["status", &index], &["sign", &index, "--yes"]] {
        let ran = computer.run_as("alice", &[args, &["--server", &server]].concat()).failed(1);
        ran.says(&["is not a Countersign server", "404", "--server"]);
    }
    let pages = HostileServer::alone();
    let page = |status| Lie::Answer { status, headers: Vec::new(), body: b"<html>Hello</html>".to_vec() };
    let page = |status| page(status).with_header("content-type", "text/html; charset=utf-8");
    for (status, code) in [(200, 3), (403, 1)] {
        pages.answer("/v1/ping", page(status));
        let ran = computer.run(&["ping", "--server", &pages.url()]).failed(code);
        ran.says(&["is not a Countersign server", "a web page"]).says_nothing_of(&["<html>"]);
    }

    let proxy = HostileServer::alone();
    let body = b"<html>502 Bad Gateway</html>".to_vec();
    proxy.answer("/v1/ping", Lie::Answer { status: 502, headers: Vec::new(), body });
    let ran = computer.run(&["ping", "--server", &proxy.url()]).failed(5);
    ran.says(&["a proxy in front of", "502"]);
    proxy.answer("/v1/ping", Lie::error(403, "you shall not pass").with_header("x-request-id", "abc-1"));
    computer
        .run(&["ping", "--server", &proxy.url()])
        .failed(1)
        .says(&["you shall not pass", "request id: abc-1"]);
}

/// A server with a certificate that no one has signed, and the certificate's file.
fn secure_server() -> (TestServer, TempDir) {
    let dir = TempDir::new().unwrap();
    for (name, content) in ["cert.pem", "key.pem"].into_iter().zip(FIRST) {
        std::fs::write(dir.path().join(name), content).unwrap();
    }
    let file = |name: &str| text(&dir.path().join(name)).to_owned();
    let server = TestServer::start_with(|launch| {
        launch.args(["--tls-cert", &file("cert.pem"), "--tls-key", &file("key.pem")])
    });
    (server, dir)
}

#[test]
fn a_certificate_that_is_not_trusted_is_told_with_the_reason_and_the_way_out() {
    let (server, dir) = secure_server();
    let computer = Computer::offline();
    let url = format!("https://{}", server.address());
    let ran = computer.run(&["ping", "--server", &url]).failed(5);
    ran.says(&["certificate", "SSL_CERT_FILE", "because: no authority that this computer trusts"]);
    let mut trusting = computer.command(&["ping", "--server", &url]);
    let ran = Ran::of(trusting.env("SSL_CERT_FILE", dir.path().join("cert.pem")));
    ran.ok().says(&["is there"]);
    // The schemes are mixed up.
    let ran = computer.run(&["ping", "--server", &format!("http://{}", server.address())]).failed(5);
    ran.says(&["speaks https at this port", &format!("use https://{}", server.address())]);
    let (world, computer) = project();
    let ran = computer.run(&["ping", "--server", &format!("https://{}", world.server.address())]).failed(5);
    ran.says(&["does not speak https", &format!("use http://{}", world.server.address())]);
}

#[test]
fn a_setting_in_the_environment_is_no_command_and_names_the_file_that_it_names() {
    let computer = Computer::offline();
    let ran = Ran::of(&mut computer.command(&[]));
    assert_eq!(ran.code, 2, "{ran:?}");
    ran.says(&["Use:\n  download", "Run a server:", "countersign demo"]).says_nothing_of(&["error"]);
    let mut command = computer.command(&["pending"]);
    Ran::of(command.env("COUNTERSIGN_KEY", "nokey")).failed(1).says(&["nokey", "COUNTERSIGN_KEY names it"]);
}
