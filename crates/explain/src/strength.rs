//! What a signers file withstands (D8, D15, D20): how many keys may be stolen, and how many lost.

use std::{borrow::Cow, cmp::Reverse, collections::BTreeMap, collections::BTreeSet, fmt};

use countersign_core::documents::signers::{Group, Role, Signer, SignersFile, keys_of};
use countersign_core::{rules::quorum, values::key::PublicKey, values::other_format::OtherFormat};
use thiserror::Error;

use crate::log_strength::{LogStrength, LogWarning};
use crate::words::{any_text, shown_groups, shown_signers};

/// How many entries of groups a search looks at before it settles for bounds: a fraction of a second.
const MAX_SEARCH_WORK: usize = 1_000_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strength {
    pub release: ActStrength,
    pub rotate: ActStrength,
    pub revoke: ActStrength,
    /// The strength of the builders, if the file names any.
    pub reproduce: Option<ActStrength>,
    /// The strength of the log, if the file names one.
    pub log: Option<LogStrength>,
    pub warnings: Vec<Warning>,
}

/// An act that keys can do together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    Release,
    Rotate,
    Revoke,
    /// What builders do together. They have no other power (D259).
    Reproduce,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActStrength {
    pub act: Act,
    /// The ways to act, any one of which is enough.
    pub ways: Vec<Way>,
    /// The keys that can act alone.
    pub alone: Vec<Signer>,
    /// The fewest keys that can act.
    pub needed: KeyCount,
    /// How many keys, any of them, do not meet the thresholds of this act. Never too high, even where `needed` is not
    /// exact. It says nothing of a thief who first rotates: `Warning::RotationIsEasier` does.
    pub harmless_thefts: usize,
    /// How many keys can be lost, any of them, while the others can still act.
    pub survivable_losses: usize,
}

/// Groups that must all agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    pub role: Role,
    /// Whether the file lists the role. Otherwise another one stands in for it.
    pub is_explicit: bool,
    pub groups: Vec<Group>,
}

/// A number of keys, between bounds that differ only where groups overlap in too many ways to try them all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyCount {
    pub at_least: usize,
    pub at_most: usize,
}

/// What a signers file does not withstand; `Display` says it in a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Warning {
    /// Each of these keys releases, rotates or reproduces alone. Revoking alone is as intended (D20).
    #[error("one stolen key is enough to {}: {}", .0, shown_signers(.1))]
    OneKeyIsEnough(Act, Vec<Signer>),
    /// Rotating takes fewer keys than releasing, and a rotation decides who releases.
    #[error("those who rotate the signers decide who releases; that takes {rotate}, not {release}")]
    RotationIsEasier { rotate: KeyCount, release: KeyCount },
    /// Losing any of these keys stops the act; `for_ever` if, for some of them, no rotation helps.
    #[error(
        "one lost key makes it impossible to {act}, {}: {}",
        if *for_ever { "for ever" } else { "until the signers are rotated" }, shown_signers(keys)
    )]
    OneLossBlocks { act: Act, keys: Vec<Signer>, for_ever: bool },
    /// Losing any of these builders' keys keeps new releases from being reproduced, and clients refuse them until then.
    #[error(
        "one lost key keeps new releases from being reproduced, so clients refuse them until the signers are rotated: {}",
        shown_signers(.0)
    )]
    OneLossRefusesReleases(Vec<Signer>),
    /// These keys release and administrate: stealing one is a step towards both.
    #[error("not independent, both artifact signer and admin: {}", shown_signers(.0))]
    NotIndependent(Vec<Signer>),
    #[error("there are no master keys: if the admins lose their keys, nothing can be rotated")]
    NoMasterKeys,
    /// Rotations wait, and no one can veto them meanwhile (D130).
    #[error("rotations wait, but without master keys no one can veto one meanwhile")]
    NoVeto,
    /// Keys that people have to recognise by their letters alone.
    #[error("without a name: {}", shown_keys(.0))]
    NoNames(Vec<PublicKey>),
    /// Signers are asked for this format, and in a group too few of them have a key that can sign so.
    #[error(
        "FIDO keys cannot sign for {format}: {able} of the {} keys in a group that needs {} can, so no export for \
         {format} will have enough", group.signers.len(), group.threshold
    )]
    FormatOutOfReach { format: OtherFormat, group: Group, able: usize },
    /// A warning about the log and its witnesses.
    #[error(transparent)]
    Log(LogWarning),
}

impl Act {
    const ALL: [Self; 4] = [Self::Release, Self::Rotate, Self::Revoke, Self::Reproduce];

    /// Lists the acts that a file knows. Without builders no one reproduces.
    pub fn of(file: &SignersFile) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|act| act.ways(file).next().is_some())
    }

    /// The ways to act under a file, any one of which is enough: roles and the groups that speak for them.
    pub(crate) fn ways(self, file: &SignersFile) -> impl Iterator<Item = (Role, Cow<'_, [Group]>)> {
        let roles: &[Role] = match self {
            Self::Release => &[Role::Artifact],
            Self::Rotate => &[Role::Admin, Role::Master],
            Self::Revoke => &[Role::Revocation],
            Self::Reproduce => &[Role::Builder],
        };
        roles.iter().map(|role| (*role, groups_of(file, *role))).filter(|(_, groups)| !groups.is_empty())
    }
}

pub fn assess(file: &SignersFile) -> Strength {
    let mut strength = Strength {
        release: assess_act(file, Act::Release),
        rotate: assess_act(file, Act::Rotate),
        revoke: assess_act(file, Act::Revoke),
        reproduce: file.rebuilds().map(|_| assess_act(file, Act::Reproduce)),
        log: file.transparency().map(LogStrength::of),
        warnings: Vec::new(),
    };
    strength.warnings = collect_warnings(file, &strength);
    strength.warnings.extend(strength.log.iter().flat_map(LogStrength::list_warnings).map(Warning::Log));
    strength
}

/// The groups that speak for a role, with the defaults of D8. Where any one admin key may revoke (D20), that is one
/// group of them all. Empty for masters where there are none.
pub fn effective_groups(file: &SignersFile, role: Role) -> Vec<Group> {
    let mut groups = groups_of(file, role).into_owned();
    for signer in groups.iter_mut().flat_map(|group| &mut group.signers) {
        *signer = file.named_signer(signer.key);
    }
    groups
}

fn groups_of(file: &SignersFile, role: Role) -> Cow<'_, [Group]> {
    match role {
        Role::Artifact => file.artifact_groups().into(),
        Role::Admin => file.admin_groups().into(),
        Role::Master => file.master_groups().into(),
        Role::Revocation => file.revocation_groups(),
        Role::Builder => file.builder_groups().into(),
    }
}

/// The fewest keys that meet all groups; `None` if not even all keys do.
pub fn count_needed(groups: &[Group]) -> Option<KeyCount> {
    let classes = classify_keys(groups);
    let small = find_small_set(groups, &classes);
    if !quorum::is_met(groups, &small) {
        return None;
    }
    let mut count = KeyCount { at_least: bound_from_below(groups), at_most: small.len() };
    let mut search = Search { groups, steps_left: MAX_SEARCH_WORK / keys_of(groups).count().max(1) };
    while !count.is_exact() {
        match search.can_meet(&classes, count.at_least, &mut BTreeSet::new()) {
            Ok(true) => count.at_most = count.at_least,
            Ok(false) => count.at_least += 1,
            Err(OutOfWork) => break,
        }
    }
    Some(count)
}

impl KeyCount {
    pub fn is_exact(&self) -> bool {
        self.at_least == self.at_most
    }
}

impl Strength {
    pub fn acts(&self) -> impl Iterator<Item = &ActStrength> {
        [&self.release, &self.rotate, &self.revoke].into_iter().chain(&self.reproduce)
    }
}

impl ActStrength {
    /// Whether these keys can act together.
    pub fn is_met(&self, keys: &BTreeSet<PublicKey>) -> bool {
        self.ways.iter().any(|way| quorum::is_met(&way.groups, keys))
    }

    /// The keys each of which, when lost, stops everyone else.
    fn indispensable_keys(&self) -> BTreeSet<PublicKey> {
        // Trying them all takes long in a large file, and is in vain where the worst loss of one is survived.
        if self.survivable_losses > 0 {
            return BTreeSet::new();
        }
        let all = self.keys();
        let without = |key: &PublicKey| all.iter().copied().filter(|other| other != key).collect();
        all.iter().copied().filter(|key| !self.is_met(&without(key))).collect()
    }

    fn keys(&self) -> BTreeSet<PublicKey> {
        self.ways.iter().flat_map(|way| keys_of(&way.groups)).collect()
    }
}

fn assess_act(file: &SignersFile, act: Act) -> ActStrength {
    let open_way = |(role, _)| Way {
        role,
        is_explicit: file.explicit_groups(role).is_some(),
        groups: effective_groups(file, role),
    };
    let ways: Vec<Way> = act.ways(file).map(open_way).collect();
    let counts: Vec<KeyCount> = ways.iter().filter_map(|way| count_needed(&way.groups)).collect();
    // The easiest way counts. Bounds of a minimum are the minima of the bounds.
    let at_least = counts.iter().map(|count| count.at_least).min().unwrap_or_default();
    let at_most = counts.iter().map(|count| count.at_most).min().unwrap_or_default();
    let mut strength = ActStrength {
        act,
        alone: Vec::new(),
        needed: KeyCount { at_least, at_most },
        harmless_thefts: at_least.saturating_sub(1),
        survivable_losses: count_spare(ways.iter().map(|way| &way.groups), &BTreeSet::new())
            .unwrap_or_default(),
        ways,
    };
    if at_least <= 1 {
        let is_enough = |key: &PublicKey| strength.is_met(&BTreeSet::from([*key]));
        strength.alone =
            strength.keys().into_iter().filter(is_enough).map(|key| file.named_signer(key)).collect();
    }
    strength
}

/// How many keys can be lost besides those that are gone, any of them, before no way is open; `None` if none is. Losses
/// stop a way in its tightest group. With several ways, each has to be stopped; no loss counts in two of them, since a
/// master key has no other role (D8).
pub(crate) fn count_spare(
    ways: impl IntoIterator<Item = impl AsRef<[Group]>>,
    gone: &BTreeSet<PublicKey>,
) -> Option<usize> {
    let spare_of = |group: &Group| {
        let left = group.signers.iter().filter(|signer| !gone.contains(&signer.key)).count();
        left.checked_sub(group.threshold)
    };
    let open = ways.into_iter().filter_map(|groups| {
        groups.as_ref().iter().map(spare_of).try_fold(usize::MAX, |least, spare| Some(least.min(spare?)))
    });
    let to_stop: usize = open.map(|spare| spare + 1).sum();
    to_stop.checked_sub(1)
}

fn collect_warnings(file: &SignersFile, strength: &Strength) -> Vec<Warning> {
    let Strength { release, rotate, reproduce, .. } = strength;
    let name =
        |keys: BTreeSet<PublicKey>| keys.into_iter().map(|key| file.named_signer(key)).collect::<Vec<_>>();
    let mut warnings = Vec::new();
    for act in [release, rotate].into_iter().chain(reproduce).filter(|act| !act.alone.is_empty()) {
        warnings.push(Warning::OneKeyIsEnough(act.act, act.alone.clone()));
    }
    if rotate.needed != release.needed && rotate.needed.at_least < release.needed.at_most {
        warnings.push(Warning::RotationIsEasier { rotate: rotate.needed, release: release.needed });
    }
    let stops_rotation = rotate.indispensable_keys();
    let is_required = file.rebuilds().is_some_and(|rebuilds| rebuilds.required);
    for act in strength.acts() {
        let keys = act.indispensable_keys();
        if keys.is_empty() {
            continue;
        }
        let for_ever = !keys.is_disjoint(&stops_rotation);
        warnings.push(match act.act {
            Act::Reproduce if is_required => Warning::OneLossRefusesReleases(name(keys)),
            act => Warning::OneLossBlocks { act, keys: name(keys), for_ever },
        });
    }
    let artifact: BTreeSet<PublicKey> = keys_of(file.artifact_groups()).collect();
    let both: BTreeSet<PublicKey> =
        keys_of(file.admin_groups()).filter(|key| artifact.contains(key)).collect();
    // Where there are no admin keys, the artifact signers are the admins, as everyone expects.
    if file.explicit_groups(Role::Admin).is_some() && !both.is_empty() {
        warnings.push(Warning::NotIndependent(name(both)));
    }
    if file.explicit_groups(Role::Master).is_none() {
        warnings.push(Warning::NoMasterKeys);
        if file.rotation_delay().is_some() {
            warnings.push(Warning::NoVeto);
        }
    }
    let nameless: Vec<PublicKey> =
        file.keys().into_iter().filter(|key| file.named_signer(*key).name.is_none()).collect();
    if !nameless.is_empty() {
        warnings.push(Warning::NoNames(nameless));
    }
    for (format, group) in file
        .formats()
        .iter()
        .flat_map(|format| file.artifact_groups().iter().map(move |group| (*format, group)))
    {
        let able = group.signers.iter().filter(|signer| format.is_for(signer.format)).count();
        if able < group.threshold {
            warnings.push(Warning::FormatOutOfReach { format, group: group.clone(), able });
        }
    }
    warnings
}

/// Groups that share no key must each be met by keys of their own; small ones leave room for more of them.
fn bound_from_below(groups: &[Group]) -> usize {
    let mut by_size: Vec<&Group> = groups.iter().collect();
    by_size.sort_by_key(|group| group.signers.len());
    let (mut seen, mut bound) = (BTreeSet::new(), 0);
    for group in by_size {
        if group.signers.iter().all(|signer| !seen.contains(&signer.key)) {
            seen.extend(group.signers.iter().map(|signer| signer.key));
            bound += group.threshold;
        }
    }
    groups.iter().map(|group| group.threshold).fold(bound, usize::max)
}

/// The keys by the groups that they are in, most groups first. Keys of one class can stand for one another.
fn classify_keys(groups: &[Group]) -> Vec<Vec<PublicKey>> {
    let mut memberships: BTreeMap<PublicKey, BTreeSet<usize>> = BTreeMap::new();
    for (i, group) in groups.iter().enumerate() {
        for signer in &group.signers {
            memberships.entry(signer.key).or_default().insert(i);
        }
    }
    let mut classes: BTreeMap<_, Vec<PublicKey>> = BTreeMap::new();
    for (key, memberships) in memberships {
        classes.entry((Reverse(memberships.len()), memberships)).or_default().push(key);
    }
    classes.into_values().collect()
}

/// A set that meets the groups and has no key too many, though another one may be smaller.
fn find_small_set(groups: &[Group], classes: &[Vec<PublicKey>]) -> BTreeSet<PublicKey> {
    let in_order = || classes.iter().flatten().copied();
    let mut set = BTreeSet::new();
    for group in groups {
        set.extend(in_order().filter(|key| group.contains(key)).take(group.threshold));
    }
    for key in in_order().rev() {
        if set.remove(&key) && !quorum::is_met(groups, &set) {
            set.insert(key);
        }
    }
    set
}

struct Search<'a> {
    groups: &'a [Group],
    steps_left: usize,
}

struct OutOfWork;

impl Search<'_> {
    /// Whether `missing` keys of these classes, together with those that are chosen, can meet the groups.
    fn can_meet(
        &mut self,
        classes: &[Vec<PublicKey>],
        missing: usize,
        chosen: &mut BTreeSet<PublicKey>,
    ) -> Result<bool, OutOfWork> {
        self.steps_left = self.steps_left.checked_sub(1).ok_or(OutOfWork)?;
        if missing == 0 {
            return Ok(quorum::is_met(self.groups, chosen));
        }
        let Some((class, rest)) = classes.split_first() else { return Ok(false) };
        let mut taken: Vec<PublicKey> = class.iter().copied().take(missing).collect();
        chosen.extend(&taken);
        loop {
            if self.can_meet(rest, missing - taken.len(), chosen)? {
                return Ok(true);
            }
            match taken.pop() {
                Some(key) => chosen.remove(&key),
                None => return Ok(false),
            };
        }
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Release => "release",
            Self::Rotate => "rotate the signers",
            Self::Revoke => "revoke",
            Self::Reproduce => "call a release reproduced",
        })
    }
}

impl fmt::Display for KeyCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.at_least, self.at_most) {
            (1, 1) => f.write_str("1 key"),
            (n, m) if n == m => write!(f, "{n} keys"),
            (n, m) => write!(f, "between {n} and {m} keys"),
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.role, self.is_explicit) {
            (Role::Admin, false) => f.write_str("artifact signers (there are no admin keys)")?,
            (Role::Revocation, false) => f.write_str("admin keys (there are no revocation keys)")?,
            (role @ (Role::Artifact | Role::Master | Role::Builder), false) | (role, true) => {
                write!(f, "{role}")?
            }
        }
        write!(f, ", {}", shown_groups(&self.groups))
    }
}

/// Says the strength in several lines, without a newline at the end.
impl fmt::Display for ActStrength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "To {}:", self.act)?;
        self.ways.iter().try_for_each(|way| writeln!(f, "  {way}"))?;
        match self.alone.as_slice() {
            [] => writeln!(f, "  alone: no one")?,
            alone => writeln!(f, "  alone: {}", shown_signers(alone))?,
        }
        writeln!(f, "  stolen keys that do not suffice: {}", any_text(self.harmless_thefts))?;
        write!(f, "  lost keys that do not prevent it: {}", any_text(self.survivable_losses))
    }
}

fn shown_keys(keys: &[PublicKey]) -> String {
    keys.iter().map(PublicKey::to_string).collect::<Vec<_>>().join(", ")
}
