//! `countersign download`

use std::path::{Path, PathBuf};

use countersign_api::{
    catalogue::{ListedRelease, ReleaseState, SignatureCount},
    newest::compare_versions,
};
use countersign_core::{
    documents::{index::PublishedFile, layout, objections::ObjectionsFile, revocation::Revocation},
    proof::verify::{Evidence, VerifiedArtifact},
    rules::tally::Tally,
    values::{
        path::RepoPath,
        shown::{quoted, shown_text},
    },
};
use countersign_forge::{
    download_url::{DownloadPlace, locate_download, locate_release_page},
    url::SourceUrl,
};

use crate::{
    args::{DownloadArgs, FreshArgs, RootArgs},
    client::ServerClient,
    download::{self, Overwrite, WantedFile},
    error::CliError,
    evidence::{self, ShownEvidence, shown_name},
    files::refuse_links_below,
    freshness::{LogReport, ShownState},
    glob::matches_any,
    proof::{self, Accepted, Network},
    release_names::{NamedSubject, ReleaseName, split_page},
    report::{CheckedFile, Report},
    session::{Reader, Session},
    shown_release::find_objections,
    targets::Target,
};

/// How many versions are named that are not offered.
const MOST_SKIPPED: usize = 3;

pub(crate) async fn run(session: &Session, args: &DownloadArgs) -> Result<(), CliError> {
    let name = ReleaseName::parse_one(&args.names)?;
    let found = find_evidence(session, &name).await?;
    let AcceptedRelease { accepted, log, begun } = found.accept(session, &args.root, &args.log).await?;
    let objections = objections_to(&found.client, &accepted).await;
    let wanted = match &found.file {
        Some(file) => plan_one(args, &accepted, file)?,
        None => plan_all(args, &accepted)?,
    };
    let overwrite = if args.force { Overwrite::Allow } else { Overwrite::Deny };
    let work = async {
        let mut files = Vec::new();
        for wanted in &wanted {
            // Of many files, some may have come the last time.
            let existing = found.file.is_none().then(|| download::find_existing(wanted, session.output));
            let size = match existing.flatten() {
                Some(size) => size,
                None => download::download(wanted, overwrite, session.output).await?,
            };
            files.push(CheckedFile { file: wanted.file, size, path: &wanted.target });
        }
        Ok::<_, CliError>(files)
    };
    let files = tokio::select! {
        files = work => files?,
        // The temporary file is removed on the way out.
        _ = super::serve::wait_for_signal() => {
            return Err(CliError::other(
                "the download was interrupted",
                "what was verified before is kept: run it again for the rest",
            ));
        }
    };
    let objections = &objections;
    Report { accepted: &accepted, files, bundled_at: None, log: &log, objections, begun: begun.as_ref() }
        .show(session.output)
}

/// They block nothing, so a server that shows nonsense there does not either.
pub(super) async fn objections_to(client: &ServerClient, accepted: &Accepted) -> ObjectionsFile {
    let artifact = &accepted.artifact;
    find_objections(client, &artifact.path, &artifact.index_digest).await.unwrap_or_default()
}

/// What a server shows for a name.
pub(super) struct FoundEvidence {
    pub(super) client: ServerClient,
    pub(super) evidence: Evidence,
    /// The one file that was named, if it was one.
    pub(super) file: Option<NamedFile>,
}

/// A release that is what its signers signed, and what is known of it beyond that.
pub(super) struct AcceptedRelease {
    pub(super) accepted: Accepted,
    /// What the server's log proves of the newest state (D97).
    pub(super) log: LogReport,
    /// A revocation that waits for signatures. The user is warned of it.
    pub(super) begun: Option<Revocation>,
}

impl FoundEvidence {
    /// Checks everything, with the server that showed it.
    pub(super) async fn accept(
        &self,
        session: &Session,
        root: &RootArgs,
        fresh: &FreshArgs,
    ) -> Result<AcceptedRelease, CliError> {
        let accepted = proof::accept(&self.evidence, root.signers_digest, Network::Online).await?;
        let artifact = &accepted.artifact;
        session.remember(&artifact.index.project_id, &self.client);
        let state =
            ShownState { artifact, network: Network::Online, client: Some(&self.client), staple: None };
        let log = state.check(session, fresh).await?;
        let begun = warn_of_begun_revocation(session, &self.client, &accepted).await?;
        Ok(AcceptedRelease { accepted, log, begun })
    }
}

pub(super) struct NamedFile {
    pub(super) url: SourceUrl,
    pub(super) name: String,
}

pub(super) async fn find_evidence(session: &Session, name: &ReleaseName) -> Result<FoundEvidence, CliError> {
    if let Some(place) = locate_file(name)? {
        // What looks like a file may be a project, for which a server is set.
        let path = name.written_path().unwrap_or_else(|| place.candidates[0].index.clone());
        let client = session.client_of_place(&path, Some(place.url.as_str()), Reader::Downloader).await?;
        let gathered = evidence::gather(&client, &place).await;
        match gathered {
            Ok(ShownEvidence { evidence, file_name }) => {
                let file = Some(NamedFile { url: place.url, name: file_name.to_string() });
                return Ok(FoundEvidence { client, evidence, file });
            }
            // It may be the address of a release's directory or of a project.
            Err(error) => match name.written_path() {
                Some(path) if has_releases(&client, &path).await? => {
                    let Target { client, path } = find_in_place(session, Target { client, path }).await?;
                    let evidence = evidence::gather_release(&client, &path).await?;
                    return Ok(FoundEvidence { client, evidence, file: None });
                }
                Some(_) | None => return Err(error),
            },
        }
    }
    let Target { client, path } = find_release(session, name).await?;
    let evidence = evidence::gather_release(&client, &path).await?;
    Ok(FoundEvidence { client, evidence, file: None })
}

async fn has_releases(client: &ServerClient, path: &RepoPath) -> Result<bool, CliError> {
    let is_release = client.document(&layout::index_in(path)).await?.is_some();
    Ok(is_release || !client.history(path).await?.entries.is_empty())
}

/// Where the name may be the URL of a file.
fn locate_file(name: &ReleaseName) -> Result<Option<DownloadPlace>, CliError> {
    let NamedSubject::Url(url) = &name.subject else { return Ok(None) };
    if name.tag.is_some() || split_page(url).is_some() || locate_release_page(url).is_some() {
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
pub(super) async fn find_release(session: &Session, name: &ReleaseName) -> Result<Target, CliError> {
    if name.tag.is_some() {
        return session.find_signable(name, Reader::Downloader).await;
    }
    let Target { client, path } = session.find_place(name, Reader::Downloader).await?;
    if layout::signable(&path).is_some() {
        return Ok(Target { client, path });
    }
    // The page of a release means this one, and no release whose tag begins with its tag (D159).
    if matches!(&name.subject, NamedSubject::Url(url) if locate_release_page(url).is_some()) {
        return Ok(Target { client, path: layout::index_in(&path) });
    }
    find_in_place(session, Target { client, path }).await
}

/// The release in this directory; of a project, its newest one.
async fn find_in_place(session: &Session, Target { client, path }: Target) -> Result<Target, CliError> {
    let index = layout::index_in(&path);
    if client.document(&index).await?.is_some() {
        return Ok(Target { client, path: index });
    }
    let answer = client.releases(&[("project", path.as_str()), ("newest", "true")]).await?;
    let newest = answer.releases.into_iter().next();
    if let Some(other) = newest.as_ref().filter(|newest| !newest.index_path.is_inside(&path)) {
        return Err(CliError::unverified(
            format!("the server {} answers about another project, {}", client.address(), other.project_id),
            "check --server: it lies or is broken",
        ));
    }
    let newest = newest.map(|newest| newest.index_path);
    let skipped = list_skipped(&client, &path, newest.as_ref()).await;
    match newest {
        Some(newest) => {
            let name = session.name_of(&newest, Some(&path));
            session.output.note(&format!("The newest release, the highest complete version, is {name}."));
            skipped.iter().for_each(|reason| session.output.warn(reason));
            Ok(Target { client, path: newest })
        }
        None if skipped.is_empty() => Err(CliError::other(
            format!("{} has no complete release of {path}", client.address()),
            "ask the project; `countersign status PROJECT TAG` shows how far a release is",
        )),
        None => Err(CliError::other(
            format!("{} has no release of {path} that can be recommended", client.address()),
            "wait for a newer release, or ask the project; `countersign status PROJECT TAG` shows the reason",
        )
        .because(skipped.join(" "))),
    }
}

/// Which versions above the newest one are not offered, and why. The server's word, for information: a server that
/// cannot tell is no reason to fail.
async fn list_skipped(client: &ServerClient, project: &RepoPath, newest: Option<&RepoPath>) -> Vec<String> {
    let mut skipped = Vec::new();
    for state in [ReleaseState::Complete, ReleaseState::Revoked] {
        let query = [("project", project.as_str()), ("state", state.name())];
        let answer = client.releases(&query).await.map(|answer| answer.releases).unwrap_or_default();
        skipped.extend(answer.into_iter().filter(|release| {
            let is_refused = release.state == ReleaseState::Revoked || release.revocation_begun.is_some();
            let is_above =
                |newest: &RepoPath| compare_versions(release.index_path.as_str(), newest.as_str()).is_gt();
            is_refused && release.index_path.is_inside(project) && newest.is_none_or(is_above)
        }));
    }
    skipped.sort_by(|a, b| compare_versions(b.index_path.as_str(), a.index_path.as_str()));
    skipped.iter().take(MOST_SKIPPED).map(|release| say_skipped(project, release)).collect()
}

fn say_skipped(project: &RepoPath, release: &ListedRelease) -> String {
    let version = shown_text(&layout::release_name(&release.index_path, project));
    match (release.state, release.revocation_begun) {
        (ReleaseState::Complete | ReleaseState::Collecting, Some(SignatureCount { collected, needed })) => {
            let tally = Tally { collected, needed };
            format!("{version} is skipped: its revocation has begun, {tally}.")
        }
        (ReleaseState::Complete | ReleaseState::Collecting | ReleaseState::Revoked, _) => {
            format!("{version} is skipped: it is revoked.")
        }
    }
}

/// Someone who may revoke has begun to: the user should know before the others have agreed.
pub(super) async fn warn_of_begun_revocation(
    session: &Session,
    client: &ServerClient,
    accepted: &Accepted,
) -> Result<Option<Revocation>, CliError> {
    let path = layout::pending_revocation_of(&accepted.artifact.path);
    let begun = client.parsed(&path, Revocation::parse).await?;
    if let Some(begun) = &begun {
        session.output.warn(&format!(
            "{} its revocation was begun on {}, and waits for more signatures: {}",
            session.output.bad("warning:"),
            begun.timestamp,
            quoted(&begun.reason)
        ));
    }
    Ok(begun)
}

impl<'a> WantedFile<'a> {
    fn new(file: &'a PublishedFile, url: SourceUrl, target: PathBuf, args: &DownloadArgs) -> Self {
        Self { url, file, max_bytes: file.size.unwrap_or(args.max_size), target }
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
        let names: Vec<String> =
            artifact.index.published_files.iter().take(10).map(|file| shown_name(&file.file_name)).collect();
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
