//! Which log and witnesses count for a project (D97): those of the user's policy file, else those of its signers file.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use countersign_core::{
    documents::signers::SignersFile,
    log::policy::Policy,
    values::{bounds::POLICY_BYTES, path::RepoPath},
};

use crate::{
    args::FreshArgs, client_config::ClientConfigFile, error::CliError, files::read_bounded,
    paths::shown_path, session::Session,
};

#[derive(Debug, Clone)]
pub(crate) struct ChosenPolicy {
    pub(crate) policy: Policy,
    pub(crate) source: PolicySource,
    /// How old a proof can be.
    pub(crate) max_age: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PolicySource {
    File(PathBuf),
    SignersFile,
}

impl PolicySource {
    /// As the subject of a sentence, for people.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::File(path) => format!("the policy {}", shown_path(path)),
            Self::SignersFile => "the project's signers file".to_owned(),
        }
    }
}

/// `signers`: the newest of the project.
pub(crate) fn choose(
    session: &Session,
    args: &FreshArgs,
    project: &RepoPath,
    signers: &SignersFile,
) -> Result<Option<ChosenPolicy>, CliError> {
    let own = signers.transparency();
    let max_age = args.max_age.or(own.and_then(|transparency| transparency.max_age()));
    if let Some(path) = find_file(session, args, project) {
        let policy = read(&path)?;
        return Ok(Some(ChosenPolicy { policy, source: PolicySource::File(path), max_age }));
    }
    let source = PolicySource::SignersFile;
    Ok(own.map(|transparency| ChosenPolicy { policy: transparency.policy(), source, max_age }))
}

pub(crate) fn read(path: &Path) -> Result<Policy, CliError> {
    let bytes = read_bounded(path, POLICY_BYTES)?;
    Policy::parse(&bytes).map_err(|error| {
        CliError::usage(
            format!("{} is not a policy", shown_path(path)),
            "correct it; docs/cli.md shows one, and c2sp.org/tlog-policy describes the form",
        )
        .because(error)
    })
}

fn find_file(session: &Session, args: &FreshArgs, project: &RepoPath) -> Option<PathBuf> {
    args.policy.clone().or_else(|| {
        let path = session.config().policy_for(project)?;
        Some(ClientConfigFile::locate().map_or_else(|_| path.to_owned(), |file| file.resolve(path)))
    })
}
