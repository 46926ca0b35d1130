//! `countersign veto`: the masters say no to proposed signers (D135–D138).

use countersign_core::{
    documents::{
        layout::{self, Signable},
        veto::Veto,
    },
    proof::{
        to_sign::ToSign,
        to_veto::{ToVeto, ToVetoError, update_of},
    },
    values::{path::RepoPath, shown::quoted, time::Timestamp},
};
use countersign_explain::{progress::Names, tally::Tally};
use serde_json::json;

use super::sign;
use crate::{
    args::VetoArgs,
    client::now,
    error::CliError,
    people::{People, when_text},
    prompt,
    release_names::ReleaseName,
    review::describe_changes,
    session::{Reader, Session},
    targets::Target,
    waiting::{PendingVeto, Waiting},
};

pub(crate) async fn run(session: &Session, args: &VetoArgs) -> Result<(), CliError> {
    let name = ReleaseName::parse_one(&args.names)?;
    let target = session.find_signable(&name, Reader::Signer).await?;
    let Target { client, path } = &target;
    let Some(Signable::PendingSigners { project }) = layout::signable(path) else {
        return Err(CliError::usage(
            format!("{path} cannot be vetoed"),
            "name a project whose new signers are pending; a release is revoked",
        ));
    };
    let to_sign = sign::read_trusted(&target).await?;
    let Waiting { until, veto: pending } = Waiting::find(client, path).await?;
    refuse_second(args, &to_sign, pending.as_ref())?;
    let text = choose_document(args, &to_sign, pending.as_ref())?;
    let is_joined = pending.as_ref().is_some_and(|pending| pending.text == text);
    let collected = pending.filter(|_| is_joined).map(|pending| pending.collected).unwrap_or_default();
    let to_veto = ToVeto::check(&to_sign, text, &collected).map_err(not_vetoed)?;
    let you = session.public_key_at(client, path).await?;
    let done = |text: &str, vetoed: bool| {
        session.output.result(text, &json!({"project_id": project.as_str(), "vetoed": vetoed}))
    };
    if to_veto.signed.contains(&you) {
        return done(&format!("You signed the veto of {project}: more signatures are needed"), false);
    }
    if !to_veto.accepts(&you) {
        return Err(CliError::other(
            format!("{you} is not a master key of {project}, and only masters can veto"),
            "check --key; an admin can replace the pending file: `countersign update SIGNERS_URL`",
        ));
    }
    let lines = describe(session, &project, &to_sign, &to_veto, until);
    session.output.show_question(&lines.join("\n"), session.confirmation());
    prompt::confirm(session.confirmation(), "Veto these signers?")?;
    let key = session.key_at(client, Some(path)).await?;
    let body = to_veto.sign(key.public_key(), |digest| key.sign(digest))?;
    let is_vetoed = client.submit_veto(&key, &body).await?;
    if is_vetoed {
        return done(&format!("Vetoed: the proposed signers of {project} are gone"), true);
    }
    let text = format!(
        "Recorded. More masters have to sign, each with `countersign veto {project}`, before it is due"
    );
    done(&text, false)
}

/// The server takes no second veto beside one that a master has begun. One that no master signed is none.
fn refuse_second(args: &VetoArgs, to_sign: &ToSign, pending: Option<&PendingVeto>) -> Result<(), CliError> {
    let (Some(reason), Some(pending)) = (&args.reason, pending) else { return Ok(()) };
    let begun = ToVeto::check(to_sign, pending.text.clone(), &pending.collected);
    match begun {
        Ok(begun) if !begun.signed.is_empty() && begun.document.veto != *reason => Err(CliError::other(
            format!("another master began this veto, for the reason {}", quoted(&begun.document.veto)),
            "leave --reason out to co-sign it; `countersign status PROJECT` shows who began it",
        )),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// The begun one, byte for byte, or a new one where the reason is another.
fn choose_document(
    args: &VetoArgs,
    to_sign: &ToSign,
    pending: Option<&PendingVeto>,
) -> Result<String, CliError> {
    let has_reason =
        |text: &str, reason: &str| Veto::parse(text.as_bytes()).is_ok_and(|document| document.veto == reason);
    let is_meant =
        |pending: &&PendingVeto| args.reason.as_ref().is_none_or(|reason| has_reason(&pending.text, reason));
    if let Some(pending) = pending.filter(is_meant) {
        return Ok(pending.text.clone());
    }
    let reason = args.reason.clone().ok_or_else(|| {
        CliError::usage("a veto needs a reason", "say why with --reason TEXT; everybody can read it")
    })?;
    let document = Veto {
        veto: reason,
        project_id: to_sign.project().clone(),
        signers_file_digest: *to_sign.digest(),
        previous: update_of(to_sign).map_err(not_vetoed)?.last().digest,
        timestamp: now()?.to_whole_seconds(),
    };
    Ok(String::from_utf8_lossy(&document.write()).into_owned())
}

fn describe(
    session: &Session,
    project: &RepoPath,
    to_sign: &ToSign,
    to_veto: &ToVeto<'_>,
    waits_until: Option<Timestamp>,
) -> Vec<String> {
    let names = Names::of([&to_veto.chain.last().signers]);
    let people = People { names: &names, you: None };
    let mut lines = vec![
        session.output.strong(&format!("Veto of the proposed signers of {project}")),
        format!("  digest     {}", to_sign.digest().to_prefixed()),
    ];
    lines.extend(describe_changes(to_sign, session.output));
    lines.push(match waits_until {
        Some(until) => format!("  takes force on {} unless it is vetoed", when_text(until)),
        None => "  does not have all signatures yet".to_owned(),
    });
    lines.push(format!("  reason     {}", quoted(&to_veto.document.veto)));
    let tally = Tally::of(to_veto.master_groups(), &to_veto.signed);
    let signed = people.list_or(to_veto.signed.iter().copied(), "no one yet");
    lines.push(format!("  vetoed by  {signed}: {tally}"));
    lines
}

fn not_vetoed(error: ToVetoError) -> CliError {
    match &error {
        ToVetoError::NotAnUpdate | ToVetoError::NoMasters => CliError::other(
            format!("there is no veto here: {error}"),
            "do not sign what you do not want; an admin can replace the pending file with `countersign update`",
        ),
        ToVetoError::Document(_) if error.to_string().contains("`veto`") => {
            CliError::usage("this is no veto", "give a --reason of 1 to 1,000 characters").because(error)
        }
        ToVetoError::Document(_) | ToVetoError::OtherProposal => CliError::unverified(
            "the server shows a pending veto that cannot be joined",
            "nothing was signed: the server lies or is broken. Your own --reason begins another one",
        )
        .because(error),
    }
}
