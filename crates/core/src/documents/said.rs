//! What people said about a release, as it is kept (D123, D260): objections to it and to contents that it had before, and
//! what builders got.

use std::{cmp::Reverse, collections::BTreeMap};

use serde::Serialize;

use crate::documents::{fields::parse_by_key, statement::Objection, statement::Rebuild};
use crate::json_fields;
use crate::values::bounds::{EARLIER_OBJECTIONS, OBJECTIONS, REBUILDS};
use crate::values::json::{Field, Object, ParseError};
use crate::values::key::{PublicKey, Signature};
use crate::values::{digest::Sha512, key, path::RepoPath, time::Timestamp};

const VERSION: u64 = 1;

/// What the owner of a key said in a document, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Said<D> {
    /// The exact text that was signed.
    #[serde(rename = "document")]
    pub text: String,
    #[serde(skip)]
    pub document: D,
    pub signature: Signature,
    pub collected_at: Timestamp,
}

impl<D> Said<D> {
    pub const FIELDS: [&str; 3] = ["document", "signature", "collected_at"];

    /// Reads the fields among others. `parse` reads the document.
    pub(crate) fn parse_object(
        object: &Object<'_>,
        parse: fn(&[u8]) -> Result<D, ParseError>,
    ) -> Result<Self, ParseError> {
        let text = object.required("document")?;
        Ok(Self {
            document: text.parsed(|text| parse(text.as_bytes()))?,
            text: text.string()?.to_owned(),
            signature: object.get("signature")?,
            collected_at: object.get("collected_at")?,
        })
    }

    /// Reads what each key said, within a bound.
    pub(crate) fn parse_by_author(
        list: &Field<'_>,
        most: usize,
        parse: fn(&[u8]) -> Result<D, ParseError>,
    ) -> Result<BTreeMap<PublicKey, Self>, ParseError> {
        let out_of_bounds = format!("must have between 1 and {most} keys");
        parse_by_key(list, 1..=most, &out_of_bounds, |said| {
            Self::parse_object(&said.object(&Self::FIELDS)?, parse)
        })
    }

    pub fn is_signed_by(&self, key: &PublicKey) -> bool {
        key.verify(&Sha512::of(self.text.as_bytes()), &self.signature).is_ok()
    }
}

// Objections.

/// The newest objection of each key to one release.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ObjectionsFile {
    #[serde(rename = "objections", serialize_with = "key::sorted_as_text")]
    pub entries: BTreeMap<PublicKey, StoredObjection>,
}

pub type StoredObjection = Said<Objection>;

/// Objections that stood when the content that they are about was corrected or withdrawn (D224).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct EarlierObjections {
    /// The first that went is first.
    #[serde(rename = "earlier_objections")]
    pub entries: Vec<EarlierObjection>,
}

/// What a key said of an earlier content, which its `subject_digest` names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EarlierObjection {
    pub public_key: PublicKey,
    #[serde(flatten)]
    pub said: StoredObjection,
}

/// An objection that its author has not taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StandingObjection<'a> {
    pub key: PublicKey,
    pub text: &'a str,
    /// When it was said, as its author says.
    pub timestamp: Timestamp,
    /// Names the content that is meant.
    pub subject_digest: Sha512,
}

impl<'a> StandingObjection<'a> {
    /// `None` if the author took it back.
    fn of(key: PublicKey, said: &'a StoredObjection) -> Option<Self> {
        let Objection { text, subject_digest, timestamp } = &said.document;
        let text = text.as_deref()?;
        Some(Self { key, text, timestamp: *timestamp, subject_digest: *subject_digest })
    }
}

json_fields!(document ObjectionsFile version VERSION { entries as "objections": with(parse_objections) });
json_fields!(document EarlierObjections version VERSION { entries as "earlier_objections": with(parse_earlier) });

fn parse_objections(list: &Field<'_>) -> Result<BTreeMap<PublicKey, StoredObjection>, ParseError> {
    Said::parse_by_author(list, OBJECTIONS, Objection::parse)
}

fn parse_earlier(list: &Field<'_>) -> Result<Vec<EarlierObjection>, ParseError> {
    if !(1..=EARLIER_OBJECTIONS).contains(&list.array()?.len()) {
        return Err(list.error(format!("must have between 1 and {EARLIER_OBJECTIONS} entries")));
    }
    list.list(|entry| {
        let object = entry.object(&["public_key", "document", "signature", "collected_at"])?;
        let public_key = object.text("public_key", PublicKey::parse_recorded)?;
        Ok(EarlierObjection { public_key, said: Said::parse_object(&object, Objection::parse)? })
    })
}

impl ObjectionsFile {
    /// The entries alone, inside another document.
    pub(crate) fn parse_entries(list: &Field<'_>) -> Result<Self, ParseError> {
        Ok(Self { entries: parse_objections(list)? })
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Keeps those that verify and are about this index, to show what a server says that it has.
    pub fn keep_verifying(&self, index: &Sha512) -> Self {
        let mut kept = self.clone();
        kept.entries.retain(|key, said| said.document.subject_digest == *index && said.is_signed_by(key));
        kept
    }

    /// Lists the objections that their authors have not taken back, the oldest first.
    pub fn standing(&self) -> Vec<StandingObjection<'_>> {
        let standing = self.entries.iter().filter_map(|(key, said)| StandingObjection::of(*key, said));
        let mut standing: Vec<_> = standing.collect();
        standing.sort_by_key(|objection| (objection.timestamp, objection.key));
        standing
    }
}

impl EarlierObjections {
    /// The entries alone, inside another document.
    pub(crate) fn parse_entries(list: &Field<'_>) -> Result<Self, ParseError> {
        Ok(Self { entries: parse_earlier(list)? })
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds what stands in `objections`, the oldest first. Beyond the bound, the oldest of the key that has most goes: a
    /// key that says much pushes out its own words, and not the only one of another.
    pub fn retire(&mut self, objections: ObjectionsFile) {
        let mut retired: Vec<EarlierObjection> = objections
            .entries
            .into_iter()
            .filter(|(_, said)| said.document.text.is_some())
            .map(|(public_key, said)| EarlierObjection { public_key, said })
            .collect();
        retired.sort_by_key(|entry| (entry.said.document.timestamp, entry.public_key));
        self.entries.extend(retired);
        while self.entries.len() > EARLIER_OBJECTIONS {
            let mut counts: BTreeMap<PublicKey, usize> = BTreeMap::new();
            self.entries.iter().for_each(|entry| *counts.entry(entry.public_key).or_default() += 1);
            let oldest =
                (0..self.entries.len()).min_by_key(|at| Reverse(counts[&self.entries[*at].public_key]));
            self.entries.remove(oldest.expect("more than the bound"));
        }
    }

    /// Keeps those that verify, to show what a server says that it has. A content can come back after a correction, so one
    /// that is about the content that is there now stays as well.
    pub fn keep_verifying(&self) -> Self {
        let mut kept = self.clone();
        kept.entries.retain(|EarlierObjection { public_key, said }| said.is_signed_by(public_key));
        kept
    }

    /// What was said, in the order of the file.
    pub fn said(&self) -> impl Iterator<Item = StandingObjection<'_>> {
        self.entries.iter().filter_map(|entry| StandingObjection::of(entry.public_key, &entry.said))
    }
}

// What builders state.

pub type StoredRebuild = Said<Rebuild>;

/// What each builder states about the index that is there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RebuildsFile {
    #[serde(rename = "rebuilds", serialize_with = "key::sorted_as_text")]
    pub entries: BTreeMap<PublicKey, StoredRebuild>,
}

json_fields!(document RebuildsFile version VERSION { entries as "rebuilds": with(parse_rebuilds) });

fn parse_rebuilds(list: &Field<'_>) -> Result<BTreeMap<PublicKey, StoredRebuild>, ParseError> {
    Said::parse_by_author(list, REBUILDS, Rebuild::parse)
}

impl RebuildsFile {
    /// The entries alone, inside another document.
    pub(crate) fn parse_entries(list: &Field<'_>) -> Result<Self, ParseError> {
        Ok(Self { entries: parse_rebuilds(list)? })
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Keeps those that verify and are about this index. One that does not says nothing: it is no evidence.
    pub fn keep_verifying(&self, path: &RepoPath, index: &Sha512) -> Self {
        let mut kept = self.clone();
        kept.entries.retain(|key, said| {
            let Rebuild { rebuild_of, subject_digest, .. } = &said.document;
            rebuild_of == path && subject_digest == index && said.is_signed_by(key)
        });
        kept
    }
}
