//! Signers files (D8), and who has to agree to them (D15).

use std::collections::BTreeSet;

use crate::model::cast::Person;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ModelRole {
    Artifact,
    Admin,
    Master,
    Revocation,
}

impl ModelRole {
    pub(crate) const ALL: [Self; 4] = [Self::Artifact, Self::Admin, Self::Master, Self::Revocation];

    pub(crate) fn field(self) -> &'static str {
        match self {
            Self::Artifact => "artifact_signers",
            Self::Admin => "admin_keys",
            Self::Master => "master_keys",
            Self::Revocation => "revocation_keys",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelGroup {
    pub(crate) threshold: usize,
    pub(crate) people: BTreeSet<Person>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Config {
    /// The exact bytes.
    pub(crate) text: String,
    /// Seconds since 1970.
    pub(crate) timestamp: i64,
    /// The groups of each of `Role::ALL`.
    pub(crate) roles: [Option<Vec<ModelGroup>>; 4],
    /// The delay in hours (D130).
    pub(crate) delay: Option<i64>,
    /// Who registers new releases and does nothing else (D105).
    pub(crate) registrar: Option<Person>,
    /// Who builds releases anew and does nothing else (D259).
    pub(crate) builders: Option<ModelGroup>,
}

impl Config {
    fn role(&self, role: ModelRole) -> Option<&[ModelGroup]> {
        self.roles[role as usize].as_deref()
    }

    pub(crate) fn artifact(&self) -> &[ModelGroup] {
        self.role(ModelRole::Artifact).unwrap_or_default()
    }

    pub(crate) fn admin(&self) -> &[ModelGroup] {
        self.role(ModelRole::Admin).unwrap_or(self.artifact())
    }

    pub(crate) fn master(&self) -> &[ModelGroup] {
        self.role(ModelRole::Master).unwrap_or_default()
    }

    pub(crate) fn explicit_revocation(&self) -> Option<&[ModelGroup]> {
        self.role(ModelRole::Revocation)
    }

    /// The people who agree to be listed: signers and builders.
    pub(crate) fn everyone(&self) -> BTreeSet<Person> {
        &self.signers() | &self.builders()
    }

    pub(crate) fn builders(&self) -> BTreeSet<Person> {
        self.builders.as_ref().map(|group| group.people.clone()).unwrap_or_default()
    }

    pub(crate) fn signers(&self) -> BTreeSet<Person> {
        ModelRole::ALL.into_iter().flat_map(|role| people_of(self.role(role).unwrap_or_default())).collect()
    }

    /// The people who can register a new release.
    pub(crate) fn can_register(&self) -> BTreeSet<Person> {
        self.signers().into_iter().chain(self.registrar).collect()
    }

    /// Admins and masters.
    pub(crate) fn leaders(&self) -> BTreeSet<Person> {
        &people_of(self.admin()) | &people_of(self.master())
    }

    pub(crate) fn is_valid(&self) -> bool {
        let is_sound = |group: &ModelGroup| (1..=group.people.len()).contains(&group.threshold);
        let mut groups = self.roles.iter().flatten();
        let builders = self.builders();
        let others = [ModelRole::Artifact, ModelRole::Admin, ModelRole::Revocation];
        let others = others.map(|role| people_of(self.role(role).unwrap_or_default()));
        let masters = people_of(self.master());
        self.delay.is_none_or(|hours| (1..=720).contains(&hours))
            && self.role(ModelRole::Artifact).is_some()
            && groups.all(|groups| !groups.is_empty() && groups.iter().all(is_sound))
            && others.iter().all(|people| people.is_disjoint(&masters))
            && self.builders.as_ref().is_none_or(is_sound)
            && builders.is_disjoint(&self.can_register())
    }

    /// How long a rotation waits that has all consent; in seconds.
    pub(crate) fn wait(&self, signed: &BTreeSet<Person>) -> Option<i64> {
        self.delay.filter(|_| !is_met(self.master(), signed)).map(|hours| hours * 3_600)
    }

    /// Whether its own admins, or its own masters, agree.
    fn agrees(&self, signed: &BTreeSet<Person>) -> bool {
        is_met(self.admin(), signed) || is_met(self.master(), signed)
    }
}

pub(crate) fn people_of(groups: &[ModelGroup]) -> BTreeSet<Person> {
    groups.iter().flat_map(|group| group.people.iter().copied()).collect()
}

/// Every group of a listed role reaches its threshold.
pub(crate) fn is_met(groups: &[ModelGroup], signed: &BTreeSet<Person>) -> bool {
    let reaches = |group: &ModelGroup| group.people.intersection(signed).count() >= group.threshold;
    !groups.is_empty() && groups.iter().all(reaches)
}

fn added(current: &Config, new: &Config) -> BTreeSet<Person> {
    &new.everyone() - &current.everyone()
}

/// The people who can sign a proposal.
pub(crate) fn accepted(current: Option<&Config>, new: &Config) -> BTreeSet<Person> {
    match current {
        None => new.everyone(),
        Some(current) => &(&current.leaders() | &new.leaders()) | &added(current, new),
    }
}

/// The people who still have to sign it.
pub(crate) fn required(
    current: Option<&Config>,
    new: &Config,
    signed: &BTreeSet<Person>,
) -> BTreeSet<Person> {
    let Some(current) = current else { return &new.everyone() - signed };
    let mut required = added(current, new);
    for config in [current, new] {
        if !config.agrees(signed) {
            required.extend(people_of(config.admin()));
        }
    }
    &required - signed
}

pub(crate) fn is_complete(current: Option<&Config>, new: &Config, signed: &BTreeSet<Person>) -> bool {
    match current {
        None => new.everyone().is_subset(signed),
        Some(current) => {
            current.agrees(signed) && new.agrees(signed) && added(current, new).is_subset(signed)
        }
    }
}
