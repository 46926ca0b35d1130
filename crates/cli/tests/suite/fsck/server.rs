//! `fsck URL`: a running server, checked over its journal.

use std::{io::Write as _, net::SocketAddr, path::Path, sync::Mutex};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{self, fsck::Checked, listening::listen, metrics};
use crate::support::{Git, Launch, Person, SignersFile, TestServer, World};

fn fsck(url: &str, args: &[&str]) -> Checked {
    support::fsck::fsck(Path::new(url), args)
}

fn url(address: SocketAddr) -> String {
    format!("http://{address}")
}

fn world() -> (World, Person) {
    let alice = Person::named("alice");
    let world = World::with_project(&SignersFile::of(1, &[&alice]), &[&alice]);
    world.add_signed_release("acme/app/v1", &[&alice]);
    (world, alice)
}

fn head(server: &TestServer) -> String {
    Git::at(server.repository()).run(&["rev-parse", "main"])
}

#[test]
fn a_sound_server_is_clean_and_only_what_is_new_is_fetched_again() {
    let (world, alice) = world();
    let url = url(world.server.address());
    let checked = fsck(&url, &[]);
    assert_eq!(checked.code, Some(0), "{}", checked.json);
    assert_eq!(checked.json["head"], head(&world.server));
    assert_eq!(checked.json["commits"], world.git().commit_count());
    assert_eq!(checked.json["repository"], url);

    let dir = TempDir::new().unwrap();
    let kept = dir.path().join("copy.git");
    let keep = ["--keep", kept.to_str().unwrap()];
    assert_eq!(fsck(&url, &keep).code, Some(0));
    let first = head(&world.server);
    Git::at(&kept).assert_sound();
    assert_eq!(Git::at(&kept).run(&["rev-parse", "main"]), first);

    world.add_signed_release("acme/app/v2", &[&alice]);
    let checked = fsck(&url, &[&keep[..], &["--since", &first]].concat());
    assert_eq!((checked.code, &checked.json["commits"]), (Some(0), &Value::from(2)), "{}", checked.json);
    assert_eq!(Git::at(&kept).run(&["rev-parse", "main"]), head(&world.server));
    // The copy is one like any other.
    let output = Launch::default().args(["fsck", kept.to_str().unwrap(), "--json"]).output();
    assert!(output.status.success());
}

/// A journal of such commits can be endless.
#[test]
fn only_commits_that_the_rules_give_are_stored_and_the_first_other_one_ends_the_check() {
    let (mut world, _) = world();
    world.server.stop();
    let legal = head(&world.server);
    let who = "Countersign <countersign@localhost> 1800000000 +0000";
    let commit = |number: usize| {
        // The others continue the one before.
        let from = if number == 0 { format!("from {legal}\n") } else { String::new() };
        format!(
            "commit refs/heads/main\nauthor {who}\ncommitter {who}\ndata 6\nNotes\n{from}M 100644 inline \
             notes{number}\ndata 1\nx\n\n"
        )
    };
    let stream: String = (0..20).map(commit).collect();
    world.git().run_with_input(&["fast-import", "--quiet"], stream.as_bytes());
    let illegal = world.git().run(&["rev-parse", "main~19"]);
    world.server.start_again();
    let dir = TempDir::new().unwrap();
    let kept = dir.path().join("copy.git");
    let url = url(world.server.address());
    for _ in 0..2 {
        let checked = fsck(&url, &["--keep", kept.to_str().unwrap()]);
        assert_eq!(checked.code, Some(3), "{}", checked.json);
        assert_eq!(checked.json["findings"][0]["commit"], illegal);
        assert_eq!(checked.json["findings"][0]["files"][0], "notes0");
        assert_eq!(
            (&checked.json["found"], &checked.json["head"]),
            (&Value::from(1), &Value::from(illegal.clone()))
        );
        assert!(checked.json["notes"].to_string().contains("not further"), "{}", checked.json);
        assert_eq!(Git::at(&kept).run(&["rev-parse", "main"]), legal);
    }
    // Someone has looked at one of them, and checks what came later.
    let known = world.git().run(&["rev-parse", "main~5"]);
    let checked = fsck(&url, &["--since", &known]);
    assert_eq!(checked.json["findings"][0]["commit"], world.git().run(&["rev-parse", "main~4"]));
    let checked = fsck(&url, &["--since", &head(&world.server)]);
    assert_eq!((checked.code, &checked.json["commits"]), (Some(0), &Value::from(0)), "{}", checked.json);
    let checked = fsck(&url, &["--since", &"1".repeat(40)]);
    assert_eq!(checked.code, Some(3), "{}", checked.json);
    assert!(checked.json["error"].as_str().unwrap().contains("is not in the history"), "{}", checked.json);
}

#[test]
fn a_server_that_rewrote_its_past_is_refused() {
    let (mut world, _) = world();
    let dir = TempDir::new().unwrap();
    let kept = dir.path().join("copy.git");
    let keep = ["--keep", kept.to_str().unwrap()];
    assert_eq!(fsck(&url(world.server.address()), &keep).code, Some(0));
    let known = head(&world.server);
    world.server.stop();
    world.git().run(&["update-ref", "refs/heads/main", "main~1"]);
    world.git().run(&["reflog", "expire", "--expire=now", "--all"]);
    world.git().run(&["gc", "--quiet", "--prune=now"]);
    world.server.start_again();
    let checked = fsck(&url(world.server.address()), &keep);
    assert_eq!(checked.code, Some(3), "{}", checked.json);
    assert!(checked.json["error"].as_str().unwrap().contains(&known), "{}", checked.json);
    let checked = fsck(&url(world.server.address()), &["--since", &known]);
    assert_eq!(checked.code, Some(3), "{}", checked.json);
}

/// Answers each connection with the next of these, and then with the last one again.
fn answer_with(answers: Vec<Vec<u8>>) -> SocketAddr {
    let (last, answers) = (answers.last().unwrap().clone(), Mutex::new(answers.into_iter()));
    listen("127.0.0.1:0", move |_, mut stream| {
        let next = answers.lock().unwrap().next();
        stream.write_all(&next.unwrap_or_else(|| last.clone()))
    })
}

/// An answer whose length says that there is more.
fn ok(newest: &str, body: &[u8], length: usize) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nx-svc-commit: {newest}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

#[test]
fn a_journal_that_breaks_off_is_continued_and_one_that_lies_is_found_out() {
    let (world, _) = world();
    let newest = head(&world.server);
    let whole = world.server.get("/v1/journal").body;
    let text = String::from_utf8(whole.clone()).unwrap();
    let second = text.match_indices("\n\ncommit ").nth(1).unwrap().0 + 2;
    let known = text[..second].rsplit("original-oid ").next().unwrap()[..40].to_owned();
    let rest = world.server.get(&format!("/v1/journal?after={known}")).body;
    let cut = ok(&newest, &whole[..second + 100], whole.len());
    let address = answer_with(vec![cut, ok(&newest, &rest, rest.len())]);
    let checked = fsck(&url(address), &[]);
    assert_eq!(
        (checked.code, &checked.json["head"]),
        (Some(0), &Value::from(newest.clone())),
        "{}",
        checked.json
    );

    // One that lies is found out.
    let whole = text;
    let other_content = whole.replacen('{', "[", 1);
    let other_author = whole.replacen("author Countersign", "author Other", 1);
    for (lie, words) in [
        (whole.replacen("original-oid ", "original-oid 0", 1), "original-oid"),
        (other_content, "does not have the content"),
        (other_author, "committer"),
        (whole.replace("refs/heads/main", "refs/heads/other"), "refs/heads/main"),
        ("<html></html>\n".to_owned(), "html"),
    ] {
        let address = answer_with(vec![ok(&newest, lie.as_bytes(), lie.len())]);
        let checked = fsck(&url(address), &[]);
        assert_eq!(checked.code, Some(3), "{words}: {}", checked.json);
        assert!(checked.json.to_string().contains(words), "{words}: {}", checked.json);
    }
}

#[test]
fn servers_without_a_journal_are_named() {
    let body = b"{\"error\":\"no such route\"}";
    let head =
        format!("HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    let checked = fsck(&url(answer_with(vec![[head.as_bytes(), body].concat()])), &[]);
    assert_eq!(checked.code, Some(1), "{}", checked.json);
    assert!(checked.json["error"].as_str().unwrap().contains("has no journal"), "{}", checked.json);

    let stranger = b"HTTP/1.1 404 Not Found\r\ncontent-type: text/html\r\nconnection: close\r\ncontent-length: 2\r\n\r\nno";
    let checked = fsck(&url(answer_with(vec![stranger.to_vec()])), &[]);
    assert!(checked.json["error"].as_str().unwrap().contains("not a Countersign server"), "{}", checked.json);

    let checked = fsck(&url(metrics::free_address()), &[]);
    assert_eq!(checked.code, Some(5), "{}", checked.json);
}

#[test]
fn a_copy_is_kept_only_of_a_server_and_only_where_there_is_room_for_one() {
    let (world, _) = world();
    let dir = TempDir::new().unwrap();
    let keep = dir.path().join("copy.git");
    let data_dir = world.server.data_dir();
    let checked = fsck(data_dir.to_str().unwrap(), &["--keep", keep.to_str().unwrap()]);
    assert_eq!(checked.code, Some(2), "{}", checked.json);
    std::fs::create_dir(&keep).unwrap();
    std::fs::write(keep.join("mine"), "x").unwrap();
    let checked = fsck(&url(world.server.address()), &["--keep", keep.to_str().unwrap()]);
    assert_eq!(checked.code, Some(1), "{}", checked.json);
    assert_eq!(std::fs::read_dir(&keep).unwrap().count(), 1, "nothing of it was touched");
}
