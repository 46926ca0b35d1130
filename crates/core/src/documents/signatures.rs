//! The signatures file (D9): who has signed a file, and when.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::values::{
    bounds::SIGNATURES,
    digest::Sha512,
    json::{self, Field, Json, ParseError},
    key::{self, BadSignature, PublicKey, Signature},
    time::Timestamp,
};

/// Signatures on one file, at most one a key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SignatureSet {
    /// Signatures by key, `svc-pub:` and unpadded base64.
    #[serde(serialize_with = "key::sorted_as_text")]
    pub entries: BTreeMap<PublicKey, Collected>,
}

/// One signature, and when it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Collected {
    pub signature: Signature,
    pub collected_at: Timestamp,
}

impl SignatureSet {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        Self::parse_field(&Json::parse(bytes)?.root())
    }

    pub(crate) fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
        let object = field.object(&["entries"])?;
        let mut entries = BTreeMap::new();
        // Before any key is read: each is decoded and compared.
        let list = object.required("entries")?;
        if list.entries()?.count() > SIGNATURES {
            return Err(list.error(format!("has more than {SIGNATURES} signatures")));
        }
        for (spelling, entry) in list.entries()? {
            // Canonical: a second spelling would be a second entry for one key.
            let key = PublicKey::parse_recorded(spelling).map_err(|error| entry.error(error))?;
            let object = entry.object(&["signature", "collected_at"])?;
            let collected = Collected {
                signature: object.required("signature")?.parsed(Signature::parse)?,
                collected_at: object.required("collected_at")?.parsed(Timestamp::parse)?,
            };
            entries.insert(key, collected);
        }
        Ok(Self { entries })
    }

    pub fn write(&self) -> Vec<u8> {
        json::write(self)
    }

    pub fn signers(&self) -> BTreeSet<PublicKey> {
        self.entries.keys().copied().collect()
    }

    /// The keys whose signatures were there at this time.
    pub fn signers_until(&self, time: Timestamp) -> BTreeSet<PublicKey> {
        let until = self.entries.iter().filter(|(_, collected)| collected.collected_at <= time);
        until.map(|(key, _)| *key).collect()
    }

    /// The time of the first signature.
    pub fn first_signed(&self) -> Option<Timestamp> {
        self.entries.values().map(|collected| collected.collected_at).min()
    }

    /// The time of the newest signature.
    pub fn last_signed(&self) -> Option<Timestamp> {
        self.entries.values().map(|collected| collected.collected_at).max()
    }

    /// Adds a signature that was verified already; the first of a key stays.
    pub fn add(&mut self, key: PublicKey, collected: Collected) {
        self.entries.entry(key).or_insert(collected);
    }

    /// Checks every signature over `bytes`, and gives the set of those who signed.
    pub fn verify(&self, bytes: &[u8]) -> Result<BTreeSet<PublicKey>, (PublicKey, BadSignature)> {
        let digest = Sha512::of(bytes);
        for (key, collected) in &self.entries {
            key.verify(&digest, &collected.signature).map_err(|error| (*key, error))?;
        }
        Ok(self.signers())
    }

    /// The keys whose signature over `bytes` verifies: for showing how far a collection has come, where a wrong one is
    /// as good as none.
    pub fn verifying_signers(&self, bytes: &[u8]) -> BTreeSet<PublicKey> {
        let digest = Sha512::of(bytes);
        let verifies =
            |(key, collected): &(&PublicKey, &Collected)| key.verify(&digest, &collected.signature).is_ok();
        self.entries.iter().filter(verifies).map(|(key, _)| *key).collect()
    }

    /// Keeps only the signatures over `bytes` that verify.
    pub fn keep_verifying(&self, bytes: &[u8]) -> Self {
        let verifying = self.verifying_signers(bytes);
        let mut kept = self.clone();
        kept.entries.retain(|key, _| verifying.contains(key));
        kept
    }
}
