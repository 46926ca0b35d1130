//! What a proposed signers file changes, in words for whoever signs it (D8, D15, D39).

use std::collections::{BTreeMap, BTreeSet};

use countersign_core::{
    documents::signers::{Role, Signer, SignersFile},
    values::key::PublicKey,
};
use countersign_explain::{
    difference::{SignersChange, list_changes},
    signers::shown_signer,
};
use countersign_testing::{assert_mentions, key, steady};
use proptest::prelude::*;

/// Roles, groups, and people by number with an optional name: `artifact 2: alice 1, bob 2; 1: carol 3 / master 1: 4`.
fn file(text: &str) -> SignersFile {
    file_at("2026-01-31T10:00:00Z", text)
}

fn file_at(time: &str, text: &str) -> SignersFile {
    let roles: Vec<String> = text.split(" / ").map(role_text).collect();
    let text = format!(r#"{{"version": 1, "timestamp": "{time}", {}}}"#, roles.join(", "));
    SignersFile::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn role_text(role: &str) -> String {
    let (role, groups) = role.split_once(' ').expect("a role");
    if role == "registrars" {
        let members: Vec<String> = groups.split(", ").map(member_text).collect();
        return format!(r#""registrars": [{}]"#, members.join(", "));
    }
    let field = if role == "artifact" { "artifact_signers".to_owned() } else { format!("{role}_keys") };
    format!(r#""{field}": [{}]"#, groups.split("; ").map(group_text).collect::<Vec<_>>().join(", "))
}

fn group_text(group: &str) -> String {
    let (threshold, members) = group.split_once(": ").expect("a threshold");
    let members: Vec<String> = members.split(", ").map(member_text).collect();
    format!(r#"{{"threshold": {threshold}, "signers": [{}]}}"#, members.join(", "))
}

fn member_text(member: &str) -> String {
    let (name, number) = member.rsplit_once(' ').unwrap_or(("", member));
    let key = public(number.parse().expect("a person's number"));
    let name = if name.is_empty() { String::new() } else { format!(r#", "name": {name:?}"#) };
    format!(r#"{{"kind": "key", "data": {{"pubkey": "{key}"}}{name}}}"#)
}

fn public(n: u8) -> PublicKey {
    key(n).public_key()
}

fn changes(current: &str, proposed: &str) -> Vec<SignersChange> {
    list_changes(Some(&file(current)), &file(proposed))
}

/// What is told, with `#1` for the first one's key.
fn told(changes: &[SignersChange]) -> Vec<String> {
    let shorten = |text: String, n: u8| text.replace(&public(n).to_string(), &format!("#{n}"));
    changes.iter().map(|change| (1..6).fold(change.to_string(), shorten)).collect()
}

#[track_caller]
fn check(current: &str, proposed: &str, expected: &[&str]) {
    assert_eq!(told(&changes(current, proposed)), expected);
}

fn signer(name: &str, n: u8) -> Signer {
    Signer { key: public(n), name: Some(name.to_owned()) }
}

#[test]
fn who_joins_is_told_with_every_role_that_the_defaults_give() {
    check(
        "artifact 2: alice 1, bob 2, carol 3",
        "artifact 2: alice 1, bob 2, carol 3, dave 4",
        &[
            "dave (#4) joins as artifact signer and admin and revoker",
            "artifact signers: any 2 of 3 keys becomes any 2 of 4 keys; in comes dave (#4)",
        ],
    );
}

#[test]
fn who_leaves_is_told() {
    check(
        "artifact 1: alice 1 / master 1: carol 3, dave 4",
        "artifact 1: alice 1 / master 1: carol 3",
        &[
            "dave (#4) leaves, and was master",
            "master keys: any 1 of 2 keys becomes any 1 of 1 key; out goes dave (#4)",
        ],
    );
}

#[test]
fn who_gets_or_loses_a_role_and_stays_is_told() {
    check(
        "artifact 1: alice 1, bob 2 / admin 1: alice 1 / revocation 1: alice 1",
        "artifact 1: alice 1 / admin 1: alice 1, bob 2 / revocation 1: alice 1",
        &[
            "bob (#2) stays, becomes admin, is no longer artifact signer",
            "artifact signers: any 1 of 2 keys becomes any 1 of 1 key; out goes bob (#2)",
            "admin keys: any 1 of 1 key becomes any 1 of 2 keys; in comes bob (#2)",
        ],
    );
}

#[test]
fn a_threshold_that_falls_is_told_first_as_a_weakening() {
    check(
        "artifact 2: 1, 2, 3",
        "artifact 1: 1, 2, 3",
        &[
            "WEAKER: 1 key can release; before, it took 2 keys",
            "WEAKER: 1 key can rotate the signers as admins; before, it took 2 keys",
            "artifact signers: any 2 of 3 keys becomes any 1 of 3 keys",
        ],
    );
}

#[test]
fn a_threshold_that_rises_is_no_weakening() {
    check(
        "artifact 1: 1, 2, 3",
        "artifact 2: 1, 2, 3",
        &["artifact signers: any 1 of 3 keys becomes any 2 of 3 keys"],
    );
}

#[test]
fn a_member_who_is_exchanged_is_told_though_the_numbers_stay() {
    let last = told(&changes("artifact 1: a 1, b 2", "artifact 1: a 1, c 3")).pop();
    let expected =
        "artifact signers: any 1 of 2 keys stays any 1 of 2 keys; in comes c (#3); out goes b (#2)";
    assert_eq!(last.as_deref(), Some(expected));
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
fn of_several_groups_the_one_that_changes_is_told_by_who_stays_in_it() {
    let last = told(&changes("artifact 1: a 1; 1: c 3, d 4", "artifact 1: c 3; 1: a 1")).pop();
    let expected =
        "artifact signers, the group of c (#3): any 1 of 2 keys becomes any 1 of 1 key; out goes d (#4)";
    assert_eq!(last.as_deref(), Some(expected));
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
fn a_name_that_is_new_or_goes_is_told() {
    check("artifact 1: 1", "artifact 1: alice 1", &["#1 gets a name: alice (#1)"]);
    check("artifact 1: alice 1", "artifact 1: 1", &["alice (#1) loses its name"]);
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
fn who_stays_appears_under_the_current_name_whatever_the_proposal_says() {
    check(
        "artifact 1: alice 1 / revocation 1: mallory 2",
        "artifact 1: alice 1, trent 2 / revocation 1: trent 2",
        &[
            "mallory (#2) stays, becomes artifact signer and admin",
            "mallory (#2) gets another name: trent (#2)",
            "artifact signers: any 1 of 1 key becomes any 1 of 2 keys; in comes mallory (#2)",
        ],
    );
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

/// A threshold, and people by number.
type Groups = Vec<(usize, Vec<u8>)>;

#[derive(Debug, Clone)]
struct Model {
    roles: [Option<Groups>; 4],
    /// Who has a name, and which.
    names: BTreeMap<u8, String>,
}

/// What a file says, whatever its order: the roles as sets, and the names of those who are in them.
type Meaning = ([Option<Vec<(usize, BTreeSet<u8>)>>; 4], BTreeMap<u8, String>);

impl Model {
    fn file(&self) -> SignersFile {
        let member = |n: &u8| self.names.get(n).map_or(n.to_string(), |name| format!("{name} {n}"));
        let group = |(threshold, members): &(usize, Vec<u8>)| {
            format!("{threshold}: {}", members.iter().map(member).collect::<Vec<_>>().join(", "))
        };
        let role = |(name, groups): (&str, &Groups)| {
            format!("{name} {}", groups.iter().map(group).collect::<Vec<_>>().join("; "))
        };
        let roles = ["artifact", "admin", "master", "revocation"].into_iter().zip(&self.roles);
        let roles: Vec<String> =
            roles.filter_map(|(name, groups)| Some(role((name, groups.as_ref()?)))).collect();
        file(&roles.join(" / "))
    }

    fn meaning(&self) -> Meaning {
        let sort = |groups: &Groups| {
            let keep =
                |(threshold, members): &(usize, Vec<u8>)| (*threshold, members.iter().copied().collect());
            let mut sorted: Vec<(usize, BTreeSet<u8>)> = groups.iter().map(keep).collect();
            sorted.sort();
            sorted
        };
        let people = self.people();
        let names = self.names.iter().filter(|(n, _)| people.contains(n));
        let names = names.map(|(n, name)| (*n, name.clone())).collect();
        (self.roles.clone().map(|role| role.as_ref().map(sort)), names)
    }

    fn people(&self) -> BTreeSet<u8> {
        self.roles.iter().flatten().flatten().flat_map(|(_, members)| members.iter().copied()).collect()
    }

    fn reversed(&self) -> Self {
        let reverse = |groups: Groups| {
            groups.into_iter().rev().map(|(t, members)| (t, members.into_iter().rev().collect())).collect()
        };
        Self { roles: self.roles.clone().map(|role| role.map(reverse)), names: self.names.clone() }
    }

    /// The fewest people who release.
    fn fewest(&self) -> u32 {
        let groups = self.roles[0].as_ref().expect("artifact signers");
        let is_in = |set: u32, n: &&u8| set & (1 << **n) != 0;
        let agree = |set: &u32| {
            groups.iter().all(|(least, members)| members.iter().filter(|n| is_in(*set, n)).count() >= *least)
        };
        (0..1 << 8).filter(agree).map(u32::count_ones).min().expect("all together can")
    }
}

fn any_groups(people: Vec<u8>, most: usize) -> impl Strategy<Value = Groups> {
    let members = prop::sample::subsequence(people.clone(), 1..=people.len()).prop_shuffle();
    let group = members.prop_flat_map(|members| (1..=members.len(), Just(members)));
    prop::collection::vec(group, 1..=most)
}

/// Few enough people and groups that two files often are alike.
fn any_model(people: u8, groups: usize) -> impl Strategy<Value = Model> {
    let most: Vec<u8> = (1..people).collect();
    let optional = |people| prop::option::of(any_groups(people, groups));
    let roles =
        (any_groups(most.clone(), groups), optional(most.clone()), optional(vec![people]), optional(most));
    // Names go round, so that they never clash within a file.
    let names = (0..2_u8, prop::collection::vec(any::<bool>(), usize::from(people)));
    (roles, names).prop_map(move |((artifact, admin, master, revocation), (turn, named))| {
        let name = |n: u8| format!("name-{}x", (n + turn) % people);
        let names = (1..=people).zip(named).filter(|(_, named)| *named).map(|(n, _)| (n, name(n))).collect();
        Model { roles: [Some(artifact), admin, master, revocation], names }
    })
}

proptest! {
    #![proptest_config(steady())]

    #[test]
    fn a_file_does_not_differ_from_itself_in_whatever_order(model in any_model(6, 3)) {
        prop_assert_eq!(list_changes(Some(&model.file()), &model.file()), []);
        prop_assert_eq!(list_changes(Some(&model.file()), &model.reversed().file()), []);
    }

    #[test]
    fn nothing_is_told_only_if_both_mean_the_same(a in any_model(3, 2), other in any_model(3, 2), part in 0_usize..5) {
        let mut b = a.reversed();
        match b.roles.get_mut(part) {
            Some(role) => role.clone_from(&other.roles[part]),
            None => b.names = other.names,
        }
        let found = list_changes(Some(&a.file()), &b.file());
        prop_assert_eq!(found.is_empty(), a.meaning() == b.meaning(), "{:?}", found);
    }

    #[test]
    fn whoever_comes_or_goes_is_told_once(a in any_model(6, 2), b in any_model(6, 2)) {
        let (mut joined, mut left) = (Vec::new(), Vec::new());
        for change in list_changes(Some(&a.file()), &b.file()) {
            match change {
                SignersChange::Joined { signer, .. } => joined.push(signer.key),
                SignersChange::Left { signer, .. } => left.push(signer.key),
                _ => {}
            }
        }
        let only = |here: &Model, there: &Model| {
            let keys: BTreeSet<_> = here.people().difference(&there.people()).map(|n| public(*n)).collect();
            keys.into_iter().collect::<Vec<_>>()
        };
        prop_assert_eq!((joined, left), (only(&b, &a), only(&a, &b)));
    }

    #[test]
    fn releases_that_take_fewer_people_are_a_weakening(a in any_model(6, 3), b in any_model(6, 3)) {
        let found = list_changes(Some(&a.file()), &b.file()).into_iter().find_map(|change| match change {
            SignersChange::Weakened { role: Role::Artifact, before, after } => Some([before.at_most, after.at_least]),
            _ => None,
        });
        let [before, after] = [&a, &b].map(|model| usize::try_from(model.fewest()).expect("below 8"));
        prop_assert_eq!(found, (after < before).then_some([before, after]));
    }

    #[test]
    fn a_name_never_stands_without_its_key(a in any_model(6, 2), b in any_model(6, 2), first: bool) {
        let current = a.file();
        for change in list_changes((!first).then_some(&current), &b.file()) {
            let text = change.to_string();
            prop_assert!(!text.contains('\n'));
            for (start, _) in text.match_indices("name-") {
                let rest = &text[start..];
                let end = rest.find('x').expect("names end so") + 1;
                let holder = [&a, &b].into_iter().flat_map(|model| &model.names).any(|(n, name)| {
                    *name == rest[..end] && rest[end..].starts_with(&format!(" ({})", public(*n)))
                });
                prop_assert!(holder, "{}", text);
            }
        }
    }
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
    let asked = ["artifact signers are asked to sign for minisign and ssh as well"];
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
