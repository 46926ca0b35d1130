//! What a master is shown and told.

use countersign_core::{
    documents::layout::{self, Signable},
    proof::{
        to_sign::ToSign,
        to_veto::{ToVeto, ToVetoError},
    },
    rules::tally::Tally,
    values::{key::PublicKey, path::RepoPath, shown::quoted},
};
use countersign_explain::progress::Names;

use crate::{
    error::{CliError, REASON_HINT},
    people::People,
    review::describe_changes,
    session::Session,
    waiting::{Waiting, due_text},
};

pub(super) const QUESTION: &str = "Veto these signers?";

/// The project whose pending signers these are.
pub(super) fn project_of(path: &RepoPath) -> Result<RepoPath, CliError> {
    match layout::signable(path) {
        Some(Signable::PendingSigners { project }) => Ok(project),
        Some(Signable::Index) | None => Err(CliError::usage(
            format!("{path} cannot be vetoed"),
            "name a project whose new signers are pending; a release is revoked",
        )),
    }
}

pub(super) fn check_master(
    to_veto: &ToVeto<'_>,
    you: &PublicKey,
    project: &RepoPath,
) -> Result<(), CliError> {
    if to_veto.masters().any(|master| master == *you) {
        return Ok(());
    }
    Err(CliError::other(
        format!("{you} is not a master key of {project}, and only masters can veto"),
        "check --key; an admin can replace the pending file: `countersign update SIGNERS_URL`",
    ))
}

/// `waiting`: what the server shows, or showed when it was exported.
pub(super) fn describe(
    session: &Session,
    to_sign: &ToSign,
    to_veto: &ToVeto<'_>,
    waiting: Option<&Waiting>,
) -> Vec<String> {
    let names = Names::of([&to_veto.chain.last().signers]);
    let people = People { names: &names, you: None };
    let mut lines = vec![
        session.output.strong(&format!("Veto of the proposed signers of {}", to_sign.project())),
        format!("  digest     {}", to_sign.digest().to_prefixed()),
    ];
    lines.extend(describe_changes(to_sign, session.output));
    lines.extend(waiting.map(|waiting| match waiting.until {
        Some(until) => format!("  {} unless it is vetoed", due_text(until)),
        None => "  does not have all signatures yet".to_owned(),
    }));
    lines.push(format!("  reason     {}", quoted(&to_veto.document.veto)));
    let tally = Tally::of(to_veto.master_groups(), &to_veto.signed);
    let signed = people.list_or(to_veto.signed.iter().copied(), "no one yet");
    lines.push(format!("  vetoed by  {signed}: {tally}"));
    lines
}

pub(super) fn say_done(project: &RepoPath, is_vetoed: bool) -> String {
    if is_vetoed {
        return format!("Vetoed: the proposed signers of {project} are gone");
    }
    format!("Recorded. More masters have to sign, each with `countersign veto {project}`, before it is due")
}

pub(super) fn not_vetoed(error: ToVetoError) -> CliError {
    match &error {
        ToVetoError::NotAnUpdate | ToVetoError::NoMasters => CliError::other(
            format!("there is no veto here: {error}"),
            "do not sign what you do not want; an admin can replace the pending file with `countersign update`",
        ),
        ToVetoError::Document(_) if error.to_string().contains("`veto`") => {
            CliError::usage("this is not a valid veto", REASON_HINT).because(error)
        }
        ToVetoError::Document(_) | ToVetoError::OtherProposal => CliError::unverified(
            "the veto that is shown cannot be signed",
            "nothing was signed: the server lies or is broken, or the file was changed on the way. \
             Your own --reason begins another one",
        )
        .because(error),
    }
}
