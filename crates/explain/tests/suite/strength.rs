//! What a signers file withstands (D8, D15, D20), against models that try every set of people.

use std::collections::BTreeSet;

use countersign_core::{documents::signers::Role, documents::signers::SignersFile, values::key::PublicKey};
use countersign_explain::strength::{Act, KeyCount, Strength, Warning, assess, count_needed};
use countersign_explain::words::{describe_delay, describe_rebuilds, shown_signer};
use countersign_testing::{assert_mentions, few, steady};
use proptest::prelude::*;

use crate::files::{Groups, public, spell, text_at};

#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    artifact: Groups,
    admin: Option<Groups>,
    master: Option<Groups>,
    revocation: Option<Groups>,
    builder: Option<Groups>,
    requires_rebuilds: bool,
    delay_hours: Option<u64>,
}

impl Model {
    pub(crate) fn new(artifact: &[(usize, &[u8])]) -> Self {
        Self { artifact: groups(artifact), ..Self::default() }
    }

    pub(crate) fn admin(self, admin: &[(usize, &[u8])]) -> Self {
        Self { admin: Some(groups(admin)), ..self }
    }

    pub(crate) fn master(self, master: &[(usize, &[u8])]) -> Self {
        Self { master: Some(groups(master)), ..self }
    }

    pub(crate) fn revocation(self, revocation: &[(usize, &[u8])]) -> Self {
        Self { revocation: Some(groups(revocation)), ..self }
    }

    pub(crate) fn builder(self, builder: &[(usize, &[u8])]) -> Self {
        Self { builder: Some(groups(builder)), ..self }
    }

    pub(crate) fn requiring_rebuilds(self) -> Self {
        Self { requires_rebuilds: true, ..self }
    }

    pub(crate) fn delay(self, hours: u64) -> Self {
        Self { delay_hours: Some(hours), ..self }
    }

    pub(crate) fn text(&self) -> String {
        let spelled = |groups: &Groups| spell(groups, u8::to_string);
        let optional = [("admin", &self.admin), ("master", &self.master), ("revocation", &self.revocation)];
        let mut roles = vec![format!("artifact {}", spelled(&self.artifact))];
        roles.extend(
            optional
                .into_iter()
                .filter_map(|(name, role)| Some(format!("{name} {}", spelled(role.as_ref()?)))),
        );
        roles.extend(self.builder.as_ref().map(|builders| {
            let kind = if self.requires_rebuilds { "required" } else { "rebuilds" };
            format!("{kind} app-*.tar.gz by {}", spelled(builders))
        }));
        roles.extend(self.delay_hours.map(|hours| format!("delay {hours}")));
        text_at("2026-01-31T10:00:00Z", &roles.join(" / "))
    }

    pub(crate) fn file(&self) -> SignersFile {
        SignersFile::parse(self.text().as_bytes()).expect("the test's own file")
    }

    fn assess(&self) -> Strength {
        assess(&self.file())
    }

    /// D15 and D20 in the words of people: a model that shares nothing with the code.
    pub(crate) fn can(&self, act: Act, people: &[u8]) -> bool {
        let admin = self.admin.as_ref().unwrap_or(&self.artifact);
        match act {
            Act::Release => agree(&self.artifact, people),
            Act::Rotate => {
                agree(admin, people) || self.master.as_ref().is_some_and(|master| agree(master, people))
            }
            Act::Revoke => match &self.revocation {
                Some(groups) => agree(groups, people),
                None => admin.iter().any(|(_, members)| members.iter().any(|member| people.contains(member))),
            },
            Act::Reproduce => self.builder.as_ref().is_some_and(|builders| agree(builders, people)),
        }
    }

    /// D131, D135, D170 and D174 in the words of people: whether a rotation by `people` takes effect, though
    /// `opponents` veto it if they can, and replace it each time if they do so (`replacing`).
    pub(crate) fn rotates(&self, people: &[u8], opponents: &[u8], replacing: bool) -> bool {
        let masters = |side: &[u8]| self.master.as_ref().is_some_and(|master| agree(master, side));
        let waits = self.delay_hours.is_some() && !masters(people);
        let is_in = |groups: &Groups, side: &[u8]| {
            groups.iter().any(|(_, members)| members.iter().any(|member| side.contains(member)))
        };
        let has_master = |side: &[u8]| self.master.as_ref().is_some_and(|master| is_in(master, side));
        let has_admin = |side: &[u8]| is_in(self.admin.as_ref().unwrap_or(&self.artifact), side);
        let replaces = replacing && (has_master(opponents) || (has_admin(opponents) && !has_master(people)));
        self.can(Act::Rotate, people) && !(waits && (masters(opponents) || replaces))
    }

    pub(crate) fn people(&self) -> Vec<u8> {
        let optional = [&self.admin, &self.master, &self.revocation, &self.builder];
        let roles = optional.into_iter().flatten().chain([&self.artifact]);
        let members = roles.flatten().flat_map(|(_, members)| members);
        members.copied().collect::<BTreeSet<u8>>().into_iter().collect()
    }
}

fn groups(groups: &[(usize, &[u8])]) -> Groups {
    groups.iter().map(|(threshold, members)| (*threshold, members.to_vec())).collect()
}

fn agree(groups: &Groups, people: &[u8]) -> bool {
    groups.iter().all(|(threshold, members)| {
        members.iter().filter(|member| people.contains(member)).count() >= *threshold
    })
}

/// Every set of these people.
pub(crate) fn subsets(people: &[u8]) -> Vec<Vec<u8>> {
    let pick = |mask: u32| {
        people.iter().enumerate().filter(|(i, _)| mask & (1 << i) != 0).map(|(_, n)| *n).collect::<Vec<u8>>()
    };
    (0..1_u32 << people.len()).map(pick).collect()
}

fn any_groups(people: std::ops::Range<u8>) -> impl Strategy<Value = Groups> {
    let people: Vec<u8> = people.collect();
    let members = prop::sample::subsequence(people.clone(), 1..=people.len());
    let group = members.prop_flat_map(|members| (1..=members.len(), Just(members)));
    prop::collection::vec(group, 1..4)
}

/// Small teams, most of which let rotations wait.
pub(crate) fn any_waiting_model() -> impl Strategy<Value = Model> {
    let optional = |people| prop::option::of(any_groups(people));
    let delay = prop::option::weighted(0.8, Just(48_u64));
    (any_groups(1..4), optional(1..4), prop::option::weighted(0.7, any_groups(6..9)), delay).prop_map(
        |(artifact, admin, master, delay_hours)| Model {
            artifact,
            admin,
            master,
            delay_hours,
            ..Model::default()
        },
    )
}

pub(crate) fn any_model() -> impl Strategy<Value = Model> {
    let optional = |people| prop::option::of(any_groups(people));
    let builder = (prop::option::weighted(0.3, any_groups(9..11)), any::<bool>());
    (any_groups(1..6), optional(1..6), optional(6..9), optional(1..6), builder).prop_map(
        |(artifact, admin, master, revocation, (builder, requires_rebuilds))| Model {
            artifact,
            admin,
            master,
            revocation,
            builder,
            requires_rebuilds,
            delay_hours: None,
        },
    )
}

proptest! {
    #![proptest_config(few(steady(), 256))]

    #[test]
    fn so_many_stolen_keys_are_harmless_and_one_more_may_not_be(model in any_model()) {
        let sets = subsets(&model.people());
        for act in model.assess().acts() {
            let can_act = sets.iter().filter(|set| model.can(act.act, set));
            let fewest = can_act.map(Vec::len).min().expect("all together can");
            prop_assert_eq!(act.needed, KeyCount { at_least: fewest, at_most: fewest }, "{:?}", act.act);
            prop_assert_eq!(act.harmless_thefts, fewest - 1);
        }
    }

    #[test]
    fn so_many_lost_keys_are_survived_and_one_more_may_not_be(model in any_model()) {
        let people = model.people();
        let sets = subsets(&people);
        for act in model.assess().acts() {
            let stopped = sets.iter().filter(|rest| !model.can(act.act, rest));
            let most_left = stopped.map(Vec::len).max().expect("at least one cannot");
            prop_assert_eq!(act.survivable_losses, people.len() - most_left - 1, "{:?}", act.act);
        }
    }

    #[test]
    fn alone_are_those_who_need_no_one_else(model in any_model()) {
        for act in model.assess().acts() {
            let alone = model.people().into_iter().filter(|n| model.can(act.act, &[*n])).map(public);
            let found: BTreeSet<PublicKey> = act.alone.iter().map(|signer| signer.key).collect();
            prop_assert_eq!(found, alone.collect::<BTreeSet<_>>(), "{:?}", act.act);
        }
    }

    #[test]
    fn a_loss_that_blocks_is_warned_of_with_how_long(model in any_model()) {
        let strength = model.assess();
        for act in [Act::Release, Act::Rotate, Act::Revoke, Act::Reproduce] {
            let people = model.people();
            let others = |n: u8| people.iter().copied().filter(|other| *other != n).collect::<Vec<u8>>();
            let stops = |act: Act, n: u8| !model.can(act, &others(n));
            let is_known = model.can(act, &people);
            let blocking: Vec<u8> =
                people.iter().copied().filter(|n| is_known && stops(act, *n)).collect();
            let for_ever = blocking.iter().any(|n| stops(Act::Rotate, *n));
            let expected =
                (!blocking.is_empty()).then(|| (blocking.into_iter().map(public).collect(), for_ever));
            prop_assert_eq!(blocking_keys(&strength, act), expected, "{:?}", act);
        }
    }
}

fn blocking_keys(strength: &Strength, wanted: Act) -> Option<(BTreeSet<PublicKey>, bool)> {
    strength.warnings.iter().find_map(|warning| match warning {
        Warning::OneLossBlocks { act, keys, for_ever } if *act == wanted => {
            Some((keys.iter().map(|signer| signer.key).collect(), *for_ever))
        }
        Warning::OneLossRefusesReleases(keys) if wanted == Act::Reproduce => {
            Some((keys.iter().map(|signer| signer.key).collect(), false))
        }
        _ => None,
    })
}

fn warns(strength: &Strength, text: &str) -> bool {
    strength.warnings.iter().any(|warning| warning.to_string().contains(text))
}

#[test]
fn a_key_that_is_in_every_group_is_warned_of() {
    let strength = Model::new(&[(1, &[1, 2]), (1, &[2, 3])]).assess();
    assert!(warns(&strength, "one stolen key is enough to release"));
}

#[test]
fn the_ways_to_rotate_are_the_admins_and_the_masters() {
    let model = Model::new(&[(1, &[1])]).admin(&[(2, &[2, 3])]).master(&[(2, &[4, 5, 6])]);
    let strength = model.assess();
    let roles: Vec<(Role, bool)> =
        strength.rotate.ways.iter().map(|way| (way.role, way.is_explicit)).collect();
    assert_eq!(roles, [(Role::Admin, true), (Role::Master, true)]);
}

#[test]
fn a_rotation_that_takes_fewer_keys_than_a_release_is_warned_of() {
    let strength = Model::new(&[(2, &[1, 2, 3])]).admin(&[(1, &[4, 5])]).assess();
    assert!(warns(
        &strength,
        "those who rotate the signers decide who releases; that takes 1 key, not 2 keys"
    ));
    let strength = Model::new(&[(2, &[1, 2, 3])]).assess();
    assert!(!warns(&strength, "those who rotate"));
}

#[test]
fn a_loss_that_only_stops_releases_lasts_until_a_rotation() {
    let strength = Model::new(&[(2, &[1, 2])]).admin(&[(1, &[3, 4])]).assess();
    assert!(warns(&strength, "impossible to release, until the signers are rotated"));
    let strength = Model::new(&[(2, &[1, 2])]).assess();
    assert!(warns(&strength, "impossible to release, for ever"));
    assert!(warns(&strength, "impossible to rotate the signers, for ever"));
}

#[test]
fn keys_that_are_artifact_signer_and_admin_are_not_independent() {
    let both = |model: Model| {
        model.assess().warnings.into_iter().find_map(|warning| match warning {
            Warning::NotIndependent(keys) => Some(keys.len()),
            _ => None,
        })
    };
    assert_eq!(both(Model::new(&[(1, &[1, 2])]).admin(&[(1, &[2, 3])])), Some(1));
    assert_eq!(both(Model::new(&[(1, &[1, 2])])), None, "without admin keys no one expects otherwise");
    assert_eq!(both(Model::new(&[(1, &[1, 2])]).admin(&[(1, &[3])])), None);
}

#[test]
fn missing_masters_and_names_are_warned_of() {
    let model = Model::new(&[(1, &[1, 2])]);
    assert!(warns(&model.assess(), "no master keys"));
    assert!(warns(&model.assess(), &format!("without a name: {}", public(1).min(public(2)))));
    let named = model.master(&[(1, &[3])]).text();
    let named = (1..=3).fold(named, |text, n| text.replacen("}}", &format!(r#"}}, "name": "n{n}"}}"#), 1));
    let strength = assess(&SignersFile::parse(named.as_bytes()).expect("three names"));
    assert!(!warns(&strength, "no master keys") && !warns(&strength, "without a name"));
}

#[test]
fn builders_are_an_act_of_their_own_whose_losses_matter_more_if_clients_require_them() {
    let model = || Model::new(&[(1, &[1, 2])]).master(&[(1, &[6])]);
    let builders = |strength: &Strength| {
        let told: Vec<String> = strength.warnings.iter().map(ToString::to_string).collect();
        told.into_iter().filter(|told| told.contains("reproduced")).collect::<Vec<_>>()
    };
    assert_eq!(model().assess().reproduce, None);
    let safe = model().builder(&[(2, &[9, 10, 11])]).requiring_rebuilds().assess();
    let act = safe.reproduce.as_ref().expect("builders");
    assert_eq!((act.harmless_thefts, act.survivable_losses), (1, 1));
    assert_mentions(&act.to_string(), &["To call a release reproduced:\n  builders, any 2 of 3 keys: "]);
    assert!(builders(&safe).is_empty(), "{:?}", builders(&safe));
    let one = shown_signer(&SignersFile::named_signer(&model().file(), public(9)));
    let single = model().builder(&[(1, &[9])]);
    let stolen = format!("one stolen key is enough to call a release reproduced: {one}");
    let blocks = format!(
        "one lost key makes it impossible to call a release reproduced, until the signers are rotated: {one}"
    );
    let refused = format!(
        "one lost key keeps new releases from being reproduced, so clients refuse them until the signers are rotated: {one}"
    );
    assert_eq!(builders(&single.clone().assess()), [stolen.clone(), blocks]);
    assert_eq!(builders(&single.clone().requiring_rebuilds().assess()), [stolen, refused]);
    let told = describe_rebuilds(&single.file()).join("\n");
    assert_mentions(&told, &["can do nothing else", "\"app-*.tar.gz\"", "refuse nothing", "only signers"]);
    assert_mentions(&describe_rebuilds(&single.requiring_rebuilds().file()).join("\n"), &["clients refuse"]);
    assert!(describe_rebuilds(&model().file()).is_empty());
}

#[test]
fn a_delay_without_masters_is_warned_of_and_one_with_masters_is_explained() {
    let alone = Model::new(&[(1, &[1, 2])]).delay(72).file();
    assert!(warns(&assess(&alone), "no one can veto"));
    assert!(describe_delay(&alone).join("\n").contains("no one can veto"));
    let guarded = Model::new(&[(1, &[1, 2])]).master(&[(1, &[3])]).delay(72).file();
    assert!(!warns(&assess(&guarded), "veto"));
    let told = describe_delay(&guarded).join("\n");
    for words in
        ["72 hours (3 days)", "stolen admin keys", "countersign veto", "wait just as long", "witnesses"]
    {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert!(describe_delay(&Model::new(&[(1, &[1])]).file()).is_empty());
}

#[test]
fn a_name_that_another_entry_of_the_key_has_is_shown_with_its_key() {
    let text = Model::new(&[(1, &[1])]).admin(&[(1, &[1])]).text();
    let named = text.replacen("}}", r#"}, "name": "alice"}"#, 1);
    let strength = assess(&SignersFile::parse(named.as_bytes()).expect("one name"));
    let shown = format!("alice ({})", public(1));
    assert_eq!(shown_signer(&strength.rotate.alone[0]), shown);
    assert_mentions(
        &strength.rotate.to_string(),
        &["To rotate the signers:\n  admin keys, any 1 of 1 key: ", &shown],
    );
}

#[test]
fn an_act_is_told_in_a_line_for_each_way_and_three_more() {
    let strength = Model::new(&[(2, &[1, 2, 3])]).assess();
    let text = strength.rotate.to_string();
    assert_eq!(text.lines().count(), 5);
    assert_mentions(
        &text,
        &[
            "To rotate the signers:\n  artifact signers (there are no admin keys), any 2 of 3 keys: ",
            "  alone: no one\n",
            "  stolen keys that do not suffice: any 1\n",
            "  lost keys that do not prevent it: any 1",
        ],
    );
    assert_mentions(
        &strength.revoke.to_string(),
        &["  admin keys (there are no revocation keys), any 1 of 3 keys: ", "do not suffice: none"],
    );
}

/// In a ring of people, each pair of neighbours must have one who signs. That takes half of them, rounded up.
#[test]
fn where_not_every_set_can_be_tried_the_bounds_are_safe() {
    let pairs: Groups = (0..61).map(|n| (1, vec![n + 1, (n + 1) % 61 + 1])).collect();
    let model = Model { artifact: pairs, ..Model::default() };
    let strength = model.assess();
    let needed = strength.release.needed;
    assert!(needed.at_least <= 31 && 31 <= needed.at_most, "{needed:?}");
    assert!(strength.release.harmless_thefts <= 30 && strength.release.harmless_thefts >= 29, "{needed:?}");
}

#[test]
fn the_largest_files_are_assessed_without_a_search() {
    let groups: Groups = (0..10_u8)
        .map(|g| (7, (0..20).map(|n| g * 20 + n + 1).collect()))
        .chain([(9, (1..=200).collect())])
        .collect();
    let file = Model { artifact: groups, ..Model::default() }.file();
    assert_eq!(count_needed(file.artifact_groups()), Some(KeyCount { at_least: 70, at_most: 70 }));
}

#[test]
fn no_one_meets_no_groups() {
    assert_eq!(count_needed(&[]), None);
}
