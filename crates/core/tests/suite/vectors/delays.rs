//! Rotations that wait (D130–D133), and histories that lie about it.

use countersign_core::documents::{history::HistoryEntry, signatures::SignatureSet};
use countersign_core::values::{key::SecretKey, time::Timestamp};
use countersign_testing::evidence::{Past, founders, noon, signed_by, successors};
use countersign_testing::{PROJECT, Signers, alice, bob, carol, dave, key, shifted_seconds, signers};

use super::vector::{Vector, chain};

const HOUR: i128 = 3_600;
/// The delay in the founders' file.
const DELAY: i128 = 48 * HOUR;

pub(super) fn all() -> Vec<Vector> {
    [good(), of_times(), of_masters()].concat()
}

fn founded() -> Past {
    Past::of(PROJECT).then(&founders().delay(48), &[&alice(), &bob(), &carol(), &dave()])
}

fn after_noon(seconds: i128) -> Timestamp {
    shifted_seconds(noon(), seconds)
}

/// The second entry was agreed to at one, and took effect so many seconds later.
fn waited(seconds: i128) -> impl Fn(&mut HistoryEntry) {
    move |entry| {
        entry.agreed_at = Some(after_noon(HOUR));
        entry.timestamp = after_noon(HOUR + seconds);
    }
}

const ADDED: fn() -> [SecretKey; 2] = || [key(5), key(6)];

/// The founders' file, and the successors', by the admins of both.
fn by_admins() -> Past {
    by_admins_of(&successors())
}

fn by_admins_of(file: &Signers) -> Past {
    let [five, six] = ADDED();
    founded().then(file, &[&alice(), &bob(), &carol(), &five, &six])
}

/// The second entry was agreed to so many seconds before its signers file was fetched, at one, and waited from then on.
fn early_by(seconds: i128) -> Past {
    let agreed = HOUR - seconds;
    by_admins().with(1, |entry| {
        for set in [&mut entry.signatures, &mut entry.metadata_signatures] {
            set.entries.values_mut().for_each(|one| one.collected_at = after_noon(agreed));
        }
        entry.agreed_at = Some(after_noon(agreed));
        entry.timestamp = after_noon(agreed + DELAY);
    })
}

fn collected_at(set: &mut SignatureSet, of: &SecretKey, time: Timestamp) {
    set.entries.get_mut(&of.public_key()).expect("a signature").collected_at = time;
}

fn good() -> Vec<Vector> {
    let by_masters = founded().then(&successors(), &[&dave(), &key(5), &key(6), &carol()]);
    let later = shifted_seconds(noon(), HOUR + 60);
    let master_too_late = by_admins().with(1, waited(DELAY)).with(1, |entry| {
        let everyone = [&alice(), &bob(), &carol(), &key(5), &key(6), &key(7)];
        entry.signatures = signed_by(&entry.signers_config, &everyone);
        collected_at(&mut entry.signatures, &key(7), later);
    });
    let third = signers("2026-01-03T00:00:00Z").artifact(1, [&carol()]).admin(1, [&carol()]);
    let gone = by_admins().with(1, waited(DELAY));
    let gone = gone.then(&third, &[&alice(), &carol()]).with(2, |entry| {
        entry.timestamp = after_noon(HOUR + DELAY);
    });
    let introduced = Past::of(PROJECT)
        .then(&founders(), &[&alice(), &bob(), &carol(), &dave()])
        .then(&successors().delay(720), &[&alice(), &bob(), &carol(), &key(5), &key(6)]);
    vec![
        chain("good-rotation-that-waited", by_admins().with(1, waited(DELAY))),
        chain("good-rotation-that-waited-longer", by_admins().with(1, waited(DELAY + 12 * HOUR))),
        chain("good-rotation-by-masters-without-waiting", by_masters),
        chain("good-signature-during-the-wait", master_too_late),
        chain("good-delay-removed-after-waiting", gone),
        chain("good-agreement-after-the-clock-was-set-back", early_by(600)),
        chain("good-first-delay", introduced),
    ]
}

fn of_times() -> Vec<Vector> {
    let late = after_noon(HOUR + 1);
    let delay_of = |text: &'static str| {
        let file = successors().delay(48).text();
        let file = file.replace(": 48}", text);
        let people = [&alice(), &bob(), &carol(), &key(5), &key(6)];
        founded().then_text(file, &people).with(1, waited(DELAY))
    };
    vec![
        chain("rotation-one-second-too-early", by_admins().with(1, waited(DELAY - 1))),
        chain(
            "rotation-before-it-was-agreed-to",
            by_admins().with(1, |entry| entry.agreed_at = Some(after_noon(DELAY))),
        ),
        chain("rotation-that-lowers-the-delay", by_admins_of(&successors().delay(1)).with(1, waited(HOUR))),
        chain(
            "rotation-that-does-not-say-when-it-was-agreed-to",
            by_admins().with(1, waited(DELAY)).with(1, |entry| entry.agreed_at = None),
        ),
        chain(
            "agreement-before-the-file-before",
            by_admins().with(1, waited(DELAY)).with(1, |entry| entry.agreed_at = Some(after_noon(599))),
        ),
        chain("agreement-before-the-fetch", early_by(601)),
        chain("activation-before-the-fetch", founded().with(0, |entry| entry.timestamp = after_noon(-601))),
        chain(
            "agreement-before-a-signature",
            by_admins()
                .with(1, waited(DELAY))
                .with(1, |entry| collected_at(&mut entry.signatures, &bob(), late)),
        ),
        chain(
            "agreement-before-a-signature-on-the-metadata",
            by_admins()
                .with(1, waited(DELAY))
                .with(1, |entry| collected_at(&mut entry.metadata_signatures, &key(5), late)),
        ),
        chain(
            "agreement-without-a-delay",
            countersign_testing::evidence::rotated(PROJECT)
                .with(1, |entry| entry.agreed_at = Some(after_noon(HOUR))),
        ),
        chain("agreement-of-a-first-registration", founded().with(0, |entry| entry.agreed_at = Some(noon()))),
        chain("delay-of-no-hours", delay_of(": 0}")),
        chain("delay-that-is-too-long", delay_of(": 721}")),
        chain("delay-in-words", delay_of(": \"48\"}")),
    ]
}

fn of_masters() -> Vec<Vector> {
    let two = signers("2026-01-01T00:00:00Z")
        .artifact(2, [&alice(), &bob()])
        .master(2, [&dave(), &key(8)])
        .delay(48);
    let next = signers("2026-01-02T00:00:00Z").artifact(1, [&alice()]);
    let by_one = Past::of(PROJECT)
        .then(&two, &[&alice(), &bob(), &dave(), &key(8)])
        .then(&next, &[&alice(), &bob(), &dave()]);
    let own_master = signers("2026-01-02T00:00:00Z").artifact(1, [&alice()]).master(1, [&key(8)]);
    let on_file_only = founded()
        .then(&next, &[&alice(), &bob(), &dave()])
        .with(1, |entry| entry.metadata_signatures = signed_by(&entry.metadata, &[&alice(), &bob()]));
    vec![
        chain("rotation-at-once-by-one-of-two-masters", by_one),
        chain(
            "rotation-at-once-by-its-own-masters",
            founded().then(&own_master, &[&alice(), &bob(), &key(8)]),
        ),
        chain("rotation-at-once-whose-metadata-no-master-signed", on_file_only),
        chain(
            "agreement-of-masters",
            founded().then(&next, &[&alice(), &bob(), &dave()]).with(1, waited(DELAY)),
        ),
    ]
}
