//! Lies about the index, its signatures and its signers.

use countersign_core::documents::signatures::Collected;
use countersign_core::documents::{history::History, statement::Objection};
use countersign_core::values::key::{KeyFormat, SecretKey, Signature, encode_base64};
use countersign_core::{proof::verify::Evidence, values::digest::Sha512};
use countersign_testing::evidence::{
    OTHER_PROJECT, Past, checksums_index, evidence, evidence_of_text, file, founded, founders, good,
    index_text, noon, release_index, revocation_document, rotated, signed_by, under_name_of, with_signature,
};
use countersign_testing::fido::{PRESENT, SignsDigests as _, fido};
use countersign_testing::{
    INDEX, PROJECT, alice, bob, carol, dave, documents, documents::veto, key, mallory, path, revocation_text,
    signed_request, signer_text, signers,
};

use super::good_bundles::fido_team;
use super::vector::{Vector, bundle};

pub(super) fn all() -> Vec<Vector> {
    [of_places(), of_kinds(), of_signatures(), of_touches(), of_histories(), of_forms()].concat()
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
    vec![
        bundle("index-of-another-release", signed_text(index_text(&release_index("v2")))),
        bundle("index-of-a-release-whose-tag-continues", signed_text(index_text(&release_index("v1.1")))),
        bundle(
            "index-of-another-project",
            evidence(&founded(OTHER_PROJECT), INDEX, &of_other, &[&alice(), &bob()]),
        ),
        bundle(
            "index-of-a-project-whose-name-is-a-prefix",
            evidence(&founded("https/github.com/443/acme/ap"), INDEX, &with_short_name, &[&alice(), &bob()]),
        ),
        bundle(
            "asset-of-another-release",
            source("https://github.com/acme/app/releases/download/v2/app.tar.gz"),
        ),
        bundle(
            "asset-under-another-name",
            source("https://github.com/acme/app/releases/download/v1/old.tar.gz"),
        ),
        bundle(
            "checksums-of-another-directory",
            checksums("https://github.com/acme/app/releases/tag/v0/app.tar.gz"),
        ),
        bundle(
            "checksums-with-an-encoded-dot-segment",
            checksums("https://github.com/acme/app/releases/tag/v1/%2e%2e/v1/app.tar.gz"),
        ),
        bundle(
            "index-shown-under-another-file-name",
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
        bundle("request-shown-as-index", signed_text(request)),
        bundle("revocation-shown-as-index", signed_text(revocation_text(&revocation_document(None)))),
        bundle(
            "veto-shown-as-index",
            signed_text(String::from_utf8(veto().write()).expect("our documents are text")),
        ),
        bundle(
            "objection-shown-as-index",
            signed_text(objection_text(documents::objection().subject_digest)),
        ),
        bundle("signers-file-shown-as-index", signed_text(founders().text())),
        bundle("metadata-shown-as-index", signed_text(metadata)),
        bundle("index-with-an-unknown-field", spliced("{", "{\"extra\": 1,")),
        bundle(
            "index-with-a-field-twice",
            spliced("{", "{\"project_id\": \"https/github.com/443/acme/other\","),
        ),
        bundle("escape-sequence-in-a-file-name", spliced("\"app.tar.gz\"", "\"\\u001b[2Japp.tar.gz\"")),
        bundle("bidirectional-override-in-a-file-name", spliced("\"app.tar.gz\"", "\"app\\u202ezg.rat\"")),
        bundle("file-name-that-climbs", spliced("\"app.tar.gz\"", "\"../app.tar.gz\"")),
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
    vec![
        bundle("changed-digest-in-the-index", forged),
        bundle("signatures-of-strangers", with(signed_by(text, &[&mallory(), &key(67)]))),
        bundle("one-signature-short", with(signed_by(text, &[&alice(), &mallory()]))),
        bundle("no-signature-at-all", with(signed_by::<SecretKey>(text, &[]))),
        bundle("signed-by-the-master-only", with(signed_by(text, &[&alice(), &dave()]))),
        bundle("one-group-left-out", evidence(&grouped, INDEX, &release_index("v1"), &[&alice(), &bob(), &carol()])),
        bundle("signature-under-another-name", with(with_signature(under_name_of(text, &alice(), &bob()), &alice(), text))),
        bundle("signatures-on-another-index", with(signed_by(&index_text(&release_index("v2")), &[&alice(), &bob()]))),
        bundle("one-key-under-two-spellings", with(signed_by(text, &[&alice()])))
        .edited(|document| {
            let canonical = alice().public_key().to_string();
            let signature = alice().sign(&countersign_core::values::digest::Sha512::of(text.as_bytes())).to_base64();
            let twice = format!(
                "\"{canonical}=\": {{\n        \"signature\": \"{signature}\",\n        \"collected_at\": \"{}\"\n      }},\n      \"{canonical}\"",
                noon()
            );
            document.replacen(&format!("\"{canonical}\""), &twice, 1)
        }),
        bundle("one-key-twice-in-a-signers-file", key_twice()),
    ]
}

/// The release that Alice and a FIDO key must sign, with another signature in the place of the FIDO key's.
fn of_touches() -> Vec<Vector> {
    let (good, key) = (fido_team(), fido(9));
    let digest = Sha512::of(good.index.as_bytes());
    let touched = key.sign(&digest);
    let with = |signature: Signature| {
        let mut shown = good.clone();
        shown.signatures.entries.insert(key.public_key(), Collected { signature, collected_at: noon() });
        shown
    };
    let message = KeyFormat::Fido.message(&digest);
    let mut counted = touched.to_bytes();
    counted[68] ^= 1;
    let counted: [u8; 69] = counted.try_into().expect("69 bytes");
    let padded = [&alice().sign(&digest).ed25519_bytes()[..], &[PRESENT, 0, 0, 0, 7]].concat();
    let mut padded_set = good.clone();
    let signature = Signature::from_fido_bytes(padded.try_into().expect("69 bytes"));
    padded_set.signatures.entries.get_mut(&alice().public_key()).expect("hers").signature = signature;
    let longer = encode_base64(&[&touched.to_bytes()[..], &[0]].concat());
    vec![
        bundle("fido-signature-without-a-touch", with(key.sign_message(&message, 0, 7))),
        bundle("fido-signature-cut-to-64-bytes", with(Signature::from_bytes(*touched.ed25519_bytes()))),
        bundle("fido-signature-with-another-counter", with(Signature::from_fido_bytes(counted))),
        bundle("fido-signature-of-the-digest-itself", with(key.sign_message(digest.as_bytes(), PRESENT, 7))),
        bundle("plain-signature-padded-to-69-bytes", padded_set),
        bundle("fido-signature-that-is-longer", good)
            .edited(|document| document.replace(&touched.to_base64(), &longer)),
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
        bundle("history-truncated", with_history(entries(0..1))),
        bundle("history-without-its-root", with_history(entries(1..2))),
        bundle("history-that-is-empty", with_history(History::default())),
        bundle("history-of-another-project", with_history(rotated(OTHER_PROJECT).history)),
        bundle("history-spliced-from-another-project", with_history(History { entries: spliced })),
        bundle("history-with-another-root", with_history(History { entries: other_root })),
        bundle("history-taken-over", evidence(&taken_over, INDEX, &release_index("v1"), &[&mallory()])),
        bundle(
            "signed-by-those-who-were-rotated-out",
            evidence(&past, INDEX, &release_index("v1"), &[&alice(), &bob()]),
        ),
        bundle(
            "signers-file-of-no-history",
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
    let form = |name, from: &str, to: &str| {
        bundle(name, good()).edited(|document: String| document.replacen(from, to, 1))
    };
    let first = |document: String| {
        document.replacen("\"version\": 2", "\"version\": 1", 1).replacen(",\n  \"staple\": null", "", 1)
    };
    vec![
        bundle("bundle-of-version-1", good()).edited(first),
        form("bundle-without-revocation-state", ",\n  \"revocation\": null", ""),
        form("bundle-of-a-later-version", "\"version\": 2,", "\"version\": 3,"),
        form("bundle-of-version-1-with-a-staple", "\"version\": 2,", "\"version\": 1,"),
        form("bundle-of-version-2-without-a-staple", ",\n  \"staple\": null", ""),
        form("bundle-with-a-staple-that-is-none", "\"staple\": null", "\"staple\": {}"),
        form("bundle-with-an-unknown-field", "\"version\": 2,", "\"version\": 2,\n  \"trusted\": true,"),
        form(
            "path-that-is-not-normalised", "\"index_path\": \"https/github.com/443/",
            "\"index_path\": \"https/github.com/",
        ),
    ]
}
