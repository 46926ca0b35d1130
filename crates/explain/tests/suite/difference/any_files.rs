//! What holds for any two signers files.

use std::collections::{BTreeMap, BTreeSet};

use countersign_core::documents::signers::{Role, SignersFile};
use countersign_explain::difference::{SignersChange, list_changes};
use countersign_testing::steady;
use proptest::prelude::*;

use crate::files::{Groups, file, public, spell};

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
        let roles = ["artifact", "admin", "master", "revocation"].into_iter().zip(&self.roles);
        let roles: Vec<String> = roles
            .filter_map(|(name, groups)| Some(format!("{name} {}", spell(groups.as_ref()?, member))))
            .collect();
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
    fn each_who_comes_or_goes_is_told_once(a in any_model(6, 2), b in any_model(6, 2)) {
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
