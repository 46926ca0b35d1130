//! What builders state of a release (D259–D262): who can, when, and how it is judged.

use countersign_core::documents::index::{AssetName, Digests, ReleaseIndex};
use countersign_core::documents::signers::{FilePattern, Group, RebuildPolicy};
use countersign_core::documents::statement::{Rebuild, RebuiltFile, SignedStatement, StatementKind};
use countersign_core::documents::{said::RebuildsFile, said::StoredRebuild};
use countersign_core::proof::verify::{VerifyError, verify};
use countersign_core::proof::{state::State, state::StateSubject};
use countersign_core::rules::decide::statement::{Stated, StatementRefusal};
use countersign_core::rules::decide::{
    assets::AssetsRefusal, register::RegisterRefusal, sign::SignRefusal, update::UpdateRefusal,
    withdraw::WithdrawRefusal,
};
use countersign_core::rules::{quorum::Tally, reproduction::Reproduction, stored};
use countersign_core::values::bounds::{FILE_BYTES, REBUILD_BYTES, REBUILDS};
use countersign_core::values::{digest::Sha256, digest::Sha512, key::PublicKey, key::SecretKey};
use countersign_testing::evidence::{builders, checksums_index, file, index_text, said};
use countersign_testing::{
    ACTIVE, COMMIT, INDEX, PENDING, PROJECT, Signers, World, alice, assert_mentions, bob, carol, dave, key,
    mallory, path, published, rebuild_of, release, shifted_seconds, signed_statement, signers,
};

use super::machine;

const SAME: Result<Stated, StatementRefusal> = Ok(Stated { in_force: true });
const DIFFERENT: Result<Stated, StatementRefusal> = Ok(Stated { in_force: false });
const KIND: StatementKind = StatementKind::Rebuild;

fn team(timestamp: &str) -> Signers {
    signers(timestamp).artifact(2, [&alice(), &bob()]).admin(1, [&carol()]).master(1, [&dave()])
}

/// Two of three builders are asked. A machine has registered the release.
fn collecting() -> World {
    let [first, second, third] = builders();
    let team = team("2026-01-31T10:00:00Z").builders(2, [&first, &second, &third]).registrars([&machine()]);
    let mut world = World::with(&team, &[&alice(), &bob(), &carol(), &dave(), &first, &second, &third]);
    world.add_release(&release("v1", "one"), &machine()).expect("a release");
    world.pass(60);
    world
}

/// A release of two files. One of two builders is asked.
fn collecting_two_files() -> World {
    let [first, second, _] = builders();
    let team = team("2026-01-31T10:00:00Z").builders(1, [&first, &second]);
    let mut world = World::with(&team, &[&alice(), &bob(), &carol(), &dave(), &first, &second]);
    let mut release = release("v1", "one");
    release.published_files.push(published("app.zip", "two"));
    world.add_release(&release, &alice()).expect("a release");
    world.pass(60);
    world
}

/// A release that everyone has signed, of which the first builder has stated what it got.
fn complete() -> World {
    let mut world = collecting();
    assert_eq!(world.state(&world.rebuild(), &builders()[0]), SAME);
    world.sign_all(INDEX, &[&alice(), &bob()]);
    world.pass(60);
    world
}

/// Asks other builders from now on: the second, the third and a new one.
fn rotate(world: &mut World) {
    let [_, second, third] = builders();
    let next = team("2026-02-01T10:00:00Z").builders(2, [&second, &third, &key(24)]);
    world.rotate(&next, &[&carol(), &key(24)]);
}

fn stated(world: &World) -> RebuildsFile {
    stored::rebuilds(&world.repo, &path(INDEX)).expect("readable")
}

fn authors(world: &World) -> Vec<PublicKey> {
    stated(world).entries.keys().copied().collect()
}

fn sorted<const N: usize>(keys: [&SecretKey; N]) -> Vec<PublicKey> {
    let mut keys: Vec<PublicKey> = keys.iter().map(|key| key.public_key()).collect();
    keys.sort();
    keys
}

/// What a builder states whose only file is another one.
fn other(world: &World) -> Rebuild {
    let mut document = world.rebuild();
    document.files[0].digests = Digests { sha256: Some(Sha256::of(b"something else")), sha512: None };
    document
}

#[test]
fn builders_state_what_they_got_while_a_release_collects_and_afterwards() {
    let [first, second, third] = builders();
    let mut world = collecting();
    assert_eq!(world.state(&world.rebuild(), &first), SAME);
    assert_mentions(&world.last.message, &[INDEX, &first.public_key().to_string()]);
    world.sign_all(INDEX, &[&alice(), &bob()]);
    assert_eq!(authors(&world), sorted([&first]), "completion keeps it");
    assert_eq!(world.state(&world.rebuild(), &second), SAME);
    assert_eq!(world.state(&other(&world), &third), DIFFERENT);
    assert_mentions(&world.last.message, &[INDEX, &third.public_key().to_string()]);
    let kept = stated(&world);
    let index = Sha512::of(&world.repo.bytes(INDEX));
    assert_eq!(kept.keep_verifying(&path(INDEX), &index), kept, "each has its signature");
}

#[test]
fn a_later_word_replaces_an_earlier_one_until_the_release_is_complete() {
    let [first, second, _] = builders();
    let mut world = collecting();
    world.state(&other(&world), &first).unwrap();
    let earlier = world.rebuild();
    let newest = world.now;
    let not_later = Err(StatementRefusal::NotLater { kind: KIND, key: first.public_key(), newest });
    assert_eq!(world.state(&earlier, &first), not_later);
    world.pass(1);
    assert_eq!(world.state(&earlier, &first), not_later, "the time in the document decides");
    assert_eq!(world.state(&world.rebuild(), &first), SAME);
    assert_eq!(authors(&world), sorted([&first]));
    world.sign_all(INDEX, &[&alice(), &bob()]);
    world.pass(1);
    let before = stated(&world);
    let already = Err(StatementRefusal::AlreadyStated(first.public_key()));
    for document in [earlier, world.rebuild(), other(&world)] {
        assert_eq!(world.state(&document, &first), already);
    }
    assert_eq!(stated(&world), before);
    assert_eq!(world.state(&world.rebuild(), &second), SAME, "who has said nothing can add a word");
}

#[test]
fn what_is_said_of_a_complete_release_can_be_added_to() {
    let [first, ..] = builders();
    let mut world = collecting_two_files();
    let part = |world: &World, at: usize| {
        let files = vec![world.rebuild().files[at].clone()];
        Rebuild { files, ..world.rebuild() }
    };
    assert_eq!(world.state(&part(&world, 1), &first), SAME);
    world.sign_all(INDEX, &[&alice(), &bob()]);
    world.pass(1);
    let already = Err(StatementRefusal::AlreadyStated(first.public_key()));
    let of_other = Rebuild { source_commit: "f".repeat(40), ..world.rebuild() };
    let mut changed = world.rebuild();
    changed.files[1].digests.sha512 = None;
    for document in [part(&world, 0), part(&world, 1), of_other, changed] {
        assert_eq!(world.state(&document, &first), already);
    }
    let whole = world.rebuild();
    assert_eq!(world.state(&whole, &first), SAME, "the rest was built later");
    assert_eq!(stated(&world).entries[&first.public_key()].document, whole);
}

#[test]
fn only_builders_state_what_they_got() {
    let mut world = collecting();
    for person in [alice(), carol(), dave(), machine(), mallory()] {
        let expected = StatementRefusal::NotABuilder { key: person.public_key(), project: path(PROJECT) };
        assert_eq!(world.state(&world.rebuild(), &person), Err(expected));
    }
}

#[test]
fn a_builder_does_nothing_else() {
    let [builder, ..] = builders();
    let next = team("2026-02-01T10:00:00Z");
    let mut world = collecting();
    assert!(matches!(world.object(Some("no"), &builder), Err(StatementRefusal::NotASigner { .. })));
    assert!(matches!(world.sign(INDEX, &builder), Err(SignRefusal::NotAllowed { .. })));
    assert!(matches!(world.withdraw(&builder), Err(WithdrawRefusal::NotAllowed { .. })));
    assert!(matches!(world.update(&next, &builder), Err(UpdateRefusal::NotListed { .. })));
    for tag in ["v1", "v2"] {
        let added = world.add_release(&release(tag, "two"), &builder);
        assert!(matches!(added, Err(AssetsRefusal::NotASigner { .. })), "{tag}");
    }
    let first = team("2026-01-31T10:00:00Z").builders(1, [&builder]);
    assert!(matches!(World::new().register(&first, &builder), Err(RegisterRefusal::NotListed(_))));
    world.sign_all(INDEX, &[&alice(), &bob()]);
    let request = world.revoke_request(&world.revocation_document("no"), &builder);
    assert!(matches!(world.revoke(&request), Err(StatementRefusal::MayNotRevoke { .. })));
}

#[test]
fn builders_consent_to_be_listed() {
    let [builder, ..] = builders();
    let mut world = World::new();
    world.register(&team("2026-01-31T10:00:00Z").builders(1, [&builder]), &alice()).unwrap();
    world.sign_all(PENDING, &[&alice(), &bob(), &carol(), &dave()]);
    assert!(!world.repo.has(ACTIVE), "the builder has not agreed yet");
    world.sign(PENDING, &builder).unwrap();
    assert!(world.repo.has(ACTIVE));
    world.update(&team("2026-02-01T10:00:00Z").builders(1, [&builder, &key(24)]), &carol()).unwrap();
    world.sign(PENDING, &carol()).unwrap();
    assert!(world.repo.has(PENDING), "nor the one that joins");
    world.sign(PENDING, &key(24)).unwrap();
    assert!(!world.repo.has(PENDING));
}

#[test]
fn the_signers_in_force_and_those_of_a_complete_release_say_who_builds() {
    let [first, second, third] = builders();
    let removed = Err(StatementRefusal::NotABuilder { key: first.public_key(), project: path(PROJECT) });
    let mut world = collecting();
    world.state(&world.rebuild(), &first).unwrap();
    world.state(&world.rebuild(), &third).unwrap();
    rotate(&mut world);
    world.pass(60);
    assert_eq!(authors(&world), sorted([&first, &third]), "a rotation keeps what was said");
    assert_eq!(world.state(&world.rebuild(), &first), removed);
    assert_eq!(world.state(&world.rebuild(), &key(24)), SAME, "the release collects under the new signers");
    let all = sorted([&first, &third, &key(24)]);
    assert_eq!(authors(&world), all, "no one can hand in an older word when a builder comes back");

    let mut world = complete();
    rotate(&mut world);
    let unknown = Err(StatementRefusal::NotABuilderThen { key: key(24).public_key(), file: path(INDEX) });
    assert_eq!(world.state(&world.rebuild(), &key(24)), unknown);
    assert_eq!(world.state(&world.rebuild(), &first), removed);
    assert_eq!(world.state(&world.rebuild(), &second), SAME);
    assert_eq!(authors(&world), sorted([&first, &second]), "what people went by when they signed stays");
}

/// How far the release is reproduced, as pages say it and as a client finds it.
fn read(world: &World, index: &str) -> Option<Reproduction> {
    let (repo, index) = (&world.repo, path(index));
    let copy = stored::signers_copy(repo, &index).expect("the signers of the release");
    let read = Reproduction::read(repo, &index, &copy).expect("readable");
    if let Some(evidence) = State::gather(repo, StateSubject::Release(index)).expect("readable").evidence {
        let found = match verify(&evidence) {
            Ok(artifact) => artifact.reproduction,
            Err(VerifyError::NotReproduced(artifact)) => artifact.reproduction,
            Err(other) => panic!("{other}"),
        };
        let in_force = stored::require_signers_in_force(repo, &evidence.path).expect("signers").file;
        assert_eq!(found, read.clone().map(|read| read.asked_under(&in_force)));
    }
    read
}

#[test]
fn what_the_signers_wanted_when_a_release_was_made_is_wanted_after_a_rotation_too() {
    let builder = key(21);
    let team = |timestamp: &str| signers(timestamp).artifact(1, [&alice()]).admin(1, [&carol()]);
    let wanting = team("2026-01-31T10:00:00Z").builders(1, [&builder]).reproduced_first();
    let mut world = World::with(&wanting, &[&alice(), &carol(), &builder]);
    let v2 = INDEX.replace("v1", "v2");
    let add = |world: &mut World, tag: &str| {
        let mut release = release(tag, "one");
        release.published_files[0].source =
            format!("https://github.com/acme/app/releases/download/{tag}/app.tar.gz");
        world.add_release(&release, &alice()).expect("a release");
    };
    add(&mut world, "v1");
    assert!(read(&world, INDEX).is_some_and(|found| found.is_lacking()));
    world.pass(60);
    // The rotation takes the release with it, and names no builders any more.
    world.rotate(&team("2026-02-01T10:00:00Z"), &[&carol()]);
    world.pass(60);
    assert!(read(&world, INDEX).is_some_and(|found| found.is_lacking()));
    world.sign_all(INDEX, &[&alice()]);
    assert!(read(&world, INDEX).is_some_and(|found| found.is_lacking()));
    // What is made since is free, and not again once its project wants it.
    add(&mut world, "v2");
    world.sign_all(&v2, &[&alice()]);
    world.pass(60);
    assert_eq!(read(&world, &v2), None);
    world.rotate(
        &team("2026-02-01T11:00:00Z").builders(1, [&builder]).reproduced_first(),
        &[&carol(), &builder],
    );
    assert_eq!(read(&world, &v2), None);
    assert!(read(&world, INDEX).is_some_and(|found| found.is_lacking()));
}

#[test]
fn where_no_signers_file_asks_for_builders_the_index_is_not_read() {
    let team = |timestamp: &str| signers(timestamp).artifact(1, [&alice()]).admin(1, [&carol()]);
    let mut world = World::with(&team("2026-01-31T10:00:00Z"), &[&alice(), &carol()]);
    world.add_release(&release("v1", "one"), &alice()).expect("a release");
    world.rotate(&team("2026-02-01T10:00:00Z"), &[&carol()]);
    let copy = stored::signers_copy(&world.repo, &path(INDEX)).expect("the signers of the release");
    world.repo.remove(&path(INDEX));
    assert!(matches!(Reproduction::read(&world.repo, &path(INDEX), &copy), Ok(None)));
}

#[test]
fn a_correction_and_a_withdrawal_delete_statements_and_a_revocation_ends_them() {
    let [first, second, _] = builders();
    let file = format!("{INDEX}.rebuilds.json");
    let mut world = collecting();
    let old = world.rebuild();
    world.state(&old, &first).unwrap();
    world.add_release(&release("v1", "two"), &alice()).unwrap();
    assert!(!world.repo.has(&file));
    assert_eq!(world.state(&old, &first), Err(StatementRefusal::OtherIndex(path(INDEX))));
    world.state(&world.rebuild(), &first).unwrap();
    world.withdraw(&carol()).unwrap();
    assert!(!world.repo.has(&file));

    let mut world = complete();
    world.revoke_index(&carol());
    assert!(world.repo.has(&file), "what was said stays");
    let ended = Err(StatementRefusal::NotRebuiltAnyMore(path(INDEX)));
    assert_eq!(world.state(&world.rebuild(), &second), ended);
}

#[test]
fn a_registrar_undoes_nothing_of_which_a_builder_has_spoken() {
    let mut world = collecting();
    let mut silent = world.clone();
    silent.withdraw(&machine()).expect("no one has said anything");
    world.state(&other(&world), &builders()[0]).unwrap();
    let refused = world.withdraw(&machine()).unwrap_err();
    assert!(matches!(refused, WithdrawRefusal::RegistrarCannotWithdraw { .. }), "{refused}");
    let corrected = world.add_release(&release("v1", "two"), &machine());
    assert!(matches!(corrected, Err(AssetsRefusal::RegistrarCannotCorrect { .. })));
    world.withdraw(&carol()).expect("an admin");
}

#[test]
fn a_statement_is_about_this_index_and_signed_by_its_builder() {
    let [builder, another, _] = builders();
    let mut world = complete();
    let about =
        |file: &str, document: &Rebuild| signed_statement(KIND, &path(file), &document.write(), &another);
    let good = about(INDEX, &world.rebuild());
    let missing = format!("{PROJECT}/releases/tag/v9/svc.index.json");
    let elsewhere = Rebuild { rebuild_of: path(&missing), ..world.rebuild() };
    let of_other = Rebuild { subject_digest: Sha512::of(b"another"), ..world.rebuild() };
    let renamed = |name: &str| Rebuild { files: vec![rebuilt(name, "one")], ..world.rebuild() };
    let not_comparable = |name: &str| StatementRefusal::NotComparable {
        name: AssetName::parse(name).expect("a name"),
        file: path(INDEX),
    };
    let bad_signature = || StatementRefusal::BadSignature(KIND);
    let cases = [
        (about(ACTIVE, &world.rebuild()), StatementRefusal::NotRebuildable(path(ACTIVE))),
        (about(&missing, &elsewhere), StatementRefusal::NotFound(path(&missing))),
        (SignedStatement { text: format!("{} ", good.text), ..good.clone() }, bad_signature()),
        (SignedStatement { public_key: builder.public_key(), ..good.clone() }, bad_signature()),
        (
            about(INDEX, &elsewhere),
            StatementRefusal::OtherRelease { named: path(&missing), file: path(INDEX) },
        ),
        (about(INDEX, &of_other), StatementRefusal::OtherIndex(path(INDEX))),
        (about(INDEX, &renamed("app.zip")), not_comparable("app.zip")),
    ];
    for (statement, expected) in cases {
        assert_eq!(world.state_as(&statement), Err(expected));
    }
    let invalid = world.state_as(&SignedStatement { text: "{}".to_owned(), ..good.clone() });
    assert!(matches!(invalid, Err(StatementRefusal::InvalidDocument { kind: KIND, .. })), "{invalid:?}");
    assert_eq!(world.state_as(&good), SAME);
}

#[test]
fn a_file_without_a_digest_in_common_is_not_compared() {
    let [first, second, third] = builders();
    let team = team("2026-01-31T10:00:00Z").builders(2, [&first, &second, &third]);
    let mut world = World::with(&team, &[&alice(), &bob(), &carol(), &dave(), &first, &second, &third]);
    let mut short = release("v1", "one");
    short.published_files[0].digests.sha512 = None;
    world.add_release(&short, &alice()).unwrap();
    let with = |sha256, sha512| {
        let digests = Digests { sha256, sha512 };
        let files = vec![RebuiltFile { digests, ..rebuilt("app.tar.gz", "one") }];
        Rebuild { files, ..world.rebuild() }
    };
    let (right, unknown) = (Some(Sha256::of(b"one")), Some(Sha512::of(b"anything")));
    let [none, both, alone] = [with(None, unknown), with(right, unknown), with(right, None)];
    let refused = world.state(&none, &first).unwrap_err();
    assert!(matches!(refused, StatementRefusal::NotComparable { .. }), "{refused}");
    assert_mentions(&refused.to_string(), &["app.tar.gz"]);
    assert_eq!(world.state(&both, &first), SAME, "the index has no SHA-512");
    assert_eq!(world.state(&alone, &second), SAME);
}

#[test]
fn a_time_can_be_ten_minutes_ahead_and_no_more() {
    let [builder, ..] = builders();
    let mut world = collecting();
    world.now = countersign_testing::at("2026-02-01T13:00:00.9Z");
    // What is stored has whole seconds, and must allow the same decision again.
    let whole = world.now.to_whole_seconds();
    let ahead = |seconds| Rebuild { timestamp: shifted_seconds(whole, seconds), ..world.rebuild() };
    let [limit, late] = [ahead(600), ahead(601)];
    let refused = StatementRefusal::TimestampAhead { kind: KIND, timestamp: late.timestamp };
    assert_eq!(world.state(&late, &builder), Err(refused));
    assert_eq!(world.state(&limit, &builder), SAME);
}

#[test]
fn the_longest_statements_of_all_builders_fit_into_their_file() {
    let alice = alice();
    let people: [SecretKey; REBUILDS] = std::array::from_fn(|n| key(21 + u8::try_from(n).expect("few")));
    let team = signers("2026-01-31T10:00:00Z").artifact(1, [&alice]).builders(REBUILDS, people.each_ref());
    let mut everyone: Vec<&SecretKey> = people.iter().collect();
    everyone.insert(0, &alice);
    let mut world = World::with(&team, &everyone);
    world.add_release(&release("v1", "one"), &alice).unwrap();
    let padded = |text: &str, bytes: usize, by: &SecretKey| {
        // Line ends take the most room in the file: each is escaped.
        let text = format!("{text}{}", "\n".repeat(bytes - text.len()));
        signed_statement(KIND, &path(INDEX), text.as_bytes(), by)
    };
    let text = String::from_utf8(world.rebuild().write()).expect("our documents are text");
    let refused = world.state_as(&padded(&text, REBUILD_BYTES + 1, &people[0])).unwrap_err();
    assert_mentions(&refused.to_string(), &["a rebuild has at most 60 KiB"]);
    for builder in &people {
        assert_eq!(world.state_as(&padded(&text, REBUILD_BYTES, builder)), SAME);
    }
    assert_eq!(stated(&world).entries.len(), REBUILDS);
    let bytes = world.repo.bytes(&format!("{INDEX}.rebuilds.json")).len();
    assert!((FILE_BYTES / 2..FILE_BYTES).contains(&bytes), "{bytes}");
    let mut others = people.each_ref();
    let newcomer = key(40);
    others[0] = &newcomer;
    let next = signers("2026-02-01T10:00:00Z").artifact(1, [&alice]).builders(REBUILDS, others);
    world.rotate(&next, &[&alice, &newcomer]);
    assert_eq!(world.state(&world.rebuild(), &newcomer), SAME, "who builds no more makes room");
    assert_eq!(authors(&world), sorted(others));
}

// How it is judged.

fn rebuilt(name: &str, content: &str) -> RebuiltFile {
    let listed = file(name, "", content);
    RebuiltFile { file_name: listed.file_name, digests: listed.digests }
}

/// A release whose files have their names as content.
fn index(names: &[&str]) -> ReleaseIndex {
    let mut files: Vec<_> = names.iter().map(|name| file(name, "https://files.example", name)).collect();
    files.sort_by(|a, b| a.file_name.cmp(&b.file_name));
    checksums_index(PROJECT, files)
}

fn policy(groups: &[(usize, &[&SecretKey])], patterns: &[&str]) -> RebuildPolicy {
    let group = |(threshold, keys): &(usize, &[&SecretKey])| {
        Group::of_keys(*threshold, &keys.iter().map(|key| key.public_key()).collect())
    };
    let patterns = patterns.iter().map(|pattern| FilePattern::parse(pattern).expect("a pattern"));
    RebuildPolicy { builders: groups.iter().map(group).collect(), files: patterns.collect(), required: true }
}

/// What someone states who got these files, each with this content.
fn got(files: &[(&str, &str)], by: &SecretKey) -> (PublicKey, StoredRebuild) {
    let mut files: Vec<RebuiltFile> = files.iter().map(|(name, content)| rebuilt(name, content)).collect();
    files.sort_by(|a, b| a.file_name.cmp(&b.file_name));
    let document = rebuild_of(&path(INDEX), &index_text(&index(&[])));
    said(&Rebuild { files, ..document }, by)
}

fn judge<const N: usize>(
    names: &[&str],
    policy: &RebuildPolicy,
    stated: [(PublicKey, StoredRebuild); N],
) -> Reproduction {
    Reproduction::judge(&index(names), policy, &RebuildsFile { entries: stated.into() })
}

#[test]
fn a_release_is_reproduced_when_each_group_got_each_file() {
    let [first, second, third] = builders();
    let [first, second, third] = [&first, &second, &third];
    let both = [("a", "a"), ("b", "b")];
    let two_of_three = policy(&[(2, &[first, second, third])], &[]);
    let two_groups = policy(&[(1, &[first]), (2, &[first, second, third])], &[]);
    let cases = [
        (&two_of_three, vec![got(&both, first), got(&both, third)], true, (2, 2)),
        (&two_of_three, vec![got(&both, first)], false, (1, 2)),
        (&two_of_three, vec![got(&both, first), got(&both, &mallory())], false, (1, 2)),
        // Each file has its own builders.
        (
            &two_of_three,
            vec![got(&both, first), got(&both[..1], second), got(&both[1..], third)],
            true,
            (2, 2),
        ),
        (&two_of_three, vec![got(&both, first), got(&both[..1], second)], false, (1, 2)),
        (&two_of_three, vec![got(&both, first), got(&[("a", "a"), ("b", "x")], second)], false, (1, 2)),
        // A key in two groups counts in both, and for no other key of them.
        (&two_groups, vec![got(&both, first), got(&both, second)], true, (3, 3)),
        (&two_groups, vec![got(&both, second), got(&both, third)], false, (2, 3)),
        (&two_groups, vec![got(&both, first)], false, (2, 3)),
        (&two_of_three, vec![], false, (0, 2)),
    ];
    for (n, (policy, stated, is_reproduced, (collected, needed))) in cases.into_iter().enumerate() {
        let stated = RebuildsFile { entries: stated.into_iter().collect() };
        let judged = Reproduction::judge(&index(&["a", "b"]), policy, &stated);
        assert_eq!(
            (judged.is_reproduced(), judged.tally),
            (is_reproduced, Tally { collected, needed }),
            "case {n}"
        );
        assert_eq!(judged.is_lacking(), !is_reproduced, "case {n}");
        assert_eq!(judged.groups(), policy.builders, "case {n}");
        let lenient = RebuildPolicy { required: false, ..policy.clone() };
        assert!(!Reproduction::judge(&index(&["a", "b"]), &lenient, &stated).is_lacking(), "case {n}");
    }
}

#[test]
fn who_got_something_else_is_named_with_the_files_also_those_that_no_pattern_asks_for() {
    let [first, second, third] = builders();
    let policy = policy(&[(1, &[&first, &second, &third])], &["*.gz", "*.zip"]);
    let judged = judge(
        &["a.gz", "b.txt"],
        &policy,
        [
            got(&[("a.gz", "a.gz"), ("b.txt", "x")], &first),
            got(&[("a.gz", "x"), ("b.txt", "x"), ("c", "not in the release")], &second),
            got(&[("a.gz", "x")], &mallory()),
        ],
    );
    let names = |key: &SecretKey| judged.different[&key.public_key()].iter().map(AssetName::as_str);
    assert_eq!(judged.different.len(), 2, "strangers are not heard");
    assert_eq!(names(&first).collect::<Vec<_>>(), ["b.txt"]);
    assert_eq!(names(&second).collect::<Vec<_>>(), ["a.gz", "b.txt"]);
    assert_eq!(judged.files.keys().map(AssetName::as_str).collect::<Vec<_>>(), ["a.gz"]);
    assert!(judged.is_reproduced(), "it counts against nothing");
    assert_eq!(judged.missing(), [third.public_key()].into());
    assert_eq!(judged.sources().into_iter().collect::<Vec<_>>(), [COMMIT]);
}

#[test]
fn all_digests_that_a_builder_states_must_be_those_of_the_index() {
    let [builder, ..] = builders();
    let policy = policy(&[(1, &[&builder])], &[]);
    let (sha256, sha512) = (Some(Sha256::of(b"a")), Some(Sha512::of(b"a")));
    let wrong = (Some(Sha256::of(b"x")), Some(Sha512::of(b"x")));
    for ((stated256, stated512), is_same) in [
        ((sha256, sha512), true),
        ((sha256, None), true),
        ((None, sha512), true),
        ((sha256, wrong.1), false),
        ((wrong.0, sha512), false),
        ((wrong.0, None), false),
    ] {
        let digests = Digests { sha256: stated256, sha512: stated512 };
        let document = Rebuild {
            files: vec![RebuiltFile { digests, ..rebuilt("a", "a") }],
            ..rebuild_of(&path(INDEX), &index_text(&index(&[])))
        };
        let judged = judge(&["a"], &policy, [said(&document, &builder)]);
        assert_eq!((judged.is_reproduced(), judged.different.is_empty()), (is_same, is_same));
    }
}
