//! `countersign revoke`

mod waiting;

use countersign_core::documents::layout;
use countersign_core::documents::statement::{Revocation, StatementKind};
use countersign_core::proof::to_sign::{SigningRequest, Subject};
use countersign_core::proof::to_state::{StatementRequest, ToState, ToStateError};
use countersign_core::rules::{quorum, stored, stored::ReleaseState};
use countersign_core::values::shown::{marked_name, quoted};
use countersign_core::values::{digest::Sha512, key::PublicKey, path::RepoPath, time::Timestamp};
use countersign_explain::{progress::Names, words::list_called};
use serde_json::{Value, json};

use crate::args::RevokeArgs;
use crate::client::{ServerClient, now, state::Shown, submission::Submitted};
use crate::client::{session::Session, targets::Target};
use crate::commands::statements::{
    self, StatementCommand, SubmittedStatement, describe_signed, files_text, is_meant, say_begun,
};
use crate::evidence::{release::ShownRelease, release::require_release};
use crate::words::error::{CliError, REASON_HINT};
use crate::words::{output::Several, table::when_text};

const REVOKE: StatementCommand = StatementCommand {
    kind: StatementKind::Revocation,
    name: "revoke",
    names: "NAME --reason TEXT",
    question: "Sign the revocation of this release, for good?",
    check,
    not_yours: not_a_revoker,
    describe: |session, request, to_revoke, you| {
        let name = session.name_of(to_revoke.path(), Some(to_revoke.subject.project()));
        let mut lines = describe(&name, to_revoke);
        lines.push(session.output.list(&describe_progress(request, to_revoke, you)));
        lines
    },
    subject: |session, path| Ok(session.name_of(path, None)),
    say_submitted,
};

pub(crate) async fn run(session: &Session, args: &RevokeArgs) -> Result<(), CliError> {
    if let Some(file) = &args.carried.submit {
        let (several, done) = REVOKE.submit(session, file).await?;
        return report_submitted(session, args, several, done).await;
    }
    if let Some(signed) = REVOKE.sign_carried(session, &args.carried) {
        return signed;
    }
    let hint = "name a release; signers files are replaced with `countersign update`";
    let target = session.find_release(&args.names, "revoked", hint).await?;
    let Target { client, path, shown: state } = &target;
    let ShownRelease { index, text, digest } = require_release(state, path)?;
    let name = session.name_of(path, Some(&index.project_id));
    if let Ok(Some(ReleaseState::Collecting)) = stored::index_state(&state.files, path) {
        return Err(CliError::other(
            format!("{path} is not signed by enough people yet, and only a complete release can be revoked"),
            format!("`countersign withdraw {name} --reason TEXT` takes it back"),
        ));
    }
    let subject = SigningRequest::of_index(path.clone(), text, state.history().clone());
    if let Some(file) = &args.carried.export {
        let begun = find_pending(state, &subject)?.map(|(begun, _)| begun);
        // The key is elsewhere, so that a new document names no initiator.
        let request = choose(args, subject, digest, begun.as_ref(), None)?;
        return REVOKE.export(session, request, &session.name_of(path, None), file);
    }
    if let Some(revoked) = state.parsed(&layout::revocation_of(path), Revocation::parse)? {
        let text = format!("{name} is revoked already, for the reason {}", quoted(&revoked.reason));
        return finish(session, client, path, args, text).await;
    }
    let pending = find_pending(state, &subject)?;
    let you = session.public_key_of(Some(path), &state.listed_keys()?)?;
    let recorded = |text: &str| session.output.result(text, &json!({"file_path": path, "revoked": false}));
    if let Some((begun, to_revoke)) = &pending
        && let Some(at) = signed_at(begun, to_revoke, &you)
        && is_meant(begun, args.reason.as_ref())
    {
        let progress = say_begun(state, path).unwrap_or_default();
        return recorded(&format!("You signed the revocation of {name} on {}{progress}", when_text(at)));
    }
    let begun = pending.map(|(begun, _)| begun);
    let request = choose(args, subject, digest, begun.as_ref(), Some(you))?;
    let to_revoke = check(&request)?;
    REVOKE.check_key(&to_revoke, &you)?;
    let mut lines = describe(&name, &to_revoke);
    if !to_revoke.signed.is_empty() {
        lines.push(session.output.list(&describe_progress(&request, &to_revoke, you)));
    }
    let question = "Revoke this release, for good?";
    let (key, statement) = statements::sign(session, &target, &to_revoke, you, &lines, question)?;
    // The server takes another one only if no key that can revoke stands behind the pending one.
    let submitted = client.submit_statement(&key, &statement).await.map_err(|error| match &begun {
        Some(begun) if args.reason.is_some() => error.with_hint(format!(
            "a revocation is pending for the reason {}; leave --reason out to join it",
            quoted(&begun.reason().unwrap_or_default())
        )),
        Some(_) | None => error,
    })?;
    // However often the request had to be sent, this act did it.
    let submitted = Submitted { was_done: false, ..submitted };
    let mut text = say_submitted(&name, &client.address(), submitted);
    if submitted.answer {
        return finish(session, client, path, args, text).await;
    }
    if let Ok(state) = client.state_at(path).await {
        text.extend(say_begun(&state, path));
    }
    recorded(&text)
}

/// Ends a revocation that is complete: finds out since when no one can be shown anything else.
async fn finish(
    session: &Session,
    client: &ServerClient,
    path: &RepoPath,
    args: &RevokeArgs,
    text: String,
) -> Result<(), CliError> {
    session.output.line(&text);
    let waiting::Aftermath { text, log } = waiting::wait(session, client, path, args).await?;
    session.output.result(&text, &json!({"file_path": path, "revoked": true, "log": log}))
}

/// Waits only after all are handed in: the next ones need not wait for the witnesses of the first.
async fn report_submitted(
    session: &Session,
    args: &RevokeArgs,
    mut several: Several,
    done: Vec<SubmittedStatement>,
) -> Result<(), CliError> {
    let mut revocations = Vec::new();
    for done in &done {
        let (path, mut value) = (&done.statement.file_path, done.json("revoked"));
        value["log"] = Value::Null;
        if done.submitted.answer
            && let Some(waiting::Aftermath { text, log }) =
                several.keep_later(path.as_str(), waiting::wait(session, &done.client, path, args).await)
        {
            session.output.line(&text);
            value["log"] = log;
        }
        revocations.push(value);
    }
    several.finish("", json!({"revocations": revocations}))
}

fn say_submitted(name: &str, server: &str, Submitted { answer, was_done }: Submitted<bool>) -> String {
    match (was_done, answer) {
        (false, true) => format!("Revoked {name} on {server}"),
        (false, false) => {
            format!("Recorded on {server}. Others join it with `countersign revoke {name}`")
        }
        (true, true) => format!("{name} is revoked already on {server}"),
        (true, false) => {
            format!("The server {server} has this signature on the revocation of {name}: more are needed")
        }
    }
}

/// Co-signing signs what others wrote, so it must be about this file, and by someone who may revoke or once might.
fn find_pending(
    state: &Shown,
    subject: &SigningRequest,
) -> Result<Option<(StatementRequest, ToState)>, CliError> {
    let Some(begun) = REVOKE.find_begun(state, subject)? else { return Ok(None) };
    let to_revoke = begun.check().and_then(|to_revoke| match to_revoke.signed.is_empty() {
        true => Err(ToStateError::NotBegun),
        false => Ok(to_revoke),
    });
    let to_revoke = to_revoke.map_err(|error| {
        CliError::unverified(
            "the server shows a pending revocation that cannot be joined",
            "nothing was signed: the server lies or is broken",
        )
        .because(error)
    })?;
    Ok(Some((begun, to_revoke)))
}

/// When this key signed a begun revocation. `None` if there is something left for it to do: once a rotation has made
/// the signatures enough, any revoker can carry it out (D20).
fn signed_at(begun: &StatementRequest, to_revoke: &ToState, key: &PublicKey) -> Option<Timestamp> {
    let is_enough = quorum::is_met(&to_revoke.signers().revocation_groups(), &to_revoke.signed);
    let waits = to_revoke.signed.contains(key) && !is_enough;
    begun.collected.entries.get(key).filter(|_| waits).map(|entry| entry.collected_at)
}

fn choose(
    args: &RevokeArgs,
    subject: SigningRequest,
    digest: Sha512,
    begun: Option<&StatementRequest>,
    initiator: Option<PublicKey>,
) -> Result<StatementRequest, CliError> {
    REVOKE.choose_request(subject, args.reason.as_ref(), begun, |reason| {
        let timestamp = now()?.to_whole_seconds();
        let document = Revocation { reason, timestamp, subject_digest: Some(digest), initiator }.write();
        Revocation::parse(&document)
            .map_err(|error| CliError::usage("this is not a valid revocation", REASON_HINT).because(error))?;
        Ok(document)
    })
}

fn check(request: &StatementRequest) -> Result<ToState, CliError> {
    request.check().map_err(|error| {
        CliError::unverified(
            format!("the revocation of {} is not signed", request.path()),
            "what is shown is not what its path says: the server lies, or the file was changed on the way",
        )
        .because(error)
    })
}

fn not_a_revoker(to_revoke: &ToState, you: &PublicKey) -> CliError {
    let names = Names::of([to_revoke.signers()]);
    let may = names.in_order(to_revoke.accepted_signers());
    let may: Vec<String> = may.iter().map(|signer| names.called(signer.key)).collect();
    CliError::other(
        format!("{you} may not revoke {}", to_revoke.path()),
        format!("check --key: {} can", list_called(may.iter().map(String::as_str), " and ")),
    )
}

fn describe(name: &str, to_revoke: &ToState) -> Vec<String> {
    let files = match &to_revoke.subject.subject {
        Subject::Release { index, .. } => files_text(index),
        Subject::Proposal { .. } => String::new(),
    };
    vec![
        format!("Revocation of {name}"),
        format!("  project  {}", marked_name(to_revoke.subject.project().as_str())),
        format!("  files    {files}"),
        format!("  reason   {}", quoted(to_revoke.document.reason().unwrap_or_default())),
        format!("  digest   {}", to_revoke.subject.digest().to_prefixed()),
    ]
}

/// Says who has signed a document already, under the signers in force.
fn describe_progress(request: &StatementRequest, to_revoke: &ToState, you: PublicKey) -> String {
    let groups = to_revoke.signers().revocation_groups();
    format!("  signed   {}", describe_signed(request, to_revoke, &groups, Some(you)))
}
