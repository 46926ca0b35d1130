//! Lies about the index, its signatures and its signers.

use countersign_core::documents::{history::History, statement::Objection};
use countersign_core::{proof::verify::Evidence, values::digest::Sha512};
use countersign_testing::evidence::{
    OTHER_PROJECT, Past, checksums_index, evidence, evidence_of_text, file, founded, founders, good,
    index_text, noon, release_index, revocation_document, rotated, signed_by, under_name_of, with_signature,
};
use countersign_testing::{
    INDEX, PROJECT, alice, bob, carol, dave, documents, documents::veto, key, mallory, path, revocation_text,
    signed_request, signer_text, signers,
};

use super::vector::{Vector, bundle, refused};

pub(super) fn all() -> Vec<Vector> {
    [of_places(), of_kinds(), of_signatures(), of_histories(), of_forms()].concat()
}

/// An objection to the index with this digest.
pub(super) fn objection_text(subject_digest: Sha512) -> String {
    let document = Objection { subject_digest, ..documents::objection() };
    String::from_utf8(document.write()).expect("our documents are text")
}

/// What Alice and Bob would have signed, at the path of release v1.
fn signed_text(text: String) -> Evidence {
    evidence_of_text(&founded(PROJECT), INDEX, text, &[&alice(), &bob()])
}

fn of_places() -> Vec<Vector> {
    let source = |source: &str| {
        let mut index = release_index("v1");
        index.published_files[0].source = source.to_owned();
        signed_text(index_text(&index))
    };
    let mut of_other = release_index("v1");
    of_other.project_id = path(OTHER_PROJECT);
    let mut with_short_name = release_index("v1");
    with_short_name.project_id = path("https/github.com/443/acme/ap");
    let checksums = |source: &str| {
        let index = checksums_index(PROJECT, vec![file("app.tar.gz", source, "one")]);
        signed_text(index_text(&index))
    };
    let other_release = "the index names another release than its path";
    vec![
        bundle(
            "index-of-another-release",
            "The index of v2, validly signed, is shown as that of v1.",
            refused("place: other release", other_release),
            signed_text(index_text(&release_index("v2"))),
        ),
        bundle(
            "index-of-a-release-whose-tag-continues",
            "The index of v1.1, validly signed, is shown as that of v1.",
            refused("place: other release", other_release),
            signed_text(index_text(&release_index("v1.1"))),
        ),
        bundle(
            "index-of-another-project",
            "An index of another project that the same people have signed, with that project's own history.",
            refused("place: other project", "the index names a project that does not contain its path"),
            evidence(&founded(OTHER_PROJECT), INDEX, &of_other, &[&alice(), &bob()]),
        ),
        bundle(
            "index-of-a-project-whose-name-is-a-prefix",
            "The index names acme/ap, and lies in acme/app.",
            refused("place: other project", "the index names a project that does not contain its path"),
            evidence(&founded("https/github.com/443/acme/ap"), INDEX, &with_short_name, &[&alice(), &bob()]),
        ),
        bundle(
            "asset-of-another-release",
            "A file of the index comes from the project's own release v2.",
            refused("place: other source", "a file comes from another release of the project"),
            source("https://github.com/acme/app/releases/download/v2/app.tar.gz"),
        ),
        bundle(
            "asset-under-another-name",
            "A file of the index comes from the right release, where it has another name.",
            refused("place: other source", "a file comes from another file of the release"),
            source("https://github.com/acme/app/releases/download/v1/old.tar.gz"),
        ),
        bundle(
            "checksums-of-another-directory",
            "An index from checksums files lists a file that lies elsewhere on the same server.",
            refused("place: other source", "without a release page, each file lies below the index"),
            checksums("https://github.com/acme/app/releases/tag/v0/app.tar.gz"),
        ),
        bundle(
            "checksums-with-an-encoded-dot-segment",
            "The source of a file climbs out of its directory by %2e%2e.",
            refused("place: other source", "dot segments are no place, in any encoding"),
            checksums("https://github.com/acme/app/releases/tag/v1/%2e%2e/v1/app.tar.gz"),
        ),
        bundle(
            "index-shown-under-another-file-name",
            "A validly signed index is shown at a path that no index has.",
            refused("place: not an index", "the path does not end in svc.index.json"),
            Evidence { path: path(&INDEX.replace("svc.index.json", "index.json")), ..good() },
        ),
    ]
}

fn of_kinds() -> Vec<Vector> {
    let request = signed_request(&alice(), noon(), &good().index);
    let request = format!("{}##{}##{}", request.timestamp, request.nonce, request.payload);
    let metadata = founded(PROJECT).history.entries[0].metadata.clone();
    let spliced = |from: &str, to: &str| {
        let text = good().index;
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text);
        signed_text(changed)
    };
    vec![
        bundle(
            "request-shown-as-index",
            "The signed string of a request is shown as the index.",
            refused("index: ", "the text is no JSON"),
            signed_text(request),
        ),
        bundle(
            "revocation-shown-as-index",
            "A signed revocation document is shown as the index.",
            refused("index: reason", "an index has no such field"),
            signed_text(revocation_text(&revocation_document(None))),
        ),
        bundle(
            "veto-shown-as-index",
            "A signed veto is shown as the index.",
            refused("index: veto", "an index has no such field"),
            signed_text(String::from_utf8(veto().write()).expect("our documents are text")),
        ),
        bundle(
            "objection-shown-as-index",
            "A signed objection is shown as the index.",
            refused("index: objection", "an index has no such field"),
            signed_text(objection_text(documents::objection().subject_digest)),
        ),
        bundle(
            "signers-file-shown-as-index",
            "A signed signers file is shown as the index.",
            refused("index: timestamp", "an index has no such field"),
            signed_text(founders().text()),
        ),
        bundle(
            "metadata-shown-as-index",
            "The signed metadata of a signers file is shown as the index.",
            refused("index: origin", "an index has no such field"),
            signed_text(metadata),
        ),
        bundle(
            "index-with-an-unknown-field",
            "The signed index has a field that we do not know.",
            refused("index: extra", "unknown fields are refused"),
            spliced("{", "{\"extra\": 1,"),
        ),
        bundle(
            "index-with-a-field-twice",
            "The signed index names its project twice, differently.",
            refused("index: ", "duplicate names are refused"),
            spliced("{", "{\"project_id\": \"https/github.com/443/acme/other\","),
        ),
        bundle(
            "escape-sequence-in-a-file-name",
            "A file name in the index would clear the terminal.",
            refused("index: published_files[0].file_name", "names have no control characters"),
            spliced("\"app.tar.gz\"", "\"\\u001b[2Japp.tar.gz\""),
        ),
        bundle(
            "bidirectional-override-in-a-file-name",
            "A file name in the index reads backwards.",
            refused("index: published_files[0].file_name", "names have no invisible characters"),
            spliced("\"app.tar.gz\"", "\"app\\u202ezg.rat\""),
        ),
        bundle(
            "file-name-that-climbs",
            "A file name in the index leads out of the directory.",
            refused("index: published_files[0].file_name", "names have no dot segments"),
            spliced("\"app.tar.gz\"", "\"../app.tar.gz\""),
        ),
    ]
}

fn of_signatures() -> Vec<Vector> {
    let shown = good();
    let text = shown.index.as_str();
    let with = |signatures| Evidence { signatures, ..good() };
    let two_groups = signers("2026-01-01T00:00:00Z")
        .artifact(2, [&alice(), &bob(), &carol()])
        .artifact(1, [&dave(), &key(5)]);
    let everyone = [&alice(), &bob(), &carol(), &dave(), &key(5)];
    let grouped = Past::of(PROJECT).then(&two_groups, &everyone);
    let changed = release_index("v1").published_files[0].digests.sha256.expect("a digest").to_string();
    let mut forged = good();
    forged.index = forged.index.replace(&changed, &changed.replace(&changed[..2], "00"));
    let too_few = "every group of artifact signers must reach its threshold";
    vec![
        bundle(
            "changed-digest-in-the-index",
            "A digest inside the index was changed after it was signed.",
            refused("bad signature", "a signature does not fit the text"),
            forged,
        ),
        bundle(
            "signatures-of-strangers",
            "Two people who are in no signers file have signed.",
            refused("too few", too_few),
            with(signed_by(text, &[&mallory(), &key(67)])),
        ),
        bundle(
            "one-signature-short",
            "One of two has signed, and a stranger.",
            refused("too few", too_few),
            with(signed_by(text, &[&alice(), &mallory()])),
        ),
        bundle(
            "no-signature-at-all",
            "Nobody has signed.",
            refused("too few", too_few),
            with(signed_by(text, &[])),
        ),
        bundle(
            "signed-by-the-master-only",
            "The master and one artifact signer have signed; a master signs no releases.",
            refused("too few", too_few),
            with(signed_by(text, &[&alice(), &dave()])),
        ),
        bundle(
            "one-group-left-out",
            "The first group has reached its threshold, the second has not.",
            refused("too few", too_few),
            evidence(&grouped, INDEX, &release_index("v1"), &[&alice(), &bob(), &carol()]),
        ),
        bundle(
            "signature-under-another-name",
            "Alice's signature stands under her own name and under Bob's.",
            refused("bad signature", "a signature does not verify with the key it stands under"),
            with(with_signature(under_name_of(text, &alice(), &bob()), &alice(), text)),
        ),
        bundle(
            "signatures-on-another-index",
            "The signatures of the index of v2 stand beside that of v1.",
            refused("bad signature", "a signature does not fit the text"),
            with(signed_by(&index_text(&release_index("v2")), &[&alice(), &bob()])),
        ),
        bundle(
            "one-key-under-two-spellings",
            "Alice's one signature stands under two spellings of her key, one of them padded.",
            refused(
                "not a bundle: signatures.entries[\"svc-pub:iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w=\"]",
                "keys in a list of signatures have one spelling",
            ),
            with(signed_by(text, &[&alice()])),
        )
        .edited(|document| {
            let canonical = alice().public_key().to_string();
            let signature = alice().sign(&countersign_core::values::digest::Sha512::of(text.as_bytes())).to_base64();
            let twice = format!(
                "\"{canonical}=\": {{\n        \"signature\": \"{signature}\",\n        \"collected_at\": \"{}\"\n      }},\n      \"{canonical}\"",
                noon()
            );
            document.replacen(&format!("\"{canonical}\""), &twice, 1)
        }),
        bundle(
            "one-key-twice-in-a-signers-file",
            "A group of threshold 2 lists one key in two spellings.",
            refused(
                "chain, entry 0: signers file, artifact_signers[0].signers[1]",
                "a group lists a key once, whatever its spelling",
            ),
            key_twice(),
        ),
    ]
}

fn key_twice() -> Evidence {
    let alices = alice().public_key();
    let entries = [signer_text(&alices.to_string()), signer_text(&alices.to_base64())].join(", ");
    let text = format!(
        "{{\"version\": 1, \"timestamp\": \"2026-01-01T00:00:00Z\", \"artifact_signers\": [{{\"threshold\": 2, \"signers\": [{entries}]}}]}}\n"
    );
    let past = Past::of(PROJECT).then_text(text, &[&alice()]);
    evidence(&past, INDEX, &release_index("v1"), &[&alice()])
}

fn of_histories() -> Vec<Vector> {
    let past = rotated(PROJECT);
    let by_new = evidence(&past, INDEX, &release_index("v1"), &[&carol(), &key(5)]);
    let with_history = |history: History| Evidence { history, ..by_new.clone() };
    let entries = |range: std::ops::Range<usize>| History { entries: past.history.entries[range].to_vec() };
    let spliced = [&past.history.entries[..1], &rotated(OTHER_PROJECT).history.entries[1..]].concat();
    let mallorys = Past::of(PROJECT)
        .then(&signers("2026-01-01T00:00:00Z").artifact(1, [&mallory()]), &[&mallory()])
        .history
        .entries;
    let other_root = [&mallorys[..], &past.history.entries[1..]].concat();
    let taken_over = founded(PROJECT)
        .then(&signers("2026-01-02T00:00:00Z").artifact(1, [&mallory()]), &[&mallory(), &alice()]);
    vec![
        bundle(
            "history-truncated",
            "The signers file that the index was signed under is missing at the end of the history.",
            refused("unknown governor", "the governing signers file is not in the history"),
            with_history(entries(0..1)),
        ),
        bundle(
            "history-without-its-root",
            "The first entry of the history is missing.",
            refused("chain, entry 0: broken", "the first entry replaces nothing"),
            with_history(entries(1..2)),
        ),
        bundle(
            "history-that-is-empty",
            "No history is shown.",
            refused("chain, entry 0: empty", "a chain has an entry"),
            with_history(History::default()),
        ),
        bundle(
            "history-of-another-project",
            "The history of another project of the same people.",
            refused("chain, entry 0: other project", "the metadata names another project"),
            with_history(rotated(OTHER_PROJECT).history),
        ),
        bundle(
            "history-spliced-from-another-project",
            "The second entry comes from another project, where the same people signed the same bytes.",
            refused("chain, entry 1: other project", "the metadata names another project"),
            with_history(History { entries: spliced }),
        ),
        bundle(
            "history-with-another-root",
            "The first entry is a stranger's; the second one is the project's.",
            refused("chain, entry 1: broken", "the metadata names another predecessor"),
            with_history(History { entries: other_root }),
        ),
        bundle(
            "history-taken-over",
            "A stranger and one of two admins have put the stranger's file into effect, and the stranger signed.",
            refused(
                "chain, entry 1: not agreed",
                "the current admins or masters must reach their thresholds",
            ),
            evidence(&taken_over, INDEX, &release_index("v1"), &[&mallory()]),
        ),
        bundle(
            "signed-by-those-who-were-rotated-out",
            "The former signers have signed, and the file in force is said to govern.",
            refused("too few", "the artifact signers of the governing file count"),
            evidence(&past, INDEX, &release_index("v1"), &[&alice(), &bob()]),
        ),
        bundle(
            "signers-file-of-no-history",
            "A stranger's signers file is said to govern, and is not in the history.",
            refused("unknown governor", "the governing signers file is not in the history"),
            Evidence {
                governed_by: countersign_core::values::digest::Sha512::of(
                    mallorys[0].signers_config.as_bytes(),
                ),
                signatures: signed_by(&by_new.index, &[&mallory()]),
                ..by_new.clone()
            },
        ),
    ]
}

fn of_forms() -> Vec<Vector> {
    let form = |name, description, kind, reason, from: &'static str, to: &'static str| {
        let edit = move |document: String| document.replacen(from, to, 1);
        bundle(name, description, refused(kind, reason), good()).edited(edit)
    };
    let first = |document: String| {
        document.replacen("\"version\": 2", "\"version\": 1", 1).replacen(",\n  \"staple\": null", "", 1)
    };
    vec![
        bundle(
            "bundle-of-version-1",
            "A bundle of version 1, which has no field for a staple. Before 0.1.0 it was read.",
            refused("not a bundle: version", "only version 2 is known"),
            good(),
        )
        .edited(first),
        form(
            "bundle-without-revocation-state",
            "The field that says whether the release is revoked is missing.",
            "not a bundle: revocation",
            "every field is required",
            ",\n  \"revocation\": null",
            "",
        ),
        form(
            "bundle-of-a-later-version",
            "The bundle is of version 3.",
            "not a bundle: version",
            "only version 2 is known",
            "\"version\": 2,",
            "\"version\": 3,",
        ),
        form(
            "bundle-of-version-1-with-a-staple",
            "The bundle says version 1, and has all fields of version 2.",
            "not a bundle: version",
            "only version 2 is known",
            "\"version\": 2,",
            "\"version\": 1,",
        ),
        form(
            "bundle-of-version-2-without-a-staple",
            "The bundle says version 2, but the field for a staple is missing.",
            "not a bundle: staple",
            "every field is required",
            ",\n  \"staple\": null",
            "",
        ),
        form(
            "bundle-with-a-staple-that-is-none",
            "The staple is an empty object.",
            "not a bundle: staple.version",
            "a staple is read as strictly as all else",
            "\"staple\": null",
            "\"staple\": {}",
        ),
        form(
            "bundle-with-an-unknown-field",
            "The bundle has a field that we do not know.",
            "not a bundle: trusted",
            "unknown fields are refused",
            "\"version\": 2,",
            "\"version\": 2,\n  \"trusted\": true,",
        ),
        form(
            "path-that-is-not-normalised",
            "The path of the index lacks its port.",
            "not a bundle: index_path",
            "paths inside documents are in their normal form",
            "\"index_path\": \"https/github.com/443/",
            "\"index_path\": \"https/github.com/",
        ),
    ]
}
