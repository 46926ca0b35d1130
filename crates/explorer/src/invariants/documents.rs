//! Reads stored documents by their JSON alone, and verifies signatures with nothing but Ed25519 and SHA-512.

use std::{cell::RefCell, collections::BTreeMap, collections::BTreeSet, collections::HashMap, rc::Rc};

use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD, Engine as _};
use countersign_core::values::time::Timestamp;
use ed25519_dalek::{Signature, VerifyingKey};
use serde_json::Value;
use sha2::{Digest as _, Sha512};

use crate::contents::{ContentId, Contents};

pub type Key = [u8; 32];
pub type Keys = BTreeSet<Key>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyGroup {
    pub threshold: usize,
    pub keys: Keys,
}

/// A signers file, with the roles as they count: admins are the artifact signers where none are listed, and one admin
/// revokes where no one else is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignersDocument {
    pub timestamp: String,
    pub artifact: Vec<KeyGroup>,
    pub admin: Vec<KeyGroup>,
    pub master: Vec<KeyGroup>,
    pub revocation: Vec<KeyGroup>,
    /// All of these; builders and registrars are not among them.
    pub signers: Keys,
    /// The signers and the builders: all who agree to be listed.
    pub keys: Keys,
    pub registrars: Keys,
    pub rebuilds: Option<RebuildsDocument>,
    /// How long rotations wait, if they do.
    pub delay_hours: Option<i64>,
}

/// Who builds releases anew, which files, and whether a release counts only then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RebuildsDocument {
    pub builders: Vec<KeyGroup>,
    pub files: Vec<String>,
    pub is_required: bool,
}

/// A signatures file, or such an object in another document.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SetDocument {
    pub all: Keys,
    /// The keys whose signature verifies.
    pub valid: Keys,
    /// The time at which each signature was collected, in seconds.
    pub collected: BTreeMap<Key, i64>,
}

/// An entry of a history.
#[derive(Debug)]
pub struct EntryDocument {
    pub signers: SignersDocument,
    pub signers_text: String,
    pub metadata: Value,
    pub metadata_text: String,
    pub set: SetDocument,
    pub metadata_set: SetDocument,
    pub value: Value,
}

impl SignersDocument {
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        let role = |name: &str| value.get(name).and_then(read_groups);
        let artifact = role("artifact_signers")?;
        let admin = role("admin_keys").unwrap_or_else(|| artifact.clone());
        let master = role("master_keys").unwrap_or_default();
        let anyone = KeyGroup { threshold: 1, keys: union(&admin) };
        let revocation = role("revocation_keys").unwrap_or_else(|| vec![anyone]);
        let signers: Keys =
            [&artifact, &admin, &master, &revocation].into_iter().flat_map(|role| union(role)).collect();
        let timestamp = value.get("timestamp")?.as_str()?.to_owned();
        let rebuilds = match value.get("rebuilds") {
            Some(rebuilds) => Some(RebuildsDocument::read(rebuilds)?),
            None => None,
        };
        let builders = rebuilds.as_ref().map(|rebuilds| union(&rebuilds.builders)).unwrap_or_default();
        let registrars = value.get("registrars").map_or(Some(Keys::new()), read_keys)?;
        // A builder has no other role (D259).
        if !builders.is_disjoint(&signers) || !builders.is_disjoint(&registrars) {
            return None;
        }
        let keys = signers.union(&builders).copied().collect();
        let delay_hours = value.get("rotation_delay_hours").and_then(Value::as_i64);
        Some(Self {
            timestamp,
            artifact,
            admin,
            master,
            revocation,
            signers,
            keys,
            registrars,
            rebuilds,
            delay_hours,
        })
    }

    pub fn builders(&self) -> Keys {
        self.rebuilds.as_ref().map(|rebuilds| union(&rebuilds.builders)).unwrap_or_default()
    }

    pub fn admins(&self) -> Keys {
        union(&self.admin).union(&union(&self.master)).copied().collect()
    }
}

impl RebuildsDocument {
    fn read(value: &Value) -> Option<Self> {
        let pattern = |pattern: &Value| Some(pattern.as_str()?.to_owned());
        let files = value.get("files").and_then(Value::as_array);
        Some(Self {
            builders: read_groups(value.get("builders")?)?,
            files: files.into_iter().flatten().map(pattern).collect::<Option<_>>()?,
            is_required: value.get("required").is_some_and(|it| *it == Value::Bool(true)),
        })
    }
}

fn read_groups(role: &Value) -> Option<Vec<KeyGroup>> {
    let group = |group: &Value| {
        let threshold = usize::try_from(group.get("threshold")?.as_u64()?).ok()?;
        Some(KeyGroup { threshold, keys: read_keys(group.get("signers")?)? })
    };
    role.as_array()?.iter().map(group).collect()
}

fn read_keys(signers: &Value) -> Option<Keys> {
    let key = |signer: &Value| read_key(signer.get("data")?.get("pubkey")?.as_str()?);
    signers.as_array()?.iter().map(key).collect()
}

pub fn read_key(text: &str) -> Option<Key> {
    BASE64_STANDARD_NO_PAD.decode(text.strip_prefix("svc-pub:")?).ok()?.try_into().ok()
}

/// The signature in an entry that has one.
pub fn read_signature(entry: &Value) -> Option<Signature> {
    let bytes = BASE64_STANDARD.decode(entry.get("signature")?.as_str()?).ok()?;
    Some(Signature::from_bytes(&bytes.try_into().ok()?))
}

/// Reads a time in seconds.
pub fn read_time(text: &str) -> Option<i64> {
    Timestamp::parse(text).ok().map(|time| time.unix_seconds())
}

pub fn union(groups: &[KeyGroup]) -> Keys {
    groups.iter().flat_map(|group| group.keys.iter().copied()).collect()
}

/// How many signatures are missing until every group has enough. A role without groups never has.
pub fn missing(groups: &[KeyGroup], signed: &Keys) -> usize {
    if groups.is_empty() {
        return 100;
    }
    groups.iter().map(|group| group.threshold.saturating_sub(group.keys.intersection(signed).count())).sum()
}

/// How many signatures a signers file still needs to follow another, or to be the first.
pub fn missing_consent(before: Option<&SignersDocument>, proposed: &SignersDocument, signed: &Keys) -> usize {
    let Some(before) = before else { return proposed.keys.difference(signed).count() };
    let leaders = |file: &SignersDocument| missing(&file.admin, signed).min(missing(&file.master, signed));
    let added = proposed.keys.difference(&before.keys).filter(|key| !signed.contains(*key)).count();
    leaders(before) + leaders(proposed) + added
}

/// The keys whose signatures can count for that.
pub fn can_consent(before: Option<&SignersDocument>, proposed: &SignersDocument) -> Keys {
    let Some(before) = before else { return proposed.keys.clone() };
    let added = proposed.keys.difference(&before.keys).copied();
    before.admins().into_iter().chain(proposed.admins()).chain(added).collect()
}

impl SetDocument {
    fn read(value: &Value, subject: &[u8]) -> Option<Self> {
        let mut set = Self::default();
        let digest: [u8; 64] = Sha512::digest(subject).into();
        for (name, entry) in value.get("entries")?.as_object()? {
            let (key, signature) = (read_key(name)?, read_signature(entry)?);
            set.all.insert(key);
            set.collected.insert(key, read_time(entry.get("collected_at")?.as_str()?)?);
            if VerifyingKey::from_bytes(&key).is_ok_and(|key| key.verify_strict(&digest, &signature).is_ok())
            {
                set.valid.insert(key);
            }
        }
        Some(set)
    }

    pub fn is_sound(&self) -> bool {
        self.all == self.valid
    }

    /// The keys whose signature was there by then.
    pub fn until(&self, time: i64) -> Keys {
        self.valid
            .iter()
            .filter(|key| self.collected.get(*key).is_some_and(|at| *at <= time))
            .copied()
            .collect()
    }
}

impl EntryDocument {
    fn read(bytes: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        let text = |name: &str| Some(value.get(name)?.as_str()?.to_owned());
        let (signers_text, metadata_text) = (text("signers_config")?, text("metadata")?);
        Some(Self {
            signers: SignersDocument::read(signers_text.as_bytes())?,
            metadata: serde_json::from_str(&metadata_text).ok()?,
            set: SetDocument::read(value.get("signatures")?, signers_text.as_bytes())?,
            metadata_set: SetDocument::read(value.get("metadata_signatures")?, metadata_text.as_bytes())?,
            signers_text,
            metadata_text,
            value,
        })
    }
}

pub fn digest_text(bytes: &[u8]) -> String {
    let hex: String = Sha512::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha512:{hex}")
}

type Read<K, T> = RefCell<HashMap<K, Option<Rc<T>>>>;

/// A reader that remembers what was read before.
#[derive(Debug, Default)]
pub struct Reader {
    signers: Read<ContentId, SignersDocument>,
    sets: Read<(ContentId, ContentId), SetDocument>,
    entries: Read<ContentId, EntryDocument>,
    values: Read<ContentId, Value>,
}

impl Reader {
    pub fn signers(&self, contents: &Contents, id: ContentId) -> Option<Rc<SignersDocument>> {
        remember(&self.signers, id, || SignersDocument::read(contents.bytes(id)))
    }

    /// The signatures of a file on another.
    pub fn set(&self, contents: &Contents, set: ContentId, subject: ContentId) -> Option<Rc<SetDocument>> {
        remember(&self.sets, (set, subject), || {
            SetDocument::read(&serde_json::from_slice(contents.bytes(set)).ok()?, contents.bytes(subject))
        })
    }

    pub fn entry(&self, contents: &Contents, id: ContentId) -> Option<Rc<EntryDocument>> {
        remember(&self.entries, id, || EntryDocument::read(contents.bytes(id)))
    }

    pub fn value(&self, contents: &Contents, id: ContentId) -> Option<Rc<Value>> {
        remember(&self.values, id, || serde_json::from_slice(contents.bytes(id)).ok())
    }
}

fn remember<K: std::hash::Hash + Eq + Copy, T>(
    known: &Read<K, T>,
    key: K,
    read: impl FnOnce() -> Option<T>,
) -> Option<Rc<T>> {
    if let Some(found) = known.borrow().get(&key) {
        return found.clone();
    }
    let found = read().map(Rc::new);
    known.borrow_mut().insert(key, found.clone());
    found
}

// What signers said of a release, as the stored files have it. It is read here once more on purpose.

/// What a key said last of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaidDocument {
    pub objection: Option<String>,
    pub subject: String,
    pub timestamp: String,
    pub is_valid: bool,
}

pub type Said = BTreeMap<Key, SaidDocument>;

/// What each key said; `None` where the file cannot be read.
pub fn read_said(value: &Value) -> Option<Said> {
    value.get("objections")?.as_object()?.iter().map(|(name, entry)| read_entry(name, entry)).collect()
}

/// What was said of contents before, in the order in which they went; `None` where the file cannot be read.
pub fn read_earlier(value: &Value) -> Option<Vec<(Key, SaidDocument)>> {
    let entry = |entry: &Value| read_entry(entry.get("public_key")?.as_str()?, entry);
    value.get("earlier_objections")?.as_array()?.iter().map(entry).collect()
}

fn read_entry(name: &str, entry: &Value) -> Option<(Key, SaidDocument)> {
    let (key, document, is_valid) = read_signed(name, entry)?;
    let of = |name: &str| Some(document.get(name)?.as_str()?.to_owned());
    let (subject, timestamp) = (of("subject_digest")?, of("timestamp")?);
    Some((key, SaidDocument { objection: of("objection"), subject, timestamp, is_valid }))
}

/// Reads a document that this key signed, and whether the signature verifies.
fn read_signed(name: &str, entry: &Value) -> Option<(Key, Value, bool)> {
    let (key, text) = (read_key(name)?, entry.get("document")?.as_str()?);
    let signature: Signature = read_signature(entry)?;
    let digest: [u8; 64] = Sha512::digest(text.as_bytes()).into();
    let verifies = |key: VerifyingKey| key.verify_strict(&digest, &signature).is_ok();
    Some((key, serde_json::from_str(text).ok()?, VerifyingKey::from_bytes(&key).is_ok_and(verifies)))
}

// What builders state of a release.

/// What a builder got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatedDocument {
    pub path: String,
    pub subject: String,
    pub commit: String,
    /// The digests of each file, by their kind.
    pub files: BTreeMap<String, BTreeMap<String, String>>,
    pub timestamp: String,
    pub is_valid: bool,
}

pub type StatedBy = BTreeMap<Key, StatedDocument>;

/// What each builder states; `None` where the file cannot be read.
pub fn read_stated(value: &Value) -> Option<StatedBy> {
    let entries = value.get("rebuilds")?.as_object()?.iter();
    let entry = |(name, entry): (&String, &Value)| {
        let (key, document, is_valid) = read_signed(name, entry)?;
        let of = |name: &str| Some(document.get(name)?.as_str()?.to_owned());
        Some((
            key,
            StatedDocument {
                path: of("rebuild_of")?,
                subject: of("subject_digest")?,
                commit: of("source_commit")?,
                files: read_files(document.get("files")?)?,
                timestamp: of("timestamp")?,
                is_valid,
            },
        ))
    };
    entries.map(entry).collect()
}

/// The digests of the files of a rebuild or an index, by name.
pub fn read_files(files: &Value) -> Option<BTreeMap<String, BTreeMap<String, String>>> {
    let digest = |(kind, hex): (&String, &Value)| Some((kind.clone(), hex.as_str()?.to_owned()));
    let file = |file: &Value| {
        let digests = file.get("digests")?.as_object()?.iter().map(digest).collect::<Option<_>>()?;
        Some((file.get("file_name")?.as_str()?.to_owned(), digests))
    };
    files.as_array()?.iter().map(file).collect()
}
