//! Policies: their syntax, and how witnesses are counted.

use std::{collections::BTreeSet, time::Duration};

use countersign_core::documents::transparency::WitnessGroup;
use countersign_core::log::policy::{Policy, PolicyFault, Tolerance};
use countersign_core::values::verifier_key::{KeyKind, VerifierKey, VerifierKeyError};
use countersign_core::values::{bounds::KEY_NAME_BYTES, bounds::POLICY_BYTES, bounds::POLICY_ENTRIES};
use countersign_testing::{assert_mentions, key, ml_dsa_key};

fn of_kind(kind: KeyKind, n: u8) -> VerifierKey {
    VerifierKey::new(&format!("example.com/{n}"), kind, key(n).public_key()).expect("a key")
}

/// A policy in which `L1` stands for the key of log 1, and `W2` for that of witness 2.
fn text(short: &str) -> String {
    let word = |word: &str| {
        let number = |prefix| word.strip_prefix(prefix).and_then(|number| number.parse().ok());
        match (number("L"), number("W")) {
            (Some(n), _) => of_kind(KeyKind::Log, n).to_string(),
            (_, Some(n)) => of_kind(KeyKind::Witness, n).to_string(),
            (None, None) => word.to_owned(),
        }
    };
    let line = |line: &str| line.split(' ').map(word).collect::<Vec<_>>().join(" ") + "\n";
    short.split("; ").map(line).collect()
}

fn policy(short: &str) -> Policy {
    Policy::parse(text(short).as_bytes()).expect(short)
}

fn fault(short: &str) -> (usize, PolicyFault) {
    let error = Policy::parse(text(short).as_bytes()).expect_err(short);
    (error.line, error.fault)
}

fn keys(numbers: &[u8]) -> BTreeSet<VerifierKey> {
    numbers.iter().map(|n| of_kind(KeyKind::Witness, *n)).collect()
}

const NESTED: &str = "log L99; witness a W1; witness b W2; witness c W3; group x 2 a b c; witness d W4; witness e W5; \
    group y any d e; witness f W6; group z all x y f; quorum z";

#[test]
fn a_quorum_is_said_in_words() {
    for (short, words) in [
        (NESTED, Some("3 of (2 of a, b, c), (1 of d, e), f")),
        ("log L99; witness a W1; quorum a", Some("a")),
        ("log L99; quorum none", None),
    ] {
        assert_eq!(policy(short).quorum_text().as_deref(), words, "{short}");
    }
}

#[test]
fn the_example_of_c2sp_counts_as_it_says() {
    let policy = policy(
        "log L99 https://log.example/; witness X1 W1; witness X2 W2; witness X3 W3; group X-witnesses 2 X1 X2 X3; \
         witness Y1 W4 https://w4.example/; witness Y2 W5; witness Y3 W6; group Y-witnesses any Y1 Y2 Y3; \
         group X-and-Y all X-witnesses Y-witnesses; quorum X-and-Y",
    );
    for (cosigned, is_met) in [
        ([1, 2, 4].as_slice(), true),
        (&[1, 3, 6], true),
        (&[1, 2, 3, 4, 5, 6], true),
        (&[1, 2], false),
        (&[1, 4, 5, 6], false),
        (&[], false),
        (&[99, 50, 51], false),
    ] {
        assert_eq!(policy.is_met(&keys(cosigned)), is_met, "{cosigned:?}");
    }
    assert_eq!(policy.logs()[0].url.as_deref(), Some("https://log.example/"));
    assert_eq!(policy.witnesses()[3].name, "Y1");
    let (logs, witnesses) = (policy.log_keys(), policy.witness_keys());
    let distinct: BTreeSet<&[u8]> = logs.iter().chain(&witnesses).map(VerifierKey::bytes).collect();
    assert_eq!((logs.len(), witnesses.len(), distinct.len()), (1, 6, 7));
}

#[test]
fn a_policy_is_written_and_read_as_the_same() {
    for short in
        [NESTED, "quorum none", "log L1 http://a; quorum none", "witness a W1 u; witness b W2; quorum a"]
    {
        let policy = policy(short);
        assert_eq!(Policy::parse(policy.to_string().as_bytes()), Ok(policy), "{short}");
    }
    let loose = "# a comment\n\n \t \n  quorum\tnone  \n\t# another";
    assert_eq!(Policy::parse(loose.as_bytes()).unwrap().to_string(), "quorum none\n");
}

#[test]
fn every_fault_of_a_policy_is_named_with_its_line() {
    let owned = |name: &str| name.to_owned();
    let table = [
        ("", (0, PolicyFault::Quorum)),
        ("quorum none; quorum none", (2, PolicyFault::Quorum)),
        ("nonsense", (1, PolicyFault::Form)),
        ("log", (1, PolicyFault::Form)),
        ("log L1 url more; quorum none", (1, PolicyFault::Form)),
        ("witness a; quorum none", (1, PolicyFault::Form)),
        ("witness a W1 url more; quorum none", (1, PolicyFault::Form)),
        ("quorum", (1, PolicyFault::Form)),
        ("quorum none none", (1, PolicyFault::Form)),
        ("witness a W1; group g; quorum a", (2, PolicyFault::Form)),
        ("witness a W1; group g some a; quorum g", (2, PolicyFault::Form)),
        ("witness a W1; group g 01 a; quorum g", (2, PolicyFault::Form)),
        ("witness a W1; group g +1 a; quorum g", (2, PolicyFault::Form)),
        ("log W1; quorum none", (1, VerifierKeyError::OtherKind(KeyKind::Witness, KeyKind::Log).into())),
        ("witness a L1; quorum a", (1, VerifierKeyError::OtherKind(KeyKind::Log, KeyKind::Witness).into())),
        ("log x; quorum none", (1, VerifierKeyError::Form.into())),
        ("log L1; log L1; quorum none", (2, PolicyFault::KeyTwice(owned("example.com/1")))),
        ("log L1; witness a W1; quorum a", (2, PolicyFault::KeyTwice(owned("example.com/1")))),
        ("witness a W1; witness b W1; quorum a", (2, PolicyFault::KeyTwice(owned("example.com/1")))),
        ("witness a W1; witness a W2; quorum a", (2, PolicyFault::NameTaken(owned("a")))),
        ("witness a W1; group a any a; quorum a", (2, PolicyFault::NameTaken(owned("a")))),
        ("witness none W1; quorum none", (1, PolicyFault::NameTaken(owned("none")))),
        ("quorum a; witness a W1", (1, PolicyFault::Unknown(owned("a")))),
        ("group g any a; witness a W1; quorum g", (1, PolicyFault::Unknown(owned("a")))),
        ("group g any none; quorum g", (1, PolicyFault::Unknown(owned("none")))),
        ("group g any g; quorum g", (1, PolicyFault::Unknown(owned("g")))),
        ("witness a W1; group g any a a; quorum g", (2, PolicyFault::MemberTwice(owned("a")))),
        ("witness a W1; group g any a; group h any a; quorum h", (3, PolicyFault::MemberTwice(owned("a")))),
        ("witness a W1; group g 0 a; quorum g", (2, PolicyFault::Threshold(1))),
        ("witness a W1; group g 2 a; quorum g", (2, PolicyFault::Threshold(1))),
        ("group g all; quorum g", (1, PolicyFault::Threshold(0))),
        ("quorum none\r", (1, PolicyFault::NotText)),
        ("# \u{7f}", (1, PolicyFault::NotText)),
    ];
    for (short, expected) in table {
        assert_eq!(fault(short), expected, "{short:?}");
    }
    assert_eq!(Policy::parse(b"\xff").unwrap_err().fault, PolicyFault::NotText);
    let error = Policy::parse(text("quorum none; log x").as_bytes()).unwrap_err();
    assert_mentions(&error.to_string(), &["line 2", "NAME+ID+KEY"]);
    let invisible = Policy::parse("quorum a\u{200b}".as_bytes()).unwrap_err().to_string();
    assert!(!invisible.contains('\u{200b}'), "{invisible}");
}

#[test]
fn one_key_under_two_names_is_refused() {
    let second = VerifierKey::new("example.com/other", KeyKind::Witness, key(1).public_key()).unwrap();
    let text = text("witness a W1; witness b SECOND; group g 2 a b; quorum g")
        .replace("SECOND", &second.to_string());
    let error = Policy::parse(text.as_bytes()).unwrap_err();
    assert_eq!(error.fault, PolicyFault::KeyTwice("example.com/other".to_owned()));
    let groups = [WitnessGroup::new(2, vec![of_kind(KeyKind::Witness, 1), second])];
    let of_groups = Policy::of_groups(of_kind(KeyKind::Log, 9), &groups);
    assert_eq!(of_groups, Err(PolicyFault::KeyTwice("example.com/other".to_owned())));
}

/// A policy in which `E1` and `P1` stand for the two keys of one witness.
fn with_two_keys(short: &str) -> Result<Policy, PolicyFault> {
    let words = short.split(' ').map(|word| {
        let end = word.ends_with(';');
        let spelled = match word.trim_end_matches(';').split_at(1) {
            ("E", n) => of_kind(KeyKind::Witness, n.parse().expect("a number")).to_string(),
            ("P", n) => second_key(n.parse().expect("a number")).to_string(),
            _ => return word.to_owned(),
        };
        if end { spelled + ";" } else { spelled }
    });
    let text = words.collect::<Vec<_>>().join(" ").replace("; ", "\n");
    Policy::parse(text.as_bytes()).map_err(|error| error.fault)
}

fn second_key(n: u8) -> VerifierKey {
    ml_dsa_key(&format!("example.com/{n}"), n)
}

#[test]
fn a_witness_with_two_keys_counts_once() {
    let keys = "witness a E1; witness p P1; witness b E2; witness q P2; ";
    let cosigned = |keys: &[VerifierKey]| keys.iter().cloned().collect::<BTreeSet<_>>();
    let [a, b] = [1, 2].map(|n| of_kind(KeyKind::Witness, n));
    let [p, q] = [1, 2].map(second_key);
    let two = with_two_keys(&format!("{keys}group g 2 a p b q; quorum g")).unwrap();
    assert!(!two.is_met(&cosigned(&[a.clone(), p.clone()])));
    for both in [[&a, &b], [&a, &q], [&p, &b], [&p, &q]] {
        assert!(two.is_met(&cosigned(&both.map(Clone::clone))), "{both:?}");
    }
    let expected = Tolerance { witnesses: 2, needed: 2, may_be_down: 0, must_collude: 2, must_lie: 0 };
    assert_eq!(two.tolerance(), Some(expected));
    assert_eq!(
        two.quorum_witnesses(),
        [&cosigned(&[a.clone(), p.clone()]), &cosigned(&[b.clone(), q.clone()])]
    );
    assert_eq!(Policy::parse(two.to_string().as_bytes()), Ok(two.clone()));
    assert_eq!(two.keys_of("example.com/1").collect::<Vec<_>>(), [&a, &p]);
    assert_eq!(two.keys_of("example.com/3").count(), 0);
    // Its newest time counts, whichever key says it.
    assert_eq!(two.as_of([(a.clone(), 9), (p.clone(), 7)]), None);
    assert_eq!(two.as_of([(a.clone(), 3), (p.clone(), 7), (q.clone(), 8)]), Some(7));
    // One of two: the keys of one witness, in the form of other tools.
    let any =
        with_two_keys(&format!("{keys}group x any a p; group y any b q; group g 2 x y; quorum g")).unwrap();
    assert_eq!(any.tolerance(), Some(expected));
    assert!(
        !any.is_met(&cosigned(&[a.clone(), p.clone()])) && any.is_met(&cosigned(&[a.clone(), q.clone()]))
    );
    // A key that is no member does not count, though its witness is one.
    let strict = with_two_keys(&format!("{keys}group g 2 a b; quorum g")).unwrap();
    assert!(!strict.is_met(&cosigned(&[p.clone(), q.clone()])) && strict.is_met(&cosigned(&[a, b, p])));
    // It replays if that is said of all its keys.
    for (marked, must_lie) in [("a b", 0), ("a p b", 1), ("a p b q", 2)] {
        let policy = format!("{keys}group g 2 a p b q; #countersign replaying {marked}; quorum g");
        assert_eq!(with_two_keys(&policy).unwrap().tolerance(), Some(Tolerance { must_lie, ..expected }));
    }
    // No policy lets it count in two places, or asks for more witnesses than there are.
    let twice = PolicyFault::WitnessTwice("example.com/1".to_owned());
    for (groups, fault) in [
        ("group g all a p; quorum g", PolicyFault::Threshold(1)),
        ("group g 3 a p b q; quorum g", PolicyFault::Threshold(2)),
        ("group x any a b; group y any p q; group g all x y; quorum g", twice.clone()),
        ("group x any a; group g 2 x p b; quorum g", twice),
    ] {
        assert_eq!(with_two_keys(&format!("{keys}{groups}")), Err(fault.clone()), "{groups}");
        assert!(!fault.to_string().is_empty());
    }
    let again = with_two_keys(&format!("{keys}witness r P1; quorum a"));
    assert_eq!(again, Err(PolicyFault::KeyTwice("example.com/1".to_owned())));
}

#[test]
fn a_policy_has_a_largest_size_and_number_of_entries() {
    let many = |count: u8| {
        let lines: Vec<String> = (1..=count).map(|n| format!("witness w{n} W{n}")).collect();
        lines.join("; ") + "; quorum w1"
    };
    let most = u8::try_from(POLICY_ENTRIES).unwrap();
    assert_eq!(policy(&many(most)).witnesses().len(), POLICY_ENTRIES);
    assert_eq!(fault(&many(most + 1)), (POLICY_ENTRIES + 1, PolicyFault::TooMany));
    let logs = |count: u8| {
        let lines: Vec<String> = (1..=count).map(|n| format!("log L{n}")).collect();
        lines.join("; ") + "; quorum none"
    };
    assert_eq!(policy(&logs(most)).logs().len(), POLICY_ENTRIES);
    assert_eq!(fault(&logs(most + 1)), (POLICY_ENTRIES + 1, PolicyFault::TooMany));
    let chain = |count: usize| {
        let groups = (1..=count).map(|n| {
            format!("group g{n} any {}", if n == 1 { "w".to_owned() } else { format!("g{}", n - 1) })
        });
        format!("witness w W1; {}; quorum g{count}", groups.collect::<Vec<_>>().join("; "))
    };
    assert!(policy(&chain(POLICY_ENTRIES)).is_met(&keys(&[1])));
    assert_eq!(fault(&chain(POLICY_ENTRIES + 1)).1, PolicyFault::TooMany);
    let padded = |bytes: usize| format!("quorum none\n#{}", "x".repeat(bytes - 13));
    assert!(Policy::parse(padded(POLICY_BYTES).as_bytes()).is_ok());
    // Every witness with the longest names, addresses and keys.
    let witness = |n: u8| {
        let name = format!("{n:03}{}", "n".repeat(KEY_NAME_BYTES - 3));
        format!("witness {name} {} https://{name}/\n", ml_dsa_key(&name, n))
    };
    let largest: String = (0..most).map(witness).collect::<String>() + "quorum none\n";
    assert_eq!(Policy::parse(largest.as_bytes()).unwrap().witnesses().len(), POLICY_ENTRIES);
    assert_eq!(Policy::parse(padded(POLICY_BYTES + 1).as_bytes()).unwrap_err().fault, PolicyFault::TooLarge);
}

#[test]
fn groups_of_a_signers_file_must_all_reach_their_thresholds() {
    let group = |threshold, numbers: &[u8]| {
        WitnessGroup::new(threshold, numbers.iter().map(|n| of_kind(KeyKind::Witness, *n)).collect())
    };
    let log = of_kind(KeyKind::Log, 9);
    let two = Policy::of_groups(log.clone(), &[group(2, &[1, 2, 3]), group(1, &[4, 5])]).unwrap();
    assert!(
        two.is_met(&keys(&[1, 2, 5])) && !two.is_met(&keys(&[1, 4, 5])) && !two.is_met(&keys(&[1, 2, 3]))
    );
    let one = Policy::of_groups(log.clone(), &[group(1, &[1])]).unwrap();
    assert!(one.is_met(&keys(&[1])) && !one.is_met(&keys(&[])));
    let none = Policy::of_groups(log.clone(), &[]).unwrap();
    assert!(none.is_met(&keys(&[])) && none.tolerance().is_none());
    for policy in [two, one, none] {
        assert_eq!(Policy::parse(policy.to_string().as_bytes()), Ok(policy));
    }
    assert_eq!(Policy::of_groups(log.clone(), &[group(3, &[1, 2])]), Err(PolicyFault::Threshold(2)));
    assert_eq!(Policy::of_groups(log, &[group(0, &[])]), Err(PolicyFault::Threshold(0)));
}

const POLICIES: [&str; 8] = [
    NESTED,
    "witness a W1; quorum a",
    "witness a W1; witness b W2; witness c W3; group g any a b c; quorum g",
    "witness a W1; witness b W2; witness c W3; group g all a b c; quorum g",
    "witness a W1; witness b W2; witness c W3; witness d W4; group g 3 a b c d; quorum g",
    "witness a W1; witness b W2; group g all a b; witness c W3; witness d W4; group h 2 g c d; quorum h",
    "witness a W1; witness b W2; group g all a b; witness c W3; witness d W4; group h all c d; group i any g h; quorum i",
    "witness a W1; witness b W2; witness c W3; group g 2 a b c; witness d W4; witness e W5; group h 2 d e; \
     witness f W6; group i 2 g h f; quorum i",
];

fn subsets() -> impl Iterator<Item = Vec<u8>> {
    (0..64_u8).map(|bits| (1..=6).filter(|n| bits >> (n - 1) & 1 == 1).collect())
}

#[test]
fn as_of_is_the_largest_time_that_enough_witnesses_reach() {
    for (number, short) in POLICIES.iter().enumerate() {
        let policy = policy(short);
        for subset in subsets() {
            // Times in another order for each policy, some of them alike.
            let time = |n: u8| 100 + u64::from(n) * (number as u64 * 2 + 1) % 5;
            let cosigned: Vec<_> = subset.iter().map(|n| (of_kind(KeyKind::Witness, *n), time(*n))).collect();
            let reached = |t: u64| {
                let late = cosigned.iter().filter(|(_, time)| *time >= t).map(|(key, _)| key.clone());
                policy.is_met(&late.collect())
            };
            let expected = (90..110).rev().find(|t| reached(*t));
            assert!(!reached(110));
            assert_eq!(policy.as_of(cosigned), expected, "{short}: {subset:?}");
        }
    }
    let policy = policy("witness a W1; witness b W2; group g 2 a b; quorum g");
    // One witness many times is one witness.
    let [a, b] = [1, 2].map(|n| of_kind(KeyKind::Witness, n));
    assert_eq!(policy.as_of([9, 8, 7].map(|time| (a.clone(), time))), None);
    assert_eq!(policy.as_of([(a.clone(), 9), (a.clone(), 8), (b.clone(), 5), (b, 7)]), Some(7));
    assert_eq!(Policy::parse(b"quorum none").unwrap().as_of([(a, 9)]), None);
}

#[test]
fn what_a_quorum_withstands_is_what_all_subsets_say() {
    for short in POLICIES {
        let policy = policy(short);
        let members: BTreeSet<VerifierKey> =
            policy.quorum_witnesses().into_iter().flatten().cloned().collect();
        let met: Vec<_> = subsets().map(|subset| keys(&subset)).filter(|set| policy.is_met(set)).collect();
        let relevant =
            |set: &BTreeSet<VerifierKey>| set.intersection(&members).cloned().collect::<BTreeSet<_>>();
        let needed = met.iter().map(|set| relevant(set).len()).min().unwrap();
        let down = |set: &BTreeSet<VerifierKey>| policy.is_met(&members.difference(set).cloned().collect());
        let blocking = subsets().map(|subset| relevant(&keys(&subset))).filter(|set| !down(set));
        let may_be_down = blocking.map(|set| set.len()).min().unwrap() - 1;
        let pairs = met.iter().flat_map(|a| met.iter().map(move |b| relevant(&(a & b)).len()));
        let must_collude = pairs.min().unwrap();
        let expected = Tolerance { witnesses: members.len(), needed, may_be_down, must_collude, must_lie: 0 };
        assert_eq!(policy.tolerance(), Some(expected), "{short}");
        // The witnesses that replay are those that a false state must win over.
        for replaying in subsets() {
            let marked = mark(short, &replaying);
            let replaying = marked.replaying_keys();
            let must_lie = met.iter().map(|set| set.intersection(&replaying).count()).min().unwrap();
            assert_eq!(marked.tolerance(), Some(Tolerance { must_lie, ..expected }), "{marked}");
            assert_eq!(Policy::parse(marked.to_string().as_bytes()), Ok(marked));
        }
    }
}

/// The policy, which says that these of its witnesses replay the rules.
fn mark(short: &str, replaying: &[u8]) -> Policy {
    let whole = policy(short);
    let keys = keys(replaying);
    let named = whole.witnesses().iter().filter(|witness| keys.contains(&witness.key));
    let lines: String = named.map(|witness| format!("; #countersign replaying {}", witness.name)).collect();
    policy(&format!("{short}{lines}"))
}

#[test]
fn comments_for_us_name_witnesses_that_replay_and_an_age() {
    let base = "witness a W1; witness b W2; group g 2 a b; ";
    let said = policy(&format!("{base}#countersign replaying b a; #countersign max-age 90m; quorum g"));
    assert_eq!(said.replaying_keys(), keys(&[1, 2]));
    assert_eq!(said.max_age(), Some(Duration::from_secs(5_400)));
    assert_eq!(Policy::parse(said.to_string().as_bytes()).as_ref(), Ok(&said));
    // Every other comment says nothing, whatever it is about.
    let other =
        policy(&format!("{base}# countersign replaying a; # replaying; #countersigns max-age; quorum g"));
    assert_eq!((other.replaying_keys(), other.max_age()), (keys(&[]), None));
    for (line, expected) in [
        ("#countersign", PolicyFault::OwnForm),
        ("#countersign replaying", PolicyFault::OwnForm),
        ("#countersign replay a", PolicyFault::OwnForm),
        ("#countersign max-age", PolicyFault::OwnForm),
        ("#countersign max-age 1d 2d", PolicyFault::OwnForm),
        ("#countersign replaying g", PolicyFault::NotAWitness("g".to_owned())),
        ("#countersign replaying a c", PolicyFault::NotAWitness("c".to_owned())),
        ("#countersign max-age 1", PolicyFault::Age),
        ("#countersign max-age 59s", PolicyFault::Age),
        ("#countersign max-age 3651d", PolicyFault::Age),
        ("#countersign max-age 1d; #countersign max-age 1d", PolicyFault::Age),
    ] {
        assert_eq!(fault(&format!("{base}{line}; quorum g")).1, expected, "{line}");
    }
    for age in ["60s", "3650d"] {
        assert!(policy(&format!("quorum none; #countersign max-age {age}")).max_age().is_some());
    }
}
