//! `countersign object` and `countersign withdraw`: what speaks against a release, and taking one back.

use countersign_api::{error_code::ErrorCode, requests::WithdrawBody};
use countersign_core::documents::statement::{Objection, StatementKind};
use countersign_core::documents::{index::ReleaseIndex, layout, signatures::SignatureSet};
use countersign_core::proof::to_state::{StatementRequest, ToState, ToStateError};
use countersign_core::rules::{stored, stored::ReleaseState};
use countersign_core::values::path::RepoPath;
use countersign_core::values::shown::{marked_name, plural, quoted};
use countersign_explain::progress::Names;
use serde_json::json;

use crate::args::{ObjectArgs, WithdrawArgs};
use crate::client::{session::Session, state::Shown, targets::Target};
use crate::commands::{statements, statements::files_text, statements::time_after};
use crate::evidence::release::{
    ShownRelease, find_release, no_release, quoted_whole, require_release, say_withdrawn,
};
use crate::words::{error::CliError, error::REASON_HINT, table::People};

pub(crate) async fn object(session: &Session, args: &ObjectArgs) -> Result<(), CliError> {
    let hint = "name a release; do not sign a proposed signers file that you do not want";
    let target = session.find_release(&args.names, "objected to", hint).await?;
    let Target { client, path, shown: state } = &target;
    let ShownRelease { index, text, digest } = require_release(state, path)?;
    let name = session.name_of(path, Some(&index.project_id));
    let you = session.public_key_of(Some(path), &state.listed_keys()?)?;
    let earlier = state
        .read(|files| stored::objections(files, path))?
        .entries
        .remove(&you)
        .map(|earlier| earlier.document);
    let standing = earlier.as_ref().and_then(|earlier| earlier.text.as_deref());
    if args.withdraw && standing.is_none() {
        return Err(CliError::other(
            format!("{you} has no objection to {name}"),
            format!("check --key; `countersign status {name}` shows all objections"),
        ));
    }
    let timestamp = time_after(earlier.as_ref().map(|earlier| earlier.timestamp))?;
    let document = Objection { text: args.reason.clone(), subject_digest: digest, timestamp };
    let document = String::from_utf8_lossy(&document.write()).into_owned();
    let (kind, history) = (StatementKind::Objection, state.history().clone());
    let request = StatementRequest::of_release(kind, path.clone(), text, history, document);
    let to_object = request.check().map_err(not_signed)?;
    let is_complete = matches!(stored::index_state(&state.files, path), Ok(Some(ReleaseState::Complete)));
    let mut lines = describe(&name, &index, &to_object, standing);
    if is_complete && args.reason.is_some() {
        lines.push(format!(
            "  state      complete: people can still download it, and see your objection. `countersign revoke \
             {name} --reason TEXT` is what stops them"
        ));
    }
    let names = Names::of([to_object.signers()]);
    let who = People { names: &names, you: None }.name(you);
    let question = match &args.reason {
        Some(_) => format!("Object to this release as {who}? Everyone can read it."),
        None => format!("Take your objection back, as {who}?"),
    };
    let (key, statement) = statements::sign(session, &target, &to_object, you, &lines, &question)?;
    client.submit_statement(&key, &statement).await?;
    let server = client.address();
    let text = match &args.reason {
        Some(_) if is_complete => {
            format!(
                "Objected to {name} on {server}. It is complete: all who verify it see this, and nothing is blocked"
            )
        }
        Some(_) => format!("Objected to {name} on {server}. Later signers see it first; nothing is blocked"),
        None => format!("Took your objection to {name} back on {server}"),
    };
    session.output.result(&text, &json!({"file_path": path, "objects": args.reason.is_some()}))
}

fn describe(name: &str, index: &ReleaseIndex, to_object: &ToState, standing: Option<&str>) -> Vec<String> {
    let mut lines = vec![
        format!("Objection to {name}"),
        format!("  project    {}", marked_name(index.project_id.as_str())),
        format!("  files      {}", files_text(index)),
    ];
    if let Some(standing) = standing {
        lines.push(format!("  you said   {}", quoted_whole(standing)));
    }
    match to_object.document.reason() {
        Some(reason) => lines.push(format!("  objection  {}", quoted_whole(reason))),
        None => lines.push("  objection  taken back".to_owned()),
    }
    lines.push(format!("  digest     {}", to_object.subject.digest().to_prefixed()));
    lines
}

fn not_signed(error: ToStateError) -> CliError {
    let refused = match error {
        ToStateError::Document { .. } => CliError::usage("this is not a valid objection", REASON_HINT),
        _ => CliError::unverified(
            "nothing is signed",
            "what is shown is not what its path says: the server lies or is broken",
        ),
    };
    refused.because(error)
}

// `countersign withdraw`

pub(crate) async fn withdraw(session: &Session, args: &WithdrawArgs) -> Result<(), CliError> {
    let hint = "name a release; a proposed signers file is replaced with `countersign update`";
    let found = session.find_release(&args.names, "withdrawn", hint).await?;
    let Target { client, path, shown: state } = found;
    let Some(shown) = find_release(&state, &path)? else {
        let Some(before) = state.read(|files| stored::withdrawal(files, &path))? else {
            return Err(no_release(&path));
        };
        let name = session.name_of(&path, None);
        let said = say_withdrawn(&state, &before);
        return finish_withdrawal(session, &path, &format!("{name} is withdrawn already: {said}"));
    };
    let name = session.name_of(&path, Some(&shown.index.project_id));
    match stored::index_state(&state.files, &path) {
        Ok(Some(ReleaseState::Complete)) => {
            let error = CliError::other(format!("{path} is complete, and cannot be withdrawn"), "");
            return Err(complete(error, &name));
        }
        Ok(Some(ReleaseState::Revoked)) => {
            let hint = format!("nothing is left to do; `countersign status {name}` shows the reason");
            return Err(CliError::other(format!("{path} is revoked already"), hint));
        }
        Ok(Some(ReleaseState::Collecting) | None) | Err(_) => {}
    }
    let listed = state.listed_keys()?;
    let you = session.public_key_of(Some(&path), &listed)?;
    if state.signers()?.is_some_and(|file| !file.may_register(&you)) {
        return Err(CliError::other(
            format!("{you} may not withdraw {path}: the signers file does not list it"),
            "check --key; who registered the release can do this, and every admin",
        ));
    }
    let text = describe_withdrawal(&state, &path, &name, &shown, &args.reason)?;
    session.confirm(&text, "Withdraw this release? Its signatures will be dropped.")?;
    let key = session.key(Some(&path), &listed).map_err(|error| state.naming_keys(error))?;
    let body = WithdrawBody {
        file_path: path.clone(),
        reason: args.reason.clone(),
        subject_digest: Some(shown.digest),
    };
    client.submit_withdrawal(&key, &body).await.map_err(|error| match error.code() {
        Some(ErrorCode::AlreadyComplete) => complete(error, &name),
        _ => error,
    })?;
    let text = format!("Withdrew {name} on {}. Another release can be registered there", client.address());
    finish_withdrawal(session, &path, &text)
}

fn complete(error: CliError, name: &str) -> CliError {
    error.with_hint(format!("`countersign revoke {name} --reason TEXT` revokes it"))
}

fn finish_withdrawal(session: &Session, path: &RepoPath, text: &str) -> Result<(), CliError> {
    session.output.result(text, &json!({"file_path": path, "withdrawn": true}))
}

fn describe_withdrawal(
    state: &Shown,
    path: &RepoPath,
    name: &str,
    ShownRelease { index, digest, .. }: &ShownRelease,
    reason: &str,
) -> Result<String, CliError> {
    let mut set = state.parsed(&layout::pending_signatures_of(path), SignatureSet::parse)?;
    if set.is_none() {
        set = state.parsed(&layout::signatures_of(path), SignatureSet::parse)?;
    }
    let signed = set.unwrap_or_default().entries.len();
    let lines = [
        format!("Withdrawal of {name}"),
        format!("  project  {}", marked_name(index.project_id.as_str())),
        format!("  files    {}", files_text(index)),
        format!("  signed   {signed} signature{}", plural(signed)),
        format!("  reason   {}", quoted(reason)),
        format!("  digest   {}", digest.to_prefixed()),
    ];
    Ok(lines.join("\n"))
}
