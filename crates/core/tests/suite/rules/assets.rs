//! Registering the files of a release (spec §4.10; D11, D16, D23, D36).

use std::collections::BTreeSet;

use countersign_core::documents::{index::ReleaseIndex, signatures::SignatureSet};
use countersign_core::rules::decide::assets::{AssetsRefusal, Release, check_assets, register_assets};
use countersign_core::rules::decide::sign::sign;
use countersign_core::values::bounds::{COLLECTING_BYTES, JOURNAL_ENTRY_FILES};
use countersign_testing::{
    INDEX, PENDING, PROJECT, Signers, World, alice, assert_mentions, at, bob, carol, dave, key, mallory,
    path, public, published, release, shifted_seconds, signers,
};

fn team() -> Signers {
    team_of("2026-01-31T10:00:00Z")
}

fn team_of(time: &str) -> Signers {
    signers(time)
        .artifact(2, [&alice(), &bob()])
        .admin(1, [&carol()])
        .master(1, [&dave()])
        .revocation(1, [&key(6)])
}

fn active() -> World {
    World::with(&team(), &[&alice(), &bob(), &carol(), &dave(), &key(6)])
}

/// A world whose release v1 has come this far.
fn collecting() -> World {
    let mut world = active();
    world.add_release(&release("v1", "one"), &alice()).expect("a release");
    world
}

fn complete() -> World {
    let mut world = active();
    world.release_signed_by(&[&alice(), &bob()]);
    world
}

fn revoked() -> World {
    let mut world = complete();
    world.revoke_index(&key(6));
    world
}

fn index(world: &World) -> ReleaseIndex {
    ReleaseIndex::parse(&world.repo.bytes(INDEX)).expect("an index")
}

#[test]
fn an_index_has_the_time_of_its_change_for_a_minute() {
    let now = active().now.to_whole_seconds();
    let written = release("v1", "one").write_index(&path(PROJECT), now).unwrap();
    for (later, is_of) in [(-1, false), (0, true), (1, true), (60, true), (61, false)] {
        assert_eq!(written.is_of(shifted_seconds(now, later)), is_of, "{later}");
    }
}

#[test]
fn a_release_is_stored_as_index_governing_copy_and_empty_signatures() {
    let mut world = active();
    let path_of_index = world.add_release(&release("v1", "one"), &alice()).unwrap();
    assert_eq!(path_of_index, path(INDEX));
    assert_eq!(
        world.repo.names_below(&format!("{PROJECT}/releases/tag/v1")),
        [
            "svc.index.json", "svc.index.json.registrant.json", "svc.index.json.signatures.json.pending",
            "svc.index.json.signers.json"
        ]
    );
    assert_eq!(world.repo.text(&format!("{INDEX}.signers.json")), team().text());
    let set = SignatureSet::parse(&world.repo.bytes(&format!("{INDEX}.signatures.json.pending"))).unwrap();
    assert_eq!(set, SignatureSet::default());
    assert_mentions(&world.last.message, &[INDEX, &alice().public_key().to_string()]);
}

#[test]
fn the_index_says_whose_it_is_where_it_came_from_and_when() {
    let mut world = active();
    world.now = at("2026-02-01T13:00:00.9Z");
    world.add_release(&release("v1", "one"), &alice()).unwrap();
    assert_eq!(
        index(&world),
        ReleaseIndex {
            project_id: path(PROJECT),
            release_url: Some("https://github.com/acme/app/releases/tag/v1".to_owned()),
            mirrored_on: at("2026-02-01T13:00:00Z"),
            published_on: Some(at("2026-01-30T08:00:00Z")),
            published_files: vec![published("app.tar.gz", "one")],
        }
    );
}

#[test]
fn the_nearest_project_above_the_directory_governs_it() {
    let mut world = active();
    let deep = Release { dir: path(&format!("{PROJECT}/a/b/c/d")), ..release("v1", "one") };
    world.add_release(&deep, &alice()).unwrap();
    assert!(world.repo.has(&format!("{PROJECT}/a/b/c/d/svc.index.json")));
}

#[test]
fn a_key_of_any_role_may_register_a_release_and_a_stranger_is_told_before_anything_else() {
    for caller in [alice(), carol(), dave(), key(6)] {
        assert!(active().add_release(&release("v1", "one"), &caller).is_ok());
        let check = check_assets(&active().repo, &release("v1", "one").dir, &caller.public_key()).unwrap();
        assert_eq!(check.project, path(PROJECT));
        assert_eq!(check.file.keys(), public([&alice(), &bob(), &carol(), &dave(), &key(6)]));
    }
    for mut world in [active(), collecting(), complete(), revoked()] {
        let expected = AssetsRefusal::NotASigner { key: mallory().public_key(), project: path(PROJECT) };
        assert_eq!(world.add_release(&release("v1", "one"), &mallory()), Err(expected.clone()));
        let check = check_assets(&world.repo, &release("v1", "one").dir, &mallory().public_key());
        assert_eq!(check.map(|active| active.project), Err(expected));
    }
}

#[test]
fn a_directory_without_active_signers_takes_no_release() {
    let mut pending = World::new();
    pending.register(&team(), &alice()).unwrap();
    for mut world in [World::new(), pending] {
        let refusal = world.add_release(&release("v1", "one"), &alice()).unwrap_err();
        assert_eq!(refusal, AssetsRefusal::NoSigners(release("v1", "one").dir));
    }
    let beside =
        Release { dir: path("https/github.com/443/acme/app2/releases/tag/v1"), ..release("v1", "one") };
    assert_eq!(active().add_release(&beside, &alice()), Err(AssetsRefusal::NoSigners(beside.dir.clone())));
}

#[test]
fn the_same_content_again_is_refused_while_the_index_collects() {
    let mut world = collecting();
    world.sign(INDEX, &alice()).unwrap();
    let before = world.repo.clone();
    world.pass(60);
    let other_page = Release {
        release_url: Some("https://example.org".to_owned()),
        published_on: None,
        ..release("v1", "one")
    };
    for same in [release("v1", "one"), other_page] {
        let refusal = world.add_release(&same, &bob()).unwrap_err();
        assert_eq!(refusal, AssetsRefusal::AlreadyRegistered(path(INDEX)));
        assert_mentions(&refusal.to_string(), &["Release already registered", "version"]);
    }
    assert_eq!(world.repo, before);
}

#[test]
fn other_content_replaces_a_collecting_index_and_drops_its_signatures() {
    let mut world = collecting();
    world.sign(INDEX, &alice()).unwrap();
    world.pass(60);
    assert_eq!(world.add_release(&release("v1", "two"), &carol()), Ok(path(INDEX)));
    assert_eq!(index(&world).published_files, [published("app.tar.gz", "two")]);
    assert_eq!(index(&world).mirrored_on, world.now);
    let set = SignatureSet::parse(&world.repo.bytes(&format!("{INDEX}.signatures.json.pending"))).unwrap();
    assert_eq!(set, SignatureSet::default());
    assert!(world.sign(INDEX, &alice()).is_ok(), "the new index is not signed yet");
}

#[test]
fn a_registration_says_whose_signatures_fell_with_the_index_that_it_replaced() {
    let mut world = collecting();
    let replaced = |world: &World, content: &str| {
        let index = release("v1", content).write_index(&path(PROJECT), world.now).unwrap();
        let registered = register_assets(&world.repo, &index, &carol().public_key(), 10);
        registered.map(|(_, registered)| registered.replaced)
    };
    let new = release("v2", "one").write_index(&path(PROJECT), world.now).unwrap();
    let (_, registered) = register_assets(&world.repo, &new, &carol().public_key(), 10).unwrap();
    assert_eq!(registered.replaced, None, "nothing was there");
    assert_eq!(replaced(&world, "two"), Ok(Some(BTreeSet::new())), "an index without signatures");
    world.sign(INDEX, &alice()).unwrap();
    assert_eq!(replaced(&world, "two"), Ok(Some(BTreeSet::from([alice().public_key()]))));
    assert_eq!(replaced(&world, "one"), Err(AssetsRefusal::AlreadyRegistered(path(INDEX))));
}

#[test]
fn a_difference_in_any_part_of_the_published_files_is_other_content() {
    let mut renamed = release("v1", "one");
    renamed.published_files = vec![published("app.zip", "one")];
    let mut more = release("v1", "one");
    more.published_files.push(published("b", "b"));
    let mut less_known = release("v1", "one");
    less_known.published_files[0].digests.sha512 = None;
    let mut unsized_file = release("v1", "one");
    unsized_file.published_files[0].size = None;
    let mut moved = release("v1", "one");
    moved.published_files[0].source.push('x');
    for other in [renamed, more, less_known, unsized_file, moved] {
        assert!(collecting().add_release(&other, &alice()).is_ok(), "{other:?}");
    }
}

#[test]
fn a_complete_or_revoked_index_stays_even_for_other_content() {
    for mut world in [complete(), revoked()] {
        let before = world.repo.clone();
        let refusal = AssetsRefusal::AlreadyRegistered(path(INDEX));
        assert_eq!(world.add_release(&release("v1", "two"), &alice()), Err(refusal.clone()));
        let check = check_assets(&world.repo, &release("v1", "two").dir, &alice().public_key());
        assert_eq!(check.map(|active| active.project), Err(refusal), "known before anything is fetched");
        assert_eq!(world.repo, before);
    }
}

#[test]
fn a_project_has_a_limit_of_collecting_files() {
    let mut world = collecting();
    let add = |world: &World, release: &Release, limit| {
        let index = release.write_index(&path(PROJECT), world.now).expect("a small index");
        register_assets(&world.repo, &index, &alice().public_key(), limit)
            .map(|(_, registered)| registered.index)
    };
    let refusal = add(&world, &release("v2", "two"), 1).unwrap_err();
    assert_eq!(refusal, AssetsRefusal::TooManyCollecting { project: path(PROJECT), limit: 1 });
    assert!(add(&world, &release("v2", "two"), 2).is_ok());
    assert!(add(&world, &release("v1", "two"), 1).is_ok(), "a correction adds no file");
    world.sign_all(INDEX, &[&alice(), &bob()]);
    assert!(add(&world, &release("v2", "two"), 1).is_ok(), "a complete file collects no more");
}

/// Releases with these directories collect, as far as there is room (D202).
fn collect(world: &mut World, dirs: impl Iterator<Item = String>) -> Option<(usize, AssetsRefusal)> {
    let files = ["", ".signers.json", ".signatures.json.pending", ".registrant.json", ".formats.json"];
    let contents =
        files.map(|file| world.repo.bytes(&format!("{INDEX}{}", file.replace(".formats", ".signers"))));
    for (count, dir) in dirs.enumerate() {
        let dir = path(&format!("{PROJECT}/{dir}"));
        // Most are put there: to ask for each takes as long as there are.
        if count % 50 == 0 {
            let new = Release { dir: dir.clone(), ..release("v1", "one") };
            let index = new.write_index(&path(PROJECT), world.now).expect("a small index");
            if let Err(refusal) = register_assets(&world.repo, &index, &alice().public_key(), usize::MAX) {
                return Some((count, refusal));
            }
        }
        for (file, content) in files.iter().zip(&contents) {
            world.repo.put(&path(&format!("{dir}/svc.index.json{file}")), content);
        }
    }
    None
}

#[test]
fn whatever_collects_a_rotation_fits_what_nodes_share() {
    let segment = "s".repeat(190);
    let long = |n: usize| format!("{n:0190}/{segment}/{segment}/{segment}");
    let deep = |n: usize| format!("{n:05}{}", "/d".repeat(50));
    let mut files = Vec::new();
    for (name, dirs) in [("long", &long as &dyn Fn(usize) -> String), ("deep", &deep)] {
        let mut world = collecting();
        let (count, refusal) = collect(&mut world, (0..10_000).map(dirs)).expect("there is an end");
        assert!(matches!(refusal, AssetsRefusal::NoRoomToRotate { .. }), "{name}: {refusal}");
        assert_mentions(&refusal.to_string(), &["sign or withdraw some of them first"]);
        assert!(count > 1_000, "{name}: {count}");
        let next = team_of("2026-01-31T11:00:00Z");
        world.update(&next, &carol()).expect("a proposal");
        let (change, _) =
            sign(&world.repo, &world.submission(PENDING, &carol()), world.now).expect("a rotation");
        files.push(change.files.len());
        assert!(change.files.len() > 3 * count, "{name}: it changes all of them");
        let lines: usize = change.files.keys().map(|path| path.as_str().len() + 51).sum();
        assert!(lines <= COLLECTING_BYTES + (1 << 20), "{name}: {lines}");
    }
    assert!(files.iter().all(|files| *files < JOURNAL_ENTRY_FILES), "{files:?}");
}

/// The bytes of a rotation for a release of the project in this directory. In the journal: a line each for three files, of 51
/// bytes beside the longest name. In the repository: the directories, of which the release's own lists eight such names (D202).
fn rotation_bytes(dir: &str) -> [usize; 2] {
    const LONGEST: &str = "svc.index.json.signatures.json.pending";
    let index = format!("{dir}/svc.index.json");
    let journal = 3 * (format!("{PROJECT}/{dir}/{LONGEST}").len() + 51);
    let directories = index.len() + 91 * index.split('/').count() + 8 * (27 + LONGEST.len());
    [journal, directories]
}

#[test]
fn releases_collect_to_the_last_byte_that_a_rotation_may_change() {
    type Dirs<'a> = (&'a dyn Fn(usize) -> String, &'a dyn Fn(usize, usize) -> String);
    let segment = "s".repeat(190);
    let long = |n: usize| format!("{n:0190}/{segment}/{segment}");
    let deep = |n: usize| format!("{n:05}{}", "/d".repeat(40));
    // The last one takes what is left, and with one more character too much.
    let last_long = |left: usize, more| {
        let chars = (left - rotation_bytes("")[0]) / 3 + more;
        (1..=chars).map(|n| if n % 190 == 0 && n < chars { '/' } else { 's' }).collect()
    };
    let last_deep = |left, more| {
        let above = "d/".repeat((left - rotation_bytes("s")[1]) / 93);
        let chars = left - rotation_bytes(&above)[1] + more;
        format!("{above}{}", "s".repeat(chars))
    };
    let shapes: [Dirs<'_>; 2] = [(&long, &last_long), (&deep, &last_deep)];
    for (part, (dirs, last)) in shapes.into_iter().enumerate() {
        let mut world = collecting();
        let left = COLLECTING_BYTES - rotation_bytes("releases/tag/v1")[part];
        let cost = rotation_bytes(&dirs(0))[part];
        let count = (left - rotation_bytes(&segment)[part]) / cost;
        for dir in (0..count).map(dirs) {
            let signatures = format!("{PROJECT}/{dir}/svc.index.json.signatures.json.pending");
            world.repo.put(&path(&signatures), b"{}");
        }
        let add = |more| {
            let dir = path(&format!("{PROJECT}/{}", last(left - count * cost, more)));
            let index = Release { dir, ..release("v1", "one") }.write_index(&path(PROJECT), world.now);
            let index = index.expect("a small index");
            register_assets(&world.repo, &index, &alice().public_key(), usize::MAX).map(drop)
        };
        assert_eq!(add(0), Ok(()), "{part}");
        let waiting = count + 1;
        assert_eq!(add(1), Err(AssetsRefusal::NoRoomToRotate { project: path(PROJECT), waiting }), "{part}");
    }
}

#[test]
fn ten_thousand_releases_with_usual_paths_collect() {
    let mut world = collecting();
    let full = collect(&mut world, (0..10_001).map(|n| format!("releases/v{n}.0.0-rc.1")));
    assert_eq!(full, None);
}
