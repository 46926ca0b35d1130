//! `countersign bundle` and `countersign staple`: the evidence for a release in files that need no network.

use std::path::{Path, PathBuf};

use countersign_core::proof::{bundle::Staple, verify::VerifiedArtifact};
use countersign_core::{documents::layout, values::path::RepoPath, values::shown::shown_text};
use serde_json::json;

use crate::client::{ServerClient, session::Session, targets::ReleaseName};
use crate::commands::download::{FoundEvidence, find_accepted, warn_of_doubts};
use crate::commands::verify::SavedBundle;
use crate::evidence::report::{AcceptedRelease, release_name};
use crate::words::error::{CliError, shown_path};
use crate::{args::BundleArgs, args::StapleArgs, settings::config_dir::write};

pub(crate) async fn bundle(session: &Session, args: &BundleArgs) -> Result<(), CliError> {
    let name = ReleaseName::parse_one(&args.names)?;
    let (found, release) = find_accepted(session, &name, &args.proof, None).await?;
    warn_of_doubts(&release, session.output);
    let bundle = found.shown.bundle();
    write(&args.output, &found.shown.write(release.has_doubts()))?;
    let artifact = &release.accepted.artifact;
    // The newest, so that a bundle whose history ends earlier cannot be passed off as this one.
    let digest = artifact.chain.last().digest.to_prefixed();
    let text = format!(
        "Bundled {} in {}\n{}\
         Verify with: countersign verify FILE --bundle {}\n\
         A computer that has not met the project needs this as well, from a place that it trusts:\n  \
         --signers-digest {digest}",
        release_name(artifact),
        args.output.display(),
        release.log_lines().concat(),
        args.output.display(),
    );
    let value = json!({
        "bundle": args.output.display().to_string(),
        "bundled_at": bundle.bundled_at,
        "newest_signers_digest": digest,
    });
    session.output.result(&text, &release.json(value))
}

pub(crate) async fn staple(session: &Session, args: &StapleArgs) -> Result<(), CliError> {
    if args.proof.no_log_check {
        return Err(CliError::usage("a staple is what the log shows", "leave --no-log-check out"));
    }
    match args.names.as_slice() {
        [file] if Path::new(file).is_file() => refresh(session, args, Path::new(file)).await,
        _ => {
            let name = ReleaseName::parse_one(&args.names)?;
            let (found, release) = find_accepted(session, &name, &args.proof, None).await?;
            warn_of_doubts(&release, session.output);
            let staple = require_staple(&release, &found.shown.shown.client)?;
            let target = args.output.clone().unwrap_or_else(|| default_name(&release.accepted.artifact));
            write(&target, &staple.write())?;
            finish(session, &release, &target)
        }
    }
}

/// Gathers the evidence anew: what a bundle holds may have been joined by a rotation since, which its staple would
/// name.
async fn refresh(session: &Session, args: &StapleArgs, file: &Path) -> Result<(), CliError> {
    let before = SavedBundle::read(file)?.bundle;
    let path = &before.evidence.path;
    let ask = async |session: &Session| {
        let mut found = FoundEvidence::at(&session.client_of(Some(path))?, path).await?;
        if found.shown.evidence.index != before.evidence.index {
            return Ok(Err(CliError::unverified(
                format!(
                    "the server {} has another index than the bundle for {path}",
                    found.shown.shown.client.address()
                ),
                "the bundle stays as it is. A signed index never changes: the server lies, or the bundle belongs to another release",
            )));
        }
        let accepted = found.accept(session, &args.proof, None).await;
        Ok(accepted.map(|release| (found, release)))
    };
    let ((found, release), passed_over) = session.ask_in_turn(Some(path), ask).await?;
    let release = AcceptedRelease { passed_over, ..release };
    warn_of_doubts(&release, session.output);
    require_staple(&release, &found.shown.shown.client)?;
    let target = args.output.clone().unwrap_or_else(|| file.to_owned());
    write(&target, &found.shown.write(release.has_doubts()))?;
    finish(session, &release, &target)
}

fn require_staple(release: &AcceptedRelease, client: &ServerClient) -> Result<Staple, CliError> {
    release.log.shown().map(|shown| shown.staple.clone()).ok_or_else(|| {
        CliError::other(
            format!("the server {} shows no log, so there is nothing to staple", client.address()),
            "ask its operator for a log, or use the bundle without a staple",
        )
    })
}

fn finish(session: &Session, release: &AcceptedRelease, target: &Path) -> Result<(), CliError> {
    let artifact = &release.accepted.artifact;
    let lines = release.log_lines().concat();
    let text = format!("Stapled {} in {}\n{lines}", release_name(artifact), shown_path(target));
    let value = release.json(json!({"file": target.display().to_string()}));
    session.output.result(&text, &value)
}

/// The default name of the file, as in `app-v1.0.staple.json`.
fn default_name(artifact: &VerifiedArtifact) -> PathBuf {
    let project: &RepoPath = &artifact.chain.project;
    let dir = artifact.path.parent();
    let stem = match dir.as_ref().and_then(|dir| layout::name_in_project(dir, project)) {
        Some(release) => format!("{}-{}", project.file_name(), shown_text(release)),
        None => project.file_name().to_owned(),
    };
    let plain = |c: char| if c.is_alphanumeric() || "._+-".contains(c) { c } else { '-' };
    let stem: String = stem.chars().map(plain).collect();
    PathBuf::from(format!("{}.staple.json", stem.trim_start_matches(['.', '-'])))
}
