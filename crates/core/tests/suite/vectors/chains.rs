//! Histories of signers files, good and spliced.

use countersign_core::documents::history::{History, HistoryEntry};
use countersign_core::values::verifier_key::{KeyKind, VerifierKey};
use countersign_core::values::{digest::Sha512, key::SecretKey};
use countersign_testing::evidence::{
    OTHER_PROJECT, Past, founded, founders, rotated, signed_by, successors, under_name_of, with_signature,
};
use countersign_testing::{
    PROJECT, Signers, alice, bob, carol, dave, key, mallory, shifted_seconds, signers,
};

use super::vector::{Vector, chain};

pub(super) fn all() -> Vec<Vector> {
    [good(), of_order(), of_consent(), of_texts()].concat()
}

/// Three signers files; the third is the successors' with an admin more.
fn three() -> Past {
    rotated(PROJECT).then(&third(), &[&alice(), &carol(), &bob()])
}

fn third() -> Signers {
    signers("2026-01-03T00:00:00Z")
        .artifact(2, [&carol(), &key(5), &key(6)])
        .admin(2, [&alice(), &bob(), &carol()])
        .master(1, [&dave()])
}

/// The founders' file, and then the successors' as these people signed it.
fn second_signed_by(people: &[&SecretKey]) -> Past {
    founded(PROJECT).then(&successors(), people)
}

fn rearranged(past: &Past, order: &[usize]) -> Past {
    let entries = order.iter().map(|n| past.history.entries[*n].clone()).collect();
    Past { project: past.project.clone(), history: History { entries } }
}

fn good() -> Vec<Vector> {
    let groups = signers("2026-01-02T00:00:00Z")
        .artifact(1, [&alice()])
        .admin(1, [&alice(), &bob()])
        .admin(1, [&alice(), &carol()]);
    let by_master = signers("2026-01-02T00:00:00Z").artifact(1, [&key(5)]).master(1, [&dave()]);
    let with_registrar = successors().registrars([&mallory()]);
    vec![
        chain("good-root-alone", founded(PROJECT)),
        chain("good-two-rotations", three()),
        chain("good-rotation-by-master-keys", founded(PROJECT).then(&by_master, &[&dave(), &key(5)])),
        chain("good-several-admin-groups", founded(PROJECT).then(&groups, &[&alice(), &bob()])),
        chain(
            "good-registrar-that-did-not-sign",
            founded(PROJECT).then(&with_registrar, &[&alice(), &bob(), &carol(), &key(5), &key(6)]),
        ),
        chain(
            "good-signature-that-nobody-needs",
            second_signed_by(&[&alice(), &bob(), &carol(), &key(5), &key(6), &mallory()]),
        ),
    ]
}

fn of_order() -> Vec<Vector> {
    let three = three();
    let everyone = [&alice(), &bob(), &carol(), &dave()];
    let by_all = [&alice(), &bob(), &carol(), &key(5), &key(6)];
    let claims_more = founded(PROJECT).remark(0, &everyone, |m| m.previous = Some(Sha512::of(b"before")));
    let second_root = rotated(PROJECT).remark(1, &by_all, |metadata| metadata.previous = None);
    let first = three.digest(0);
    let skips = three.clone().remark(2, &[&alice(), &carol(), &bob()], |m| m.previous = Some(first));
    let spliced = [&rotated(PROJECT).history.entries[..1], &rotated(OTHER_PROJECT).history.entries[1..]];
    let spliced = Past { project: three.project.clone(), history: History { entries: spliced.concat() } };
    let stale = signers("2026-01-01T00:00:00Z").artifact(1, [&alice()]);
    let earlier = shifted_seconds(three.history.entries[1].timestamp, -1);
    let mallorys = Past::of(PROJECT)
        .then(&signers("2025-01-01T00:00:00Z").artifact(1, [&mallory()]), &[&mallory()])
        .history
        .entries
        .remove(0);
    let other_root = three.clone().with(0, |entry| *entry = mallorys);
    vec![
        chain("empty", Past::of(PROJECT)),
        chain("of-another-project", rotated(OTHER_PROJECT)),
        chain("spliced-from-another-project", spliced),
        chain("another-root", other_root),
        chain("lost-root", rearranged(&three, &[1, 2])),
        chain("missing-entry", rearranged(&three, &[0, 2])),
        chain("swapped-entries", rearranged(&three, &[0, 2, 1])),
        chain("repeated-entry", rearranged(&three, &[0, 1, 1, 2])),
        chain("root-with-a-predecessor", claims_more),
        chain("second-root", second_root),
        chain("link-to-an-older-entry", skips),
        chain("file-that-is-not-later", founded(PROJECT).then(&stale, &[&alice(), &bob()])),
        chain("activation-that-goes-back", three.with(2, |entry| entry.timestamp = earlier)),
    ]
}

fn of_consent() -> Vec<Vector> {
    let mallorys = signers("2026-01-02T00:00:00Z").artifact(1, [&mallory()]);
    let back = signers("2026-01-04T00:00:00Z").artifact(1, [&bob()]);
    let two_masters =
        signers("2026-01-01T00:00:00Z").artifact(2, [&alice(), &bob()]).master(2, [&dave(), &key(8)]);
    let by_one_master = Past::of(PROJECT)
        .then(&two_masters, &[&alice(), &bob(), &dave(), &key(8)])
        .then(&signers("2026-01-02T00:00:00Z").artifact(1, [&key(5)]), &[&dave(), &key(5)]);
    let without_metadata = |entry: &mut HistoryEntry| {
        entry.metadata_signatures = signed_by(&entry.metadata, &[&alice(), &carol(), &key(5), &key(6)]);
    };
    vec![
        chain(
            "root-that-not-everyone-signed",
            Past::of(PROJECT).then(&founders(), &[&alice(), &bob(), &carol()]),
        ),
        chain(
            "rotation-without-the-current-admins",
            second_signed_by(&[&alice(), &carol(), &key(5), &key(6)]),
        ),
        chain("rotation-without-the-new-admins", second_signed_by(&[&alice(), &bob(), &key(5), &key(6)])),
        chain("rotation-without-an-added-key", second_signed_by(&[&alice(), &bob(), &carol(), &key(5)])),
        chain("rotation-by-one-of-two-masters", by_one_master),
        chain("rotation-whose-metadata-lacks-a-signature", rotated(PROJECT).with(1, without_metadata)),
        chain("taken-over-by-a-stranger", founded(PROJECT).then(&mallorys, &[&mallory()])),
        chain("taken-back-by-those-who-were-rotated-out", rotated(PROJECT).then(&back, &[&alice(), &bob()])),
    ]
}

fn of_texts() -> Vec<Vector> {
    let rewritten = |from: &str, to: &str| {
        let text = successors().text();
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text);
        founded(PROJECT).then_text(changed, &[&alice(), &bob(), &carol(), &key(5), &key(6)])
    };
    let lower = |entry: &mut HistoryEntry| {
        entry.signers_config = entry.signers_config.replacen("\"threshold\": 2", "\"threshold\": 1", 1);
    };
    let of_first = founded(PROJECT).history.entries.remove(0);
    let weak = "svc-pub:AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    vec![
        chain("threshold-lowered-afterwards", rotated(PROJECT).with(1, lower)),
        chain(
            "metadata-of-another-signers-file",
            rotated(PROJECT).with(1, |entry| {
                (entry.metadata, entry.metadata_signatures) =
                    (of_first.metadata, of_first.metadata_signatures);
            }),
        ),
        chain("changed-metadata", rotated(PROJECT).with(1, |entry| entry.metadata.push(' '))),
        chain(
            "signatures-of-the-other-text",
            rotated(PROJECT).with(1, |e| std::mem::swap(&mut e.signatures, &mut e.metadata_signatures)),
        ),
        chain(
            "signature-under-another-name",
            rotated(PROJECT).with(1, |e| e.signatures = under_name_of(&e.signers_config, &alice(), &bob())),
        ),
        chain(
            "wrong-signature-that-nobody-needs",
            rotated(PROJECT)
                .with(1, |e| e.signatures = with_signature(e.signatures.clone(), &mallory(), "x")),
        ),
        chain("signers-file-with-an-unknown-field", rewritten("{", "{\"extra\": 1, ")),
        chain(
            "signers-file-with-a-field-twice",
            rewritten("{", "{\"timestamp\": \"2026-01-05T00:00:00Z\", "),
        ),
        chain("threshold-of-zero", rewritten("\"threshold\": 2", "\"threshold\": 0")),
        chain("weak-key", rewritten(&key(5).public_key().to_string(), weak)),
        chain(
            "master-in-another-role",
            rewritten(&alice().public_key().to_string(), &dave().public_key().to_string()),
        ),
        chain(
            "log-key-of-a-signer",
            rewritten("{", &format!("{{\"transparency\": {{\"log\": \"{}\"}}, ", log_of_signer())),
        ),
    ]
}

fn log_of_signer() -> VerifierKey {
    VerifierKey::new("sign.example.org/log", KeyKind::Log, key(5).public_key()).expect("a name")
}
