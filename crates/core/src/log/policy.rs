//! Policies (c2sp.org/tlog-policy): which logs and witnesses count, and how many of them (D85). Comments that begin with
//! `#countersign` say what the form has no word for (D215); other tools skip them.

use std::{collections::BTreeMap, collections::BTreeSet, fmt, time::Duration};

use thiserror::Error;

use crate::documents::transparency::{MAX_AGES, WitnessGroup};
use crate::values::bounds::{POLICY_BYTES, POLICY_ENTRIES};
use crate::values::verifier_key::{KeyKind, VerifierKey, VerifierKeyError};
use crate::values::{shown::quoted, time::parse_span};
use crate::{log::note::parse_plain, rules::quorum};

/// The name that stands for "no cosignature is needed".
const NONE: &str = "none";
/// The first word of a comment that is for us.
const OWN: &str = "#countersign";

/// Which logs are believed, and which witnesses must have cosigned. No key occurs twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    logs: Vec<PolicyLog>,
    witnesses: Vec<PolicyWitness>,
    groups: Vec<PolicyGroup>,
    quorum: String,
    /// The quorum; `None` if no cosignature is needed.
    tree: Option<QuorumTree>,
    max_age: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyLog {
    pub key: VerifierKey,
    pub url: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyWitness {
    /// The name in this policy only; the name under which it signs is its key's.
    pub name: String,
    pub key: VerifierKey,
    pub url: Option<String>,
    /// Whether the policy says that it replays the rules (D213).
    pub replays: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PolicyGroup {
    name: String,
    threshold: usize,
    members: Vec<String>,
}

/// An error in a policy. Line 0 stands for the whole policy.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}{fault}", if *.line == 0 { String::new() } else { format!("line {line} of the policy: ") })]
pub struct PolicyError {
    pub line: usize,
    pub fault: PolicyFault,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PolicyFault {
    #[error("a policy has at most {POLICY_BYTES} bytes")]
    TooLarge,
    #[error("a policy has at most {POLICY_ENTRIES} logs, witnesses, or groups")]
    TooMany,
    #[error("a policy is UTF-8 without control characters")]
    NotText,
    #[error(
        "a line is `log KEY [URL]`, `witness NAME KEY [URL]`, `group NAME all|any|COUNT MEMBER…` or `quorum NAME`"
    )]
    Form,
    #[error("{0}")]
    Key(#[from] VerifierKeyError),
    #[error("the key of {} occurs twice; each log and each witness needs a key of its own", quoted(.0))]
    KeyTwice(String),
    #[error("the name {} is taken", quoted(.0))]
    NameTaken(String),
    #[error("the name {} is not defined above", quoted(.0))]
    Unknown(String),
    #[error("{} is a member already, and can count only once", quoted(.0))]
    MemberTwice(String),
    #[error("the witness {} counts in another group already; all of its keys belong into one group", quoted(.0))]
    WitnessTwice(String),
    #[error("the count must be between 1 and {0}, the number of members; the keys of one witness count once")]
    Threshold(usize),
    #[error("a policy has exactly one line `quorum`")]
    Quorum,
    #[error("a line of ours is `#countersign replaying NAME…` or `#countersign max-age TIME`")]
    OwnForm,
    #[error("{} is not a witness that is defined above", quoted(.0))]
    NotAWitness(String),
    #[error("a maximum age is one time from 60s to 3650d, as in 90m, 24h or 7d")]
    Age,
}

impl Policy {
    pub fn parse(bytes: &[u8]) -> Result<Self, PolicyError> {
        let whole = |fault| PolicyError { line: 0, fault };
        if bytes.len() > POLICY_BYTES {
            return Err(whole(PolicyFault::TooLarge));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| whole(PolicyFault::NotText))?;
        let mut reader = PolicyReader::default();
        for (number, line) in (1..).zip(text.split('\n')) {
            reader.read(line).map_err(|fault| PolicyError { line: number, fault })?;
        }
        reader.finish().map_err(whole)
    }

    /// A policy of one log, and groups of witnesses that must all reach their thresholds: the form of a signers file.
    pub fn of_groups(log: VerifierKey, groups: &[WitnessGroup]) -> Result<Self, PolicyFault> {
        let mut reader = PolicyReader::default();
        reader.add_log(log, None)?;
        let mut names = Vec::new();
        for (number, group) in (1..).zip(groups) {
            let WitnessGroup { threshold, keys, .. } = group;
            let members: Vec<String> = keys.iter().map(VerifierKey::short).collect();
            for (name, key) in members.iter().zip(keys) {
                reader.add_witness(name, key.clone(), None)?;
            }
            let replaying = keys.iter().filter(|key| group.replays(key));
            reader.mark_replaying(&replaying.map(VerifierKey::short).collect::<Vec<_>>())?;
            names.push(format!("group-{number}"));
            reader.add_group(&format!("group-{number}"), *threshold, &members)?;
        }
        match names.as_slice() {
            [] => reader.set_quorum(NONE)?,
            [only] => reader.set_quorum(only)?,
            [..] => {
                reader.add_group("all-groups", names.len(), &names)?;
                reader.set_quorum("all-groups")?;
            }
        }
        reader.finish()
    }

    pub fn logs(&self) -> &[PolicyLog] {
        &self.logs
    }

    pub fn witnesses(&self) -> &[PolicyWitness] {
        &self.witnesses
    }

    pub fn log_keys(&self) -> Vec<VerifierKey> {
        self.logs.iter().map(|log| log.key.clone()).collect()
    }

    pub fn witness_keys(&self) -> Vec<VerifierKey> {
        self.witnesses.iter().map(|witness| witness.key.clone()).collect()
    }

    /// The keys of the witness of this name.
    pub fn keys_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a VerifierKey> {
        self.witnesses.iter().map(|witness| &witness.key).filter(move |key| key.name() == name)
    }

    /// Whether these keys are enough. However many keys of a witness are there, it counts once.
    pub fn is_met(&self, cosigned: &BTreeSet<VerifierKey>) -> bool {
        self.tree.as_ref().is_none_or(|tree| tree.is_met(cosigned))
    }

    /// The latest time at which enough witnesses had seen this as the newest state: the largest T such that the
    /// cosignatures of time ≥ T meet the quorum. `None` if they do not, or if none is needed.
    pub fn as_of(&self, cosignatures: impl IntoIterator<Item = (VerifierKey, u64)>) -> Option<u64> {
        let tree = self.tree.as_ref()?;
        let mut newest_first: Vec<(u64, VerifierKey)> =
            cosignatures.into_iter().map(|(key, time)| (time, key)).collect();
        newest_first.sort_unstable_by(|a, b| b.cmp(a));
        let mut cosigned = BTreeSet::new();
        newest_first.into_iter().find_map(|(time, key)| {
            cosigned.insert(key);
            tree.is_met(&cosigned).then_some(time)
        })
    }

    /// The witnesses that count for the quorum, each with its keys. A policy can name other witnesses too.
    pub fn quorum_witnesses(&self) -> Vec<&BTreeSet<VerifierKey>> {
        self.tree.as_ref().map(QuorumTree::witnesses).unwrap_or_default()
    }

    /// The keys of witnesses that replay the rules, by the word of the policy.
    pub fn replaying_keys(&self) -> BTreeSet<VerifierKey> {
        let replaying = self.witnesses.iter().filter(|witness| witness.replays);
        replaying.map(|witness| witness.key.clone()).collect()
    }

    /// How old a proof can be, if the policy says so.
    pub fn max_age(&self) -> Option<Duration> {
        self.max_age
    }

    /// The quorum in words, as in `2 of a, b, c`; `None` if it needs no witness.
    pub fn quorum_text(&self) -> Option<String> {
        self.tree.as_ref().map(|_| self.name_text(&self.quorum, false))
    }

    fn name_text(&self, name: &str, is_member: bool) -> String {
        let Some(group) = self.groups.iter().find(|group| group.name == name) else { return name.to_owned() };
        let members: Vec<_> = group.members.iter().map(|member| self.name_text(member, true)).collect();
        let text = format!("{} of {}", group.threshold, members.join(", "));
        if is_member { format!("({text})") } else { text }
    }

    /// What the quorum withstands; `None` if it needs no witness.
    pub fn tolerance(&self) -> Option<Tolerance> {
        self.tree.as_ref().map(|tree| tree.tolerance(&self.replaying_keys()))
    }
}

/// Writes the policy as a file, in which every name stands above where it is used.
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let after = |url: &Option<String>| url.as_ref().map(|url| format!(" {url}")).unwrap_or_default();
        for PolicyLog { key, url } in &self.logs {
            writeln!(f, "log {key}{}", after(url))?;
        }
        for PolicyWitness { name, key, url, .. } in &self.witnesses {
            writeln!(f, "witness {name} {key}{}", after(url))?;
        }
        for witness in self.witnesses.iter().filter(|witness| witness.replays) {
            writeln!(f, "{OWN} replaying {}", witness.name)?;
        }
        if let Some(age) = self.max_age {
            writeln!(f, "{OWN} max-age {}s", age.as_secs())?;
        }
        for PolicyGroup { name, threshold, members } in &self.groups {
            writeln!(f, "group {name} {threshold} {}", members.join(" "))?;
        }
        writeln!(f, "quorum {}", self.quorum)
    }
}

/// A policy in the making.
#[derive(Default)]
struct PolicyReader {
    logs: Vec<PolicyLog>,
    witnesses: Vec<PolicyWitness>,
    groups: Vec<PolicyGroup>,
    quorum: Option<PolicyQuorum>,
    defined: BTreeMap<String, QuorumTree>,
    members: BTreeSet<String>,
    /// The group in which each witness counts, by the name of its keys.
    counted: BTreeMap<String, String>,
    /// The keys alone: one under two names would be two witnesses.
    keys: BTreeSet<Vec<u8>>,
    /// Names and ids as they stand in signatures. Two keys with both alike could not be told apart there.
    ids: BTreeSet<String>,
    max_age: Option<Duration>,
}

struct PolicyQuorum {
    name: String,
    /// The quorum; `None` for the name [`NONE`].
    tree: Option<QuorumTree>,
}

impl PolicyReader {
    fn read(&mut self, line: &str) -> Result<(), PolicyFault> {
        if line.bytes().any(|byte| (byte < b' ' && byte != b'\t') || byte == 0x7f) {
            return Err(PolicyFault::NotText);
        }
        let words: Vec<&str> = line.split([' ', '\t']).filter(|word| !word.is_empty()).collect();
        match words.as_slice() {
            [] => Ok(()),
            [OWN, "replaying", names @ ..] if !names.is_empty() => self.mark_replaying(names),
            [OWN, "max-age", age] => self.set_max_age(age),
            [OWN, ..] => Err(PolicyFault::OwnForm),
            [first, ..] if first.starts_with('#') => Ok(()),
            ["log", key, url @ ..] => {
                self.add_log(VerifierKey::parse_kind(key, KeyKind::Log)?, parse_url(url)?)
            }
            ["witness", name, key, url @ ..] => {
                self.add_witness(name, VerifierKey::parse_kind(key, KeyKind::Witness)?, parse_url(url)?)
            }
            ["group", name, threshold, members @ ..] => {
                let members: Vec<String> = members.iter().map(|name| (*name).to_owned()).collect();
                let threshold = match *threshold {
                    "all" => members.len(),
                    "any" => 1,
                    count => parse_plain(count).ok_or(PolicyFault::Form)?,
                };
                self.add_group(name, threshold, &members)
            }
            ["quorum", name] => self.set_quorum(name),
            [..] => Err(PolicyFault::Form),
        }
    }

    fn add_log(&mut self, key: VerifierKey, url: Option<String>) -> Result<(), PolicyFault> {
        self.add_key(&key)?;
        self.logs.push(PolicyLog { key, url });
        check_count(self.logs.len())
    }

    fn add_witness(&mut self, name: &str, key: VerifierKey, url: Option<String>) -> Result<(), PolicyFault> {
        self.add_key(&key)?;
        self.define(name, QuorumTree::Witness([key.clone()].into()))?;
        self.witnesses.push(PolicyWitness { name: name.to_owned(), key, url, replays: false });
        check_count(self.witnesses.len())
    }

    fn mark_replaying(&mut self, names: &[impl AsRef<str>]) -> Result<(), PolicyFault> {
        for name in names.iter().map(AsRef::as_ref) {
            let witness = self.witnesses.iter_mut().find(|witness| witness.name == name);
            witness.ok_or_else(|| PolicyFault::NotAWitness(name.to_owned()))?.replays = true;
        }
        Ok(())
    }

    fn set_max_age(&mut self, text: &str) -> Result<(), PolicyFault> {
        let age = parse_span(text).filter(|age| MAX_AGES.contains(&age.as_secs())).ok_or(PolicyFault::Age)?;
        if self.max_age.replace(age).is_some() { Err(PolicyFault::Age) } else { Ok(()) }
    }

    fn add_group(&mut self, name: &str, threshold: usize, members: &[String]) -> Result<(), PolicyFault> {
        let mut trees = Vec::new();
        for member in members {
            let tree = self.defined.get(member).ok_or_else(|| PolicyFault::Unknown(member.clone()))?;
            if !self.members.insert(member.clone()) {
                return Err(PolicyFault::MemberTwice(member.clone()));
            }
            if let Some(witness) = tree.witness_name() {
                let group = self.counted.entry(witness.to_owned()).or_insert_with(|| name.to_owned());
                if group != name {
                    return Err(PolicyFault::WitnessTwice(witness.to_owned()));
                }
            }
            add_member(&mut trees, tree.clone());
        }
        if threshold == 0 || threshold > trees.len() {
            return Err(PolicyFault::Threshold(trees.len()));
        }
        self.define(name, QuorumTree::Group { threshold, members: trees })?;
        self.groups.push(PolicyGroup { name: name.to_owned(), threshold, members: members.to_vec() });
        check_count(self.groups.len())
    }

    fn set_quorum(&mut self, name: &str) -> Result<(), PolicyFault> {
        let unknown = || PolicyFault::Unknown(name.to_owned());
        let tree =
            if name == NONE { None } else { Some(self.defined.get(name).cloned().ok_or_else(unknown)?) };
        match self.quorum.replace(PolicyQuorum { name: name.to_owned(), tree }) {
            None => Ok(()),
            Some(_) => Err(PolicyFault::Quorum),
        }
    }

    fn add_key(&mut self, key: &VerifierKey) -> Result<(), PolicyFault> {
        let is_new = self.keys.insert(key.bytes().to_vec()) && self.ids.insert(key.short());
        if is_new { Ok(()) } else { Err(PolicyFault::KeyTwice(key.name().to_owned())) }
    }

    fn define(&mut self, name: &str, tree: QuorumTree) -> Result<(), PolicyFault> {
        let is_new = name != NONE && self.defined.insert(name.to_owned(), tree).is_none();
        if is_new { Ok(()) } else { Err(PolicyFault::NameTaken(name.to_owned())) }
    }

    fn finish(self) -> Result<Policy, PolicyFault> {
        let Self { logs, witnesses, groups, quorum, max_age, .. } = self;
        let PolicyQuorum { name: quorum, tree } = quorum.ok_or(PolicyFault::Quorum)?;
        Ok(Policy { logs, witnesses, groups, quorum, tree, max_age })
    }
}

/// Adds a member to a group. The keys of one witness become one member, so that it counts once (D264).
fn add_member(members: &mut Vec<QuorumTree>, member: QuorumTree) {
    let same = members
        .iter_mut()
        .find(|known| known.witness_name().is_some_and(|name| member.witness_name() == Some(name)));
    match (same, member) {
        (Some(QuorumTree::Witness(known)), QuorumTree::Witness(keys)) => known.extend(keys),
        (_, member) => members.push(member),
    }
}

fn parse_url(words: &[&str]) -> Result<Option<String>, PolicyFault> {
    match words {
        [] => Ok(None),
        [url] => Ok(Some((*url).to_owned())),
        [..] => Err(PolicyFault::Form),
    }
}

fn check_count(count: usize) -> Result<(), PolicyFault> {
    if count > POLICY_ENTRIES { Err(PolicyFault::TooMany) } else { Ok(()) }
}

// How many witnesses are enough: a tree of groups, as policies define it (D85).

/// Each witness occurs once in a tree, which is why what follows is exact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuorumTree {
    /// The keys of one witness, any of which will do.
    Witness(BTreeSet<VerifierKey>),
    Group {
        threshold: usize,
        members: Vec<QuorumTree>,
    },
}

/// What a quorum needs and withstands, in witnesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tolerance {
    /// The number of all witnesses that count.
    pub witnesses: usize,
    /// The fewest witnesses that are enough.
    pub needed: usize,
    /// How many witnesses can be down, any of them, while the rest is still enough.
    pub may_be_down: usize,
    /// The fewest that must collude with the log, so that two views of it both have enough cosignatures. 0: the log alone
    /// can show two views.
    pub must_collude: usize,
    /// The fewest witnesses, all said to replay the rules, that must collude with the log, so that a state which its commits
    /// do not give has enough cosignatures. 0: the log alone can lie about the state.
    pub must_lie: usize,
}

impl QuorumTree {
    pub fn is_met(&self, cosigned: &BTreeSet<VerifierKey>) -> bool {
        match self {
            Self::Witness(keys) => !keys.is_disjoint(cosigned),
            Self::Group { threshold, members } => {
                quorum::is_reached(*threshold, members, |member| member.is_met(cosigned))
            }
        }
    }

    /// The witnesses, each with its keys.
    pub fn witnesses(&self) -> Vec<&BTreeSet<VerifierKey>> {
        match self {
            Self::Witness(keys) => vec![keys],
            Self::Group { members, .. } => members.iter().flat_map(Self::witnesses).collect(),
        }
    }

    /// The name of the witness; `None` for a group.
    fn witness_name(&self) -> Option<&str> {
        match self {
            Self::Witness(keys) => keys.first().map(VerifierKey::name),
            Self::Group { .. } => None,
        }
    }

    /// Computes what the quorum withstands. `replaying` are the keys of witnesses that replay the rules: a witness does if
    /// that is said of all its keys.
    pub fn tolerance(&self, replaying: &BTreeSet<VerifierKey>) -> Tolerance {
        let each = &|_: &BTreeSet<VerifierKey>| 1;
        Tolerance {
            witnesses: self.witnesses().len(),
            needed: self.sum_of_smallest(&|threshold, _| threshold, each),
            // A group is out of reach when so many members are that too few remain.
            may_be_down: self.sum_of_smallest(&|threshold, members| members - threshold + 1, each) - 1,
            // Two selections of members have at least so many in common.
            must_collude: self
                .sum_of_smallest(&|threshold, members| (2 * threshold).saturating_sub(members), each),
            // A witness that does not look at the commits cosigns a lie about them in good faith.
            must_lie: self
                .sum_of_smallest(&|threshold, _| threshold, &|keys| usize::from(keys.is_subset(replaying))),
        }
    }

    /// The fewest witnesses, each counted as `cost` says, if in each group as many members must be won as `count` says of
    /// its threshold and size.
    fn sum_of_smallest(
        &self,
        count: &impl Fn(usize, usize) -> usize,
        cost: &impl Fn(&BTreeSet<VerifierKey>) -> usize,
    ) -> usize {
        match self {
            Self::Witness(keys) => cost(keys),
            Self::Group { threshold, members } => {
                let mut costs: Vec<usize> =
                    members.iter().map(|member| member.sum_of_smallest(count, cost)).collect();
                costs.sort_unstable();
                costs.iter().take(count(*threshold, members.len())).sum()
            }
        }
    }
}
