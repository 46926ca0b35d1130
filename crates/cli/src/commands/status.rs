//! `countersign status`: from what the server shows to everyone, so that it needs no key.

pub(crate) mod project;
mod standing;
mod wait;

use countersign_core::documents::{layout, layout::Signable};
use countersign_explain::describe::release::describe_withdrawal;
use serde_json::json;

use crate::client::session::{Reader, Session};
use crate::client::state::{find_vetoed, vetoed_json, vetoed_text};
use crate::client::{targets::ReleaseName, targets::Target};
use crate::commands::download::say_newest;
use crate::commands::status::standing::{Status, not_found, not_pending};
use crate::evidence::release::{
    describe_earlier_objections, earlier_objections_json, find_withdrawal, say_withdrawn,
};
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
    if is_project {
        return project::show(session, &target, args).await;
    }
    let Some(status) = Status::find(shown, path)? else {
        return match subject {
            Signable::Index => show_withdrawn(session, &target, args),
            Signable::PendingSigners { .. } => show_vetoed(session, &target, args),
        };
    };
    args.outputs.append(&[("INDEX", path.as_str()), ("STATE", status.state_name())])?;
    let name = session.name_of(path, None);
    let you = session.own_key();
    let mut text = session.output.list(&status.text(&name, you, session.output));
    if status.is_revoked() && !session.output.is_json() {
        text.extend(say_newest(session, shown).await.map(|newest| format!("\n{newest}")));
    }
    session.output.answer(&text, &status.json(path))
}

/// What vetoed signers leave behind.
fn show_vetoed(session: &Session, target: &Target, args: &StatusArgs) -> Result<(), CliError> {
    let Target { path, shown, .. } = target;
    let vetoed = find_vetoed(shown)?.ok_or_else(|| not_pending(path))?;
    args.outputs.append(&[("INDEX", path.as_str()), ("STATE", "vetoed")])?;
    let name = session.name_of(path, None);
    let said = vetoed_text(&vetoed);
    let text = format!("{name}: {} {said}. Nothing is pending now", session.output.bad("vetoed"));
    let mut value = vetoed_json(&vetoed);
    value["file_path"] = json!(path);
    value["is_complete"] = json!(false);
    value["vetoed"] = json!(true);
    session.output.answer(&session.output.list(&text), &value)
}

/// What a withdrawn release leaves behind.
fn show_withdrawn(session: &Session, target: &Target, args: &StatusArgs) -> Result<(), CliError> {
    let Target { path, shown, .. } = target;
    let withdrawal = find_withdrawal(shown, path)?.ok_or_else(|| not_found(path))?;
    args.outputs.append(&[("INDEX", path.as_str()), ("STATE", "withdrawn")])?;
    let name = session.name_of(path, None);
    let said = say_withdrawn(shown, &withdrawal);
    let mut text = format!("{name}: {} {said}", session.output.strong("withdrawn"));
    let described = describe_withdrawal(&shown.files, path).map_err(|error| shown.unusable(error))?;
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
    session.output.answer(&session.output.list(&text), &value)
}
