//! What a proposed signers file changes, for a person who is about to sign it (D8, D15, D39).

use std::{cmp::Reverse, collections::BTreeMap, collections::BTreeSet, fmt};

use countersign_core::documents::signers::{FilePattern, Group, Role, Signer, SignersFile, keys_of};
use countersign_core::values::{key::KeyFormat, key::PublicKey, other_format::OtherFormat};

use crate::log_change::{LogChange, list_log_changes};
use crate::strength::{KeyCount, count_needed, effective_groups};
use crate::words::{
    rebuilt_files_text, role_titles, rule_text, shown_group, shown_groups, shown_hours, shown_signer,
    shown_signers,
};

/// One change; `Display` says it in a sentence. A key of the current file appears under the name that this file gives
/// it: the name in the proposed file is part of the proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignersChange {
    /// A role of a first file; `None` if it is left to its default.
    Founded {
        role: Role,
        groups: Option<Vec<Group>>,
    },
    /// A name that stood for one key stands for another.
    NameMoved {
        from: Signer,
        to: Signer,
    },
    /// Fewer keys than before can act for the role.
    Weakened {
        role: Role,
        before: KeyCount,
        after: KeyCount,
    },
    /// A key that the current file does not have. Roles are effective ones, here and below.
    Joined {
        signer: Signer,
        roles: Vec<Role>,
    },
    Left {
        signer: Signer,
        roles: Vec<Role>,
    },
    RolesChanged {
        signer: Signer,
        gained: Vec<Role>,
        lost: Vec<Role>,
    },
    Renamed {
        before: Signer,
        after: Signer,
    },
    GroupChanged(GroupChange),
    GroupAdded {
        role: Role,
        group: Group,
    },
    GroupRemoved {
        role: Role,
        group: Group,
    },
    /// A role that was left to its default has groups of its own.
    RoleListed {
        role: Role,
        groups: Vec<Group>,
    },
    /// A role that had these groups is left to its default.
    RoleUnlisted {
        role: Role,
        groups: Vec<Group>,
    },
    /// A key that can register new releases, and nothing else (D105).
    RegistrarJoined(Signer),
    RegistrarLeft(Signer),
    /// A key that is listed as a FIDO key from now on, or no longer.
    KeyFormat(Signer),
    /// How many hours rotations wait that the masters have not agreed to (D130).
    Delay {
        before: Option<u64>,
        after: Option<u64>,
    },
    /// The files that builders make, and whether some are left out that they made before (D259).
    RebuiltFiles {
        files: Vec<FilePattern>,
        is_narrower: bool,
    },
    /// Whether clients refuse a release before builders have reproduced it.
    RebuildsRequired(bool),
    /// The servers that clients ask about the project, the best first.
    Servers(Vec<String>),
    /// A change of the log or its witnesses.
    Log(LogChange),
    /// The formats besides our own in which artifact signers are asked to sign.
    Formats(BTreeSet<OtherFormat>),
}

/// A group of a role that changes, and keeps some of its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupChange {
    pub role: Role,
    pub before: Group,
    pub after: Group,
    /// The role has no other group, before or after.
    pub is_only: bool,
}

/// Lists the changes, those to look at first before the others. Empty if nothing changes but the time, or the order of
/// groups and signers, which means nothing.
pub fn list_changes(current: Option<&SignersFile>, proposed: &SignersFile) -> Vec<SignersChange> {
    match current {
        None => {
            let mut changes: Vec<SignersChange> =
                Role::ALL.into_iter().filter_map(|role| found_role(proposed, role)).collect();
            changes.extend(compare_rebuilds(None, proposed));
            changes.extend(proposed.registrars().iter().cloned().map(SignersChange::RegistrarJoined));
            changes.extend(compare_delays(None, proposed));
            changes.extend(compare_servers(&[], proposed.servers()));
            changes.extend(compare_logs(None, proposed));
            changes.extend(compare_formats(&[], proposed.formats()));
            changes.extend(compare_key_formats(None, proposed));
            changes
        }
        Some(current) => {
            let pair = Pair { current, proposed };
            let mut changes = pair.list_moved_names();
            changes.extend(Role::ALL.into_iter().filter_map(|role| pair.find_weakening(role)));
            let (alarming_groups, groups): (Vec<_>, Vec<_>) = Role::ALL
                .into_iter()
                .flat_map(|role| pair.list_group_changes(role))
                .chain(compare_rebuilds(Some(current), proposed))
                .partition(SignersChange::is_alarming);
            let quiet = compare_delays(Some(current), proposed).into_iter();
            let (alarming, plain): (Vec<_>, Vec<_>) =
                quiet.chain(compare_logs(Some(current), proposed)).partition(SignersChange::is_alarming);
            changes.extend(alarming_groups);
            changes.extend(alarming);
            changes.extend(pair.list_people());
            changes.extend(groups);
            changes.extend(pair.list_registrars());
            changes.extend(compare_servers(current.servers(), proposed.servers()));
            changes.extend(plain);
            changes.extend(compare_formats(current.formats(), proposed.formats()));
            changes.extend(compare_key_formats(Some(current), proposed));
            changes
        }
    }
}

impl SignersChange {
    /// Whether it must not be overlooked: fewer keys can act, or a name means someone else.
    pub fn is_alarming(&self) -> bool {
        match self {
            Self::NameMoved { .. } | Self::Weakened { .. } => true,
            Self::Renamed { before, .. } => before.name.is_some(),
            Self::Delay { before, after } => after < before,
            Self::Log(change) => change.is_alarming(),
            Self::RebuiltFiles { is_narrower, .. } => *is_narrower,
            Self::RebuildsRequired(is_required) => !is_required,
            // Without builders no one checks what they checked. Every other role has a default.
            Self::RoleUnlisted { role, .. } => *role == Role::Builder,
            Self::Founded { .. }
            | Self::Joined { .. }
            | Self::Left { .. }
            | Self::RolesChanged { .. }
            | Self::GroupChanged(_)
            | Self::GroupAdded { .. }
            | Self::GroupRemoved { .. }
            | Self::RoleListed { .. }
            | Self::RegistrarJoined(_)
            | Self::RegistrarLeft(_)
            | Self::KeyFormat(_)
            | Self::Servers(_)
            | Self::Formats(_) => false,
        }
    }
}

impl GroupChange {
    pub fn stayed(&self) -> Vec<Signer> {
        select(&self.before, |key| self.after.contains(key))
    }

    pub fn came(&self) -> Vec<Signer> {
        select(&self.after, |key| !self.before.contains(key))
    }

    pub fn went(&self) -> Vec<Signer> {
        select(&self.before, |key| !self.after.contains(key))
    }
}

fn select(group: &Group, is_wanted: impl Fn(&PublicKey) -> bool) -> Vec<Signer> {
    group.signers.iter().filter(|signer| is_wanted(&signer.key)).cloned().collect()
}

/// Says a role of a first file. Of builders, whom most projects have none of, only if there are some.
fn found_role(file: &SignersFile, role: Role) -> Option<SignersChange> {
    let groups = file.explicit_groups(role).map(|_| effective_groups(file, role));
    let is_told = groups.is_some() || role != Role::Builder;
    is_told.then_some(SignersChange::Founded { role, groups })
}

/// Compares what is wanted of builders. Who they are is told as with every role.
fn compare_rebuilds(current: Option<&SignersFile>, proposed: &SignersFile) -> Vec<SignersChange> {
    let (before, after) = (current.and_then(SignersFile::rebuilds), proposed.rebuilds());
    let mut changes = Vec::new();
    if let Some(after) = after {
        let is_same = before.is_some_and(|before| before.covers_all_of(after) && after.covers_all_of(before));
        if !is_same {
            let is_narrower = before.is_some_and(|before| !after.covers_all_of(before));
            changes.push(SignersChange::RebuiltFiles { files: after.files.clone(), is_narrower });
        }
    }
    let [was, is] = [before, after].map(|rebuilds| rebuilds.is_some_and(|rebuilds| rebuilds.required));
    if was != is {
        changes.push(SignersChange::RebuildsRequired(is));
    }
    changes
}

fn compare_servers(before: &[String], after: &[String]) -> Option<SignersChange> {
    (before != after).then(|| SignersChange::Servers(after.to_vec()))
}

fn compare_delays(current: Option<&SignersFile>, proposed: &SignersFile) -> Option<SignersChange> {
    let (before, after) =
        (current.and_then(SignersFile::rotation_delay_hours), proposed.rotation_delay_hours());
    (before != after).then_some(SignersChange::Delay { before, after })
}

/// Compares lists of formats, whose order means nothing.
fn compare_formats(before: &[OtherFormat], after: &[OtherFormat]) -> Option<SignersChange> {
    let [before, after] = [before, after].map(|formats| formats.iter().copied().collect::<BTreeSet<_>>());
    (before != after).then_some(SignersChange::Formats(after))
}

/// What is said behind a key whose format changes.
pub fn key_format_words(format: KeyFormat) -> &'static str {
    match format {
        KeyFormat::Ed25519 => "is no longer listed as a FIDO key",
        KeyFormat::Fido => "is a FIDO key: it signs only if someone touches it",
    }
}

fn compare_key_formats(
    current: Option<&SignersFile>,
    proposed: &SignersFile,
) -> impl Iterator<Item = SignersChange> {
    let before = move |key| current.map_or(KeyFormat::Ed25519, |file| file.named_signer(key).format);
    let changed = name_keys(proposed).filter(move |signer| signer.format != before(signer.key));
    changed.map(SignersChange::KeyFormat)
}

fn compare_logs(
    current: Option<&SignersFile>,
    proposed: &SignersFile,
) -> impl Iterator<Item = SignersChange> {
    let before = current.and_then(SignersFile::transparency);
    list_log_changes(before, proposed.transparency()).into_iter().map(SignersChange::Log)
}

struct Pair<'a> {
    current: &'a SignersFile,
    proposed: &'a SignersFile,
}

impl Pair<'_> {
    fn list_moved_names(&self) -> Vec<SignersChange> {
        let holders: BTreeMap<String, Signer> =
            name_keys(self.current).filter_map(|signer| Some((signer.name.clone()?, signer))).collect();
        let moved = |to: Signer| {
            let from = holders.get(to.name.as_ref()?)?.clone();
            (from.key != to.key).then_some(SignersChange::NameMoved { from, to })
        };
        name_keys(self.proposed).filter_map(moved).collect()
    }

    fn find_weakening(&self, role: Role) -> Option<SignersChange> {
        let [current, proposed] = [self.current, self.proposed].map(|file| effective_groups(file, role));
        // Where the bounds are not exact, the same groups would look as if they could be weaker than themselves.
        if sort_groups(&current) == sort_groups(&proposed) {
            return None;
        }
        let after = count_needed(&proposed)?;
        let before = count_needed(&current).or_else(|| match role {
            // Masters who are new can do what only the admins could: rotate.
            Role::Master => count_needed(self.current.admin_groups()),
            // Builders who are new do what no one did.
            Role::Artifact | Role::Admin | Role::Revocation | Role::Builder => None,
        })?;
        (after.at_least < before.at_most).then_some(SignersChange::Weakened { role, before, after })
    }

    fn list_people(&self) -> Vec<SignersChange> {
        let (mut joined, mut left, mut changed, mut renamed) = (vec![], vec![], vec![], vec![]);
        let [before_roles, after_roles] = [self.current, self.proposed].map(list_roles);
        let (before_keys, after_keys) = (self.current.keys(), self.proposed.keys());
        for key in before_keys.union(&after_keys) {
            let [before, after] = [self.current, self.proposed].map(|file| file.named_signer(*key));
            let was: BTreeSet<Role> = before_roles.get(key).cloned().unwrap_or_default();
            let is: BTreeSet<Role> = after_roles.get(key).cloned().unwrap_or_default();
            if !before_keys.contains(key) {
                joined.push(SignersChange::Joined { signer: after, roles: is.into_iter().collect() });
            } else if !after_keys.contains(key) {
                left.push(SignersChange::Left { signer: before, roles: was.into_iter().collect() });
            } else {
                if was != is {
                    let gained = is.difference(&was).copied().collect();
                    let lost = was.difference(&is).copied().collect();
                    changed.push(SignersChange::RolesChanged { signer: before.clone(), gained, lost });
                }
                if before.name != after.name {
                    renamed.push(SignersChange::Renamed { before, after });
                }
            }
        }
        [joined, left, changed, renamed].concat()
    }

    fn list_registrars(&self) -> Vec<SignersChange> {
        let mut changes = Vec::new();
        for after in self.proposed.registrars() {
            match self.current.registrars().iter().find(|before| before.key == after.key) {
                None => changes.push(SignersChange::RegistrarJoined(after.clone())),
                Some(before) if before.name != after.name => {
                    changes.push(SignersChange::Renamed { before: before.clone(), after: after.clone() });
                }
                Some(_) => {}
            }
        }
        let left =
            self.current.registrars().iter().filter(|before| !self.proposed.has_registrar(&before.key));
        changes.extend(left.cloned().map(SignersChange::RegistrarLeft));
        changes
    }

    fn list_group_changes(&self, role: Role) -> Vec<SignersChange> {
        let [before, after] = [self.current, self.proposed].map(|file| file.explicit_groups(role));
        match (before, after) {
            (None, None) => Vec::new(),
            (None, Some(groups)) => {
                vec![SignersChange::RoleListed { role, groups: self.name_groups(groups) }]
            }
            (Some(groups), None) => {
                vec![SignersChange::RoleUnlisted { role, groups: self.name_groups(groups) }]
            }
            (Some(before), Some(after)) => {
                compare_groups(role, self.name_groups(before), self.name_groups(after))
            }
        }
    }

    /// The groups in an order that does not depend on the file's, with the names that the reader knows.
    fn name_groups(&self, groups: &[Group]) -> Vec<Group> {
        let name = |key: PublicKey| {
            if self.current.lists(&key) {
                self.current.named_signer(key)
            } else {
                self.proposed.named_signer(key)
            }
        };
        sort_groups(groups)
            .into_iter()
            .map(|(threshold, keys)| Group { threshold, signers: keys.into_iter().map(name).collect() })
            .collect()
    }
}

fn name_keys(file: &SignersFile) -> impl Iterator<Item = Signer> {
    let registrars = file.registrars().iter().map(|registrar| registrar.key);
    file.keys().into_iter().chain(registrars).map(|key| file.named_signer(key))
}

/// The roles of each key, by default or by name.
fn list_roles(file: &SignersFile) -> BTreeMap<PublicKey, BTreeSet<Role>> {
    let mut roles: BTreeMap<PublicKey, BTreeSet<Role>> = BTreeMap::new();
    for role in Role::ALL {
        for key in keys_of(&effective_groups(file, role)) {
            roles.entry(key).or_default().insert(role);
        }
    }
    roles
}

/// What groups mean, whatever their order and names.
fn sort_groups(groups: &[Group]) -> Vec<(usize, BTreeSet<PublicKey>)> {
    let mut sorted: Vec<_> = groups
        .iter()
        .map(|group| (group.threshold, group.signers.iter().map(|signer| signer.key).collect()))
        .collect();
    sorted.sort();
    sorted
}

fn compare_groups(role: Role, mut before: Vec<Group>, mut after: Vec<Group>) -> Vec<SignersChange> {
    let is_only = before.len() == 1 && after.len() == 1;
    before.retain(|group| match after.iter().position(|other| other == group) {
        Some(same) => {
            after.remove(same);
            false
        }
        None => true,
    });
    let nearest = pair_nearest(&before, &after);
    let [mut before, mut after] =
        [before, after].map(|groups| groups.into_iter().map(Some).collect::<Vec<Option<Group>>>());
    let mut changes = Vec::new();
    for (b, a) in nearest {
        // Each is taken once, by the pair that is nearest.
        if after[a].is_some()
            && let Some(before) = before[b].take()
            && let Some(after) = after[a].take()
        {
            changes.push(SignersChange::GroupChanged(GroupChange { role, before, after, is_only }));
        }
    }
    changes.extend(before.into_iter().flatten().map(|group| SignersChange::GroupRemoved { role, group }));
    changes.extend(after.into_iter().flatten().map(|group| SignersChange::GroupAdded { role, group }));
    changes
}

/// Pairs the groups that have the most keys in common: no file says which group has become which.
fn pair_nearest(before: &[Group], after: &[Group]) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for (b, old) in before.iter().enumerate() {
        let keys: BTreeSet<PublicKey> = old.signers.iter().map(|signer| signer.key).collect();
        for (a, new) in after.iter().enumerate() {
            let common = new.signers.iter().filter(|signer| keys.contains(&signer.key)).count();
            if common > 0 {
                pairs.push((Reverse(common), old.signers.len() + new.signers.len(), b, a));
            }
        }
    }
    pairs.sort();
    pairs.into_iter().map(|(_, _, b, a)| (b, a)).collect()
}

// The changes in sentences.

impl fmt::Display for SignersChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RegistrarJoined(signer) => {
                write!(
                    f,
                    "{} becomes a registrar: it can register new releases, and nothing else",
                    shown_signer(signer)
                )
            }
            Self::RegistrarLeft(signer) => write!(f, "{} is no longer a registrar", shown_signer(signer)),
            Self::KeyFormat(signer) => {
                write!(f, "{} {}", shown_signer(signer), key_format_words(signer.format))
            }
            Self::Delay { before, after } => write_delay(f, *before, *after),
            Self::RebuiltFiles { files, is_narrower: false } => {
                write!(f, "builders make {}", rebuilt_files_text(files))
            }
            Self::RebuiltFiles { files, is_narrower: true } => {
                write!(f, "WEAKER: builders make only {}", rebuilt_files_text(files))
            }
            Self::RebuildsRequired(true) => {
                f.write_str("clients refuse new releases until builders have reproduced them")
            }
            Self::RebuildsRequired(false) => {
                f.write_str("WEAKER: clients accept new releases that no one has reproduced")
            }
            Self::Servers(servers) if servers.is_empty() => f.write_str("the file names no servers"),
            Self::Servers(servers) => write!(f, "servers: {}", servers.join(", ")),
            Self::Formats(formats) if formats.is_empty() => {
                f.write_str("artifact signers are asked for no other formats")
            }
            Self::Formats(formats) => {
                let names: Vec<_> = formats.iter().map(|format| format.name()).collect();
                write!(f, "artifact signers are asked to sign for {} as well", names.join(", "))
            }
            Self::Founded { role, groups: Some(groups) } => write!(f, "{role}: {}", shown_groups(groups)),
            Self::Founded { role, groups: None } => write!(f, "no {role}: {}", default_of(*role)),
            Self::NameMoved { from, to } => write!(
                f,
                "WARNING: a name now stands for another key: it was {}, and is to be {}",
                shown_signer(from),
                shown_signer(to)
            ),
            Self::Weakened { role, before, after } => {
                let is_certain = before.is_exact() && after.is_exact();
                let mark = if is_certain { "WEAKER" } else { "PERHAPS WEAKER" };
                write!(f, "{mark}: {after} can {}; before, it took {before}", power_of(*role))
            }
            Self::Joined { signer, roles } => {
                write!(f, "{} joins as {}", shown_signer(signer), role_titles(roles))
            }
            Self::Left { signer, roles } => {
                write!(f, "{} leaves, and was {}", shown_signer(signer), role_titles(roles))
            }
            Self::RolesChanged { signer, gained, lost } => {
                write!(f, "{} stays", shown_signer(signer))?;
                if !gained.is_empty() {
                    write!(f, ", becomes {}", role_titles(gained))?;
                }
                if !lost.is_empty() {
                    write!(f, ", is no longer {}", role_titles(lost))?;
                }
                Ok(())
            }
            Self::Renamed { before, after } => write_renamed(f, before, after),
            Self::GroupChanged(change) => change.fmt(f),
            Self::Log(change) => change.fmt(f),
            Self::GroupAdded { role, group } => {
                write!(f, "{role}: one more group must agree, {}", shown_group(group))
            }
            Self::GroupRemoved { role, group } => {
                write!(f, "{role}: a group need no longer agree, {}", shown_group(group))
            }
            Self::RoleListed { role, groups } => {
                let (default, groups) = (default_of(*role), shown_groups(groups));
                write!(f, "{role} are listed, and it no longer holds that {default}; {groups}")
            }
            Self::RoleUnlisted { role, groups } => {
                let (default, groups) = (default_of(*role), shown_groups(groups));
                let mark = if self.is_alarming() { "WEAKER: " } else { "" };
                write!(f, "{mark}{role} are no longer listed, so that {default}; they were {groups}")
            }
        }
    }
}

impl fmt::Display for GroupChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { role, before, after, is_only } = self;
        write!(f, "{role}")?;
        if !is_only {
            write!(f, ", the group of {}", shown_signers(&self.stayed()))?;
        }
        let [was, is] = [before, after].map(|group| rule_text(group.threshold, group.signers.len()));
        let verb = if was == is { "stays" } else { "becomes" };
        write!(f, ": {was} {verb} {is}")?;
        for (verb, signers) in [("adds", self.came()), ("removes", self.went())] {
            if !signers.is_empty() {
                write!(f, "; {verb} {}", shown_signers(&signers))?;
            }
        }
        Ok(())
    }
}

fn write_delay(f: &mut fmt::Formatter<'_>, before: Option<u64>, after: Option<u64>) -> fmt::Result {
    match (before.map(shown_hours), after.map(shown_hours)) {
        (None, None) => f.write_str("rotations do not wait"),
        (None, Some(hours)) => {
            write!(f, "rotations wait {hours} from then on, unless the masters agree, who can veto meanwhile")
        }
        (Some(hours), None) => {
            write!(f, "WEAKER: rotations take effect at once; before, they waited {hours}")
        }
        (Some(waited), Some(wait)) => {
            let mark = if after < before { "WEAKER: " } else { "" };
            write!(f, "{mark}rotations wait {wait}; before, they waited {waited}")
        }
    }
}

fn write_renamed(f: &mut fmt::Formatter<'_>, before: &Signer, after: &Signer) -> fmt::Result {
    match (&before.name, &after.name) {
        (None, _) => write!(f, "{} gets a name: {}", before.key, shown_signer(after)),
        (Some(_), None) => write!(f, "{} loses its name", shown_signer(before)),
        (Some(_), Some(_)) => {
            write!(f, "{} gets another name: {}", shown_signer(before), shown_signer(after))
        }
    }
}

fn power_of(role: Role) -> &'static str {
    match role {
        Role::Artifact => "release",
        Role::Admin => "rotate the signers as admins",
        Role::Master => "rotate the signers as masters",
        Role::Revocation => "revoke",
        Role::Builder => "call a release reproduced",
    }
}

/// What holds where the file does not list the role (D8).
fn default_of(role: Role) -> &'static str {
    match role {
        Role::Artifact => "no one releases",
        Role::Admin => "the artifact signers are the admins",
        Role::Master => "no one is master",
        Role::Revocation => "any one admin key revokes",
        Role::Builder => "no one builds releases anew",
    }
}
