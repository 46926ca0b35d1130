//! One module for each target. A check takes any bytes and panics if the code breaks a promise.

pub mod documents;
pub mod feeds;
pub mod outside;
pub mod promises;
pub mod requests;
pub mod url;
pub mod values;

pub type Target = (&'static str, fn(&[u8]));

/// Every target except the model.
pub const TARGETS: [Target; 36] = [
    ("answers", requests::check_answers),
    ("bodies", requests::check_bodies),
    ("bundle", documents::check_bundle),
    ("checksums", outside::check_checksums),
    ("commit", feeds::check_commit),
    ("config", outside::check_config),
    ("drill", documents::check_drill),
    ("events", feeds::check_events),
    ("forge_documents", outside::check_forge_documents),
    ("headers", requests::check_headers),
    ("history", documents::check_history),
    ("index", documents::check_index),
    ("journal", feeds::check_journal),
    ("key", values::check_keys),
    ("log_records", feeds::check_log_records),
    ("metadata", documents::check_metadata),
    ("note", values::check_notes),
    ("objection", documents::check_objection),
    ("other_formats", documents::check_other_formats),
    ("path", values::check_path),
    ("policy", values::check_policy),
    ("rebuild", documents::check_rebuild),
    ("registration", documents::check_registration),
    ("requests", requests::check_requests),
    ("revocation", documents::check_revocation),
    ("rules", outside::check_rules),
    ("signatures", documents::check_signatures),
    ("signers", documents::check_signers),
    ("staple", feeds::check_staple),
    ("timestamp", values::check_timestamp),
    ("to_revoke", requests::check_to_revoke),
    ("to_sign", requests::check_to_sign),
    ("trust", documents::check_trust),
    ("url", url::check),
    ("veto", documents::check_veto),
    ("witness_request", feeds::check_witness_request),
];
