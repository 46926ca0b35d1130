//! The file that keeps what builders state about a release (D260): the word of each about the index that is there.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::documents::statement::{Rebuild, Said};
use crate::json_fields;
use crate::values::bounds::REBUILDS;
use crate::values::json::{Field, ParseError};
use crate::values::{digest::Sha512, key, key::PublicKey, path::RepoPath};

const VERSION: u64 = 1;

pub type StoredRebuild = Said<Rebuild>;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RebuildsFile {
    #[serde(rename = "rebuilds", serialize_with = "key::sorted_as_text")]
    pub entries: BTreeMap<PublicKey, StoredRebuild>,
}

json_fields!(document RebuildsFile version VERSION { entries as "rebuilds": with(parse_by_builder) });

fn parse_by_builder(list: &Field<'_>) -> Result<BTreeMap<PublicKey, StoredRebuild>, ParseError> {
    Said::parse_by_author(list, REBUILDS, Rebuild::parse)
}

impl RebuildsFile {
    /// The entries alone, inside another document.
    pub(crate) fn parse_entries(list: &Field<'_>) -> Result<Self, ParseError> {
        Ok(Self { entries: parse_by_builder(list)? })
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
