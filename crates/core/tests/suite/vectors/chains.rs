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

use super::vector::{Expect::Verified, Vector, chain, refused};

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
        chain("good-root-alone", "A first registration that everyone signed.", Verified, founded(PROJECT)),
        chain(
            "good-two-rotations",
            "Each file was agreed to by the one before and its own.",
            Verified,
            three(),
        ),
        chain(
            "good-rotation-by-master-keys",
            "The master agrees for the current and for the new file; the added key has signed.",
            Verified,
            founded(PROJECT).then(&by_master, &[&dave(), &key(5)]),
        ),
        chain(
            "good-several-admin-groups",
            "The new file has two admin groups; one key is in both, and is enough for both.",
            Verified,
            founded(PROJECT).then(&groups, &[&alice(), &bob()]),
        ),
        chain(
            "good-registrar-that-did-not-sign",
            "A registrar is added, whose consent is not needed.",
            Verified,
            founded(PROJECT).then(&with_registrar, &[&alice(), &bob(), &carol(), &key(5), &key(6)]),
        ),
        chain(
            "good-signature-that-nobody-needs",
            "A stranger has signed as well, rightly.",
            Verified,
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
    let broken = "the metadata names another predecessor";
    vec![
        chain(
            "empty",
            "There is no entry.",
            refused("chain, entry 0: empty", "a chain has an entry"),
            Past::of(PROJECT),
        ),
        chain(
            "of-another-project",
            "The whole history of another project of the same people.",
            refused("chain, entry 0: other project", "the metadata names another project"),
            rotated(OTHER_PROJECT),
        ),
        chain(
            "spliced-from-another-project",
            "The second entry comes from another project, where the same people signed the same bytes.",
            refused("chain, entry 1: other project", "the metadata names another project"),
            spliced,
        ),
        chain(
            "another-root",
            "The first entry is a stranger's.",
            refused("chain, entry 1: broken", broken),
            other_root,
        ),
        chain(
            "lost-root",
            "The first entry is missing.",
            refused("chain, entry 0: broken", "the first entry replaces nothing"),
            rearranged(&three, &[1, 2]),
        ),
        chain(
            "missing-entry",
            "The second of three entries is missing.",
            refused("chain, entry 1: broken", broken),
            rearranged(&three, &[0, 2]),
        ),
        chain(
            "swapped-entries",
            "The second and third entries have changed places.",
            refused("chain, entry 1: broken", broken),
            rearranged(&three, &[0, 2, 1]),
        ),
        chain(
            "repeated-entry",
            "The second entry stands there twice.",
            refused("chain, entry 2: broken", broken),
            rearranged(&three, &[0, 1, 1, 2]),
        ),
        chain(
            "root-with-a-predecessor",
            "The first entry claims to replace a file that is not shown.",
            refused("chain, entry 0: broken", "the first entry replaces nothing"),
            claims_more,
        ),
        chain(
            "second-root",
            "The second entry claims to be a first registration.",
            refused("chain, entry 1: broken", broken),
            second_root,
        ),
        chain(
            "link-to-an-older-entry",
            "The third entry replaces the first.",
            refused("chain, entry 2: broken", broken),
            skips,
        ),
        chain(
            "file-that-is-not-later",
            "The second file has the time of the first.",
            refused("chain, entry 1: not later", "each file's timestamp is later than the one before"),
            founded(PROJECT).then(&stale, &[&alice(), &bob()]),
        ),
        chain(
            "activation-that-goes-back",
            "The third entry became active before the second.",
            refused("chain, entry 2: not later", "activations are in order"),
            three.with(2, |entry| entry.timestamp = earlier),
        ),
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
    let not_agreed = |reason| refused("chain, entry 1: not agreed", reason);
    vec![
        chain(
            "root-that-not-everyone-signed",
            "The master has not signed the first registration.",
            refused("chain, entry 0: not agreed", "every key of every role signs a first registration"),
            Past::of(PROJECT).then(&founders(), &[&alice(), &bob(), &carol()]),
        ),
        chain(
            "rotation-without-the-current-admins",
            "One of two current admins has signed.",
            not_agreed("the current admins or masters must reach their thresholds"),
            second_signed_by(&[&alice(), &carol(), &key(5), &key(6)]),
        ),
        chain(
            "rotation-without-the-new-admins",
            "One of two new admins has signed.",
            not_agreed("the new admins or masters must reach their thresholds"),
            second_signed_by(&[&alice(), &bob(), &key(5), &key(6)]),
        ),
        chain(
            "rotation-without-an-added-key",
            "A key that the second file adds has not signed.",
            not_agreed("every added key signs"),
            second_signed_by(&[&alice(), &bob(), &carol(), &key(5)]),
        ),
        chain(
            "rotation-by-one-of-two-masters",
            "One of two masters has signed, and the added key.",
            not_agreed("the current admins or masters must reach their thresholds"),
            by_one_master,
        ),
        chain(
            "rotation-whose-metadata-lacks-a-signature",
            "The signers file has all signatures that it needs, its metadata has not.",
            not_agreed("both files have the same signers"),
            rotated(PROJECT).with(1, without_metadata),
        ),
        chain(
            "taken-over-by-a-stranger",
            "The second file is signed by its own key only.",
            not_agreed("the current admins or masters must reach their thresholds"),
            founded(PROJECT).then(&mallorys, &[&mallory()]),
        ),
        chain(
            "taken-back-by-those-who-were-rotated-out",
            "Former admins agree to a file that lists them again.",
            refused("chain, entry 2: not agreed", "the admins of the entry before count"),
            rotated(PROJECT).then(&back, &[&alice(), &bob()]),
        ),
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
        chain(
            "threshold-lowered-afterwards",
            "A threshold of the second file was lowered after it was signed.",
            refused("chain, entry 1: other signers", "the metadata has the digest of another file"),
            rotated(PROJECT).with(1, lower),
        ),
        chain(
            "metadata-of-another-signers-file",
            "The metadata and its signatures are those of the first entry.",
            refused("chain, entry 1: other signers", "the metadata has the digest of another file"),
            rotated(PROJECT).with(1, |entry| {
                (entry.metadata, entry.metadata_signatures) =
                    (of_first.metadata, of_first.metadata_signatures);
            }),
        ),
        chain(
            "changed-metadata",
            "A space was added to the metadata after it was signed.",
            refused("chain, entry 1: bad signature", "a signature does not fit the text"),
            rotated(PROJECT).with(1, |entry| entry.metadata.push(' ')),
        ),
        chain(
            "signatures-of-the-other-text",
            "The signatures of the signers file and of its metadata have changed places.",
            refused("chain, entry 1: bad signature", "a signature does not fit the text"),
            rotated(PROJECT).with(1, |e| std::mem::swap(&mut e.signatures, &mut e.metadata_signatures)),
        ),
        chain(
            "signature-under-another-name",
            "Alice's signature stands under Bob's name.",
            refused("chain, entry 1: bad signature", "a signature does not verify with its key"),
            rotated(PROJECT).with(1, |e| e.signatures = under_name_of(&e.signers_config, &alice(), &bob())),
        ),
        chain(
            "wrong-signature-that-nobody-needs",
            "A stranger's signature does not verify; all that is needed is there.",
            refused("chain, entry 1: bad signature", "every signature that is shown must verify"),
            rotated(PROJECT)
                .with(1, |e| e.signatures = with_signature(e.signatures.clone(), &mallory(), "x")),
        ),
        chain(
            "signers-file-with-an-unknown-field",
            "The second file has a field that we do not know.",
            refused("chain, entry 1: signers file, extra", "unknown fields are refused"),
            rewritten("{", "{\"extra\": 1, "),
        ),
        chain(
            "signers-file-with-a-field-twice",
            "The second file gives its time twice.",
            refused("chain, entry 1: signers file, ", "duplicate names are refused"),
            rewritten("{", "{\"timestamp\": \"2026-01-05T00:00:00Z\", "),
        ),
        chain(
            "threshold-of-zero",
            "A group of the second file needs nobody.",
            refused(
                "chain, entry 1: signers file, artifact_signers[0].threshold",
                "a threshold is at least 1",
            ),
            rewritten("\"threshold\": 2", "\"threshold\": 0"),
        ),
        chain(
            "weak-key",
            "The second file lists a key of small order, for which anyone can sign.",
            refused(
                "chain, entry 1: signers file, artifact_signers[0].signers[1].data.pubkey",
                "weak keys are refused",
            ),
            rewritten(&key(5).public_key().to_string(), weak),
        ),
        chain(
            "master-in-another-role",
            "The master of the second file is also an admin.",
            refused("chain, entry 1: signers file, master_keys", "a master key has no other role"),
            rewritten(&alice().public_key().to_string(), &dave().public_key().to_string()),
        ),
        chain(
            "log-key-of-a-signer",
            "The key of the log in the second file is also an artifact signer's.",
            refused("chain, entry 1: signers file, transparency", "a log's key is no signer's"),
            rewritten("{", &format!("{{\"transparency\": {{\"log\": \"{}\"}}, ", log_of_signer())),
        ),
    ]
}

fn log_of_signer() -> VerifierKey {
    VerifierKey::new("sign.example.org/log", KeyKind::Log, key(5).public_key()).expect("a name")
}
