//! `countersign download`

use std::{path::Path, path::PathBuf, time::Duration, time::Instant};

use countersign_core::documents::{index::PublishedFile, layout};
use countersign_core::proof::{bundle::Staple, state::StateSubject, verify::VerifiedArtifact};
use countersign_core::{rules::stored, values::path::RepoPath, values::shown::shown_text};
use countersign_explain::describe::{Description, describe, release::RevocationDescription};
use countersign_explain::{progress::Names, reproduction::lack_text, words::shown_release};
use countersign_forge::download_url::{DownloadPlace, locate_download, locate_release_page};
use countersign_forge::url::SourceUrl;

use crate::args::{DownloadArgs, ProofArgs};
use crate::client::targets::{NamedSubject, ReleaseName, ServerPath, no_complete_release, split_page};
use crate::client::{ServerClient, session::Reader, session::Session, state::Shown, state::StateQuestion};
use crate::commands::catalogue::ReleaseListing;
use crate::evidence::download::{WantedFile, matches_any};
use crate::evidence::freshness::{ShownState, StateSource};
use crate::evidence::release::{ShownEvidence, describe_different, require_evidence, shown_name};
use crate::evidence::report::{AcceptedRelease, CheckedFile, Report};
use crate::evidence::{download, proof, proof::Accepted, proof::Network, release};
use crate::{
    settings::config_dir::refuse_links_below, settings::trust::TrustFile, words::error::CliError,
    words::error::ErrorKind, words::output::Output,
};

/// How long to wait for a checkpoint that has the release. A log makes one every few seconds.
const NEXT_CHECKPOINT: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_secs(2);

pub(crate) async fn run(session: &Session, args: &DownloadArgs) -> Result<(), CliError> {
    let name = ReleaseName::parse_one(&args.names)?;
    let (found, release) = find_accepted(session, &name, &args.proof, None).await?;
    let accepted = &release.accepted;
    let wanted = match &found.file {
        Some(file) => plan_one(args, accepted, file)?,
        None => plan_all(args, accepted)?,
    };
    let work = async {
        let mut files = Vec::new();
        for wanted in &wanted {
            // Of many files, some may have come the last time.
            let existing = found.file.is_none().then(|| download::find_existing(wanted, session.output));
            let size = match existing.flatten() {
                Some(size) => size,
                None => download::download(wanted, session.output).await?,
            };
            files.push(CheckedFile { file: wanted.file, size, path: &wanted.target });
        }
        Ok::<_, CliError>(files)
    };
    let files = tokio::select! {
        files = work => files?,
        // The temporary file is removed on the way out.
        _ = crate::commands::serve::wait_for_signal() => {
            return Err(CliError::other(
                "the download was interrupted",
                "what was verified before is kept: run it again for the rest",
            ));
        }
    };
    Report { release: &release, files, also_in: Vec::new(), bundled_at: None }.show(session.output)
}

/// Finds what a name stands for, and accepts it. If a server is away or lies, the next one of the project is asked
/// (D268).
pub(super) async fn find_accepted(
    session: &Session,
    name: &ReleaseName,
    wanted: &ProofArgs,
    staple: Option<Staple>,
) -> Result<(FoundEvidence, AcceptedRelease), CliError> {
    let ask = async |session: &Session| {
        let mut found = find_evidence(session, name).await?;
        let accepted = found.accept(session, wanted, staple.clone()).await;
        Ok(accepted.map(|release| (found, release)))
    };
    let ((found, release), passed_over) = session.ask_in_turn(session.place_of(name).as_ref(), ask).await?;
    Ok((found, AcceptedRelease { passed_over, ..release }))
}

/// What a server shows for a name.
pub(super) struct FoundEvidence {
    pub(super) shown: ShownEvidence,
    /// The one file that was named, if it was one.
    pub(super) file: Option<NamedFile>,
}

impl FoundEvidence {
    fn of(shown: Shown) -> Result<Self, CliError> {
        Ok(Self { shown: require_evidence(shown)?, file: None })
    }

    /// What a server shows for the index of a release.
    pub(super) async fn at(client: &ServerClient, index: &RepoPath) -> Result<Self, CliError> {
        Self::of(client.state_at(index).await?)
    }

    /// Checks everything, with the server that showed it. `staple`: instead of the server's own. Where a proof is
    /// wanted, a release that was completed a moment ago is worth waiting for: then all of it is asked for again.
    pub(super) async fn accept(
        &mut self,
        session: &Session,
        wanted: &ProofArgs,
        staple: Option<Staple>,
    ) -> Result<AcceptedRelease, CliError> {
        let mut begun: Option<Instant> = None;
        loop {
            let ShownEvidence { shown, evidence } = &self.shown;
            let accepted = proof::accept(evidence, wanted.signers_digest, Network::Online).await;
            let accepted = match accepted {
                Err(error) if error.kind() == ErrorKind::Revoked => {
                    return Err(name_newest(session, shown, error).await);
                }
                accepted => accepted?,
            };
            let artifact = &accepted.artifact;
            let state = ShownState {
                session,
                wanted,
                artifact,
                from: StateSource::Server { client: &shown.client, log: &shown.answer.log },
                staple: staple.clone().or_else(|| shown.answer.staple.clone()),
                is_given: staple.is_some(),
            };
            if let Some(said) = state.waits_for()?
                && begun.is_none_or(|begun| begun.elapsed() < NEXT_CHECKPOINT)
            {
                if begun.is_none() {
                    session.output.note(&format!("Waiting for the log: {said}."));
                    begun = Some(Instant::now());
                }
                tokio::time::sleep(PAUSE).await;
                self.shown = require_evidence(shown.client.state_at(&evidence.path).await?)?;
                continue;
            }
            let log = state.check().await?;
            // Not before: a server that lies is not the one to ask next time.
            session.remember(&artifact.index.project_id, &shown.client);
            TrustFile::locate()?.keep_history(&artifact.chain.project, &evidence.history);
            let path = &artifact.path;
            let begun = shown.read(|files| RevocationDescription::begun(files, path))?;
            let objections = shown.read(|files| stored::objections(files, path))?;
            let passed_over = Vec::new();
            let release = AcceptedRelease { accepted, log, begun, objections, passed_over };
            return if wanted.strict { release.refuse_begun() } else { Ok(release) };
        }
    }
}

/// Names the newest good release of the project beside one that is revoked, if the server has one.
pub(super) async fn name_newest(session: &Session, shown: &Shown, revoked: CliError) -> CliError {
    match say_newest(session, shown).await {
        Some(newest) => revoked.with_hint(format!("do not use the file. {newest}")),
        None => revoked,
    }
}

/// Says which release of the project is the newest good one, if it is another one and the server has it.
pub(super) async fn say_newest(session: &Session, shown: &Shown) -> Option<String> {
    let (path, project) = (shown.subject().path(), shown.project());
    let newest = shown.client.state(project, &StateQuestion::Newest).await.ok().flatten()?;
    let StateSubject::Release(index) = newest.subject() else { return None };
    let (name, release) = (session.name_of(index, Some(project)), shown_release(index, project));
    (index != path).then(|| format!("The newest good release is {release}: `countersign download {name}`"))
}

/// Warns of a begun revocation and of builders who got something else, for commands that show no report.
pub(super) fn warn_of_doubts(release: &AcceptedRelease, output: Output) {
    release.warn_if_begun(output);
    let artifact = &release.accepted.artifact;
    let names = Names::of([&artifact.governing().signers]);
    describe_different(artifact.reproduction.as_ref(), &names, output)
        .iter()
        .for_each(|line| output.warn(line));
}

pub(super) struct NamedFile {
    pub(super) url: SourceUrl,
    pub(super) name: String,
}

async fn find_evidence(session: &Session, name: &ReleaseName) -> Result<FoundEvidence, CliError> {
    if let Some(place) = locate_file(name)? {
        // What looks like a file may be a project, for which a server is set.
        let path = name.written_path().unwrap_or_else(|| place.candidates[0].index.clone());
        let client = session.client_of_path(&path, Some(place.url.as_str()), Reader::Downloader).await?;
        return match release::gather(&client, &place).await {
            Ok((shown, file_name)) => {
                let file = Some(NamedFile { url: place.url, name: file_name.to_string() });
                Ok(FoundEvidence { shown, file })
            }
            // It may be the address of a release's directory or of a project.
            Err(error) => {
                let Some(path) = name.written_path() else { return Err(error) };
                match client.state(&path, &StateQuestion::Newest).await? {
                    Some(shown) => choose_newest(session, &path, shown).await,
                    None => Err(error),
                }
            }
        };
    }
    find_release(session, name).await
}

/// Finds the place of a file if the name can be its URL.
fn locate_file(name: &ReleaseName) -> Result<Option<DownloadPlace>, CliError> {
    let NamedSubject::Url(url) = &name.subject else { return Ok(None) };
    if name.which != StateQuestion::Path || split_page(url).is_some() || locate_release_page(url).is_some() {
        return Ok(None);
    }
    match locate_download(url) {
        Ok(place) => Ok(Some(place)),
        Err(_) if name.written_path().is_some_and(|path| is_project(&path)) => Ok(None),
        Err(error) => Err(CliError::usage(
            error.to_string(),
            "give the URL of a file, as on the forge's release page or file server",
        )),
    }
}

/// Whether the path can be that of a whole project: an owner and a name on a host.
fn is_project(path: &RepoPath) -> bool {
    path.names().count() == 2
}

/// The release that is named; of a project alone, its newest one (D77).
pub(super) async fn find_release(session: &Session, name: &ReleaseName) -> Result<FoundEvidence, CliError> {
    let ServerPath { client, path, shown } = session.find_path(name, Reader::Downloader).await?;
    if let Some(shown) = shown {
        let project = shown.project().clone();
        return FoundEvidence::of(match name.which {
            StateQuestion::Newest => pass_over_lacking(session, &project, shown).await?,
            StateQuestion::Tag(_) | StateQuestion::Path => shown,
        });
    }
    // The page of a release means this one, and no release whose tag begins with its tag (D159).
    let is_page = matches!(&name.subject, NamedSubject::Url(url) if locate_release_page(url).is_some());
    if is_page || layout::signable(&path).is_some() {
        let index = if is_page { layout::index_in(&path) } else { path };
        return FoundEvidence::at(&client, &index).await;
    }
    match client.state(&path, &StateQuestion::Newest).await? {
        Some(shown) => choose_newest(session, &path, shown).await,
        None => Err(no_complete_release(&client, &path)),
    }
}

/// What the server answers to the question for the release in a directory, or the newest one of a project.
async fn choose_newest(session: &Session, path: &RepoPath, shown: Shown) -> Result<FoundEvidence, CliError> {
    session.check_newest(path, &shown)?;
    let is_chosen = *shown.subject().path() != layout::index_in(path);
    FoundEvidence::of(if is_chosen { pass_over_lacking(session, path, shown).await? } else { shown })
}

/// Goes on to the newest release that can be used, if builders have yet to reproduce the newest one (D261).
async fn pass_over_lacking(session: &Session, path: &RepoPath, shown: Shown) -> Result<Shown, CliError> {
    let (newest, project) = (shown.subject().path(), shown.project());
    let Some(Description::Release(release)) = shown.read(|files| describe(files, newest))? else {
        return Ok(shown);
    };
    let Some(lacking) = release.reproduction.as_ref().filter(|reproduction| reproduction.is_lacking()) else {
        return Ok(shown);
    };
    let listed = ReleaseListing::find(&shown.client, project).await?;
    let within = if path.is_inside(project) { path } else { project };
    let Some(usable) = listed.newest_usable(within) else { return Ok(shown) };
    session.output.warn(&format!(
        "{} is skipped, because it is not reproduced: {}, and its project requires that. The newest that can be used is \
         {}.",
        shown_release(newest, project),
        lack_text(lacking),
        session.name_of(&usable.index_path, Some(project))
    ));
    shown.client.state_at(&usable.index_path).await
}

impl<'a> WantedFile<'a> {
    fn new(file: &'a PublishedFile, url: SourceUrl, target: PathBuf, args: &DownloadArgs) -> Self {
        let max_bytes = file.size.unwrap_or(args.max_size);
        Self { url, file, max_bytes, target, replaces: args.force }
    }
}

fn plan_one<'a>(
    args: &DownloadArgs,
    accepted: &'a Accepted,
    named: &NamedFile,
) -> Result<Vec<WantedFile<'a>>, CliError> {
    let file = listed(&accepted.artifact, &named.name)?;
    let target = download::choose_target(args.output.as_deref(), file)?;
    Ok(vec![WantedFile::new(file, named.url.clone(), target, args)])
}

fn plan_all<'a>(args: &DownloadArgs, accepted: &'a Accepted) -> Result<Vec<WantedFile<'a>>, CliError> {
    let artifact = &accepted.artifact;
    let dir = args.output.as_deref().unwrap_or(Path::new("."));
    let files = artifact.index.published_files.iter();
    let wanted: Vec<&PublishedFile> =
        files.filter(|file| matches_any(&args.only, file.file_name.as_str())).collect();
    if wanted.is_empty() {
        let files = artifact.index.published_files.iter().take(10);
        let names: Vec<String> = files.map(|file| shown_name(&file.file_name)).collect();
        return Err(CliError::usage(
            format!("no file of {} fits --only", artifact.path),
            format!("the release has {}", names.join(", ")),
        ));
    }
    let plan = wanted.into_iter().map(|file| {
        let url = SourceUrl::parse(&file.source).map_err(|error| {
            CliError::other(
                format!("{} of {} cannot be downloaded", shown_name(&file.file_name), artifact.path),
                "ask the project",
            )
            .because(error)
        })?;
        let target = dir.join(file.file_name.as_str());
        if let Some(parent) = target.parent() {
            // A directory that is a link leads out of the one that the user named.
            if let Some(below) = Path::new(file.file_name.as_str()).parent() {
                refuse_links_below(dir, below)?;
            }
            std::fs::create_dir_all(parent).map_err(|error| CliError::file("created", parent, error))?;
        }
        Ok(WantedFile::new(file, url, target, args))
    });
    plan.collect()
}

pub(crate) fn listed<'a>(artifact: &'a VerifiedArtifact, name: &str) -> Result<&'a PublishedFile, CliError> {
    artifact.file(name).ok_or_else(|| {
        CliError::unverified(
            format!("{} does not list {}", artifact.path, shown_text(name)),
            "it is not a file of this release",
        )
    })
}
