//! Says how far a collection of signatures has come, and who is still asked. Pages lay it out, the client prints it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use countersign_core::documents::signatures::SignatureSet;
use countersign_core::documents::signers::{Group, Role, Signer, SignersFile};
use countersign_core::rules::quorum;
use countersign_core::rules::quorum::{Condition, ConditionKind, Consent, Tally};
use countersign_core::values::{key::PublicKey, time::Timestamp};

use crate::words::{list_called, shown_signer_name};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupProgress {
    pub threshold: usize,
    pub collected: usize,
    /// The members in the order of the signers file.
    pub members: Vec<Member>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub signer: Signer,
    /// What a sentence calls this signer: see [`Names::called`].
    pub called: String,
    /// The time of the signature; `None` if this signer has not signed.
    pub signed_at: Option<Timestamp>,
}

/// How far one of the conditions of a proposed signers file has come (D15).
#[derive(Debug, Clone)]
pub struct ConditionProgress {
    pub kind: ConditionKind,
    pub is_met: bool,
    /// The count of the way that `Tally::of_condition` chooses.
    pub tally: Tally,
    /// The ways to meet the condition, any one of which is enough.
    pub ways: Vec<WayProgress>,
}

#[derive(Debug, Clone)]
pub struct WayProgress {
    pub role: Option<Role>,
    pub is_met: bool,
    pub groups: Vec<GroupProgress>,
}

impl GroupProgress {
    pub fn of(group: &Group, set: &SignatureSet, names: &Names) -> Self {
        let member = |signer: Signer| Member {
            called: names.called(signer.key),
            signed_at: set.entries.get(&signer.key).map(|collected| collected.collected_at),
            signer,
        };
        Self {
            threshold: group.threshold,
            collected: quorum::count(group, &set.signers()),
            members: names
                .in_order(group.signers.iter().map(|signer| signer.key))
                .into_iter()
                .map(member)
                .collect(),
        }
    }

    pub fn is_met(&self) -> bool {
        self.collected >= self.threshold
    }

    pub fn signed(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.signed_at.is_some())
    }

    pub fn not_signed(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.signed_at.is_none())
    }

    pub fn tally(&self) -> Tally {
        Tally { collected: self.collected.min(self.threshold), needed: self.threshold }
    }

    fn missing(&self) -> usize {
        self.threshold.saturating_sub(self.collected)
    }

    /// The keys that have not signed, if all of them have to.
    fn required(&self) -> impl Iterator<Item = PublicKey> {
        let are_all = self.missing() >= self.not_signed().count();
        self.not_signed().filter(move |_| are_all).map(|member| member.signer.key)
    }
}

/// Says the progress, as in `has 1 of 2; 1 more from bob or carol` (D240).
impl fmt::Display for GroupProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.tally())?;
        if self.is_met() {
            return Ok(());
        }
        let last = if self.required().next().is_some() { " and " } else { " or " };
        write!(f, " from {}", list_called(self.not_signed().map(|member| member.called.as_str()), last))
    }
}

/// Says the progress of groups that must all be met.
pub fn groups_text(groups: &[GroupProgress]) -> String {
    groups.iter().map(ToString::to_string).collect::<Vec<_>>().join("; and ")
}

/// Says who still has to sign a proposed signers file, as in `2 of alice, bob, carol, and bob's new key`. A group whose
/// signatures follow from the rest is left out.
pub fn asked_text(conditions: &[ConditionProgress]) -> String {
    let open = conditions.iter().filter(|condition| !condition.is_met);
    let groups = open.filter_map(|condition| condition.ways.first()).flat_map(|way| &way.groups);
    let groups: Vec<&GroupProgress> = groups.filter(|group| !group.is_met()).collect();
    let required: BTreeSet<PublicKey> = groups.iter().flat_map(|group| group.required()).collect();
    let mut chosen: Vec<&GroupProgress> = Vec::new();
    for group in &groups {
        let keys: BTreeSet<PublicKey> = group.not_signed().map(|member| member.signer.key).collect();
        let from_chosen = chosen.iter().map(|other| {
            let others = other.not_signed().map(|member| member.signer.key);
            let (sure, free): (Vec<_>, Vec<_>) = others.partition(|key| required.contains(key));
            let outside = free.iter().filter(|key| !keys.contains(key)).count();
            other.missing().saturating_sub(sure.len() + outside)
        });
        let follows = required.intersection(&keys).count() + from_chosen.max().unwrap_or_default();
        if follows < group.missing() {
            chosen.push(group);
        }
    }
    let called = |group: &&GroupProgress| {
        let names = group.not_signed().map(|member| member.called.as_str());
        format!("{} of {}", group.missing(), list_called(names, ", "))
    };
    let mut asked: Vec<String> = chosen.iter().map(called).collect();
    let mut named = BTreeSet::new();
    let sure = groups.iter().flat_map(|group| group.not_signed()).filter(|member| {
        let key = member.signer.key;
        required.contains(&key) && named.insert(key)
    });
    let sure = list_called(sure.map(|member| member.called.as_str()), " and ");
    asked.extend((!sure.is_empty()).then_some(sure));
    asked.join(", and ")
}

/// Describes the groups of a role. All of them must agree.
pub fn describe_groups(groups: &[Group], set: &SignatureSet, names: &Names) -> Vec<GroupProgress> {
    groups.iter().map(|group| GroupProgress::of(group, set, names)).collect()
}

/// What must all hold before a signers file takes effect.
pub fn describe_conditions(
    consent: &Consent<'_>,
    set: &SignatureSet,
    names: &Names,
) -> Vec<ConditionProgress> {
    let signed = set.signers();
    let describe = |condition: &Condition<'_>| ConditionProgress {
        kind: condition.kind,
        is_met: condition.is_met(&signed),
        tally: Tally::of_condition(condition, &signed),
        ways: condition
            .ways
            .iter()
            .map(|way| WayProgress {
                role: way.role,
                is_met: quorum::is_met(&way.groups, &signed),
                groups: describe_groups(&way.groups, set, names),
            })
            .collect(),
    };
    consent.conditions().iter().map(describe).collect()
}

pub fn condition_text(kind: ConditionKind) -> &'static str {
    match kind {
        ConditionKind::Everyone => "Everyone who is listed agrees",
        ConditionKind::Current => "Enough of those in force agree",
        ConditionKind::Proposed => "Enough of those proposed agree",
        ConditionKind::Added => "Everyone who joins agrees",
    }
}

/// The name of those who can act in a role, if a condition can be met in several ways.
pub fn way_name(role: Role) -> &'static str {
    match role {
        Role::Artifact => "The artifact signers",
        Role::Admin => "The admins",
        Role::Master => "The masters",
        Role::Revocation => "The revokers",
        Role::Builder => "The builders",
    }
}

/// The names of keys.
#[derive(Debug, Clone, Default)]
pub struct Names {
    by_key: BTreeMap<PublicKey, Option<String>>,
    /// The keys in the order of the signers files.
    order: Vec<PublicKey>,
    /// The names in the first file, each of one key.
    first: BTreeMap<String, PublicKey>,
}

impl Names {
    /// The first file that lists a key names it, since a later one can be a mere proposal.
    pub fn of<'a>(files: impl IntoIterator<Item = &'a SignersFile>) -> Self {
        let mut names = Self::default();
        for file in files {
            let mut own: BTreeMap<PublicKey, Option<String>> = BTreeMap::new();
            let groups = Role::ALL.iter().filter_map(|role| file.explicit_groups(*role)).flatten();
            for signer in groups.flat_map(|group| &group.signers).chain(file.registrars()) {
                if !own.contains_key(&signer.key) && !names.by_key.contains_key(&signer.key) {
                    names.order.push(signer.key);
                }
                let name = own.entry(signer.key).or_default();
                *name = name.take().or_else(|| signer.name.clone().filter(|name| !name.is_empty()));
            }
            for (key, name) in own {
                names.by_key.entry(key).or_insert(name);
            }
            if names.first.is_empty() {
                let named = names.by_key.iter().filter_map(|(key, name)| Some((name.clone()?, *key)));
                names.first = named.collect();
            }
        }
        names
    }

    pub fn signer(&self, key: PublicKey) -> Signer {
        Signer { name: self.by_key.get(&key).cloned().flatten(), ..Signer::nameless(key) }
    }

    /// What a sentence calls a key, beside which the keys are listed (D240): the name, `bob's new key` if it was the
    /// name of another key before, and the short key if there is no name.
    pub fn called(&self, key: PublicKey) -> String {
        let signer = self.signer(key);
        let Some(name) = shown_signer_name(&signer) else { return key.short() };
        let first = signer.name.and_then(|name| self.first.get(&name));
        if first.is_some_and(|first| *first != key) { format!("{name}'s new key") } else { name }
    }

    /// Puts these keys in the order of the signers files. Keys that no file lists come last.
    pub fn in_order(&self, keys: impl IntoIterator<Item = PublicKey>) -> Vec<Signer> {
        let position: BTreeMap<PublicKey, usize> =
            self.order.iter().enumerate().map(|(position, key)| (*key, position)).collect();
        let mut keys: Vec<PublicKey> = keys.into_iter().collect();
        keys.sort_by_key(|key| position.get(key).copied().unwrap_or(usize::MAX));
        keys.into_iter().map(|key| self.signer(key)).collect()
    }

    /// The signers that have signed, in order of time.
    pub fn list_signed(&self, set: &SignatureSet) -> Vec<Member> {
        let member =
            |(key, at)| Member { signer: self.signer(key), called: self.called(key), signed_at: Some(at) };
        let mut signed: Vec<_> =
            set.entries.iter().map(|(key, collected)| (*key, collected.collected_at)).collect();
        signed.sort_by_key(|(key, at)| (*at, *key));
        signed.into_iter().map(member).collect()
    }
}
