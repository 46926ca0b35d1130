//! Says how far a collection of signatures has come, and who is still asked. Pages lay it out, the client prints it.

use std::{collections::BTreeMap, fmt};

use countersign_core::documents::signatures::SignatureSet;
use countersign_core::documents::signers::{Group, Role, Signer, SignersFile};
use countersign_core::rules::quorum;
use countersign_core::rules::quorum::{Condition, ConditionKind, Consent, Tally};
use countersign_core::values::{key::PublicKey, time::Timestamp};

use crate::words::rule_text;

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
        let member = |signer: &Signer| Member {
            signer: names.signer(signer.key),
            signed_at: set.entries.get(&signer.key).map(|collected| collected.collected_at),
        };
        Self {
            threshold: group.threshold,
            collected: quorum::count(group, &set.signers()),
            members: group.signers.iter().map(member).collect(),
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
}

/// Says the progress, as in `1 of 2 signatures (any 2 of 3 keys)`.
impl fmt::Display for GroupProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.tally(), rule_text(self.threshold, self.members.len()))
    }
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
    }
}

/// The names of keys.
#[derive(Debug, Clone, Default)]
pub struct Names {
    by_key: BTreeMap<PublicKey, Option<String>>,
    /// The keys in the order of the signers files.
    order: Vec<PublicKey>,
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
        }
        names
    }

    pub fn signer(&self, key: PublicKey) -> Signer {
        Signer { key, name: self.by_key.get(&key).cloned().flatten() }
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
        let member = |(key, at)| Member { signer: self.signer(key), signed_at: Some(at) };
        let mut signed: Vec<_> =
            set.entries.iter().map(|(key, collected)| (*key, collected.collected_at)).collect();
        signed.sort_by_key(|(key, at)| (*at, *key));
        signed.into_iter().map(member).collect()
    }
}
