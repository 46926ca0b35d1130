//! The files that keep objections (D123): those to the release that is there, and those to contents that it had before.

use std::{cmp::Reverse, collections::BTreeMap};

use serde::Serialize;

use crate::documents::statement::{Objection, Said};
use crate::json_fields;
use crate::values::bounds::{EARLIER_OBJECTIONS, OBJECTIONS};
use crate::values::json::{Field, ParseError};
use crate::values::{digest::Sha512, key, key::PublicKey, time::Timestamp};

const VERSION: u64 = 1;

/// The newest word of each key about one release.
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

json_fields!(document ObjectionsFile version VERSION { entries as "objections": with(parse_by_author) });
json_fields!(document EarlierObjections version VERSION { entries as "earlier_objections": with(parse_earlier) });

fn parse_by_author(list: &Field<'_>) -> Result<BTreeMap<PublicKey, StoredObjection>, ParseError> {
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
        Ok(Self { entries: parse_by_author(list)? })
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
