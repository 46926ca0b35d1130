//! D24, D29: how much a checksums file may say. How it is read is in the tests of forge, what is answered in
//! `tests/scenarios`.

use countersign_core::values::bounds::INDEX_BYTES;

use crate::support::{Reply, SignersFile, World, alice};

fn line(name: &str) -> String {
    format!("{}  {name}\n", "a".repeat(64))
}

fn lines(numbers: std::ops::Range<usize>) -> String {
    numbers.map(|n| line(&format!("file-{n:04}"))).collect()
}

/// Registers a release with these checksums files.
fn register_files(world: &World, texts: &[String]) -> Reply {
    let publish = |(number, text): (usize, &String)| {
        let path = format!("/acme/app/v1/SUMS{number}");
        world.files.put(&path, text.as_str());
        world.files.url(&path)
    };
    let urls: Vec<_> = texts.iter().enumerate().map(publish).collect();
    world.register_assets(&alice(), &urls.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Refuses the first, stores nothing, accepts the second, which has so many files.
#[track_caller]
fn assert_bound(world: &World, (refused, words): (&[String], &str), (accepted, files): (&[String], usize)) {
    let commits = world.git().commit_count();
    register_files(world, refused).refused(500, words);
    assert_eq!(world.git().commit_count(), commits);
    register_files(world, accepted).ok();
    let index = world.read_json(&world.index_path("acme/app/v1"));
    assert_eq!(index["published_files"].as_array().unwrap().len(), files);
}

#[test]
fn a_checksums_file_and_a_release_of_them_may_say_so_much_and_no_more() {
    let world = World::with_project(&SignersFile::of(1, &[&alice()]), &[&alice()]);
    // Of 4 MiB.
    const LIMIT: usize = 4 * 1024 * 1024;
    let mut text = line("app") + &format!("#{}\n", "x".repeat(1022)).repeat(LIMIT / 1024 - 1);
    text.push_str(&format!("#{}", "x".repeat(LIMIT - text.len() - 1)));
    assert_eq!(text.len(), LIMIT);
    assert_bound(&world, (&[format!("{text}x")], "/acme/app/v1/SUMS0"), (&[text], 1));

    // Sixteen of them.
    let texts: Vec<_> = (0..16).map(|n| lines(n..n + 1)).collect();
    register_files(&world, &texts).ok();

    // Names are refused while they are read.
    let long = |length: usize, i: usize| {
        let path = format!("{i:03}/{}", format!("{}/", "n".repeat(199)).repeat(5));
        line(&format!("{path}{}", "m".repeat(length - path.len())))
    };
    let words = "line 1: the file name is longer than 1024 bytes";
    register_files(&world, &[long(1_025, 0)]).refused(500, words);
    // A file as in the report: 60 names of 60 KB each.
    let huge: String = (0..60).map(|i| line(&format!("{i:02}/{}x", "long/".repeat(12_000)))).collect();
    register_files(&world, &[huge]).refused(500, words);
    let full: String = (0..512).map(|i| long(1_024, i)).collect();
    assert_bound(&world, (&[format!("{full}{}", line("a"))], "line 513"), (&[full], 512));

    // At most 1000 files, counted over all of them, and each once.
    register_files(&world, &[lines(0..1001)]).refused(500, "1000");
    let long = lines(0..1000).replace(&"a".repeat(64), &"b".repeat(128));
    let parts = [lines(0..600), lines(599..1001)];
    assert_bound(&world, (&parts, "1000"), (&[lines(0..1000), long], 1000));
    world.sign_all(&world.index_path("acme/app/v1"), &[&alice()]);
}

/// Names of `"` take two bytes each in JSON and three in a URL; letters outside ASCII take three a byte there.
#[test]
fn an_index_is_stored_up_to_two_mebibytes_as_it_is_written() {
    let world = World::start_with(|launch, _| launch.arg("--dev").configured("[limits]\nassets = 10000\n"));
    world.activate("acme/app", &SignersFile::of(1, &[&alice()]), &[&alice()]);
    let index = world.index_path("acme/app/v1");
    for letter in ["a", "\"", "ü", "好"] {
        let line = |i: usize| format!("{}  {i:04}/{}\n", "a".repeat(128), letter.repeat(60));
        let register = |count: usize| register_files(&world, &[(0..count).map(line).collect()]);
        let bytes = || world.file(&index).text().len();
        register(2).ok();
        let two = bytes();
        register(3).ok();
        let each = bytes() - two;
        let most = 2 + (INDEX_BYTES - two) / each;
        let commits = world.git().commit_count();
        let message = register(most + 1).error(500);
        let figure = two + (most - 1) * each;
        let words = format!("its index would have {figure} bytes");
        assert!(message.contains(&words) && message.contains(&INDEX_BYTES.to_string()), "{words}: {message}");
        assert_eq!(world.git().commit_count(), commits);
        register(most).ok();
        assert_eq!(bytes(), figure - each);
    }
}
