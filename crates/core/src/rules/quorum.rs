//! *The* threshold function: server, client and mirror count signers here and nowhere else. Whose signatures a signers file
//! needs (D15), and the tally that people read.

use std::{borrow::Cow, collections::BTreeMap, collections::BTreeSet, fmt, time::Duration};

use serde::Serialize;

use crate::documents::signers::{Group, Role, SignersFile, keys_of};
use crate::{json_fields, values::key::PublicKey};

/// Whether every group has reached its threshold. A role without groups is never met.
///
/// Both sides are sets of keys by their 32 bytes, so that no spelling, entry or repetition counts twice.
pub fn is_met(groups: &[Group], signed: &BTreeSet<PublicKey>) -> bool {
    !groups.is_empty() && groups.iter().all(|group| count(group, signed) >= group.threshold)
}

/// Counts how many of a group have signed.
pub fn count(group: &Group, signed: &BTreeSet<PublicKey>) -> usize {
    let members: BTreeSet<PublicKey> = group.signers.iter().map(|signer| signer.key).collect();
    members.intersection(signed).count()
}

/// Whether so many members are there, where a member can be a group itself: the witnesses of a policy (D85). Its reader
/// has seen to it that each key is a member in one place only.
pub fn is_reached<M>(threshold: usize, members: &[M], is_there: impl Fn(&M) -> bool) -> bool {
    members.iter().filter(|member| is_there(member)).count() >= threshold
}

// Whose signatures a signers file needs before it takes effect (D15).

/// A proposed signers file beside the one that it would replace, if any.
#[derive(Debug, Clone, Copy)]
pub struct Consent<'a> {
    pub current: Option<&'a SignersFile>,
    pub proposed: &'a SignersFile,
}

/// One of the things that must all hold before a signers file takes effect.
#[derive(Debug, Clone)]
pub struct Condition<'a> {
    pub kind: ConditionKind,
    /// The ways to meet it, any one of which is enough; at least one.
    pub ways: Vec<ConsentWay<'a>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConditionKind {
    /// Every key that a first file lists agrees to be listed.
    Everyone,
    /// The admins or masters of the file in force.
    Current,
    /// The admins or masters of the proposed file.
    Proposed,
    /// The keys that the proposed file adds.
    Added,
}

/// Groups that must all agree.
#[derive(Debug, Clone)]
pub struct ConsentWay<'a> {
    /// The role that agrees; `None` if it is not a role, but each key for itself.
    pub role: Option<Role>,
    pub groups: Cow<'a, [Group]>,
}

impl<'a> Consent<'a> {
    pub fn conditions(&self) -> Vec<Condition<'a>> {
        let Some(current) = self.current else {
            return vec![Condition::of_each(ConditionKind::Everyone, &self.proposed.keys())];
        };
        let mut conditions = vec![
            Condition::of_admins(ConditionKind::Current, current),
            Condition::of_admins(ConditionKind::Proposed, self.proposed),
        ];
        let added: BTreeSet<PublicKey> = self.proposed.keys().difference(&current.keys()).copied().collect();
        if !added.is_empty() {
            conditions.push(Condition::of_each(ConditionKind::Added, &added));
        }
        conditions
    }

    pub fn is_complete(&self, signed: &BTreeSet<PublicKey>) -> bool {
        self.conditions().iter().all(|condition| condition.is_met(signed))
    }

    /// How long the file waits once it has all consent (D130): the delay of the file in force, unless the masters of that
    /// file have agreed, on the signers file and on its metadata. `None`: it takes effect at once.
    pub fn delay(&self, signed: &[BTreeSet<PublicKey>; 2]) -> Option<Duration> {
        let current = self.current?;
        let agree = |signed: &BTreeSet<PublicKey>| is_met(current.master_groups(), signed);
        current.rotation_delay().filter(|_| !signed.iter().all(agree))
    }

    /// The keys whose signatures are accepted.
    pub fn accepted_signers(&self) -> BTreeSet<PublicKey> {
        let conditions = self.conditions();
        let ways = conditions.iter().flat_map(|condition| &condition.ways);
        ways.flat_map(|way| keys_of(&way.groups)).collect()
    }

    /// The keys to ask for a signature next: of what is not agreed yet, the admins rather than the masters.
    pub fn missing_signers(&self, signed: &BTreeSet<PublicKey>) -> BTreeSet<PublicKey> {
        let conditions = self.conditions();
        let open = conditions.iter().filter(|condition| !condition.is_met(signed));
        let asked = open.filter_map(|condition| condition.ways.first());
        asked.flat_map(|way| keys_of(&way.groups)).filter(|key| !signed.contains(key)).collect()
    }
}

impl<'a> Condition<'a> {
    fn of_each(kind: ConditionKind, keys: &BTreeSet<PublicKey>) -> Self {
        let groups = Cow::Owned(vec![Group::of_keys(keys.len(), keys)]);
        Self { kind, ways: vec![ConsentWay { role: None, groups }] }
    }

    /// A file's own admins, or its masters if it has any.
    fn of_admins(kind: ConditionKind, file: &'a SignersFile) -> Self {
        let ways = [(Role::Admin, file.admin_groups()), (Role::Master, file.master_groups())];
        let ways = ways.into_iter().filter(|(_, groups)| !groups.is_empty());
        let open = |(role, groups)| ConsentWay { role: Some(role), groups: Cow::Borrowed(groups) };
        Self { kind, ways: ways.map(open).collect() }
    }

    /// The begun way that needs the fewest further signatures; before that, the first way (D183).
    fn nearest_way(&self, signed: &BTreeSet<PublicKey>) -> Option<&ConsentWay<'a>> {
        let counted = self.ways.iter().map(|way| (way, Tally::of(way.groups.iter(), signed)));
        let begun = counted.filter(|(_, tally)| tally.collected > 0);
        let nearest = begun.min_by_key(|(_, tally)| tally.needed - tally.collected).map(|(way, _)| way);
        nearest.or(self.ways.first())
    }

    pub fn is_met(&self, signed: &BTreeSet<PublicKey>) -> bool {
        self.ways.iter().any(|way| is_met(&way.groups, signed))
    }
}

// How many signatures there are, and how many are needed: "has 1 of 2; 1 more". No rule depends on these numbers:
// `is_met` says whether a role has agreed.

/// Signatures that count, and signatures that are needed. Each group of signers counts up to its threshold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = SignatureCount))]
pub struct Tally {
    pub collected: usize,
    pub needed: usize,
}

json_fields!(part Tally { collected, needed });

impl Tally {
    pub fn of<'a>(groups: impl IntoIterator<Item = &'a Group>, signed: &BTreeSet<PublicKey>) -> Self {
        let counted = groups.into_iter().map(|group| (count(group, signed), group.threshold));
        counted.fold(Self::default(), |tally, (count, threshold)| Self {
            collected: tally.collected + count.min(threshold),
            needed: tally.needed + threshold,
        })
    }

    /// The tally of a proposed signers file, in people: those who have signed it, and how few more can complete it. One
    /// signature can count in several conditions.
    pub fn of_consent(consent: &Consent<'_>, signed: &BTreeSet<PublicKey>) -> Self {
        let collected = consent.accepted_signers().intersection(signed).count();
        Self { collected, needed: collected + count_missing(&consent.conditions(), signed) }
    }

    /// The tally of a condition, for which one way is enough. It counts the begun way that needs the fewest further
    /// signatures; before that the first way, so that the numbers do not change from way to way (D183).
    pub fn of_condition(condition: &Condition<'_>, signed: &BTreeSet<PublicKey>) -> Self {
        let nearest = condition.nearest_way(signed);
        nearest.map(|way| Self::of(way.groups.iter(), signed)).unwrap_or_default()
    }

    /// The tally of a revocation under this signers file.
    pub fn of_revocation(signers: &SignersFile, signed: &BTreeSet<PublicKey>) -> Self {
        Self::of(signers.revocation_groups().iter(), signed)
    }
}

/// Counts the fewest people who can meet the conditions that are open, by the begun ways. The next one is always who counts
/// in the most groups. That gives the fewest unless groups overlap in odd ways.
fn count_missing(conditions: &[Condition<'_>], signed: &BTreeSet<PublicKey>) -> usize {
    let open = conditions.iter().filter(|condition| !condition.is_met(signed));
    let groups = open.filter_map(|condition| condition.nearest_way(signed)).flat_map(|way| way.groups.iter());
    let mut missing: Vec<(usize, Vec<PublicKey>)> = groups
        .filter_map(|group| {
            let more = group.threshold.checked_sub(count(group, signed)).filter(|more| *more > 0)?;
            let keys = group.signers.iter().map(|signer| signer.key).filter(|key| !signed.contains(key));
            Some((more, keys.collect()))
        })
        .collect();
    let mut groups_of: BTreeMap<PublicKey, Vec<usize>> = BTreeMap::new();
    for (group, (_, keys)) in missing.iter().enumerate() {
        keys.iter().for_each(|key| groups_of.entry(*key).or_default().push(group));
    }
    let mut counts: BTreeMap<PublicKey, usize> =
        groups_of.iter().map(|(key, groups)| (*key, groups.len())).collect();
    let mut order: BTreeSet<(usize, PublicKey)> = counts.iter().map(|(key, count)| (*count, *key)).collect();
    let mut people = 0;
    while let Some((_, next)) = order.pop_last().filter(|(count, _)| *count > 0) {
        people += 1;
        for group in &groups_of[&next] {
            let (more, keys) = &mut missing[*group];
            *more = more.saturating_sub(1);
            if *more > 0 {
                continue;
            }
            // The group needs no one any more.
            for key in keys.drain(..) {
                let count = counts.get_mut(&key).expect("every key was counted");
                if order.remove(&(*count, key)) {
                    *count -= 1;
                    order.insert((*count, key));
                }
            }
        }
    }
    people
}

/// Says how far something has come, as in `has 1 of 2; 1 more` (D240).
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { collected, needed } = self;
        write!(f, "has {collected} of {needed}")?;
        match needed.saturating_sub(*collected) {
            0 => Ok(()),
            more => write!(f, "; {more} more"),
        }
    }
}
