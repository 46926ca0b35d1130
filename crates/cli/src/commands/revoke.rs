//! `countersign revoke`

use countersign_api::answers::RevokedResponse;
use countersign_core::{
    documents::{
        index::ReleaseIndex,
        layout::{self, Signable},
        revocation::{Revocation, RevokeBody},
        signatures::SignatureSet,
        signers::keys_of,
    },
    rules::{
        chain::{self, VerifiedLink},
        place::check_place,
    },
    values::{
        digest::Sha512,
        path::RepoPath,
        shown::{quoted, shown_text},
    },
};
use serde_json::json;

use crate::{
    args::RevokeArgs,
    client::{ServerCall, ServerClient, now},
    error::CliError,
    keys::SigningKey,
    prompt,
    release_names::ReleaseName,
    session::Session,
    targets::{Reader, Target},
};

pub(crate) async fn run(session: &Session, args: &RevokeArgs) -> Result<(), CliError> {
    let name = ReleaseName::parse_one(&args.names)?;
    let Target { client, path } = session.find_signable(&name, Reader::Signer).await?;
    let path = &path;
    let key = session.key_at(&client, Some(path)).await?;
    let (index, digest) = read_index(&client, path).await?;
    let pending = find_pending(&client, path, &index, digest).await?;
    let document = match &pending {
        Some(pending) if args.reason.as_ref().is_none_or(|reason| *reason == pending.reason) => {
            pending.text.clone()
        }
        Some(_) | None => begin(args, digest, &key)?,
    };
    // What is signed is what is read here, also where it came from the server.
    let revocation = Revocation::parse(document.as_bytes()).map_err(|error| {
        CliError::usage("this is no revocation", "give a --reason of 1 to 1,000 characters").because(error)
    })?;
    let files: Vec<&str> = index.published_files.iter().map(|file| file.file_name.as_str()).collect();
    session.output.show(&format!(
        "Revocation of {path}\n  project  {}\n  files    {}\n  reason   {}\n  digest   {}",
        index.project_id,
        shown_text(&files.join(", ")),
        quoted(&revocation.reason),
        digest.to_prefixed(),
    ));
    prompt::confirm(session.confirmation(), "Revoke this release, for good?")?;
    let body = RevokeBody {
        file_path: path.clone(),
        signature: key.sign(&Sha512::of(document.as_bytes()))?,
        revocation_json: document,
        public_key: key.public_key(),
    };
    let answer = client.ask(&key, ServerCall::Revoke(&body), RevokedResponse::parse).await;
    // The server takes another one only if no key that can revoke stands behind the pending one.
    let answer = answer.map_err(|error| match &pending {
        Some(pending) if args.reason.is_some() => error.with_hint(format!(
            "a revocation is pending for the reason {}; leave --reason out to co-sign that one",
            quoted(&pending.reason)
        )),
        Some(_) | None => error,
    })?;
    let text = if answer.revoked {
        format!("Revoked {path}")
    } else {
        format!("Recorded. More signatures are needed, each with `countersign revoke {path}`")
    };
    session.output.result(&text, &json!({"file_path": path.as_str(), "revoked": answer.revoked}))
}

async fn read_index(client: &ServerClient, path: &RepoPath) -> Result<(ReleaseIndex, Sha512), CliError> {
    if layout::signable(path) != Some(Signable::Index) {
        return Err(CliError::usage(
            format!("{path} cannot be revoked"),
            "give the path of a release's index (…/svc.index.json); signers files are replaced with `update`",
        ));
    }
    let text = client.document(path).await?.ok_or_else(|| {
        CliError::other(
            format!("the server has no {path}"),
            "check the path: `countersign status PATH` shows more",
        )
    })?;
    let wrong = |reason: String| {
        let message = format!("what the server shows as {path} is not the index of that release");
        CliError::unverified(message, "nothing was signed: the server lies or is broken").because(reason)
    };
    let index = ReleaseIndex::parse(text.as_bytes()).map_err(|error| wrong(error.to_string()))?;
    check_place(&index, path).map_err(|error| wrong(error.to_string()))?;
    Ok((index, Sha512::of(text.as_bytes())))
}

fn begin(args: &RevokeArgs, digest: Sha512, key: &SigningKey) -> Result<String, CliError> {
    let reason = args.reason.clone().ok_or_else(|| {
        CliError::usage("a revocation needs a reason", "say why with --reason TEXT; everybody can read it")
    })?;
    let document = Revocation {
        reason,
        timestamp: now()?.to_whole_seconds(),
        subject_digest: Some(digest),
        initiator: Some(key.public_key()),
    };
    Ok(String::from_utf8_lossy(&document.write()).into_owned())
}

/// A revocation that others began.
struct Pending {
    /// What is co-signed, byte for byte.
    text: String,
    reason: String,
}

/// Co-signing signs what others wrote, so it must be about this file, and by somebody who may revoke or once might.
async fn find_pending(
    client: &ServerClient,
    path: &RepoPath,
    index: &ReleaseIndex,
    digest: Sha512,
) -> Result<Option<Pending>, CliError> {
    let Some(text) = client.document(&layout::pending_revocation_of(path)).await? else { return Ok(None) };
    let wrong = |what: &str| {
        let message = format!("the server shows a pending revocation that {what}");
        CliError::unverified(message, "nothing was signed: the server lies or is broken")
    };
    let document = Revocation::parse(text.as_bytes()).ok();
    let document = document.filter(|document| document.subject_digest == Some(digest));
    let document = document.ok_or_else(|| wrong("is not of this file"))?;
    let history = client.history(&index.project_id).await?;
    let chain = chain::verify(&history, &index.project_id)
        .map_err(|error| wrong("has no signers behind it").because(error))?;
    let signatures = layout::pending_signatures_of(&layout::revocation_of(path));
    let set = client.parsed(&signatures, SignatureSet::parse).await?.unwrap_or_default();
    let signed = set.verifying_signers(text.as_bytes());
    let began =
        |link: &VerifiedLink| keys_of(&link.signers.revocation_groups()).any(|key| signed.contains(&key));
    if !chain.links.iter().any(began) {
        return Err(wrong("no key began that can revoke"));
    }
    Ok(Some(Pending { text, reason: document.reason }))
}
