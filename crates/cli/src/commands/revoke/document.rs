//! What is revoked, and the document that says so: read, chosen, and shown to the user.

use countersign_core::{
    documents::{
        layout::{self, Signable},
        revocation::Revocation,
        signatures::SignatureSet,
    },
    proof::to_revoke::{RevocationRequest, ToRevoke, ToRevokeError},
    rules::{quorum, tally::Tally},
    values::{
        digest::Sha512,
        key::PublicKey,
        path::RepoPath,
        shown::{marked_name, quoted, shown_text},
        time::Timestamp,
    },
};
use countersign_explain::progress::Names;

use crate::{
    args::RevokeArgs,
    client::{now, state::Shown},
    error::{CliError, REASON_HINT},
    people::People,
    shown_release::{ShownRelease, require_release},
};

pub(super) fn say_done(name: &str, is_revoked: bool) -> String {
    if is_revoked {
        format!("Revoked {name}")
    } else {
        format!("Recorded. More signatures are needed, each with `countersign revoke {name}`")
    }
}

/// The pending document, byte for byte, or a new one where the reason is another.
pub(super) fn choose_document(
    args: &RevokeArgs,
    digest: Sha512,
    pending: Option<&Pending>,
    initiator: Option<PublicKey>,
) -> Result<String, CliError> {
    match pending.filter(|pending| pending.is_meant_by(args)) {
        Some(pending) => Ok(pending.text.clone()),
        None => begin(args, digest, initiator),
    }
}

/// What is signed, with all that shows what it is about.
pub(super) fn request_for(
    state: &Shown,
    path: &RepoPath,
    shown: ShownRelease,
    pending: Option<&Pending>,
    document: String,
) -> Result<RevocationRequest, CliError> {
    if let Some(pending) = pending.filter(|pending| pending.text == document) {
        return Ok(pending.request.clone());
    }
    Revocation::parse(document.as_bytes())
        .map_err(|error| CliError::usage("this is not a valid revocation", REASON_HINT).because(error))?;
    Ok(RevocationRequest {
        path: path.clone(),
        history: state.history().clone(),
        index: shown.text,
        revocation: document,
        collected: SignatureSet::default(),
    })
}

pub(super) fn check(request: &RevocationRequest) -> Result<ToRevoke, CliError> {
    request.check().map_err(|error| {
        CliError::unverified(
            format!("the revocation of {} is not signed", request.path),
            "what is shown is not what its path says: the server lies, or the file was changed on the way",
        )
        .because(error)
    })
}

pub(super) fn describe(name: &str, to_revoke: &ToRevoke) -> Vec<String> {
    let ToRevoke { index, index_digest, document, .. } = to_revoke;
    let files: Vec<&str> = index.published_files.iter().map(|file| file.file_name.as_str()).collect();
    vec![
        format!("Revocation of {name}"),
        format!("  project  {}", marked_name(index.project_id.as_str())),
        format!("  files    {}", shown_text(&files.join(", "))),
        format!("  reason   {}", quoted(&document.reason)),
        format!("  digest   {}", index_digest.to_prefixed()),
    ]
}

/// Who stands behind a document already, under the signers in force.
pub(super) fn describe_progress(to_revoke: &ToRevoke, you: Option<PublicKey>) -> String {
    let signers = &to_revoke.chain.last().signers;
    let tally = Tally::of_revocation(signers, &to_revoke.signed);
    let names = Names::of([signers]);
    let people = People { names: &names, you };
    format!("  signed   {tally}: {}", people.list_or(to_revoke.signed.iter().copied(), "no one yet"))
}

pub(super) fn read_index(state: &Shown, path: &RepoPath) -> Result<ShownRelease, CliError> {
    if layout::signable(path) != Some(Signable::Index) {
        return Err(CliError::usage(
            format!("{path} cannot be revoked"),
            "name a release; signers files are replaced with `countersign update`",
        ));
    }
    require_release(state, path)
}

fn begin(args: &RevokeArgs, digest: Sha512, initiator: Option<PublicKey>) -> Result<String, CliError> {
    let reason = args.reason.clone().ok_or_else(|| {
        CliError::usage("a revocation needs a reason", "say why with --reason TEXT; everyone can read it")
    })?;
    let timestamp = now()?.to_whole_seconds();
    let document = Revocation { reason, timestamp, subject_digest: Some(digest), initiator };
    Ok(String::from_utf8_lossy(&document.write()).into_owned())
}

/// A revocation that others began.
pub(super) struct Pending {
    /// What is co-signed, byte for byte.
    pub(super) text: String,
    pub(super) request: RevocationRequest,
    pub(super) to_revoke: ToRevoke,
}

impl Pending {
    pub(super) fn is_meant_by(&self, args: &RevokeArgs) -> bool {
        args.reason.as_ref().is_none_or(|reason| *reason == self.to_revoke.document.reason)
    }

    /// When this key signed it. `None` if there is something left for it to do: once a rotation has made the signatures
    /// enough, any revoker can carry it out (D20).
    pub(super) fn signed_at(&self, key: &PublicKey) -> Option<Timestamp> {
        let ToRevoke { chain, signed, .. } = &self.to_revoke;
        let is_enough = quorum::is_met(&chain.last().signers.revocation_groups(), signed);
        let waits = signed.contains(key) && !is_enough;
        self.request.collected.entries.get(key).filter(|_| waits).map(|entry| entry.collected_at)
    }
}

/// Co-signing signs what others wrote, so it must be about this file, and by someone who may revoke or once might.
pub(super) fn find_pending(
    state: &Shown,
    path: &RepoPath,
    shown: &ShownRelease,
) -> Result<Option<Pending>, CliError> {
    let Some(text) = state.document(&layout::pending_revocation_of(path)) else { return Ok(None) };
    let signatures = layout::pending_revocation_signatures_of(path);
    let request = RevocationRequest {
        path: path.clone(),
        index: shown.text.clone(),
        revocation: text.clone(),
        history: state.history().clone(),
        collected: state.parsed(&signatures, SignatureSet::parse)?.unwrap_or_default(),
    };
    let to_revoke = request.check();
    let to_revoke = to_revoke.and_then(|to_revoke| match to_revoke.signed.is_empty() {
        true => Err(ToRevokeError::NotBegun),
        false => Ok(to_revoke),
    });
    let to_revoke = to_revoke.map_err(|error| {
        CliError::unverified(
            "the server shows a pending revocation that cannot be joined",
            "nothing was signed: the server lies or is broken",
        )
        .because(error)
    })?;
    Ok(Some(Pending { text, request, to_revoke }))
}
