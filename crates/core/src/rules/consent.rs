//! Whose signatures a signers file needs before it takes effect (D15).

use std::{borrow::Cow, collections::BTreeSet, time::Duration};

use crate::{
    documents::signers::{Group, Role, SignersFile, keys_of},
    rules::quorum,
    values::key::PublicKey,
};

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
    /// file have agreed, on the signers file and on its metadata.
    pub fn delay(&self, signed: &[BTreeSet<PublicKey>; 2]) -> Option<Duration> {
        let current = self.current?;
        let agree = |signed: &BTreeSet<PublicKey>| quorum::is_met(current.master_groups(), signed);
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

    pub fn is_met(&self, signed: &BTreeSet<PublicKey>) -> bool {
        self.ways.iter().any(|way| quorum::is_met(&way.groups, signed))
    }
}
