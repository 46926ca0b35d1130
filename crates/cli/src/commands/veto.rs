//! `countersign veto`: the masters say no to proposed signers (D135–D138).

mod offline;
mod shown;

use countersign_core::{
    documents::veto::Veto,
    proof::{
        to_sign::ToSign,
        to_veto::{CarriedVeto, ToVeto, update_of},
    },
    values::shown::quoted,
};
use serde_json::json;

use super::sign;
use crate::{
    args::VetoArgs,
    client::now,
    error::CliError,
    prompt,
    proof::Network,
    release_names::ReleaseName,
    session::{Reader, Session},
    targets::Target,
    waiting::{PendingVeto, Waiting},
};

pub(crate) async fn run(session: &Session, args: &VetoArgs) -> Result<(), CliError> {
    if let Some(file) = &args.carried.submit {
        return offline::submit(session, file).await;
    }
    if let (Some(file), Some(output)) = (&args.carried.detached, &args.carried.output) {
        return offline::sign(session, file, output);
    }
    let name = ReleaseName::parse_one(&args.names)?;
    let target = session.find_signable(&name, Reader::Signer).await?;
    let Target { client, path, shown: state } = &target;
    let project = shown::project_of(path)?;
    let proposal = sign::gather_request(&target)?;
    let to_sign = sign::check_trusted(&proposal, Network::Online)?;
    let mut waiting = Waiting::find(state)?;
    let pending = waiting.veto.take();
    refuse_second(args, &to_sign, pending.as_ref())?;
    let veto = choose_document(args, &to_sign, pending.as_ref())?;
    let is_joined = pending.as_ref().is_some_and(|pending| pending.text == veto);
    let collected = pending.filter(|_| is_joined).map(|pending| pending.collected).unwrap_or_default();
    let to_veto = ToVeto::check(&to_sign, veto.clone(), &collected).map_err(shown::not_vetoed)?;
    if let Some(file) = &args.carried.export {
        return offline::export(
            session,
            &project,
            CarriedVeto { proposal, veto, collected, waits_until: waiting.until },
            file,
        );
    }
    let you = session.public_key_of(Some(path), &state.listed_keys()?)?;
    let done = |text: &str, vetoed: bool| {
        session.output.result(text, &json!({"project_id": project.as_str(), "vetoed": vetoed}))
    };
    if to_veto.signed.contains(&you) {
        return done(&format!("You signed the veto of {project}: more signatures are needed"), false);
    }
    shown::check_master(&to_veto, &you, &project)?;
    let lines = shown::describe(session, &to_sign, &to_veto, Some(&waiting));
    session.output.show_question(&lines.join("\n"), session.confirmation());
    prompt::confirm(session.confirmation(), shown::QUESTION)?;
    let key = session.key(Some(path), &state.listed_keys()?)?;
    let body = to_veto.sign(key.public_key(), |digest| key.sign(digest))?;
    let is_vetoed = client.submit_veto(&key, &body).await?.answer;
    done(&shown::say_done(&project, is_vetoed), is_vetoed)
}

/// The server takes no second veto beside one that a master has begun. One that no master signed is none.
fn refuse_second(args: &VetoArgs, to_sign: &ToSign, pending: Option<&PendingVeto>) -> Result<(), CliError> {
    let (Some(reason), Some(pending)) = (&args.reason, pending) else { return Ok(()) };
    let begun = ToVeto::check(to_sign, pending.text.clone(), &pending.collected);
    match begun {
        Ok(begun) if !begun.signed.is_empty() && begun.document.veto != *reason => Err(CliError::other(
            format!("another master began this veto, for the reason {}", quoted(&begun.document.veto)),
            "leave --reason out to join it; `countersign status PROJECT` shows who began it",
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
        CliError::usage("a veto needs a reason", "say why with --reason TEXT; everyone can read it")
    })?;
    let document = Veto {
        veto: reason,
        project_id: to_sign.project().clone(),
        signers_file_digest: *to_sign.digest(),
        previous: update_of(to_sign).map_err(shown::not_vetoed)?.last().digest,
        timestamp: now()?.to_whole_seconds(),
    };
    Ok(String::from_utf8_lossy(&document.write()).into_owned())
}
