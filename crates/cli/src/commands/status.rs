//! `countersign status`: from what the server shows to everyone, so that it needs no key.

pub(crate) mod project;
mod standing;
mod wait;

use countersign_core::{documents::layout, documents::layout::Signable, rules::stored};
use countersign_explain::describe::release::describe_withdrawal;
use serde_json::json;

use crate::client::session::{Reader, Session};
use crate::client::state::{find_vetoed, vetoed_json, vetoed_text};
use crate::client::{targets::ReleaseName, targets::Target};
use crate::commands::download::say_newest;
use crate::commands::status::standing::{Said, Status, not_found, not_pending};
use crate::evidence::release::{describe_earlier_objections, earlier_objections_json, say_withdrawn};
use crate::{args::StatusArgs, words::error::CliError, words::error::ErrorKind};

pub(crate) async fn run(session: &Session, args: &StatusArgs) -> Result<(), CliError> {
    let name = ReleaseName::parse_one(&args.names)?;
    let (target, is_project) = session.find_named(&name, Reader::Signer).await?;
    let Target { path, shown, .. } = &target;
    let subject = layout::signable(path).ok_or_else(|| {
        CliError::usage(format!("{path} collects no signatures"), "name a release or a project")
    })?;
    if args.wait {
        let waited = wait::run(session, &target, &subject, args).await;
        let state = match &waited {
            Ok(()) => "complete",
            Err(error) if error.kind() == ErrorKind::TimedOut => "waiting",
            Err(_) => return waited,
        };
        args.outputs.append(&[("INDEX", path.as_str()), ("STATE", state)])?;
        return waited;
    }
    let (state, text, value) = if is_project {
        project::find(session, &target).await?
    } else if let Some(status) = Status::find(shown, path)? {
        let mut text = status.text(&session.name_of(path, None), session.own_key(), session.output);
        if status.is_revoked() && !session.output.is_json() {
            text.extend(say_newest(session, shown).await.map(|newest| format!("\n{newest}")));
        }
        (status.state_name(), text, status.json(path))
    } else {
        match subject {
            Signable::Index => find_withdrawn(session, &target)?,
            Signable::PendingSigners { .. } => find_last_veto(session, &target)?,
        }
    };
    args.outputs.append(&[("INDEX", path.as_str()), ("STATE", state)])?;
    session.output.answer(&session.output.list(&text), &value)
}

/// What vetoed signers leave behind.
fn find_last_veto(session: &Session, Target { path, shown, .. }: &Target) -> Result<Said, CliError> {
    let vetoed = find_vetoed(shown)?.ok_or_else(|| not_pending(path))?;
    let (name, is) = (session.name_of(path, None), session.output.bad("vetoed"));
    let text = format!("{name}: {is} {}. Nothing is pending now", vetoed_text(&vetoed));
    let mut value = vetoed_json(&vetoed);
    value["file_path"] = json!(path);
    value["is_complete"] = json!(false);
    value["vetoed"] = json!(true);
    Ok(("vetoed", text, value))
}

/// What a withdrawn release leaves behind.
fn find_withdrawn(session: &Session, Target { path, shown, .. }: &Target) -> Result<Said, CliError> {
    let withdrawal = shown.read(|files| stored::withdrawal(files, path))?.ok_or_else(|| not_found(path))?;
    let (name, is) = (session.name_of(path, None), session.output.strong("withdrawn"));
    let mut text = format!("{name}: {is} {}", say_withdrawn(shown, &withdrawal));
    let described = shown.read(|files| describe_withdrawal(files, path))?;
    let earlier = described.map(|described| described.objections).unwrap_or_default();
    text.extend(describe_earlier_objections(&earlier, None).iter().map(|line| format!("\n  {line}")));
    let value = json!({
        "file_path": path,
        "is_complete": false,
        "withdrawn": true,
        "reason": withdrawal.body.reason,
        "withdrawn_by": withdrawal.request.public_key,
        "withdrawn_at": withdrawal.request.timestamp,
        "earlier_objections": earlier_objections_json(&earlier),
    });
    Ok(("withdrawn", text, value))
}
