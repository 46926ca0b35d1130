//! The object `transparency` of a signers file (D91): which log proves the newest state of the project, which witnesses must
//! have seen it, and how old a proof can be.

use std::{collections::BTreeSet, ops::RangeInclusive, time::Duration};

use serde::{Serialize, Serializer, ser::SerializeStruct as _};

use crate::documents::fields::parse_threshold;
use crate::values::bounds::{PROOF_AGE_SECONDS, SIGNERS_FILE_WITNESSES};
use crate::values::json::{Field, FromField, ParseError};
use crate::values::{shown::quoted, verifier_key::KeyKind, verifier_key::VerifierKey};

/// How old a proof can be, in seconds.
pub const MAX_AGES: RangeInclusive<u64> = 60..=PROOF_AGE_SECONDS as u64;

/// The log of a project and its witnesses. No public key occurs twice in it, and no pair of name and id. A maximum age
/// is there exactly if witnesses are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Transparency {
    log: VerifierKey,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    witnesses: Vec<WitnessGroup>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_age_seconds: Option<u64>,
}

/// Keys of witnesses, of which `threshold` must have cosigned. However many keys a witness has here, it counts once (D264).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WitnessGroup {
    pub threshold: usize,
    pub keys: Vec<VerifierKey>,
    /// The witnesses that replay the rules, by the word of the admins (D213).
    pub replaying: BTreeSet<VerifierKey>,
}

impl WitnessGroup {
    /// Makes a group of witnesses that do not replay the rules.
    pub fn new(threshold: usize, keys: Vec<VerifierKey>) -> Self {
        Self { threshold, keys, replaying: BTreeSet::new() }
    }

    pub fn replays(&self, witness: &VerifierKey) -> bool {
        self.replaying.contains(witness)
    }

    /// The number of witnesses: those with several keys count once.
    pub fn witnesses(&self) -> usize {
        self.keys.iter().map(VerifierKey::name).collect::<BTreeSet<_>>().len()
    }
}

impl FromField for Transparency {
    fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
        let object = field.object(&["log", "witnesses", "max_age_seconds"])?;
        let log = object.text("log", VerifierKey::parse_log)?;
        let witnesses = object.maybe_with("witnesses", |field| parse_groups(field, &log))?;
        let max_age = object.optional("max_age_seconds");
        if witnesses.is_some() && max_age.is_none() {
            object.required("max_age_seconds")?;
        }
        if let (None, Some(max_age)) = (&witnesses, &max_age) {
            return Err(max_age.error("needs witnesses: without them nothing proves a time"));
        }
        Ok(Self {
            log,
            witnesses: witnesses.unwrap_or_default(),
            max_age_seconds: max_age.map(|field| parse_max_age(&field)).transpose()?,
        })
    }
}

impl Transparency {
    pub fn log(&self) -> &VerifierKey {
        &self.log
    }

    /// All groups must reach their thresholds. Without groups, the log's word is enough.
    pub fn witnesses(&self) -> &[WitnessGroup] {
        &self.witnesses
    }

    /// How old a proof can be; `None` without witnesses.
    pub fn max_age(&self) -> Option<Duration> {
        self.max_age_seconds.map(Duration::from_secs)
    }

    /// The keys of the log and of all witnesses.
    pub fn verifier_keys(&self) -> impl Iterator<Item = &VerifierKey> {
        [&self.log].into_iter().chain(self.witnesses.iter().flat_map(|group| &group.keys))
    }
}

fn parse_groups(field: &Field<'_>, log: &VerifierKey) -> Result<Vec<WitnessGroup>, ParseError> {
    let mut seen = SeenKeys::default();
    seen.insert(log);
    let mut groups = Vec::new();
    for entry in field.array()? {
        groups.push(parse_group(&entry, &mut seen)?);
    }
    match groups.iter().map(|group| group.keys.len()).sum() {
        1..=SIGNERS_FILE_WITNESSES => Ok(groups),
        0 => Err(field.error("must have at least one group; leave the field out for no witnesses")),
        _ => Err(field.error(format!("must name at most {SIGNERS_FILE_WITNESSES} witnesses"))),
    }
}

fn parse_group(field: &Field<'_>, seen: &mut SeenKeys) -> Result<WitnessGroup, ParseError> {
    let object = field.object(&["threshold", "keys"])?;
    let list = object.required("keys")?;
    let (mut keys, mut replaying) = (Vec::new(), BTreeSet::new());
    for entry in list.array()? {
        let (key, replays) = parse_witness(&entry)?;
        if !seen.insert(&key) {
            let name = quoted(key.name());
            return Err(entry.error(format!("the key of {name} is the log's or another witness's already")));
        }
        if replays {
            replaying.insert(key.clone());
        }
        if seen.earlier_groups.contains(key.name()) {
            let name = quoted(key.name());
            return Err(entry
                .error(format!("the witness {name} is in another group; all of its keys belong into one")));
        }
        keys.push(key);
    }
    if keys.is_empty() {
        return Err(list.error("must have at least one witness"));
    }
    seen.earlier_groups.extend(keys.iter().map(|key| key.name().to_owned()));
    let mut group = WitnessGroup { threshold: 0, keys, replaying };
    group.threshold = object.with("threshold", |field| parse_threshold(field, group.witnesses()))?;
    Ok(group)
}

/// A key alone, or an object with it for a witness that replays. So each witness has one spelling.
fn parse_witness(field: &Field<'_>) -> Result<(VerifierKey, bool), ParseError> {
    let parse_key = |text: &str| VerifierKey::parse_kind(text, KeyKind::Witness);
    if field.string().is_ok() {
        return Ok((field.parsed(parse_key)?, false));
    }
    let object = field.object(&["key", "replaying"])?;
    let replaying = object.required("replaying")?;
    if !replaying.boolean()? {
        return Err(replaying.error("must be true; a witness that is not known to replay is its key alone"));
    }
    Ok((object.text("key", parse_key)?, true))
}

fn parse_max_age(field: &Field<'_>) -> Result<u64, ParseError> {
    let seconds = field.integer()?;
    if MAX_AGES.contains(&seconds) {
        return Ok(seconds);
    }
    Err(field.error(format!("must be between {} and {} (10 years)", MAX_AGES.start(), MAX_AGES.end())))
}

/// Keys seen so far. Two with the same name and id could not be told apart in a checkpoint.
#[derive(Default)]
struct SeenKeys {
    keys: BTreeSet<Vec<u8>>,
    short: BTreeSet<String>,
    /// The names of witnesses in the groups before this one.
    earlier_groups: BTreeSet<String>,
}

impl SeenKeys {
    /// Notes a key, and returns whether it is new.
    fn insert(&mut self, key: &VerifierKey) -> bool {
        self.keys.insert(key.bytes().to_vec()) && self.short.insert(key.short())
    }
}

impl Serialize for WitnessGroup {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(untagged)]
        enum Witness {
            Key(String),
            Replaying { key: String, replaying: bool },
        }
        let witness = |key: &VerifierKey| match self.replays(key) {
            false => Witness::Key(key.to_string()),
            true => Witness::Replaying { key: key.to_string(), replaying: true },
        };
        let mut group = serializer.serialize_struct("WitnessGroup", 2)?;
        group.serialize_field("threshold", &self.threshold)?;
        group.serialize_field("keys", &self.keys.iter().map(witness).collect::<Vec<_>>())?;
        group.end()
    }
}
