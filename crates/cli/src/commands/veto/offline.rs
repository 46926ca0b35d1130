//! A veto by a master whose key is on a computer without a network (D176).

use std::path::Path;

use countersign_api::{offline, requests::VetoBody};
use countersign_core::{
    proof::{
        to_sign::ToSign,
        to_veto::{CarriedVeto, ToVeto},
    },
    values::{key::PublicKey, path::RepoPath},
};
use serde_json::{Value, json};

use super::shown;
use crate::{
    carried::{SignedFile, check_output, mark_done, read, submit_all},
    client::submission::Submitted,
    commands::sign,
    error::CliError,
    files::write,
    paths::shown_path,
    prompt,
    proof::Network,
    session::Session,
    several::Several,
    waiting::Waiting,
};

/// Needs no key.
pub(super) fn export(
    session: &Session,
    project: &RepoPath,
    request: CarriedVeto,
    file: &Path,
) -> Result<(), CliError> {
    let path = request.proposal.path.to_string();
    write(file, &offline::write_veto_requests(&[request]))?;
    let shown = shown_path(file);
    let text = format!(
        "Wrote a veto of the proposed signers of {project} to {shown}\nWhere the key is: countersign veto --detached {shown} -o veto.json"
    );
    session.output.result(&text, &json!({"export": file.display().to_string(), "file_paths": [path]}))
}

pub(super) fn sign(session: &Session, file: &Path, output: &Path) -> Result<(), CliError> {
    check_output(file, output)?;
    let made_by = "countersign veto PROJECT --reason TEXT --export FILE";
    let requests = read(file, offline::parse_veto_requests, made_by)?;
    let mut several = Several::new(session.output);
    let proposals = requests.iter().filter_map(|request| {
        let to_sign = sign::check_trusted(&request.proposal, Network::Offline);
        Some((several.keep(request.proposal.path.as_str(), to_sign)?, request))
    });
    let proposals: Vec<(ToSign, &CarriedVeto)> = proposals.collect();
    let vetoes = proposals.iter().filter_map(|(to_sign, carried)| {
        let to_veto = ToVeto::check(to_sign, carried.veto.clone(), &carried.collected);
        let to_veto = to_veto.map_err(shown::not_vetoed);
        let waiting = Waiting { until: carried.waits_until, ..Waiting::default() };
        Some((to_sign, several.keep_later(to_sign.path().as_str(), to_veto)?, waiting))
    });
    let vetoes: Vec<(&ToSign, ToVeto<'_>, Waiting)> = vetoes.collect();
    if vetoes.is_empty() {
        return several.finish("", json!({}));
    }
    let masters: Vec<PublicKey> = vetoes.iter().flat_map(|(_, to_veto, _)| to_veto.masters()).collect();
    let key = session.key(vetoes.first().map(|(to_sign, ..)| to_sign.path()), &masters)?;
    let you = key.public_key();
    let sign_one = |to_sign: &ToSign, to_veto: &ToVeto<'_>, waiting: &Waiting| {
        shown::check_master(to_veto, &you, to_sign.project())?;
        let lines = shown::describe(
            session,
            to_sign,
            to_veto,
            Some(waiting).filter(|waiting| waiting.until.is_some()),
        );
        session.output.show_question(&lines.join("\n"), session.confirmation());
        match prompt::ask(session.confirmation(), shown::QUESTION)? {
            true => to_veto.sign(you, |digest| key.sign(digest)).map(Some),
            false => Ok(None),
        }
    };
    let signed = vetoes.iter().filter_map(|(to_sign, to_veto, waiting)| {
        several.keep_later(to_sign.path().as_str(), sign_one(to_sign, to_veto, waiting)).flatten()
    });
    let signed: Vec<VetoBody> = signed.collect();
    let paths = signed.iter().map(|body| &body.file_path).collect();
    let bytes = offline::write_vetoes(&signed);
    SignedFile { command: "veto", by: you, paths, bytes }.hand_over(several, output)
}

pub(super) async fn submit(session: &Session, file: &Path) -> Result<(), CliError> {
    let bodies = read(file, offline::parse_vetoes, "countersign veto --detached FILE -o SIGNATURES")?;
    let (several, done) = submit_all(
        session,
        &bodies,
        |body| &body.file_path,
        async |client, key, body: &VetoBody| {
            let project = shown::project_of(&body.file_path)?;
            let Submitted { answer, was_done } = client.submit_veto(key, body).await?;
            session.output.line(&match (was_done, answer) {
                (false, is_vetoed) => shown::say_done(&project, is_vetoed),
                (true, true) => format!("Vetoed already: the proposed signers of {project} are gone"),
                (true, false) => format!("The server has this veto of {project}: more masters have to sign"),
            });
            Ok((project, answer, was_done))
        },
    )
    .await;
    let vetoes = done.iter().map(|(body, _, (project, is_vetoed, was_done))| {
        let value = json!({
            "project_id": project.as_str(),
            "public_key": body.public_key.to_string(),
            "vetoed": is_vetoed,
        });
        mark_done(value, *was_done)
    });
    let vetoes: Vec<Value> = vetoes.collect();
    several.finish("", json!({"vetoes": vetoes}))
}
