//! `countersign revoke`

mod offline;
mod waiting;

use countersign_core::{
    documents::{
        index::ReleaseIndex,
        layout::{self, Signable},
        revocation::{Revocation, RevokeBody},
        signatures::SignatureSet,
    },
    proof::to_revoke::{RevocationRequest, ToRevoke, ToRevokeError},
    values::{
        digest::Sha512,
        key::PublicKey,
        path::RepoPath,
        shown::{quoted, shown_text},
        time::Timestamp,
    },
};
use countersign_explain::{progress::Names, tally::Tally};
use serde_json::json;

use crate::{
    args::RevokeArgs,
    client::{ServerClient, now},
    error::CliError,
    people::{People, when_text},
    prompt,
    release_names::ReleaseName,
    session::{Reader, Session},
    shown_release::{ShownRelease, require_release},
    targets::Target,
};

pub(crate) async fn run(session: &Session, args: &RevokeArgs) -> Result<(), CliError> {
    if let Some(file) = &args.carried.submit {
        return offline::submit(session, file, args).await;
    }
    if let (Some(file), Some(output)) = (&args.carried.detached, &args.carried.output) {
        return offline::sign(session, file, output);
    }
    let name = ReleaseName::parse_one(&args.names)?;
    let Target { client, path } = session.find_signable(&name, Reader::Signer).await?;
    if let Some(file) = &args.carried.export {
        return offline::export(session, &client, &path, args, file).await;
    }
    let shown = read_index(&client, &path).await?;
    let name = session.name_of(&path, Some(&shown.index.project_id));
    if let Some(revoked) = client.parsed(&layout::revocation_of(&path), Revocation::parse).await? {
        let text = format!("{name} is revoked already, for the reason {}", quoted(&revoked.reason));
        return finish(session, &client, &path, args, text).await;
    }
    let pending = find_pending(&client, &path, &shown).await?;
    if let Some(pending) = &pending {
        let you = session.public_key_at(&client, &path).await?;
        if let Some(at) = pending.signed_at(&you).filter(|_| pending.is_meant_by(args)) {
            let text = format!(
                "You signed the revocation of {name} on {}: more signatures are needed",
                when_text(at)
            );
            return session.output.result(&text, &json!({"file_path": path.as_str(), "revoked": false}));
        }
    }
    let key = session.key_at(&client, Some(&path)).await?;
    let document = choose_document(args, shown.digest, pending.as_ref(), Some(key.public_key()))?;
    // What is signed is what is read here, also where it came from the server.
    let revocation = read_document(&document)?;
    let mut lines = describe(&name, &shown.index, shown.digest, &revocation);
    if let Some(pending) = pending.as_ref().filter(|pending| pending.text == document) {
        lines.push(describe_progress(&pending.to_revoke, Some(key.public_key())));
    }
    session.output.show_question(&lines.join("\n"), session.confirmation());
    prompt::confirm(session.confirmation(), "Revoke this release, for good?")?;
    let body = RevokeBody {
        file_path: path.clone(),
        signature: key.sign(&Sha512::of(document.as_bytes()))?,
        revocation_json: document,
        public_key: key.public_key(),
    };
    // The server takes another one only if no key that can revoke stands behind the pending one.
    let is_revoked = client.submit_revocation(&key, &body).await.map_err(|error| match &pending {
        Some(pending) if args.reason.is_some() => error.with_hint(format!(
            "a revocation is pending for the reason {}; leave --reason out to co-sign that one",
            quoted(&pending.to_revoke.document.reason)
        )),
        Some(_) | None => error,
    })?;
    let text = say_done(&name, is_revoked);
    if is_revoked {
        return finish(session, &client, &path, args, text).await;
    }
    session.output.result(&text, &json!({"file_path": path.as_str(), "revoked": false}))
}

/// It is revoked. What is left is to know since when no one can be shown anything else.
async fn finish(
    session: &Session,
    client: &ServerClient,
    path: &RepoPath,
    args: &RevokeArgs,
    text: String,
) -> Result<(), CliError> {
    session.output.line(&text);
    let waiting::Aftermath { text, mut value } = waiting::wait(session, client, path, args).await?;
    value["file_path"] = json!(path.as_str());
    value["revoked"] = json!(true);
    session.output.result(&text, &value)
}

fn say_done(name: &str, is_revoked: bool) -> String {
    if is_revoked {
        format!("Revoked {name}")
    } else {
        format!("Recorded. More signatures are needed, each with `countersign revoke {name}`")
    }
}

/// The pending document, byte for byte, or a new one where the reason is another.
fn choose_document(
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

fn read_document(text: &str) -> Result<Revocation, CliError> {
    Revocation::parse(text.as_bytes()).map_err(|error| {
        CliError::usage("this is no revocation", "give a --reason of 1 to 1,000 characters").because(error)
    })
}

fn describe(name: &str, index: &ReleaseIndex, digest: Sha512, revocation: &Revocation) -> Vec<String> {
    let files: Vec<&str> = index.published_files.iter().map(|file| file.file_name.as_str()).collect();
    vec![
        format!("Revocation of {name}"),
        format!("  project  {}", index.project_id),
        format!("  files    {}", shown_text(&files.join(", "))),
        format!("  reason   {}", quoted(&revocation.reason)),
        format!("  digest   {}", digest.to_prefixed()),
    ]
}

/// Who stands behind a document already, under the signers in force.
fn describe_progress(to_revoke: &ToRevoke, you: Option<PublicKey>) -> String {
    let signers = &to_revoke.chain.last().signers;
    let tally = Tally::of_revocation(signers, &to_revoke.signed);
    let names = Names::of([signers]);
    let people = People { names: &names, you };
    format!("  signed   {tally}: {}", people.list_or(to_revoke.signed.iter().copied(), "no one yet"))
}

async fn read_index(client: &ServerClient, path: &RepoPath) -> Result<ShownRelease, CliError> {
    if layout::signable(path) != Some(Signable::Index) {
        return Err(CliError::usage(
            format!("{path} cannot be revoked"),
            "name a release; signers files are replaced with `countersign update`",
        ));
    }
    require_release(client, path).await
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
struct Pending {
    /// What is co-signed, byte for byte.
    text: String,
    request: RevocationRequest,
    to_revoke: ToRevoke,
}

impl Pending {
    fn is_meant_by(&self, args: &RevokeArgs) -> bool {
        args.reason.as_ref().is_none_or(|reason| *reason == self.to_revoke.document.reason)
    }

    /// When this key signed it. `None` if there is something left for it to do: once a rotation has made the signatures
    /// enough, any revoker can carry it out (D20).
    fn signed_at(&self, key: &PublicKey) -> Option<Timestamp> {
        let Tally { collected, needed } =
            Tally::of_revocation(&self.to_revoke.chain.last().signers, &self.to_revoke.signed);
        let signed = self.to_revoke.signed.contains(key) && collected < needed;
        self.request.collected.entries.get(key).filter(|_| signed).map(|entry| entry.collected_at)
    }
}

/// Co-signing signs what others wrote, so it must be about this file, and by someone who may revoke or once might.
async fn find_pending(
    client: &ServerClient,
    path: &RepoPath,
    shown: &ShownRelease,
) -> Result<Option<Pending>, CliError> {
    let Some(text) = client.document(&layout::pending_revocation_of(path)).await? else { return Ok(None) };
    let signatures = layout::pending_signatures_of(&layout::revocation_of(path));
    let request = RevocationRequest {
        path: path.clone(),
        index: shown.text.clone(),
        revocation: text.clone(),
        history: client.history(&shown.index.project_id).await?,
        collected: client.parsed(&signatures, SignatureSet::parse).await?.unwrap_or_default(),
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
