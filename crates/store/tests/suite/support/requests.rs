//! What people ask for, ready for the decisions of core.

use std::collections::BTreeMap;

use countersign_core::documents::index::{AssetName, Digests, PublishedFile};
use countersign_core::documents::signers::{Origin, OriginKind};
use countersign_core::documents::{
    layout, layout::Signable, signed_request::SignedRequest, statement::StatementKind,
};
use countersign_core::rules::decide::{Proposal, assets, sign};
use countersign_core::rules::{auth::sign_request, snapshot::Snapshot};
use countersign_core::values::digest::{Sha256, Sha512};
use countersign_core::values::{key::SecretKey, path::RepoPath, time::Timestamp};
use countersign_store::Head;
use countersign_testing::{RevokeRequest, signed_statement};

/// Signers for `project`: all of `members` are needed.
pub(crate) fn proposal(
    project: RepoPath,
    submitter: &SecretKey,
    members: &[&SecretKey],
    now: Timestamp,
) -> Proposal {
    let listed = members.iter().map(|key| key.public_key());
    let listed: Vec<_> =
        listed.map(|key| format!(r#"{{"kind":"key","data":{{"pubkey":"{key}"}}}}"#)).collect();
    let (threshold, listed) = (members.len(), listed.join(","));
    let file = format!(
        r#"{{"version":1,"timestamp":"{now}","artifact_signers":[{{"threshold":{threshold},"signers":[{listed}]}}]}}"#
    );
    let url = "https://a.example/svc.signers.json".to_owned();
    Proposal {
        project,
        signers_bytes: file.into_bytes().into(),
        origin: Origin {
            kind: OriginKind::FileServer,
            url: url.clone(),
            retrieval_url: url,
            retrieved_at: now,
        },
        submitter: submitter.public_key(),
        request: signed_request(submitter, now),
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
    let source = format!("{dir} {variant}");
    let digests = Digests { sha256: Some(Sha256::of(source.as_bytes())), sha512: None };
    let file_name = AssetName::parse("app.zip").unwrap();
    let published_files = vec![PublishedFile { file_name, size: None, source, digests }];
    assets::Release { dir, release_url: None, published_on: None, published_files }
}

pub(crate) fn revocation(file: RepoPath, revoker: &SecretKey, now: Timestamp) -> RevokeRequest {
    let document = format!(r#"{{"reason":"bad","timestamp":"{now}"}}"#);
    let statement = signed_statement(StatementKind::Revocation, &file, document.as_bytes(), revoker);
    RevokeRequest { statement, request: signed_request(revoker, now) }
}

fn signed_request(key: &SecretKey, now: Timestamp) -> SignedRequest {
    let nonce = "00000000-0000-4000-8000-000000000000";
    SignedRequest {
        timestamp: now.to_header(),
        nonce: nonce.to_owned(),
        payload: String::new(),
        public_key: key.public_key(),
        signature: sign_request(key, now, nonce, b""),
    }
}
