//! What each change is told as.

use countersign_core::documents::signers::{Signer, SignersFile};
use countersign_explain::strength::assess;
use countersign_explain::{difference::SignersChange, difference::list_changes, words::shown_signer};
use countersign_testing::{assert_mentions, documents::kind};
use serde_json::Value;

use crate::files::{file, file_at, public, role_text};

/// What is told, with `#1` for the first one's key.
fn told(changes: &[SignersChange]) -> Vec<String> {
    let shorten = |text: String, n: u8| text.replace(&public(n).to_string(), &format!("#{n}"));
    changes.iter().map(|change| (1..6).fold(change.to_string(), shorten)).collect()
}

fn changes(current: &str, proposed: &str) -> Vec<SignersChange> {
    list_changes(Some(&file(current)), &file(proposed))
}

#[track_caller]
fn check(current: &str, proposed: &str, expected: &[&str]) {
    assert_eq!(told(&changes(current, proposed)), expected);
}

fn signer(name: &str, n: u8) -> Signer {
    Signer { name: Some(name.to_owned()), ..Signer::nameless(public(n)) }
}

#[test]
fn who_joins_leaves_changes_roles_or_names_is_told_and_a_weakening_first() {
    let table: [(&str, &str, &[&str]); 10] = [
        // The defaults give more than one role.
        (
            "artifact 2: alice 1, bob 2, carol 3",
            "artifact 2: alice 1, bob 2, carol 3, dave 4",
            &[
                "dave (#4) joins as artifact signer, admin and revoker",
                "artifact signers: any 2 of 3 keys becomes any 2 of 4 keys; adds dave (#4)",
            ],
        ),
        (
            "artifact 1: alice 1 / master 1: carol 3, dave 4",
            "artifact 1: alice 1 / master 1: carol 3",
            &[
                "dave (#4) leaves, and was master",
                "master keys: any 1 of 2 keys becomes any 1 of 1 key; removes dave (#4)",
            ],
        ),
        (
            "artifact 1: alice 1, bob 2 / admin 1: alice 1 / revocation 1: alice 1",
            "artifact 1: alice 1 / admin 1: alice 1, bob 2 / revocation 1: alice 1",
            &[
                "bob (#2) stays, becomes admin, is no longer artifact signer",
                "artifact signers: any 1 of 2 keys becomes any 1 of 1 key; removes bob (#2)",
                "admin keys: any 1 of 1 key becomes any 1 of 2 keys; adds bob (#2)",
            ],
        ),
        (
            "artifact 2: 1, 2, 3",
            "artifact 1: 1, 2, 3",
            &[
                "WEAKER: 1 key can release; before, it took 2 keys",
                "WEAKER: 1 key can rotate the signers as admins; before, it took 2 keys",
                "artifact signers: any 2 of 3 keys becomes any 1 of 3 keys",
            ],
        ),
        (
            "artifact 1: 1, 2, 3",
            "artifact 2: 1, 2, 3",
            &["artifact signers: any 1 of 3 keys becomes any 2 of 3 keys"],
        ),
        // Though the numbers stay.
        (
            "artifact 1: a 1, b 2",
            "artifact 1: a 1, c 3",
            &[
                "c (#3) joins as artifact signer, admin and revoker",
                "b (#2) leaves, and was artifact signer, admin and revoker",
                "artifact signers: any 1 of 2 keys stays any 1 of 2 keys; adds c (#3); removes b (#2)",
            ],
        ),
        // Which group it is, those say who stay in it.
        (
            "artifact 1: a 1; 1: c 3, d 4",
            "artifact 1: c 3; 1: a 1",
            &[
                "d (#4) leaves, and was artifact signer, admin and revoker",
                "artifact signers, the group of c (#3): any 1 of 2 keys becomes any 1 of 1 key; removes d (#4)",
            ],
        ),
        ("artifact 1: 1", "artifact 1: alice 1", &["#1 gets a name: alice (#1)"]),
        ("artifact 1: alice 1", "artifact 1: 1", &["alice (#1) loses its name"]),
        // Who stays appears under the current name, whatever the proposal says.
        (
            "artifact 1: alice 1 / revocation 1: mallory 2",
            "artifact 1: alice 1, trent 2 / revocation 1: trent 2",
            &[
                "mallory (#2) stays, becomes artifact signer and admin",
                "mallory (#2) gets another name: trent (#2)",
                "artifact signers: any 1 of 1 key becomes any 1 of 2 keys; adds mallory (#2)",
            ],
        ),
    ];
    for (current, proposed, expected) in table {
        check(current, proposed, expected);
    }
}

#[test]
fn what_is_wanted_of_builders_is_told_and_less_of_it_is_a_weakening() {
    let with = |rebuilds: &str| format!("artifact 2: 1, 2 / {rebuilds}");
    let table: [(&str, &str, &[&str]); 8] = [
        ("rebuilds *.gz, *.zip by 1: b 3, c 4", "rebuilds *.zip, *.gz by 1: c 4, b 3", &[]),
        ("rebuilds * by 1: b 3", "rebuilds *, *.zip by 1: b 3", &[]),
        (
            "rebuilds *.tar.gz by 2: b 3, c 4",
            "rebuilds *.gz by 1: b 3, c 4",
            &[
                "WEAKER: 1 key can call a release reproduced; before, it took 2 keys",
                "builders: any 2 of 2 keys becomes any 1 of 2 keys",
                "builders make \"*.gz\"",
            ],
        ),
        (
            "required *.gz, a-*.zip by 1: b 3",
            "rebuilds *.tar.gz, *.zip by 1: b 3",
            &[
                "WEAKER: builders make only \"*.tar.gz\", \"*.zip\"",
                "WEAKER: clients accept new releases that no one has reproduced",
            ],
        ),
        (
            "rebuilds *.gz by 1: b 3",
            "required *.gz by 1: b 3",
            &["clients refuse new releases until builders have reproduced them"],
        ),
        (
            "rebuilds *.gz by 1: b 3, c 4",
            "rebuilds *.gz by 1: b 3",
            &[
                "c (#4) leaves, and was builder",
                "builders: any 1 of 2 keys becomes any 1 of 1 key; removes c (#4)",
            ],
        ),
        (
            "required *.gz by 1: b 3",
            "registrars 4",
            &[
                "WEAKER: builders are no longer listed, so that no one builds releases anew; they were any 1 of 1 key: b (#3)",
                "WEAKER: clients accept new releases that no one has reproduced",
                "b (#3) leaves, and was builder",
                "#4 becomes a registrar: it can register new releases, and nothing else",
            ],
        ),
        (
            "registrars 4",
            "rebuilds *.gz by 1: b 3",
            &[
                "b (#3) joins as builder",
                "builders are listed, and it no longer holds that no one builds releases anew; any 1 of 1 key: b (#3)",
                "builders make \"*.gz\"",
                "#4 is no longer a registrar",
            ],
        ),
    ];
    for (current, proposed, expected) in table {
        check(&with(current), &with(proposed), expected);
    }
    let first = told(&list_changes(None, &file(&with("required *.gz by 1: b 3"))));
    let expected = [
        "builders: any 1 of 1 key: b (#3)",
        "builders make \"*.gz\"",
        "clients refuse new releases until builders have reproduced them",
    ];
    assert_eq!(first[4..], expected);
    assert!(!told(&list_changes(None, &file("artifact 1: 1"))).concat().contains("builders"));
}

#[test]
fn groups_that_come_and_go_are_told_with_their_members() {
    let one = "artifact 1: a 1 / admin 1: a 1, b 2";
    let two = "artifact 1: a 1; 1: b 2 / admin 1: a 1, b 2";
    let joins = "b (#2) stays, becomes artifact signer";
    check(one, two, &[joins, "artifact signers: one more group must agree, any 1 of 1 key: b (#2)"]);
    let weaker = "WEAKER: 1 key can release; before, it took 2 keys";
    let leaves = "b (#2) stays, is no longer artifact signer";
    check(
        two,
        one,
        &[weaker, leaves, "artifact signers: a group need no longer agree, any 1 of 1 key: b (#2)"],
    );
}

#[test]
fn a_key_that_moves_from_one_group_to_another_is_told() {
    let found = changes("artifact 1: 1, 2, 3; 1: 4, 5", "artifact 1: 1, 2; 1: 3, 4, 5");
    let moves = found.iter().filter(|change| matches!(change, SignersChange::GroupChanged(_))).count();
    assert_eq!((found.len(), moves), (2, 2));
}

#[test]
fn admins_of_their_own_end_the_default_and_back() {
    let (by_default, explicit) = ("artifact 1: a 1; 1: b 2", "artifact 1: a 1; 1: b 2 / admin 1: a 1");
    check(
        by_default,
        explicit,
        &[
            "WEAKER: 1 key can rotate the signers as admins; before, it took 2 keys",
            "b (#2) stays, is no longer admin and revoker",
            "admin keys are listed, and it no longer holds that the artifact signers are the admins; any 1 of 1 key: a (#1)",
        ],
    );
    check(
        explicit,
        by_default,
        &[
            "b (#2) stays, becomes admin and revoker",
            "admin keys are no longer listed, so that the artifact signers are the admins; they were any 1 of 1 key: a (#1)",
        ],
    );
}

#[test]
fn revocation_that_falls_back_to_any_one_admin_key_is_a_weakening() {
    let (by_default, explicit) = ("artifact 2: 1, 2", "artifact 2: 1, 2 / revocation 2: 1, 2");
    let found = told(&changes(explicit, by_default));
    assert_eq!(found[0], "WEAKER: 1 key can revoke; before, it took 2 keys");
    assert_mentions(
        &found[1],
        &["revocation keys are no longer listed, so that any one admin key revokes; "],
    );
    let found = told(&changes(by_default, explicit));
    assert_mentions(
        &found.concat(),
        &["are listed, and it no longer holds that any one admin key revokes; "],
    );
}

#[test]
fn new_masters_are_a_weakening_only_if_they_rotate_with_fewer_keys_than_the_admins() {
    let (without, with) = ("artifact 2: 1, 2", "artifact 2: 1, 2 / master 1: m 3");
    let weaker = "WEAKER: 1 key can rotate the signers as masters; before, it took 2 keys";
    let listed =
        "master keys are listed, and it no longer holds that no one is master; any 1 of 1 key: m (#3)";
    check(without, with, &[weaker, "m (#3) joins as master", listed]);
    let unlisted =
        "master keys are no longer listed, so that no one is master; they were any 1 of 1 key: m (#3)";
    check(with, without, &["m (#3) leaves, and was master", unlisted]);
    let found = changes(without, "artifact 2: 1, 2 / master 2: 3, 4");
    assert!(!found.iter().any(SignersChange::is_alarming), "{found:?}");
}

#[test]
fn another_name_for_the_same_key_is_told_and_alarms() {
    let found = changes("artifact 1: alice 1", "artifact 1: bob 1");
    assert_eq!(found, [SignersChange::Renamed { before: signer("alice", 1), after: signer("bob", 1) }]);
    assert!(found[0].is_alarming());
    assert_eq!(told(&found), ["alice (#1) gets another name: bob (#1)"]);
}

#[test]
fn a_name_that_moves_to_another_key_is_told_first_and_loudly() {
    let found = changes("artifact 1: alice 1, bob 2", "artifact 1: alice 3, bob 2");
    assert_eq!(found[0], SignersChange::NameMoved { from: signer("alice", 1), to: signer("alice", 3) });
    assert!(found[0].is_alarming());
    let loud = "WARNING: a name now stands for another key: it was alice (#1), and is to be alice (#3)";
    assert_eq!(told(&found)[0], loud);
}

#[test]
fn names_that_are_exchanged_are_told_for_both() {
    let found = changes("artifact 1: alice 1, bob 2", "artifact 1: bob 1, alice 2");
    let moved = found.iter().filter(|change| matches!(change, SignersChange::NameMoved { .. })).count();
    let renamed = found.iter().filter(|change| matches!(change, SignersChange::Renamed { .. })).count();
    assert_eq!((moved, renamed, found.len()), (2, 2, 4));
}

#[test]
fn a_first_file_is_told_whole() {
    let first = file("artifact 2: alice 1, bob 2; 1: carol 3 / master 1: dave 4");
    assert_eq!(
        told(&list_changes(None, &first)),
        [
            "artifact signers: any 2 of 2 keys: alice (#1), bob (#2); and any 1 of 1 key: carol (#3)",
            "no admin keys: the artifact signers are the admins",
            "master keys: any 1 of 1 key: dave (#4)",
            "no revocation keys: any one admin key revokes",
        ]
    );
}

#[test]
fn order_and_time_mean_nothing() {
    let current = file_at("2026-01-31T10:00:00Z", "artifact 1: a 1, b 2; 2: c 3, d 4");
    let proposed = file_at("2026-02-01T10:00:00Z", "artifact 2: d 4, c 3; 1: b 2, a 1");
    assert_eq!(list_changes(Some(&current), &proposed), []);
}

#[test]
fn a_name_is_shown_so_that_it_cannot_pose_as_a_key_or_a_sentence() {
    let (of, key) = (|name: &str| shown_signer(&signer(name, 1)), public(1));
    assert_eq!(of("Zoë-2"), format!("Zoë-2 ({key})"));
    assert_eq!(of(""), key.to_string());
    assert_eq!(of("bob (svc-pub:AAAA)"), format!("\"bob (svc-pub:AAAA)\" ({key})"));
    assert_eq!(of("bob\" (svc-pub:A), \""), format!("\"bob\\\" (svc-pub:A), \\\"\" ({key})"));
    assert_eq!(of("a\u{202e}b\n"), format!("\"a\\u{{202e}}b\\u{{a}}\" ({key})"));
}

#[test]
fn registrars_come_and_go_and_are_told() {
    let (none, ci) = ("artifact 1: alice 1", "artifact 1: alice 1 / registrars ci 2");
    let joined = "ci (#2) becomes a registrar: it can register new releases, and nothing else";
    assert_eq!(told(&changes(none, ci)), [joined]);
    assert_eq!(told(&changes(ci, none)), ["ci (#2) is no longer a registrar"]);
    assert!(told(&list_changes(None, &file(ci))).contains(&joined.to_owned()));
    assert_eq!(told(&changes(ci, ci)), Vec::<String>::new());
}

#[test]
fn a_name_that_moves_to_or_among_registrars_is_alarming() {
    let before = "artifact 1: alice 1, bob 4 / registrars ci 2";
    for after in ["artifact 1: alice 1, bob 4 / registrars ci 3", "artifact 1: alice 1 / registrars bob 3"] {
        let changes = changes(before, after);
        assert!(matches!(changes[0], SignersChange::NameMoved { .. }), "{:?}", told(&changes));
    }
    assert!(changes(before, "artifact 1: alice 1, bob 4 / registrars robot 2")[0].is_alarming());
}

#[test]
fn a_signer_that_becomes_a_registrar_leaves_the_signers() {
    let told = told(&changes("artifact 1: alice 1, bob 2", "artifact 1: alice 1 / registrars bob 2"));
    assert!(told.iter().any(|line| line.starts_with("bob (#2) leaves")), "{told:?}");
    assert!(told.iter().any(|line| line.starts_with("bob (#2) becomes a registrar")), "{told:?}");
}

#[test]
fn other_formats_are_told_and_their_order_means_nothing() {
    let plain = file("artifact 1: 1");
    let with = |formats: &str| {
        let text = String::from_utf8(plain.write()).unwrap();
        let text = text.replacen("\"version\"", &format!("\"formats\": {formats}, \"version\""), 1);
        SignersFile::parse(text.as_bytes()).unwrap()
    };
    let both = with(r#"["ssh", "minisign"]"#);
    let asked = ["artifact signers are asked to sign for minisign, ssh as well"];
    assert_eq!(told(&list_changes(Some(&plain), &both)), asked);
    assert_eq!(told(&list_changes(None, &both)).last().map(String::as_str), Some(asked[0]));
    assert!(list_changes(Some(&both), &with(r#"["minisign", "ssh"]"#)).is_empty());
    assert!(!told(&list_changes(Some(&both), &with(r#"["ssh"]"#))).is_empty());
    assert_eq!(told(&list_changes(Some(&both), &plain)), ["artifact signers are asked for no other formats"]);
}

#[test]
fn a_delay_is_told_and_a_shorter_one_is_an_alarm() {
    let with = |hours: Option<u64>| {
        let delay = hours.map_or(String::new(), |hours| format!(r#", "rotation_delay_hours": {hours}"#));
        let text = format!(
            r#"{{"version": 1, "timestamp": "2026-01-31T10:00:00Z", {}{delay}}}"#,
            role_text("artifact 1: 1")
        );
        SignersFile::parse(text.as_bytes()).expect("a signers file")
    };
    let tell = |before, after| {
        let changes = list_changes(Some(&with(before)), &with(after));
        changes.iter().map(|change| (change.is_alarming(), change.to_string())).collect::<Vec<_>>()
    };
    for (before, after, is_alarming, words) in [
        (None, Some(48), false, "wait 48 hours from then on"),
        (Some(48), None, true, "WEAKER: rotations take effect at once; before, they waited 48 hours"),
        (Some(48), Some(1), true, "WEAKER: rotations wait 1 hour; before, they waited 48 hours"),
        (Some(1), Some(720), false, "rotations wait 720 hours (30 days); before, they waited 1 hour"),
    ] {
        let told = tell(before, after);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].0 == is_alarming && told[0].1.contains(words), "{told:?}");
    }
    assert_eq!(tell(Some(48), Some(48)), []);
    let founded = list_changes(None, &with(Some(48)));
    assert!(founded.iter().any(|change| change.to_string().contains("48 hours")), "{founded:?}");
}

#[test]
fn a_key_that_becomes_a_fido_key_is_told_and_what_it_cannot_sign() {
    let current = file("artifact 2: alice 1, bob 2").write();
    let current = String::from_utf8(current).unwrap();
    let marked = current.replacen("\"pubkey\"", "\"format\": \"sk-ssh-ed25519\", \"pubkey\"", 1);
    let asked = marked
        .replacen("\"artifact_signers\"", "\"formats\": [\"ssh\", \"minisign\"], \"artifact_signers\"", 1);
    let [current, proposed] = [current, asked].map(|text| SignersFile::parse(text.as_bytes()).unwrap());
    let is_fido = "alice (#1) is a FIDO key: it signs only if someone touches it";
    assert!(told(&list_changes(Some(&current), &proposed)).contains(&is_fido.to_owned()));
    assert!(told(&list_changes(None, &proposed)).contains(&is_fido.to_owned()));
    let back = told(&list_changes(Some(&proposed), &current));
    assert!(back.contains(&"alice (#1) is no longer listed as a FIDO key".to_owned()), "{back:?}");
    let warnings: Vec<String> = assess(&proposed).warnings.iter().map(ToString::to_string).collect();
    let unreachable = warnings.iter().filter(|warning| warning.contains("FIDO")).collect::<Vec<_>>();
    assert_mentions(
        unreachable[0],
        &["cannot sign for minisign: 1 of the 2 keys in a group that needs 2 can"],
    );
    assert_eq!(unreachable.len(), 1, "{warnings:?}");
}

#[test]
fn a_change_of_any_field_is_told() {
    let document: Value = serde_json::from_str(&kind("signers file").example_text()).unwrap();
    let parse = |document: &Value| SignersFile::parse(document.to_string().as_bytes()).unwrap();
    let full = parse(&document);
    let shown = format!("{full:#?}");
    let is_absent = |line: &str| line.ends_with(": None,") || line.ends_with(": [],");
    let absent = shown.lines().find(|line| is_absent(line) && !line.starts_with("     "));
    assert_eq!(absent, None, "the document has every field\n{shown}");
    for field in
        document.as_object().unwrap().keys().filter(|name| !["version", "timestamp"].contains(&name.as_str()))
    {
        let mut less = document.clone();
        match field.as_str() {
            "artifact_signers" => drop(less[field].as_array_mut().unwrap().pop()),
            _ => drop(less.as_object_mut().unwrap().remove(field)),
        }
        assert!(!list_changes(Some(&full), &parse(&less)).is_empty(), "{field}");
    }
}
