//! Idle keys, at the boundary of a year, and what is left without them.

use std::collections::BTreeMap;

use countersign_core::values::{key::PublicKey, time::Timestamp};
use countersign_explain::{lockout::Lockout, lockout::foresee, strength::Act};
use countersign_testing::{at, few, shifted, shifted_seconds, steady};
use proptest::prelude::*;

use crate::files::public;
use crate::strength::{Model, any_model, subsets};

const NOW: &str = "2026-06-01T12:00:00Z";
const YEAR: i128 = 365 * 24 * 60 * 60;

/// The outlook if these people have signed just now, and all others two years ago.
fn outlook(model: &Model, active: &[u8]) -> Lockout {
    let when = |n: &u8| if active.contains(n) { at(NOW) } else { shifted_seconds(at(NOW), -2 * YEAR) };
    let last: BTreeMap<PublicKey, Timestamp> = model.people().iter().map(|n| (public(*n), when(n))).collect();
    foresee(&model.file(), &last, at(NOW))
}

fn words(lockout: &Lockout) -> Vec<String> {
    lockout.outlooks.iter().map(ToString::to_string).collect()
}

proptest! {
    #![proptest_config(few(steady(), 128))]

    #[test]
    fn so_many_more_losses_are_survived_and_one_more_may_not_be(
        (model, active) in any_model().prop_flat_map(|model| {
            let people = model.people();
            let active = prop::sample::subsequence(people.clone(), 0..=people.len());
            (Just(model), active)
        })
    ) {
        let lockout = outlook(&model, &active);
        for act in &lockout.outlooks {
            if !model.can(act.act, &active) {
                prop_assert_eq!(act.spare, None, "{:?}", act);
                continue;
            }
            let stopped = subsets(&active).into_iter().filter(|rest| !model.can(act.act, rest));
            let most_left = stopped.map(|rest| rest.len()).max().expect("at least one cannot");
            prop_assert_eq!(act.spare, Some(active.len() - most_left - 1), "{:?}", act);
        }
    }
}

#[test]
fn a_year_is_365_days_to_the_nanosecond() {
    let file = Model::new(&[(1, &[1])]).file();
    let is_idle =
        |last: Timestamp| foresee(&file, &BTreeMap::from([(public(1), last)]), at(NOW)).uses[0].is_idle;
    let year_ago = shifted_seconds(at(NOW), -YEAR);
    assert!(is_idle(year_ago));
    assert!(is_idle(shifted(year_ago, -1)));
    assert!(!is_idle(shifted(year_ago, 1)));
    assert!(!is_idle(shifted_seconds(at(NOW), 60)), "a clock that is ahead");
    assert!(
        foresee(&file, &BTreeMap::new(), at(NOW)).uses[0].is_idle,
        "one that is not known to have signed"
    );
}

#[test]
fn one_key_is_told_in_the_singular() {
    let model = Model::new(&[(1, &[1, 2])]).revocation(&[(1, &[3])]);
    let lockout = outlook(&model, &[1, 2]);
    assert_eq!(
        words(&lockout),
        [
            "to revoke: 1 of 1 key has not signed for a year: if it is lost, no one can revoke until the signers are \
          rotated"
        ]
    );
}

#[test]
fn the_words_follow_the_thresholds() {
    let model = Model::new(&[(2, &[1, 2, 3, 4, 5])]).revocation(&[(1, &[1, 2, 3])]);
    let lockout = outlook(&model, &[4, 5]);
    assert_eq!(
        words(&lockout),
        [
            "to release: 3 of 5 keys have not signed for a year: losing one more key makes it impossible to release, \
             until the signers are rotated",
            "to rotate the signers: 3 of 5 keys have not signed for a year: losing one more key locks you out",
            "to revoke: 3 of 3 keys have not signed for a year: if they are lost, no one can revoke until the signers \
             are rotated",
        ]
    );
    assert!(lockout.outlooks.iter().all(|act| act.is_alarming()));
    assert_eq!(
        lockout.uses[0].last_signed,
        Some(shifted_seconds(at(NOW), -2 * YEAR)),
        "the longest ago first"
    );
    let lockout = outlook(&model, &[3, 4, 5]);
    assert_eq!(
        words(&lockout)[1],
        "to rotate the signers: 2 of 5 keys have not signed for a year: if they are lost, you can lose any 1 more key"
    );
    assert_eq!(
        words(&outlook(&model, &[5]))[1],
        "to rotate the signers: 4 of 5 keys have not signed for a year: if they are lost, you are locked out"
    );
    assert_eq!(
        words(&outlook(&model, &[5]))[0],
        "to release: 4 of 5 keys have not signed for a year: if they are lost, no one can ever release again"
    );
    assert!(words(&outlook(&model, &[1, 2, 3, 4, 5])).is_empty());
}

#[test]
fn keys_of_builders_sign_nothing_and_are_never_idle() {
    let model = Model::new(&[(1, &[1])]).builder(&[(1, &[9])]);
    let lockout = outlook(&model, &[1]);
    assert_eq!(lockout.uses.iter().map(|used| used.signer.key).collect::<Vec<_>>(), [public(1)]);
    assert!(lockout.outlooks.is_empty());
}

#[test]
fn masters_are_another_way_to_rotate() {
    let model = Model::new(&[(2, &[1, 2])]).master(&[(1, &[6])]);
    let rotate =
        |active: &[u8]| outlook(&model, active).outlooks.into_iter().find(|act| act.act == Act::Rotate);
    assert_eq!(rotate(&[1, 2]).unwrap().spare, Some(0), "the admins alone");
    assert_eq!(rotate(&[6]).unwrap().spare, Some(0), "the master alone");
    assert_eq!(rotate(&[1]).unwrap().spare, None);
    assert_eq!(rotate(&[1, 2, 6]), None, "no key is idle");
}
