//! D24, D25, D29: what a checksums file may say.

use countersign_core::values::bounds::INDEX_BYTES;
use serde_json::Value;

use crate::support::{Answer, Reply, SignersFile, World, alice};

fn world() -> World {
    World::with_project(&SignersFile::of(1, &[&alice()]), &[&alice()])
}

fn hex(digit: char) -> String {
    String::from(digit).repeat(64)
}

fn register(world: &World, text: &str) -> Reply {
    let url = world.publish_checksums("acme/app/v1", text);
    world.register_assets(&alice(), &[&url])
}

fn published(world: &World) -> Vec<Value> {
    let index = world.read_json(&world.index_path("acme/app/v1"));
    index["published_files"].as_array().unwrap().clone()
}

#[test]
fn a_file_of_4_mib_is_read_and_a_larger_one_refused() {
    const LIMIT: usize = 4 * 1024 * 1024;
    let world = world();
    let line = format!("{}  app\n", hex('a'));
    let comment = format!("#{}\n", "x".repeat(1022));
    let mut text = line + &comment.repeat(LIMIT / 1024 - 1);
    text.push_str(&format!("#{}", "x".repeat(LIMIT - text.len() - 1)));
    assert_eq!(text.len(), LIMIT);
    register(&world, &format!("{text}x")).refused(500, &world.files.url("/acme/app/v1/SHA256SUMS"));
    register(&world, &text).ok();
}

#[test]
fn an_upstream_that_fails_is_named_and_nothing_is_stored() {
    let world = world();
    let before = world.git().commit_count();
    let url = world.files.url("/acme/app/v1/SHA256SUMS");
    let whole = format!("{}  app\n", hex('a')).into_bytes();
    for answer in [
        Answer::Status(404),
        Answer::Status(410),
        Answer::Status(500),
        Answer::Status(503),
        Answer::HungUp,
        Answer::BrokenOff(whole),
        Answer::Endless,
        Answer::Bytes(b"<!doctype html>".to_vec()),
        Answer::Bytes(vec![0xff, 0xfe]),
    ] {
        world.files.set("/acme/app/v1/SHA256SUMS", answer);
        world.register_assets(&alice(), &[&url]).refused(500, &url);
    }
    assert_eq!(world.git().commit_count(), before);
    assert_eq!(world.pending(&alice()), [""; 0]);
}

fn lines(numbers: std::ops::Range<usize>) -> String {
    numbers.map(|n| format!("{}  file-{n:04}\n", hex('a'))).collect()
}

#[test]
fn a_release_has_at_most_1000_files() {
    let world = world();
    let commits = world.git().commit_count();
    register(&world, &lines(0..1001)).refused(500, "1000");
    assert_eq!(world.git().commit_count(), commits);
    assert!(!world.exists(&world.index_path("acme/app/v1")));
    assert_eq!(world.pending(&alice()), [""; 0]);

    register(&world, &lines(0..1000)).ok();
    assert_eq!(published(&world).len(), 1000);
    world.sign_all(&world.index_path("acme/app/v1"), &[&alice()]);
}

#[test]
fn the_files_of_a_release_are_counted_over_all_checksums_files_and_each_once() {
    let world = world();
    let long = |text: String| text.replace(&hex('a'), &hex('b').repeat(2));
    let publish = |name: &str, text: String| {
        let path = format!("/acme/app/v1/{name}");
        world.files.put(&path, text);
        world.files.url(&path)
    };
    let first = publish("ONE", lines(0..600));
    let second = publish("TWO", lines(599..1001));
    world.register_assets(&alice(), &[&first, &second]).refused(500, "1000");
    assert!(!world.exists(&world.index_path("acme/app/v1")));
    let sha256 = publish("SHA256SUMS", lines(0..1000));
    let sha512 = publish("SHA512SUMS", long(lines(0..1000)));
    world.register_assets(&alice(), &[&sha256, &sha512]).ok();
    assert_eq!(published(&world).len(), 1000);
}

/// Names of `"` take two bytes each in JSON and three in a URL; letters outside ASCII take three a byte there.
#[test]
fn an_index_is_stored_up_to_two_mebibytes_as_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("config.toml");
    std::fs::write(&config, "[limits]\nassets = 10000\n").unwrap();
    let world =
        World::start_with(|launch, _| launch.arg("--dev").args(["--config", config.to_str().unwrap()]));
    world.activate("acme/app", &SignersFile::of(1, &[&alice()]), &[&alice()]);
    for (version, letter) in [("v1", "a"), ("v2", "\""), ("v3", "ü"), ("v4", "好")] {
        let line = |i: usize| format!("{}  {i:04}/{}\n", hex('a').repeat(2), letter.repeat(60));
        let index = world.index_path(&format!("acme/app/{version}"));
        let url = world.files.url(&format!("/acme/app/{version}/SHA256SUMS"));
        let register = |count: usize| {
            world
                .publish_checksums(&format!("acme/app/{version}"), &(0..count).map(line).collect::<String>());
            world.register_assets(&alice(), &[&url])
        };
        let bytes = || world.file(&index).text().len();
        register(2).ok();
        let two = bytes();
        register(3).ok();
        let each = bytes() - two;
        let most = 2 + (INDEX_BYTES - two) / each;
        let commits = world.git().commit_count();
        let message = register(most + 1).error(500);
        let figure = two + (most - 1) * each;
        for words in [&url, &format!("its index would have {figure} bytes"), &INDEX_BYTES.to_string()] {
            assert!(message.contains(words), "{words}: {message}");
        }
        assert_eq!(world.git().commit_count(), commits);
        register(most).ok();
        assert_eq!(bytes(), figure - each);
    }
}

#[test]
fn names_are_refused_while_they_are_read() {
    let world = world();
    let commits = world.git().commit_count();
    let named = |name: &str| format!("{}  {name}\n", hex('a'));
    let long = |length: usize, i: usize| {
        let path = format!("{i:03}/{}", format!("{}/", "n".repeat(199)).repeat(5));
        named(&format!("{path}{}", "m".repeat(length - path.len())))
    };
    register(&world, &long(1_025, 0)).refused(500, "line 1: the file name is longer than 1024 bytes");
    // A file as in the report: 60 names of 60 KB each.
    let huge: String = (0..60).map(|i| named(&format!("{i:02}/{}x", "long/".repeat(12_000)))).collect();
    register(&world, &huge).refused(500, "line 1: the file name is longer than 1024 bytes");
    let full: String = (0..512).map(|i| long(1_024, i)).collect();
    register(&world, &format!("{full}{}", named("a"))).refused(500, "line 513");
    assert_eq!(world.git().commit_count(), commits);
    register(&world, &full).ok();
    assert_eq!(published(&world).len(), 512);
}

#[test]
fn sixteen_checksums_files_are_allowed_and_no_more() {
    let world = world();
    let urls: Vec<_> = (0..17)
        .map(|n| {
            let path = format!("/acme/app/v1/SUMS{n}");
            world.files.put(&path, format!("{}  file{n:02}\n", "a".repeat(64)));
            world.files.url(&path)
        })
        .collect();
    let urls: Vec<_> = urls.iter().map(String::as_str).collect();
    world.register_assets(&alice(), &urls).error(400);
    let index = world.register_assets(&alice(), &urls[..16]).ok();
    let index = world.read_json(index["index_file_path"].as_str().unwrap());
    assert_eq!(index["published_files"].as_array().unwrap().len(), 16);
}
