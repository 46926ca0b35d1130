//! A veto by a master whose key is on a computer without a network (D176).

use std::path::Path;

use countersign_api::offline;
use countersign_core::{
    proof::to_veto::{CarriedVeto, ToVeto},
    values::{key::PublicKey, path::RepoPath},
};
use serde_json::json;

use super::shown;
use crate::{
    carried::{SignedFile, check_output, read},
    commands::sign,
    error::CliError,
    files::write,
    paths::shown_path,
    prompt,
    proof::Network,
    session::Session,
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
    let mut proposals = Vec::new();
    for request in &requests {
        proposals.push((sign::check_trusted(&request.proposal, Network::Offline)?, request));
    }
    let mut vetoes = Vec::new();
    for (to_sign, CarriedVeto { veto, collected, .. }) in &proposals {
        let to_veto = ToVeto::check(to_sign, veto.clone(), collected).map_err(shown::not_vetoed)?;
        vetoes.push((to_sign, to_veto));
    }
    let masters: Vec<PublicKey> = vetoes.iter().flat_map(|(_, to_veto)| to_veto.masters()).collect();
    let key = session.key(requests.first().map(|request| &request.proposal.path), &masters)?;
    let you = key.public_key();
    let mut signed = Vec::new();
    for (to_sign, to_veto) in &vetoes {
        shown::check_master(to_veto, &you, to_sign.project())?;
        let lines = shown::describe(session, to_sign, to_veto, None);
        session.output.show_question(&lines.join("\n"), session.confirmation());
        if prompt::ask(session.confirmation(), shown::QUESTION)? {
            signed.push(to_veto.sign(you, |digest| key.sign(digest))?);
        }
    }
    let paths = signed.iter().map(|body| &body.file_path).collect();
    let bytes = offline::write_vetoes(&signed);
    SignedFile { command: "veto", by: you, paths, bytes }.hand_over(session, output)
}

pub(super) async fn submit(session: &Session, file: &Path) -> Result<(), CliError> {
    let bodies = read(file, offline::parse_vetoes, "countersign veto --detached FILE -o SIGNATURES")?;
    let mut submitted = Vec::new();
    for body in &bodies {
        let project = shown::project_of(&body.file_path)?;
        let client = session.client_for(&body.file_path)?;
        let key = session.key_at(&client, Some(&body.file_path)).await?;
        let done = client.submit_veto(&key, body).await;
        let is_vetoed = done.map_err(|error| error.after(&submitted))?;
        session.output.line(&shown::say_done(&project, is_vetoed));
        submitted.push((&body.file_path, (project, body.public_key, is_vetoed)));
    }
    let vetoes = submitted.iter().map(|(_, (project, key, is_vetoed))| {
        json!({"project_id": project.as_str(), "public_key": key.to_string(), "vetoed": is_vetoed})
    });
    session.output.result("", &json!({"vetoes": vetoes.collect::<Vec<_>>()}))
}
