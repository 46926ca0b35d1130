//! What people ask for, ready for the decisions of core.

use std::collections::BTreeMap;

use countersign_core::documents::{layout, layout::Signable, statement::StatementKind};
use countersign_core::rules::decide::{assets, proposal::Proposal, sign};
use countersign_core::rules::snapshot::Snapshot;
use countersign_core::values::{digest::Sha512, key::SecretKey, path::RepoPath, time::Timestamp};
use countersign_store::Head;
use countersign_testing::{RevokeRequest, origin, published, signed_request, signed_statement, signers};

/// Signers for `project`: all of `members` are needed.
pub(crate) fn proposal(
    project: RepoPath,
    submitter: &SecretKey,
    members: &[&SecretKey],
    now: Timestamp,
) -> Proposal {
    let file = signers(&now.to_string()).artifact(members.len(), members).text();
    Proposal {
        project,
        signers_bytes: file.into_bytes().into(),
        origin: origin(now),
        submitter: submitter.public_key(),
        request: signed_request(submitter, now, ""),
    }
}

/// The signatures of `signer` on `file`, as it is in `head`, and on what is signed with it.
pub(crate) fn submission(head: &Head, signer: &SecretKey, file: RepoPath) -> sign::SignaturesBody {
    let mut files = vec![file.clone()];
    if matches!(layout::signable(&file), Some(Signable::PendingSigners { .. })) {
        files.push(layout::metadata_of(&file));
    }
    let sign_file = |path: RepoPath| {
        let content = head.read(&path).unwrap()?;
        Some((path, signer.sign(&Sha512::of(&content))))
    };
    let signatures: BTreeMap<_, _> = files.into_iter().filter_map(sign_file).collect();
    sign::SignaturesBody {
        file_path: file,
        public_key: signer.public_key(),
        signatures,
        other_formats: Default::default(),
    }
}

/// A release of one file in `dir`, different for each `variant`.
pub(crate) fn release(dir: RepoPath, variant: usize) -> assets::Release {
    let published_files = vec![published("app.zip", &format!("{dir} {variant}"))];
    assets::Release { dir, release_url: None, published_on: None, published_files }
}

pub(crate) fn revocation(file: RepoPath, revoker: &SecretKey, now: Timestamp) -> RevokeRequest {
    let document = format!(r#"{{"reason":"bad","timestamp":"{now}"}}"#);
    let statement = signed_statement(StatementKind::Revocation, &file, document.as_bytes(), revoker);
    RevokeRequest { statement, request: signed_request(revoker, now, "") }
}
