//! Bundles of projects with builders: what they state counts, says nothing, or lacks.

use countersign_core::documents::{
    index::AssetName, index::Digests, index::ReleaseIndex, said::StoredRebuild, statement::Rebuild,
};
use countersign_core::proof::verify::Evidence;
use countersign_core::values::{digest::Sha256, digest::Sha512, key::PublicKey, time::Timestamp};
use countersign_testing::evidence::{
    Past, builders, evidence, founded, founders, founders_with_builders, index_path, index_text, noon,
    rebuilt, release_index, revocation_of, said, successors,
};
use countersign_testing::{
    INDEX, PROJECT, alice, bob, carol, dave, fido::fido, key, mallory, path, rebuild_of, shifted_seconds,
    signers,
};

use super::vector::{Vector, bundle};

const HOUR: i128 = 3_600;

pub(super) fn all() -> Vec<Vector> {
    [of_counts(), of_silence(), of_policies(), of_forms()].concat()
}

/// What a builder states who got release v1 as it is.
fn same() -> Rebuild {
    rebuild_of(&path(INDEX), &index_text(&release_index("v1")))
}

/// What a builder states whose archive is another one.
fn other() -> Rebuild {
    let mut document = same();
    document.files[0].digests = Digests { sha256: Some(Sha256::of(b"something else")), sha512: None };
    document
}

/// A release that needs two of three builders, of whom these have stated something.
fn required(stated: impl IntoIterator<Item = (PublicKey, StoredRebuild)>) -> Evidence {
    rebuilt(&founders_with_builders(), stated)
}

/// A release that is shown under the first signers, who asked for no rebuilds. The next signers do, an hour after noon.
fn shown_under_founders(mirrored_on: Timestamp) -> Evidence {
    let next = signers("2026-01-02T00:00:00Z")
        .artifact(2, [&alice(), &bob(), &carol()])
        .admin(2, [&alice(), &bob()])
        .builders(2, builders().each_ref())
        .reproduced_first();
    let [first, second, third] = &builders();
    let past = founded(PROJECT).then(&next, &[&alice(), &bob(), first, second, third]);
    let index = ReleaseIndex { mirrored_on, ..release_index("v1") };
    Evidence { governed_by: past.digest(0), ..evidence(&past, INDEX, &index, &[&alice(), &bob()]) }
}

/// A release that is shown under the next signers, who ask for no rebuilds. It was made under the first, who do.
fn shown_under_successors() -> Evidence {
    let everyone = [&alice(), &bob(), &carol(), &dave(), &key(21), &key(22), &key(23)];
    let past = Past::of(PROJECT).then(&founders_with_builders(), &everyone);
    let past = past.then(&successors(), &[&alice(), &bob(), &carol(), &key(5), &key(6)]);
    evidence(&past, INDEX, &release_index("v1"), &[&carol(), &key(5)])
}

fn of_counts() -> Vec<Vector> {
    let [first, second, third] = builders();
    let both_groups =
        founders().builders(1, [&first]).builders(2, [&first, &second, &third]).reproduced_first();
    let lone = [said(&same(), &first), said(&other(), &second)];
    let commit = Rebuild { source_commit: "ab".repeat(32), ..same() };
    let mut short = same();
    short.files[0].digests.sha512 = None;
    let lacking = required([said(&same(), &first)]);
    let revocation = Some(revocation_of(&lacking, &[&alice()]));
    vec![
        bundle("good-reproduced", required([said(&same(), &first), said(&same(), &third)])),
        bundle(
            "good-reproduced-by-a-builder-of-two-groups",
            rebuilt(&both_groups, [said(&same(), &first), said(&same(), &third)]),
        ),
        bundle(
            "good-reproduced-and-one-builder-got-something-else",
            required([said(&same(), &first), said(&same(), &second), said(&other(), &third)]),
        ),
        bundle(
            "good-reproduced-from-other-commits-and-by-one-digest",
            required([said(&commit, &first), said(&short, &second)]),
        ),
        bundle(
            "good-reproduced-by-fido-keys",
            required([said(&same(), &fido(21)), said(&same(), &fido(22))]),
        ),
        bundle(
            "good-not-reproduced-and-not-required",
            rebuilt(&founders().builders(2, builders().each_ref()), lone.clone()),
        ),
        bundle("not-reproduced-by-anyone", required([])),
        bundle("not-reproduced-by-enough", required(lone)),
        bundle(
            "not-reproduced-by-one-of-two-groups",
            rebuilt(&both_groups, [said(&same(), &second), said(&same(), &third)]),
        ),
        bundle("shown-under-signers-who-require-no-rebuilds-any-more", shown_under_successors()),
        bundle("revoked-and-not-reproduced", Evidence { revocation, ..lacking }),
        bundle(
            "good-made-before-rebuilds-were-required",
            shown_under_founders(shifted_seconds(noon(), HOUR - 1)),
        ),
        bundle(
            "shown-under-signers-who-required-no-rebuilds",
            shown_under_founders(shifted_seconds(noon(), HOUR)),
        ),
    ]
}

/// Statements that say nothing, so that one is missing.
fn of_silence() -> Vec<Vector> {
    let [first, second, _] = builders();
    let beside = |other: (PublicKey, StoredRebuild)| required([said(&same(), &first), other]);
    let (_, of_first) = said(&same(), &first);
    let about = |change: fn(&mut Rebuild)| {
        let mut document = same();
        change(&mut document);
        beside(said(&document, &second))
    };
    let mut differs_in_one = same();
    differs_in_one.files[0].digests.sha512 = Some(Sha512::of(b"something else"));
    vec![
        bundle("rebuild-by-a-stranger", beside(said(&same(), &mallory()))),
        bundle("rebuild-by-a-signer", beside(said(&same(), &alice()))),
        bundle("rebuild-under-another-name", beside((second.public_key(), of_first))),
        bundle(
            "rebuild-of-another-index",
            about(|document| {
                document.subject_digest = Sha512::of(index_text(&release_index("v2")).as_bytes())
            }),
        ),
        bundle("rebuild-of-another-release", about(|document| document.rebuild_of = path(&index_path("v2")))),
        bundle(
            "rebuild-of-a-file-that-the-release-lacks",
            about(|document| {
                document.files[0].file_name = AssetName::parse("app.zip").expect("a name");
            }),
        ),
        bundle("rebuild-with-one-of-two-digests-wrong", beside(said(&differs_in_one, &second))),
        bundle(
            "rebuild-with-something-else-that-does-not-verify",
            required([said(&same(), &first), (second.public_key(), said(&other(), &first).1)]),
        ),
    ]
}

fn of_policies() -> Vec<Vector> {
    let agreed = || builders().map(|builder| said(&same(), &builder));
    let team =
        |pattern: &str| founders().builders(2, builders().each_ref()).rebuilt(&[pattern]).reproduced_first();
    let [first, ..] = builders();
    vec![
        bundle("no-file-that-builders-make", rebuilt(&team("*.zip"), agreed())),
        bundle("builder-with-another-role", rebuilt(&founders().builders(1, [&first, &alice()]), agreed())),
    ]
}

fn of_forms() -> Vec<Vector> {
    let [first, second, _] = builders();
    let good = || required([said(&same(), &first), said(&same(), &second)]);
    let replaced = |name, from: &'static str, to: &'static str| {
        bundle(name, good()).edited(move |document| document.replacen(from, to, 1))
    };
    let seventeen: [(PublicKey, StoredRebuild); 17] = std::array::from_fn(|n| {
        said(&same(), &countersign_testing::key(100 + u8::try_from(n).expect("few")))
    });
    vec![
        replaced("rebuild-with-an-unknown-field", r#"\"rebuild_of\""#, r#"\"extra\": 1, \"rebuild_of\""#),
        replaced("rebuild-with-a-short-commit", "0123456789abcdef01234567\\", "0123456789abcdef0123456\\"),
        replaced("statement-with-an-unknown-field", r#""document": "{\n"#, r#""extra": 1, "document": "{\n"#),
        bundle("more-statements-than-builders-can-be", required(seventeen)),
        bundle("no-statement-in-rebuilds", required([])).edited(|document| {
            document.replacen("\"staple\": null", "\"staple\": null, \"rebuilds\": {}", 1)
        }),
    ]
}
