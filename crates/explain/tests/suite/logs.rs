//! Logs and witnesses of signers files, in words (D91, D92).

use std::time::Duration;

use countersign_core::documents::signers::SignersFile;
use countersign_core::values::verifier_key::{KeyKind, VerifierKey};
use countersign_explain::difference::{SignersChange, list_changes};
use countersign_explain::log_strength::{LogStrength, LogWarning};
use countersign_explain::strength::{Strength, Warning, assess};
use countersign_explain::words::{shown_age, shown_verifier_key};
use countersign_testing::{alice, assert_mentions, bob, key, log_key, signers, witness_key};

type WitnessNumbers<'a> = &'a [(usize, &'a [u8])];

/// A log with these witnesses, and an age in seconds.
fn logged(groups: WitnessNumbers<'_>, age: u64) -> SignersFile {
    let keys: Vec<(usize, Vec<VerifierKey>)> = groups
        .iter()
        .map(|(threshold, numbers)| (*threshold, numbers.iter().map(|n| witness_key(*n)).collect()))
        .collect();
    let groups: Vec<(usize, &[VerifierKey])> =
        keys.iter().map(|(threshold, keys)| (*threshold, keys.as_slice())).collect();
    with_log(&log_key(), &groups, age)
}

fn with_log(log: &VerifierKey, groups: &[(usize, &[VerifierKey])], age: u64) -> SignersFile {
    let text = signers("2026-01-31T10:00:00Z").artifact(2, [&alice(), &bob()]).log(log, groups).text();
    parse(&text.replace("86400", &age.to_string()))
}

/// The file, which says that these witnesses replay the rules.
fn with_replaying(file: &SignersFile, numbers: &[u8]) -> SignersFile {
    let text = String::from_utf8(file.write()).expect("UTF-8");
    let mark = |text: String, n: &u8| {
        let key = witness_key(*n);
        text.replace(&format!("\"{key}\""), &format!(r#"{{"key": "{key}", "replaying": true}}"#))
    };
    parse(&numbers.iter().fold(text, mark))
}

/// All witnesses replay the rules.
fn replayed(groups: WitnessNumbers<'_>, age: u64) -> SignersFile {
    with_replaying(&logged(groups, age), &[1, 2, 3, 4, 5, 6, 7, 8, 9])
}

fn unlogged() -> SignersFile {
    parse(&signers("2026-01-31T10:00:00Z").artifact(2, [&alice(), &bob()]).text())
}

fn parse(text: &str) -> SignersFile {
    SignersFile::parse(text.as_bytes()).expect("a valid file")
}

const DAY: u64 = 86_400;

/// What is told, with `log` and `w1` for the keys, and `!` before what alarms.
fn told(current: Option<&SignersFile>, proposed: &SignersFile) -> Vec<String> {
    let shorten = |text: String| {
        (1..10).fold(text.replace(&log_key().to_string(), "LOG"), |text, n| {
            text.replace(&witness_key(n).to_string(), &format!("w{n}"))
        })
    };
    let only_logs = |change: &SignersChange| match change {
        SignersChange::Log(_) => true,
        SignersChange::Founded { .. } => false,
        other => panic!("only the log changes, not {other}"),
    };
    let tell = |change: SignersChange| {
        let mark = if change.is_alarming() { "!" } else { "" };
        format!("{mark}{}", shorten(change.to_string()))
    };
    list_changes(current, proposed).into_iter().filter(only_logs).map(tell).collect()
}

fn log_warnings(strength: &Strength) -> Vec<LogWarning> {
    let of_log = |warning: &Warning| match warning {
        Warning::Log(warning) => Some(warning.clone()),
        Warning::OneKeyIsEnough(..)
        | Warning::RotationIsEasier { .. }
        | Warning::OneLossBlocks { .. }
        | Warning::OneLossRefusesReleases(_)
        | Warning::NotIndependent(_)
        | Warning::NoMasterKeys
        | Warning::NoVeto
        | Warning::NoNames(_)
        | Warning::FormatOutOfReach { .. } => None,
    };
    strength.warnings.iter().filter_map(of_log).collect()
}

fn strength(file: &SignersFile) -> LogStrength {
    assess(file).log.expect("the file has a log")
}

#[test]
fn the_same_log_changes_nothing_whatever_the_order() {
    let file = logged(&[(1, &[1, 2]), (1, &[3])], DAY);
    assert!(told(Some(&file), &file).is_empty());
    assert!(told(Some(&file), &logged(&[(1, &[3]), (1, &[2, 1])], DAY)).is_empty());
    assert!(told(Some(&unlogged()), &unlogged()).is_empty());
}

#[test]
fn a_log_that_comes_goes_or_is_another_is_told() {
    let file = logged(&[(2, &[1, 2, 3]), (1, &[4])], 7 * DAY);
    let text = "log: LOG; any 2 of 3 witnesses: w1, w2, w3; and any 1 of 1 witness: w4; a proof can be at most 7 days old";
    assert_eq!(told(Some(&unlogged()), &file), [text]);
    assert_eq!(told(None, &file), [text], "also in a first file");
    assert_eq!(told(Some(&unlogged()), &logged(&[], DAY)), ["log: LOG; no witnesses"]);
    let [gone] = told(Some(&logged(&[(1, &[1])], DAY)), &unlogged()).try_into().unwrap();
    assert_mentions(&gone, &["!WEAKER: a log no longer", "it was LOG"]);
    let other = VerifierKey::new("other.example/log", KeyKind::Log, key(99).public_key()).unwrap();
    let [line] = told(Some(&logged(&[], DAY)), &with_log(&other, &[], DAY)).try_into().unwrap();
    assert_mentions(&line, &["!WARNING: another log", "it was LOG", "is to be other.example/log+"]);
}

#[test]
fn fewer_cosignatures_and_fewer_colluders_are_weaker_and_more_are_stronger() {
    let (strict, loose) = (logged(&[(3, &[1, 2, 3])], DAY), logged(&[(2, &[1, 2, 3])], DAY));
    assert_eq!(
        told(Some(&strict), &loose),
        [
            "!WEAKER: it takes 2 witnesses to prove a state; before, it took 3",
            "!WEAKER: the log with 1 witness can show different people different states; before, the log with 3 witnesses could",
            "witnesses: any 3 of 3 witnesses becomes any 2 of 3 witnesses",
        ]
    );
    assert_eq!(
        told(Some(&loose), &strict),
        [
            "stronger: it takes 3 witnesses to prove a state; before, it took 2",
            "stronger: the log with 3 witnesses can show different people different states; before, the log with 1 witness could",
            "witnesses: any 2 of 3 witnesses becomes any 3 of 3 witnesses",
        ]
    );
}

#[test]
fn one_more_witness_can_make_a_quorum_weaker() {
    let lines = told(Some(&logged(&[(2, &[1, 2, 3])], DAY)), &logged(&[(2, &[1, 2, 3, 4])], DAY));
    assert_eq!(
        lines,
        [
            "!WEAKER: the log alone can show different people different states; before, the log with 1 witness could",
            "w4 joins as witness",
            "witnesses: any 2 of 3 witnesses becomes any 2 of 4 witnesses",
        ]
    );
}

#[test]
fn a_replaced_witness_is_told_by_its_keys() {
    let lines = told(Some(&logged(&[(2, &[1, 2, 3])], DAY)), &logged(&[(2, &[1, 2, 4])], DAY));
    assert_eq!(lines, ["w4 joins as witness", "w3 leaves, and was witness"]);
    let two_groups = [logged(&[(1, &[1, 2]), (1, &[3])], DAY), logged(&[(1, &[1, 3]), (1, &[2])], DAY)];
    let [line] = told(Some(&two_groups[0]), &two_groups[1]).try_into().unwrap();
    assert_eq!(line, "witnesses: any 1 of 2 witnesses: w1, w3; and any 1 of 1 witness: w2");
}

#[test]
fn witnesses_that_go_are_weaker_and_that_come_stronger() {
    let (with, without) = (logged(&[(1, &[1])], DAY), logged(&[], DAY));
    let lines = told(Some(&with), &without);
    assert_mentions(&lines[0], &["!WEAKER: no witness", "before, it took 1 witness"]);
    assert_eq!(lines[1..], ["w1 leaves, and was witness"]);
    assert_eq!(
        told(Some(&without), &with),
        [
            "stronger: it takes 1 witness to prove a state; before, it took none",
            "w1 joins as witness",
            "witnesses: any 1 of 1 witness: w1",
            "a proof can be at most 1 day old",
        ]
    );
}

#[test]
fn an_older_proof_is_weaker_and_a_younger_one_stronger() {
    let [day, week] = [DAY, 7 * DAY].map(|age| logged(&[(1, &[1])], age));
    assert_eq!(told(Some(&day), &week), ["!WEAKER: a proof can be 7 days old; before, 1 day"]);
    assert_eq!(told(Some(&week), &day), ["stronger: a proof can be 1 day old; before, 7 days"]);
}

#[test]
fn what_alarms_comes_before_what_people_do() {
    let before = logged(&[(2, &[1, 2])], DAY);
    let after = signers("2026-02-01T10:00:00Z").artifact(2, [&alice(), &key(3)]).text();
    let changes = list_changes(Some(&before), &parse(&after));
    assert!(
        matches!(changes.first(), Some(SignersChange::Log(change)) if change.is_alarming()),
        "{changes:?}"
    );
    assert!(changes.len() > 1);
}

#[test]
fn how_many_must_collude_and_how_many_can_be_down_is_told() {
    let found = strength(&logged(&[(2, &[1, 2, 3]), (1, &[4])], DAY));
    let tolerance = found.tolerance.expect("there are witnesses");
    assert_eq!((tolerance.needed, tolerance.must_collude, tolerance.may_be_down), (3, 2, 0));
    let found = strength(&logged(&[(3, &[1, 2, 3, 4])], DAY));
    assert_eq!(
        (found.collusion_text().as_str(), found.outage_text().as_str()),
        ("the log and at least 2 witnesses", "any 1")
    );
    assert_mentions(
        &found.to_string(),
        &[
            "log: sign.example.org/log+", "any 3 of 4 witnesses: witness1.example/w+", "at most 1 day old",
            "can be down: any 1", "different states: the log and at least 2 witnesses",
        ],
    );
    let alone = strength(&logged(&[], DAY));
    assert_eq!(alone.collusion_text(), "the log alone");
    assert_eq!(alone.to_string().lines().count(), 3);
    assert_eq!(assess(&unlogged()).log, None);
}

#[test]
fn weak_policies_bring_warnings() {
    let of = |groups: WitnessNumbers<'_>, age| log_warnings(&assess(&replayed(groups, age)));
    for age in [600, 30 * DAY] {
        assert_eq!(of(&[(2, &[1, 2, 3])], age), [], "a sound policy");
    }
    assert_eq!(log_warnings(&assess(&unlogged())), []);
    assert_eq!(of(&[], DAY), [LogWarning::NoWitnesses]);
    assert_eq!(of(&[(1, &[1])], DAY), [LogWarning::OneWitness]);
    let [LogWarning::LogAloneSplits(found)] = of(&[(1, &[1, 2, 3])], DAY)[..] else { panic!("a split") };
    assert_eq!((found.needed, found.witnesses), (1, 3));
    assert!(matches!(of(&[(2, &[1, 2, 3, 4])], DAY)[..], [LogWarning::LogAloneSplits(_)]));
    assert_eq!(of(&[(2, &[1, 2])], DAY), [LogWarning::NoneMayBeDown]);
    assert_eq!(of(&[(2, &[1, 2, 3])], 599), [LogWarning::ShortAge(Duration::from_secs(599))]);
    assert_eq!(
        of(&[(2, &[1, 2, 3])], 30 * DAY + 1),
        [LogWarning::LongAge(Duration::from_secs(30 * DAY + 1))]
    );
}

#[test]
fn a_witness_at_the_logs_own_host_is_warned_of() {
    let own = |name: &str| VerifierKey::new(name, KeyKind::Witness, key(90).public_key()).unwrap();
    for name in ["sign.example.org", "sign.example.org/witness", "sign.example.org:8443/w"] {
        let file = with_log(&log_key(), &[(2, &[witness_key(1), witness_key(2), own(name)])], DAY);
        let warnings = log_warnings(&assess(&with_replaying(&file, &[1, 2])));
        assert_eq!(warnings, [LogWarning::OwnWitness(own(name))]);
        assert_mentions(&warnings[0].to_string(), &[name, "the same people"]);
    }
    let other = own("sign.example.org.other.example");
    let file = with_log(&log_key(), &[(2, &[witness_key(1), witness_key(2), other])], DAY);
    assert_eq!(log_warnings(&assess(&with_replaying(&file, &[1, 2]))), []);
}

#[test]
fn who_can_show_everyone_a_false_state_is_counted_and_warned_of() {
    let any_three = logged(&[(3, &[1, 2, 3, 4])], DAY);
    for (numbers, expected) in [
        (&[][..], "the log alone"),
        (&[1], "the log alone"),
        (&[1, 2], "the log and at least 1 witness that replays the rules"),
        (&[1, 2, 3, 4], "the log and at least 3 witnesses that replay the rules"),
    ] {
        let file = with_replaying(&any_three, numbers);
        let found = strength(&file);
        assert_eq!(found.lie_text(), expected);
        assert_eq!(found.to_string().matches("(replays the rules)").count(), numbers.len());
        assert!(
            found.to_string().ends_with(&format!("a false state, as one without a revocation: {expected}"))
        );
        let has_replaying = !numbers.is_empty();
        let warnings = log_warnings(&assess(&file));
        match expected {
            "the log alone" => assert_eq!(warnings, [LogWarning::LogAloneLies { has_replaying }]),
            _ => assert_eq!(warnings, []),
        }
    }
    // Two of a group of their own.
    let own_group = with_replaying(&logged(&[(2, &[1, 2, 3]), (1, &[4, 5])], DAY), &[1, 2, 3]);
    assert_eq!(strength(&own_group).tolerance.unwrap().must_lie, 2);
    let [none, some] =
        [&[][..], &[1]].map(|numbers| log_warnings(&assess(&with_replaying(&any_three, numbers))));
    assert_mentions(&none[0].to_string(), &["no witness is said to replay", "--replaying"]);
    assert_mentions(&some[0].to_string(), &["that do not replay the rules are enough", "the log alone"]);
}

#[test]
fn what_is_said_of_witnesses_is_a_change_and_less_is_weaker() {
    let plain = logged(&[(2, &[1, 2, 3])], DAY);
    let [some, all] = [&[1, 2][..], &[1, 2, 3]].map(|numbers| with_replaying(&plain, numbers));
    assert_eq!(
        told(Some(&plain), &some),
        [
            "stronger: the log with 1 witness that replays the rules can show everyone a false state; before, the log \
             alone could",
            "the witness w1 is said to replay the rules",
            "the witness w2 is said to replay the rules",
        ]
    );
    assert_eq!(
        told(Some(&all), &some),
        [
            "!WEAKER: the log with 1 witness that replays the rules can show everyone a false state; before, the log with 2 \
             witnesses that replay the rules could",
            "the witness w3 is no longer said to replay the rules",
        ]
    );
    assert_eq!(told(Some(&some), &some), [""; 0]);
}

#[test]
fn every_warning_is_a_sentence_with_its_figures() {
    let all = [
        replayed(&[], DAY),
        replayed(&[(1, &[1])], DAY),
        replayed(&[(1, &[1, 2])], DAY),
        replayed(&[(2, &[1, 2])], 60),
        replayed(&[(2, &[1, 2, 3])], 60 * DAY),
    ];
    let told: Vec<String> =
        all.iter().flat_map(|file| log_warnings(&assess(file))).map(|warning| warning.to_string()).collect();
    let expected: [&[&str]; 6] = [
        &["no witnesses", "no proof has a time"],
        &["one witness"],
        &["1 of 2 witnesses are enough", "more than half"],
        &["if one witness is down"],
        &["only 1 minute old"],
        &["60 days old", "hidden"],
    ];
    assert_eq!(told.len(), expected.len(), "{told:?}");
    for (text, parts) in told.iter().zip(expected) {
        assert_mentions(text, parts);
    }
}

#[test]
fn a_name_that_could_read_as_our_words_is_quoted() {
    let plain = witness_key(1);
    assert_eq!(shown_verifier_key(&plain), plain.to_string());
    let odd = VerifierKey::new("w.example,(and", KeyKind::Witness, key(9).public_key()).unwrap();
    assert_eq!(shown_verifier_key(&odd), format!("\"{odd}\""));
}

#[test]
fn an_age_is_told_in_the_largest_exact_unit() {
    let ages = [(60, "1 minute"), (61, "61 seconds"), (3_600, "1 hour"), (5_400, "90 minutes")];
    let longer = [(DAY, "1 day"), (36 * 3_600, "36 hours"), (7 * DAY, "7 days")];
    for (seconds, text) in ages.into_iter().chain(longer) {
        assert_eq!(shown_age(Duration::from_secs(seconds)), text);
    }
}
