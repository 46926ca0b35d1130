//! `countersign veto`: the masters say no to proposed signers (D135–D138).

use countersign_core::documents::{layout, layout::Signable, statement::StatementKind, statement::Veto};
use countersign_core::proof::to_sign::ToSign;
use countersign_core::proof::to_state::{StatementRequest, ToState, ToStateError, update_of};
use countersign_core::values::{key::PublicKey, path::RepoPath, shown::quoted};
use serde_json::{Value, json};

use crate::args::VetoArgs;
use crate::client::session::{Reader, Session};
use crate::client::targets::{ReleaseName, Target};
use crate::client::{now, state::due_text, state::find_due, submission::Submitted};
use crate::commands::statements::{StatementCommand, describe_signed, say_begun};
use crate::commands::{sign, statements};
use crate::evidence::{proof::Network, review::describe_changes};
use crate::words::{error::CliError, error::REASON_HINT};

const QUESTION: &str = "Veto these signers?";
const VETO: StatementCommand = StatementCommand {
    kind: StatementKind::Veto,
    name: "veto",
    names: "PROJECT --reason TEXT",
    question: QUESTION,
    check: |request| {
        let to_sign = sign::check_trusted(&request.subject, Network::Offline)?;
        request.check_text(to_sign).map_err(not_vetoed)
    },
    not_yours: not_a_master,
    describe: |session, request, to_veto, _| describe(session, request, to_veto, Network::Offline),
    subject: |_, path| project_of(path).map(|project| project.to_string()),
    say_submitted,
};

pub(crate) async fn run(session: &Session, args: &VetoArgs) -> Result<(), CliError> {
    if let Some(file) = &args.carried.submit {
        let (several, done) = VETO.submit(session, file).await?;
        let vetoes: Vec<Value> = done.iter().map(|done| done.json("vetoed")).collect();
        return several.finish("", json!({"vetoes": vetoes}));
    }
    if let Some(signed) = VETO.sign_carried(session, &args.carried) {
        return signed;
    }
    let name = ReleaseName::parse_one(&args.names)?;
    let target = session.find_signable(&name, Reader::Signer).await?;
    let Target { client, path, shown: state } = &target;
    let project = project_of(path)?;
    let proposal = sign::gather(&target)?.request;
    let to_sign = sign::check_trusted(&proposal, Network::Online)?;
    let waits_until = find_due(state)?;
    let begun = VETO.find_begun(state, &proposal)?;
    refuse_second(args, &to_sign, begun.as_ref())?;
    let begin = |reason| write_veto(reason, &to_sign);
    let request = VETO.choose_request(proposal, args.reason.as_ref(), begun.as_ref(), begin)?;
    let request = StatementRequest { waits_until, ..request };
    let to_veto = request.check_text(to_sign).map_err(not_vetoed)?;
    if let Some(file) = &args.carried.export {
        return VETO.export(session, request, &format!("the proposed signers of {project}"), file);
    }
    let you = session.public_key_of(Some(path), &state.listed_keys()?)?;
    let done = |text: &str, vetoed: bool| {
        session.output.result(text, &json!({"project_id": project, "vetoed": vetoed}))
    };
    if to_veto.signed.contains(&you) {
        let progress = say_begun(state, path).unwrap_or_default();
        return done(&format!("You signed the veto of {project}{progress}"), false);
    }
    VETO.check_key(&to_veto, &you)?;
    let lines = describe(session, &request, &to_veto, Network::Online);
    let (key, statement) = statements::sign(session, &target, &to_veto, you, &lines, QUESTION)?;
    // However often the request had to be sent, this act did it.
    let submitted = Submitted { was_done: false, ..client.submit_statement(&key, &statement).await? };
    let mut text = say_submitted(project.as_str(), &client.address(), submitted);
    if !submitted.answer
        && let Ok(state) = client.state_at(path).await
    {
        text.extend(say_begun(&state, path));
    }
    done(&text, submitted.answer)
}

/// The server takes no second veto beside one that a master has begun. One that no master signed is none.
fn refuse_second(
    args: &VetoArgs,
    to_sign: &ToSign,
    begun: Option<&StatementRequest>,
) -> Result<(), CliError> {
    let (Some(reason), Some(begun)) = (&args.reason, begun) else { return Ok(()) };
    let said = begun.reason().filter(|said| said != reason);
    match (said, begun.check_text(to_sign.clone())) {
        (Some(said), Ok(begun)) if !begun.signed.is_empty() => Err(CliError::other(
            format!("another master began this veto, for the reason {}", quoted(&said)),
            format!(
                "leave --reason out to join it; `countersign status {}` shows who began it",
                to_sign.project()
            ),
        )),
        (_, Ok(_) | Err(_)) => Ok(()),
    }
}

fn write_veto(reason: String, to_sign: &ToSign) -> Result<Vec<u8>, CliError> {
    let document = Veto {
        veto: reason,
        project_id: to_sign.project().clone(),
        signers_file_digest: *to_sign.digest(),
        previous: update_of(to_sign).map_err(not_vetoed)?.last().digest,
        timestamp: now()?.to_whole_seconds(),
    };
    Ok(document.write())
}

/// The project whose pending signers these are.
fn project_of(path: &RepoPath) -> Result<RepoPath, CliError> {
    match layout::signable(path) {
        Some(Signable::PendingSigners { project }) => Ok(project),
        Some(Signable::Index) | None => Err(CliError::usage(
            format!("{path} cannot be vetoed"),
            "name a project whose new signers are pending; a release is revoked",
        )),
    }
}

fn not_a_master(to_veto: &ToState, you: &PublicKey) -> CliError {
    let project = to_veto.subject.project();
    CliError::other(
        format!("{you} is not a master key of {project}, and only masters can veto"),
        "check --key; an admin can replace the pending file: `countersign update SIGNERS_URL`",
    )
}

/// When it is due is what the server shows, or showed when the veto was exported. Without a network nothing is known if
/// it is not there.
fn describe(
    session: &Session,
    request: &StatementRequest,
    to_veto: &ToState,
    network: Network,
) -> Vec<String> {
    let to_sign = &to_veto.subject;
    let mut lines = vec![
        session.output.strong(&format!("Veto of the proposed signers of {}", to_sign.project())),
        format!("  digest     {}", to_sign.digest().to_prefixed()),
    ];
    lines.extend(describe_changes(to_sign, session.output));
    lines.extend(match (request.waits_until, network) {
        (Some(until), _) => Some(format!("  {} unless it is vetoed", due_text(until))),
        (None, Network::Online) => Some("  does not have all signatures yet".to_owned()),
        (None, Network::Offline) => None,
    });
    lines.push(format!("  reason     {}", quoted(to_veto.document.reason().unwrap_or_default())));
    let signed = describe_signed(request, to_veto, to_veto.signers().master_groups(), None);
    lines.push(format!("  vetoed by  {}", session.output.list(&signed)));
    lines
}

fn say_submitted(project: &str, server: &str, Submitted { answer, was_done }: Submitted<bool>) -> String {
    match (was_done, answer) {
        (false, true) => format!("Vetoed on {server}: the proposed signers of {project} are gone"),
        (false, false) => {
            format!(
                "Recorded on {server}. Other masters join it with `countersign veto {project}` before it is due"
            )
        }
        (true, true) => format!("Vetoed already: the proposed signers of {project} are gone"),
        (true, false) => format!("The server {server} has this veto of {project}: more masters have to sign"),
    }
}

fn not_vetoed(error: ToStateError) -> CliError {
    match &error {
        ToStateError::NotAnUpdate | ToStateError::NoMasters => CliError::other(
            format!("there is no veto here: {error}"),
            "do not sign what you do not want; an admin can replace the pending file with `countersign update`",
        ),
        ToStateError::Document { error: fault, .. } if fault.field == "veto" => {
            CliError::usage("this is not a valid veto", REASON_HINT).because(error)
        }
        _ => CliError::unverified(
            "the veto that is shown cannot be signed",
            "nothing was signed: the server lies or is broken, or the file was changed on the way. \
             Your own --reason begins another one",
        )
        .because(error),
    }
}
