//! One module for each target. A check takes any bytes and panics if the code breaks a promise.

pub mod answers;
pub mod bodies;
pub mod bundle;
pub mod checksums;
pub mod commit;
pub mod config;
pub mod drill;
pub mod events;
pub mod forge_documents;
pub mod headers;
pub mod history;
pub mod index;
pub mod journal;
pub mod key;
pub mod log_records;
pub mod metadata;
pub mod note;
pub mod objection;
pub mod other_formats;
pub mod path;
pub mod policy;
pub mod promises;
pub mod registration;
pub mod requests;
pub mod revocation;
pub mod rules;
pub mod signatures;
pub mod signers;
pub mod staple;
pub mod timestamp;
pub mod to_revoke;
pub mod to_sign;
pub mod trust;
pub mod url;
pub mod veto;
pub mod witness_request;

pub type Target = (&'static str, fn(&[u8]));

/// Every target except the model.
pub const TARGETS: [Target; 35] = [
    ("answers", answers::check),
    ("bodies", bodies::check),
    ("bundle", bundle::check),
    ("checksums", checksums::check),
    ("commit", commit::check),
    ("config", config::check),
    ("drill", drill::check),
    ("events", events::check),
    ("forge_documents", forge_documents::check),
    ("headers", headers::check),
    ("history", history::check),
    ("index", index::check),
    ("journal", journal::check),
    ("key", key::check),
    ("log_records", log_records::check),
    ("metadata", metadata::check),
    ("note", note::check),
    ("objection", objection::check),
    ("other_formats", other_formats::check),
    ("path", path::check),
    ("policy", policy::check),
    ("registration", registration::check),
    ("requests", requests::check),
    ("revocation", revocation::check),
    ("rules", rules::check),
    ("signatures", signatures::check),
    ("signers", signers::check),
    ("staple", staple::check),
    ("timestamp", timestamp::check),
    ("to_revoke", to_revoke::check),
    ("to_sign", to_sign::check),
    ("trust", trust::check),
    ("url", url::check),
    ("veto", veto::check),
    ("witness_request", witness_request::check),
];
