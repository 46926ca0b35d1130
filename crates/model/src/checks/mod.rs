//! One module for each target. A check takes any bytes and panics if the code breaks a promise.

pub mod answers;
pub mod bodies;
pub mod bundle;
pub mod checksums;
pub mod config;
pub mod forge_documents;
pub mod headers;
pub mod history;
pub mod index;
pub mod journal;
pub mod key;
pub mod metadata;
pub mod path;
pub mod promises;
pub mod registration;
pub mod revocation;
pub mod rules;
pub mod signatures;
pub mod signers;
pub mod timestamp;
pub mod to_sign;
pub mod trust;
pub mod url;

pub type Target = (&'static str, fn(&[u8]));

/// Every target except the model.
pub const TARGETS: [Target; 22] = [
    ("answers", answers::check),
    ("bodies", bodies::check),
    ("bundle", bundle::check),
    ("checksums", checksums::check),
    ("config", config::check),
    ("forge_documents", forge_documents::check),
    ("headers", headers::check),
    ("history", history::check),
    ("index", index::check),
    ("journal", journal::check),
    ("key", key::check),
    ("metadata", metadata::check),
    ("path", path::check),
    ("registration", registration::check),
    ("revocation", revocation::check),
    ("rules", rules::check),
    ("signatures", signatures::check),
    ("signers", signers::check),
    ("timestamp", timestamp::check),
    ("to_sign", to_sign::check),
    ("trust", trust::check),
    ("url", url::check),
];
