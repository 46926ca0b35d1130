//! The log and the witnesses that count for a project (D97): those of the user's policy file, else those of its signers
//! file. And how old a proof may be.

use std::{path::Path, path::PathBuf, time::Duration};

use countersign_core::values::{bounds::POLICY_BYTES, path::RepoPath};
use countersign_core::{documents::signers::SignersFile, log::policy::Policy};

use crate::settings::{client_config::ClientConfigFile, config_dir::read_bounded};
use crate::{args::ProofArgs, client::session::Session, words::error::CliError, words::error::shown_path};

#[derive(Debug, Clone)]
pub(crate) struct ChosenPolicy {
    pub(crate) policy: Policy,
    pub(crate) source: PolicySource,
    /// How old a proof can be, as the project's signers file says.
    pub(crate) demanded_max_age: Option<Duration>,
}

/// How old a proof can be where nothing else is said about a policy of the user's own (D216).
const OWN_MAX_AGE: Duration = Duration::from_secs(86_400);

/// How old a proof can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgeLimit {
    pub(crate) age: Duration,
    /// The source of the limit, as the subject of a sentence.
    pub(crate) whose: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PolicySource {
    File(PathBuf),
    SignersFile,
}

impl PolicySource {
    /// The source of the policy for people, as the subject of a sentence.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::File(path) => format!("the policy {}", shown_path(path)),
            Self::SignersFile => "the project's signers file".to_owned(),
        }
    }
}

/// Chooses a policy. `signers` are the newest of the project.
pub(crate) fn choose(
    session: &Session,
    args: &ProofArgs,
    project: &RepoPath,
    signers: &SignersFile,
) -> Result<Option<ChosenPolicy>, CliError> {
    let own = signers.transparency();
    let demanded_max_age = own.and_then(|transparency| transparency.max_age());
    let set = || session.config.policy_for(project).map(ClientConfigFile::resolve);
    if let Some(path) = args.policy.clone().or_else(set) {
        let policy = read(&path)?;
        return Ok(Some(ChosenPolicy { policy, source: PolicySource::File(path), demanded_max_age }));
    }
    let source = PolicySource::SignersFile;
    Ok(own.map(|transparency| ChosenPolicy { policy: transparency.policy(), source, demanded_max_age }))
}

impl ChosenPolicy {
    /// Whether the user chose the policy, and not the project.
    pub(crate) fn is_own(&self) -> bool {
        matches!(self.source, PolicySource::File(_))
    }

    /// The limit without `--max-age`. A policy of the user's own has always one, unless it needs no witness: then no
    /// proof has a time.
    fn limit(&self, set: Option<Duration>) -> Option<AgeLimit> {
        let set = set.map(|age| AgeLimit { age, whose: "`max-age` in your configuration".to_owned() });
        let demanded =
            self.demanded_max_age.map(|age| AgeLimit { age, whose: PolicySource::SignersFile.text() });
        let said = self.policy.max_age().map(|age| AgeLimit { age, whose: self.source.text() });
        match &self.source {
            PolicySource::SignersFile => shorter(demanded?, set),
            PolicySource::File(_) if said.is_some() => said,
            PolicySource::File(_) if self.policy.tolerance().is_none() => None,
            PolicySource::File(_) if set.is_some() => set,
            PolicySource::File(_) => {
                let whose = "a policy of your own that says nothing else".to_owned();
                shorter(AgeLimit { age: OWN_MAX_AGE, whose }, demanded)
            }
        }
    }
}

fn shorter(limit: AgeLimit, other: Option<AgeLimit>) -> Option<AgeLimit> {
    Some(other.filter(|other| other.age < limit.age).unwrap_or(limit))
}

/// How old a proof of this project can be.
pub(crate) fn limit_age(
    session: &Session,
    args: &ProofArgs,
    project: &RepoPath,
    chosen: Option<&ChosenPolicy>,
) -> Option<AgeLimit> {
    match args.max_age {
        Some(age) => Some(AgeLimit { age, whose: "--max-age".to_owned() }),
        None => chosen?.limit(session.config.max_age_for(project)),
    }
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
