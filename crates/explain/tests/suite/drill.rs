//! Lost and stolen keys played out with the real decisions, against the model that tries every set of people.

use std::collections::BTreeSet;

use countersign_core::values::key::PublicKey;
use countersign_explain::drill::{Drill, DrillAttempt, DrillQuestion, Nuisance, play};
use countersign_explain::strength::Act;
use countersign_testing::{at, few, steady};
use proptest::prelude::*;

use crate::files::public;
use crate::strength::{Model, any_model, any_waiting_model};

const NOW: &str = "2026-06-01T12:00:00Z";

fn keys(people: &[u8]) -> BTreeSet<PublicKey> {
    people.iter().map(|n| public(*n)).collect()
}

fn drill(model: &Model, lost: &[u8], stolen: &[u8]) -> Drill {
    let question = DrillQuestion { lost: keys(lost), stolen: keys(stolen) };
    play(&model.file(), &question, at(NOW)).expect("a file that can be played")
}

/// Release, rotate, revoke.
fn outcomes(attempts: &[DrillAttempt]) -> Vec<bool> {
    attempts.iter().map(|attempt| attempt.succeeds).collect()
}

/// A team, the keys that it has lost, and those that were stolen.
fn any_case(models: impl Strategy<Value = Model>) -> impl Strategy<Value = (Model, Vec<u8>, Vec<u8>)> {
    models.prop_flat_map(|model| {
        let people = model.people();
        let some = || prop::sample::subsequence(people.clone(), 0..=people.len());
        (Just(model), some(), some())
    })
}

proptest! {
    // Each case makes some hundred signatures.
    #![proptest_config(few(steady(), 24))]

    #[test]
    fn the_drill_says_what_the_model_says((model, lost, stolen) in any_case(any_model())) {
        let played = drill(&model, &lost, &stolen);
        let left = |gone: &[&[u8]]| -> Vec<u8> {
            model.people().into_iter().filter(|n| gone.iter().all(|gone| !gone.contains(n))).collect()
        };
        let (team, everyone) = (left(&[&lost, &stolen]), left(&[&lost]));
        for attempt in &played.team {
            let alone = model.can(attempt.act, &team);
            let together = model.can(attempt.act, &everyone);
            prop_assert_eq!(attempt.succeeds, together, "{:?}", attempt);
            prop_assert_eq!(attempt.takes_stolen_keys, together && !alone, "{:?}", attempt);
        }
        for attempt in &played.thief {
            prop_assert_eq!(attempt.succeeds, model.can(attempt.act, &stolen), "{:?}", attempt);
        }
        prop_assert_eq!(played.thief.is_empty(), stolen.is_empty());
        let is_lost = !model.can(Act::Rotate, &everyone);
        prop_assert_eq!(played.is_lost(), is_lost);
        prop_assert_eq!(played.is_locked_out(), is_lost && !model.can(Act::Rotate, &stolen));
        let can_recover = model.can(Act::Rotate, &everyone) && !stolen.is_empty();
        prop_assert_eq!(played.thief_after_rotation.is_some(), can_recover);
        let after = played.thief_after_rotation.unwrap_or_default();
        prop_assert!(after.iter().all(|attempt| !attempt.succeeds), "{:?}", after);
    }
}

/// How many worlds are played, always the same; the long run takes 1,000.
fn worlds() -> u32 {
    std::env::var("COUNTERSIGN_DRILLS").map_or(300, |text| text.parse().expect("a number"))
}

proptest! {
    #![proptest_config(few(steady(), worlds()))]

    #[test]
    fn rotations_that_wait_end_as_the_model_says((model, lost, stolen) in any_case(any_waiting_model())) {
        let played = drill(&model, &lost, &stolen);
        let left = |gone: &[&[u8]]| -> Vec<u8> {
            model.people().into_iter().filter(|n| gone.iter().all(|gone| !gone.contains(n))).collect()
        };
        let (team, everyone) = (left(&[&lost, &stolen]), left(&[&lost]));
        let of = |attempts: &[DrillAttempt]| {
            attempts.iter().find(|attempt| attempt.act == Act::Rotate).cloned()
        };
        let ours = of(&played.team).expect("the team tries");
        let alone = model.rotates(&team, &stolen, true);
        let together = model.rotates(&everyone, &stolen, true);
        prop_assert_eq!(ours.succeeds, alone || together, "{:?}", ours);
        prop_assert_eq!(ours.takes_stolen_keys, together && !alone, "{:?}", ours);
        // An operator who blocks the stolen keys frees those who are enough.
        let is_freed = !ours.succeeds && model.rotates(&team, &[], true);
        prop_assert_eq!(ours.is_freed_by_block, is_freed, "{:?}", ours);
        if let Some(theirs) = of(&played.thief) {
            prop_assert_eq!(theirs.succeeds, model.rotates(&stolen, &team, false), "{:?}", theirs);
            let is_stopped = theirs.succeeds && !model.rotates(&stolen, &everyone, false);
            prop_assert_eq!(theirs.is_stopped_by_owners, is_stopped, "{:?}", theirs);
        }
        let is_taken_over = of(&played.thief).is_some_and(|theirs| theirs.succeeds);
        prop_assert_eq!(played.is_taken_over(), is_taken_over);
        prop_assert_eq!(played.is_locked_out(), !ours.succeeds && !is_freed && !is_taken_over);
        prop_assert_eq!(played.is_held_up(), is_freed);
    }
}

#[test]
fn a_thief_of_too_few_keys_is_a_nuisance_in_these_ways() {
    let model = Model::new(&[(2, &[1, 2, 3])]);
    let expected = [
        Nuisance::RegisterReleases,
        Nuisance::WithdrawReleases,
        Nuisance::ObjectToReleases,
        Nuisance::ReplaceProposals,
    ];
    assert_eq!(drill(&model, &[], &[1]).nuisances, expected);
    let model = Model::new(&[(2, &[1, 2, 3])]).revocation(&[(2, &[1, 2])]);
    assert!(drill(&model, &[], &[1]).nuisances.contains(&Nuisance::BeginRevocations));
}

#[test]
fn a_stolen_master_key_rotates_and_does_nothing_else() {
    let model = Model::new(&[(2, &[1, 2])]).master(&[(1, &[6, 7])]);
    let played = drill(&model, &[], &[6]);
    assert_eq!(outcomes(&played.thief), [false, true, false]);
    assert!(!played.nuisances.contains(&Nuisance::WithdrawReleases), "only admins, and who registered it");
    assert!(played.nuisances.contains(&Nuisance::ObjectToReleases));
}

#[test]
fn a_stolen_builder_key_states_false_rebuilds_and_does_nothing_else() {
    let model = Model::new(&[(2, &[1, 2])]).builder(&[(2, &[9, 10, 11])]).requiring_rebuilds();
    let played = drill(&model, &[], &[9]);
    assert_eq!(outcomes(&played.thief), [false, false, false, false]);
    assert_eq!(played.nuisances, [Nuisance::StateFalseRebuilds]);
    assert_eq!(outcomes(&played.team), [true, true, true, true], "two builders are left");
    let played = drill(&model, &[], &[9, 10]);
    assert_eq!(outcomes(&played.thief), [false, false, false, true]);
    assert_eq!(outcomes(&played.thief_after_rotation.expect("the signers can rotate")), [false; 4]);
    assert!(played.team[3].takes_stolen_keys, "{:?}", played.team[3]);
    let played = drill(&model, &[9, 10], &[]);
    let steps: Vec<&str> = played.team[3].steps.iter().map(|step| step.text.as_str()).collect();
    let expected = [
        "states that the source gives the same, as 1 of 2 do", "no one else can state what the source gives",
    ];
    assert_eq!(steps, expected);
    assert!(!played.is_lost() && !played.is_locked_out());
}

#[test]
fn steps_say_who_did_what_under_the_real_keys() {
    let model = Model::new(&[(2, &[1, 2, 3])]);
    let played = drill(&model, &[1], &[]);
    let steps = &played.team[0].steps;
    let texts: Vec<(Option<PublicKey>, &str)> =
        steps.iter().map(|step| (step.who.as_ref().map(|who| who.key), step.text.as_str())).collect();
    let (second, third) = (Some(public(2)), Some(public(3)));
    let expected = [
        (second, "registers a release"),
        (second, "signs it, and it has 1 of 2; 1 more"),
        (third, "signs it: the release is complete"),
    ];
    assert_eq!(texts, expected);
}

#[test]
fn a_file_of_the_future_can_be_played() {
    let text = Model::new(&[(1, &[1])]).text().replace("2026-01-31", "2027-01-31");
    let file = countersign_core::documents::signers::SignersFile::parse(text.as_bytes()).expect("a file");
    assert!(play(&file, &DrillQuestion::default(), at(NOW)).is_ok());
}

/// Rotate alone.
fn rotation(attempts: &[DrillAttempt]) -> (bool, String) {
    let attempt = attempts.iter().find(|attempt| attempt.act == Act::Rotate).expect("it is tried");
    (attempt.succeeds, attempt.steps.iter().map(|step| format!("{}\n", step.text)).collect())
}

#[test]
fn a_delay_lets_the_masters_stop_a_thief_and_the_thief_stop_no_masters() {
    let model = Model::new(&[(1, &[1, 2])]).admin(&[(2, &[3, 4])]).master(&[(2, &[5, 6, 7])]);
    assert!(rotation(&drill(&model, &[], &[3, 4]).thief).0, "without a delay");
    let model = model.delay(72);
    let played = drill(&model, &[], &[3, 4]);
    let (succeeds, steps) = rotation(&played.thief);
    assert!(!succeeds && !played.is_taken_over(), "{steps}");
    for said in ["all agree", "wait 72 hours", "more masters are needed", "the new signers are gone"] {
        assert!(steps.contains(said), "{said}: {steps}");
    }
    // Two of three masters are still enough, one is not.
    assert!(!rotation(&drill(&model, &[5], &[3, 4]).thief).0);
    let (succeeds, steps) = rotation(&drill(&model, &[5, 6], &[3, 4]).thief);
    assert!(succeeds && steps.ends_with("the new signers are in force\n"), "{steps}");
    // A thief with enough masters does not wait.
    let (succeeds, steps) = rotation(&drill(&model, &[], &[3, 4, 5, 6]).thief);
    assert!(succeeds && !steps.contains("wait 72 hours"), "{steps}");
    // Nor does a team with enough of them, and one without waits.
    let (succeeds, steps) = rotation(&drill(&model, &[], &[]).team);
    assert!(succeeds && steps.contains("no one has to wait"), "{steps}");
    let (succeeds, steps) = rotation(&drill(&model, &[5, 6], &[]).team);
    assert!(succeeds && steps.contains("wait 72 hours") && !steps.contains("no one has to wait"), "{steps}");
    // A thief with the masters' keys stops the admins, who have lost their own.
    let (succeeds, steps) = rotation(&drill(&model, &[5, 6], &[5, 6]).team);
    assert!(!succeeds && steps.contains("the new signers are gone"), "{steps}");
    assert!(drill(&model, &[5, 6], &[5, 6]).is_held_up(), "a blocked key vetoes nothing");
    // No one counts on a veto with a stolen key: its owner may not have it any more.
    let played = drill(&model, &[], &[3, 4, 5]);
    assert!(!played.is_taken_over(), "two masters are left");
    let played = drill(&model, &[6], &[3, 4, 5]);
    let attempt = played.thief.iter().find(|attempt| attempt.act == Act::Rotate).expect("it is tried");
    assert!(attempt.succeeds && attempt.is_stopped_by_owners && played.is_taken_over(), "{attempt:?}");
}

#[test]
fn a_thief_of_one_admin_key_holds_up_what_waits_unless_a_master_signs() {
    let model = Model::new(&[(1, &[1, 2])]).admin(&[(2, &[3, 4, 8])]).master(&[(2, &[5, 6, 7])]).delay(72);
    // Each time that it waits, the thief replaces it, and it waits anew.
    let played = drill(&model, &[5, 6, 7], &[8]);
    let (succeeds, steps) = rotation(&played.team);
    assert!(!succeeds && steps.contains("can do so each time"), "{steps}");
    assert!(!played.is_taken_over() && played.thief_after_rotation.is_none());
    // The operator can block the key, so no one has to register anew (D174).
    assert!(played.is_held_up() && !played.is_locked_out());
    // What one master signs, no admin replaces, and what enough of them sign does not wait.
    let (succeeds, steps) = rotation(&drill(&model, &[5, 6], &[8]).team);
    assert!(succeeds && steps.contains("wait 72 hours"), "{steps}");
    let (succeeds, steps) = rotation(&drill(&model, &[5], &[8]).team);
    assert!(succeeds && !steps.contains("wait 72 hours"), "{steps}");
    // Who is no admin replaces nothing.
    let (succeeds, steps) = rotation(&drill(&model, &[5, 6, 7], &[2]).team);
    assert!(succeeds && steps.contains("wait 72 hours"), "{steps}");
}
