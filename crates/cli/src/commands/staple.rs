//! `countersign staple`

use std::path::{Path, PathBuf};

use countersign_core::{
    proof::{bundle::Bundle, staple::Staple, verify::VerifiedArtifact},
    values::path::RepoPath,
};
use serde_json::json;

use super::{
    download::{check_log, find_evidence},
    verify::read_bundle,
};
use crate::{
    args::StapleArgs,
    client::{ServerClient, now},
    error::CliError,
    evidence,
    files::write,
    freshness::LogReport,
    log_report::short_name,
    paths::shown_path,
    proof::{self, Accepted, Network},
    release_names::ReleaseName,
    report::release_name,
    session::Session,
};

pub(crate) async fn run(session: &Session, args: &StapleArgs) -> Result<(), CliError> {
    if args.log.no_log_check {
        return Err(CliError::usage("a staple is what the log shows", "leave --no-log-check out"));
    }
    match args.names.as_slice() {
        [file] if Path::new(file).is_file() => refresh(session, args, Path::new(file)).await,
        _ => {
            let found = find_evidence(session, &ReleaseName::parse_one(&args.names)?).await?;
            let accepted = proof::accept(&found.evidence, args.root.signers_digest, Network::Online).await?;
            session.remember(&accepted.artifact.index.project_id, &found.client);
            let (log, staple) = fetch(session, args, &found.client, &accepted).await?;
            let target = args.output.clone().unwrap_or_else(|| default_name(&accepted.artifact));
            write(&target, &staple.write())?;
            finish(session, &accepted, &log, &target)
        }
    }
}

/// Gathers the evidence anew: what a bundle holds may have been joined by a rotation since, which its staple would name.
async fn refresh(session: &Session, args: &StapleArgs, file: &Path) -> Result<(), CliError> {
    let before = read_bundle(file)?;
    let client = session.client_for(&before.evidence.path)?;
    let evidence = evidence::gather_release(&client, &before.evidence.path).await?;
    if evidence.index != before.evidence.index {
        return Err(CliError::unverified(
            format!(
                "the server {} has another index than the bundle for {}",
                client.address(),
                evidence.path
            ),
            "the bundle stays as it is. A signed index never changes: the server lies, or the bundle belongs to another release",
        ));
    }
    let accepted = proof::accept(&evidence, args.root.signers_digest, Network::Online).await?;
    let (log, staple) = fetch(session, args, &client, &accepted).await?;
    let bundle = Bundle { bundled_at: now()?.to_whole_seconds(), evidence, staple: Some(staple) };
    let target = args.output.clone().unwrap_or_else(|| file.to_owned());
    write(&target, &bundle.write())?;
    finish(session, &accepted, &log, &target)
}

async fn fetch(
    session: &Session,
    args: &StapleArgs,
    client: &ServerClient,
    accepted: &Accepted,
) -> Result<(LogReport, Staple), CliError> {
    let log = check_log(session, &args.log, client, accepted).await?;
    let staple = log.staple().cloned().ok_or_else(|| {
        CliError::other(
            format!("the server {} shows no log, so there is nothing to staple", client.address()),
            "ask its operator for a log, or use the bundle without a staple",
        )
    })?;
    Ok((log, staple))
}

fn finish(session: &Session, accepted: &Accepted, log: &LogReport, target: &Path) -> Result<(), CliError> {
    let artifact = &accepted.artifact;
    let mut lines = vec![format!("Stapled {} in {}", release_name(artifact), shown_path(target))];
    let state = log.lines(&artifact.chain.project, None);
    lines.extend(state.into_iter().map(|(name, text)| format!("  {name:<11} {text}")));
    let value = json!({
        "file": target.display().to_string(),
        "index_path": artifact.path.as_str(),
        "project_id": artifact.chain.project.as_str(),
        "freshness_proven": log.is_proven(),
        "freshness": log.json(),
    });
    session.output.result(&lines.join("\n"), &value)
}

/// As in `app-v1.0.staple.json`.
fn default_name(artifact: &VerifiedArtifact) -> PathBuf {
    let project: &RepoPath = &artifact.chain.project;
    let stem = format!("{}-{}", project.file_name(), short_name(&artifact.path, project));
    let plain = |c: char| if c.is_alphanumeric() || "._+-".contains(c) { c } else { '-' };
    let stem: String = stem.trim_end_matches('-').chars().map(plain).collect();
    PathBuf::from(format!("{}.staple.json", stem.trim_start_matches(['.', '-'])))
}
