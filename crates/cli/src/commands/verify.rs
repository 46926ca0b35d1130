//! `countersign verify`

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use countersign_api::catalogue::{ReleaseState, SignatureCount};
use countersign_core::{
    documents::{
        index::{AssetName, PublishedFile},
        objections::ObjectionsFile,
        revocation::Revocation,
    },
    proof::{bundle::Bundle, staple::Staple, verify::VerifiedArtifact},
    rules::tally::Tally,
    values::{bounds::BUNDLE_BYTES, path::RepoPath, shown::shown_text},
};
use serde_json::{Value, json};

use self::given_files::{GivenFile, list_files, refuse_links};
use super::download::{find_evidence, find_release, listed, objections_to, warn_of_begun_revocation};
use crate::{
    args::VerifyArgs,
    client::ServerClient,
    download::{self, hash_file},
    error::{CliError, ErrorKind},
    evidence::{self, shown_name},
    files::read_bounded,
    freshness::{LogReport, ShownState, read_staple},
    paths::shown_path,
    proof::{self, Accepted, Network},
    release_names::ReleaseName,
    report::{CheckedFile, Report},
    session::{Reader, Session},
    targets::Target,
};

mod given_files;

pub(crate) async fn run(session: &Session, args: &VerifyArgs) -> Result<(), CliError> {
    if args.whole {
        refuse_links(&args.files)?;
    }
    let files = list_files(&args.files)?;
    if let Some(url) = &args.url {
        return verify_by_url(session, args, url, &files).await;
    }
    if let Some(path) = &args.bundle {
        let bundle = read_bundle(path)?;
        let accepted = proof::accept(&bundle.evidence, args.root.signers_digest, Network::Offline).await?;
        let (artifact, network, client) = (&accepted.artifact, Network::Offline, None);
        let staple = given_staple(args)?.or(bundle.staple);
        let log = ShownState { artifact, network, client, staple }.check(session, &args.log).await?;
        let verified = VerifiedRelease { accepted, log, objections: ObjectionsFile::default(), begun: None };
        return check_all(session, args, &verified, &files, Some(bundle.bundled_at.to_string()));
    }
    if !args.release.is_empty() {
        let Target { client, path } = find_release(session, &ReleaseName::parse_one(&args.release)?).await?;
        let verified = accept_release(session, args, &client, &path).await?;
        return check_all(session, args, &verified, &files, None);
    }
    if args.whole || args.outputs.file.is_some() {
        return Err(CliError::usage(
            "--whole and --outputs are about one release, and none is named",
            "name it with --release NAME, or pass its --bundle FILE",
        ));
    }
    verify_by_digest(session, args, &files).await
}

async fn verify_by_url(
    session: &Session,
    args: &VerifyArgs,
    url: &str,
    files: &[GivenFile],
) -> Result<(), CliError> {
    let found = find_evidence(session, &ReleaseName::parse_one(&[url.to_owned()])?).await?;
    let accepted = proof::accept(&found.evidence, args.root.signers_digest, Network::Online).await?;
    session.remember(&accepted.artifact.index.project_id, &found.client);
    let verified = VerifiedRelease::check(session, args, &found.client, accepted).await?;
    match (&found.file, files) {
        (Some(named), [given]) => {
            let file = listed(&verified.accepted.artifact, &named.name)?;
            conclude(session, args, &verified, &[(file, given)], None)
        }
        _ => check_all(session, args, &verified, files, None),
    }
}

/// A release that is accepted, and what its log proves.
struct VerifiedRelease {
    accepted: Accepted,
    log: LogReport,
    objections: ObjectionsFile,
    begun: Option<Revocation>,
}

impl VerifiedRelease {
    async fn check(
        session: &Session,
        args: &VerifyArgs,
        client: &ServerClient,
        accepted: Accepted,
    ) -> Result<Self, CliError> {
        let (artifact, network) = (&accepted.artifact, Network::Online);
        let (staple, shown) = (given_staple(args)?, Some(client));
        let log = ShownState { artifact, network, client: shown, staple }.check(session, &args.log).await?;
        let begun = warn_of_begun_revocation(session, client, &accepted).await?;
        let objections = objections_to(client, &accepted).await;
        Ok(Self { accepted, log, objections, begun })
    }

    fn report<'a>(&'a self, files: Vec<CheckedFile<'a>>, bundled_at: Option<String>) -> Report<'a> {
        let Self { accepted, log, objections, begun } = self;
        Report { accepted, files, bundled_at, log, objections, begun: begun.as_ref() }
    }
}

fn given_staple(args: &VerifyArgs) -> Result<Option<Staple>, CliError> {
    args.staple.as_deref().map(read_staple).transpose()
}

async fn accept_release(
    session: &Session,
    args: &VerifyArgs,
    client: &ServerClient,
    path: &RepoPath,
) -> Result<VerifiedRelease, CliError> {
    let evidence = evidence::gather_release(client, path).await?;
    let accepted = proof::accept(&evidence, args.root.signers_digest, Network::Online).await?;
    session.remember(&accepted.artifact.index.project_id, client);
    VerifiedRelease::check(session, args, client, accepted).await
}

/// All files must be of this one release.
fn check_all(
    session: &Session,
    args: &VerifyArgs,
    verified: &VerifiedRelease,
    files: &[GivenFile],
    bundled_at: Option<String>,
) -> Result<(), CliError> {
    let artifact = &verified.accepted.artifact;
    let pairs = if args.whole {
        pair_whole(artifact, files)?
    } else {
        let pair = |given| find_by_name(artifact, given).map(|file| (file, given));
        files.iter().map(pair).collect::<Result<Vec<_>, _>>()?
    };
    conclude(session, args, verified, &pairs, bundled_at)
}

/// Compares each file with the one that it claims to be, and reports.
fn conclude(
    session: &Session,
    args: &VerifyArgs,
    verified: &VerifiedRelease,
    pairs: &[(&PublishedFile, &GivenFile)],
    bundled_at: Option<String>,
) -> Result<(), CliError> {
    let mut checked = Vec::new();
    for (file, GivenFile { path, .. }) in pairs.iter().copied() {
        let size = download::check_local(path, file, session.output)?;
        checked.push(CheckedFile { file, size, path });
    }
    verified.report(checked, bundled_at).show(session.output)?;
    let index = verified.accepted.artifact.path.as_str();
    args.outputs.append(&[("INDEX", index), ("STATE", "verified")])
}

/// What is published next is this directory: each file must be where the signed index has it, and every one once (D158).
fn pair_whole<'a>(
    artifact: &'a VerifiedArtifact,
    files: &'a [GivenFile],
) -> Result<Vec<(&'a PublishedFile, &'a GivenFile)>, CliError> {
    let mut here: BTreeSet<&AssetName> = BTreeSet::new();
    let mut pairs = Vec::new();
    for given in files {
        let named = given.place.as_deref().and_then(|place| artifact.file(place));
        let file = named.ok_or_else(|| not_listed(artifact, &given.path))?;
        if !here.insert(&file.file_name) {
            return Err(CliError::unverified(
                format!(
                    "{} is there twice, also as {}",
                    shown_name(&file.file_name),
                    shown_path(&given.path)
                ),
                "name one directory with the whole release",
            ));
        }
        pairs.push((file, given));
    }
    let names = artifact.index.published_files.iter().map(|file| &file.file_name);
    let missing: Vec<&str> = names.filter(|name| !here.contains(name)).map(AssetName::as_str).collect();
    if missing.is_empty() {
        return Ok(pairs);
    }
    let names = missing.iter().take(10).copied().collect::<Vec<_>>().join(", ");
    Err(CliError::unverified(
        format!("{} files of {} are not here: {}", missing.len(), artifact.path, shown_text(&names)),
        "`countersign download NAME -o DIR` fetches and verifies all of them",
    ))
}

/// The release of each file is found by what the file is. Every file is looked at before one that fails ends the command.
async fn verify_by_digest(session: &Session, args: &VerifyArgs, files: &[GivenFile]) -> Result<(), CliError> {
    let clients = session.clients(Reader::Downloader)?;
    // Files of one release are checked together.
    let mut releases: BTreeMap<RepoPath, (ServerClient, Vec<PathBuf>)> = BTreeMap::new();
    let mut failed: Vec<FailedFiles> = Vec::new();
    for GivenFile { path, .. } in files {
        match find_by_digest(session, &clients, path).await {
            Ok(Target { client, path: index }) => {
                releases.entry(index).or_insert_with(|| (client, Vec::new())).1.push(path.clone());
            }
            Err(error) => failed.push(FailedFiles { paths: vec![path.clone()], error }),
        }
    }
    let several = files.len() > 1;
    let mut reports: Vec<Value> = Vec::new();
    for (index, (client, paths)) in releases {
        let verified = match accept_release(session, args, &client, &index).await {
            Ok(verified) => verified,
            Err(error) => {
                failed.push(FailedFiles { paths, error });
                continue;
            }
        };
        let mut files = Vec::new();
        for path in &paths {
            let checked = find_by_content(&verified.accepted.artifact, path)
                .and_then(|file| Ok((file, download::check_local(path, file, session.output)?)));
            match checked {
                Ok((file, size)) => files.push(CheckedFile { file, size, path }),
                Err(error) => failed.push(FailedFiles { paths: vec![path.clone()], error }),
            }
        }
        if files.is_empty() {
            continue;
        }
        let report = verified.report(files, None);
        if several {
            session.output.line(&report.text(session.output));
            report.warn_if_quiet(session.output);
            reports.push(report.json());
        } else {
            report.show(session.output)?;
        }
    }
    finish(session, several, reports, failed)
}

/// Files that are not verified, all for the same reason.
struct FailedFiles {
    paths: Vec<PathBuf>,
    error: CliError,
}

fn finish(
    session: &Session,
    several: bool,
    reports: Vec<Value>,
    mut failed: Vec<FailedFiles>,
) -> Result<(), CliError> {
    if failed.is_empty() {
        return match several {
            true => session.output.result("", &json!({"verified": true, "releases": reports})),
            false => Ok(()),
        };
    }
    if !several {
        return Err(failed.remove(0).error);
    }
    let each: Vec<(&PathBuf, &CliError)> = failed
        .iter()
        .flat_map(|FailedFiles { paths, error }| paths.iter().map(move |path| (path, error)))
        .collect();
    for (path, error) in &each {
        let line = format!("{} {}: {error}", session.output.bad("NOT verified"), shown_path(path));
        session.output.show(&line);
    }
    // The worst of them says how the command ends.
    let kind = match each.iter().any(|(_, error)| error.kind() == ErrorKind::Revoked) {
        true => ErrorKind::Revoked,
        false => each[0].1.kind(),
    };
    let names: Vec<String> = each.iter().map(|(path, _)| shown_path(path)).collect();
    let details = json!({
        "releases": reports,
        "failed": each.iter().map(|(path, error)| json!({
            "file": path.display().to_string(), "error": error.to_string(), "kind": error.kind().as_str(),
        })).collect::<Vec<_>>(),
    });
    let details = details.as_object().cloned().unwrap_or_default();
    let (count, names) = (each.len(), names.join(", "));
    let (message, hint) = match count {
        1 => (format!("1 file is not verified: {names}"), "do not use this file"),
        _ => (format!("{count} files are not verified: {names}"), "do not use these files"),
    };
    Err(CliError::new(kind, message, hint).with_details(details))
}

async fn find_by_digest(
    session: &Session,
    clients: &[ServerClient],
    path: &Path,
) -> Result<Target, CliError> {
    let digests = hash_file(path, session.output)?;
    let (mut revoked, mut collecting) = (None, None);
    for client in clients {
        for (name, hex) in [("sha256", &digests.sha256), ("sha512", &digests.sha512)] {
            let answer = client.releases(&[(name, hex)]).await?;
            let mut complete = None;
            for release in answer.releases {
                let SignatureCount { collected, needed } = release.signatures;
                let target = Target { client: client.clone(), path: release.index_path };
                match release.state {
                    ReleaseState::Complete => complete = complete.or(Some(target)),
                    ReleaseState::Revoked => revoked = revoked.or(Some(target)),
                    ReleaseState::Collecting => {
                        collecting = collecting.or(Some((target, Tally { collected, needed })));
                    }
                }
            }
            if let Some(target) = complete {
                return Ok(target);
            }
        }
    }
    // Of a revoked release, the evidence says when and why.
    revoked.ok_or_else(|| {
        let file = shown_path(path);
        if let Some((Target { path, .. }, tally)) = collecting {
            return CliError::unverified(
                format!("{file} is in {path}, which is not complete: {tally}"),
                "do not use it before the project has signed it; `countersign status NAME` shows who is missing",
            );
        }
        let servers: Vec<String> = clients.iter().map(ServerClient::address).collect();
        CliError::unverified(
            format!("{file} is in no complete release that {} knows", servers.join(" or ")),
            "do not use it. A release that still collects signatures is not found by its files: `countersign status NAME` \
             shows it. If you know where the file came from, pass --url URL; another server: --server URL",
        )
    })
}

pub(super) fn read_bundle(path: &Path) -> Result<Bundle, CliError> {
    let bytes = read_bounded(path, BUNDLE_BYTES)?;
    Bundle::parse(&bytes).map_err(|error| {
        let message = format!("{} is not a bundle", shown_path(path));
        CliError::unverified(message, "make one with `countersign bundle NAME -o FILE`").because(error)
    })
}

/// The listed file that a local one claims to be, by its name; or by what it is, if it was renamed.
fn find_by_name<'a>(
    artifact: &'a VerifiedArtifact,
    given: &GivenFile,
) -> Result<&'a PublishedFile, CliError> {
    let files = &artifact.index.published_files;
    let name = given.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let last = |name: &AssetName| name.as_str().rsplit('/').next().map(str::to_owned);
    let mut same_name = files.iter().filter(|file| last(&file.file_name).as_deref() == Some(name));
    if let (Some(file), None) = (same_name.next(), same_name.next()) {
        return Ok(file);
    }
    find_by_content(artifact, &given.path)
}

fn find_by_content<'a>(artifact: &'a VerifiedArtifact, path: &Path) -> Result<&'a PublishedFile, CliError> {
    let digests = hash_file(path, crate::output::Output::silent())?;
    let found = artifact.index.published_files.iter().find(|file| digests.are_of(file));
    found.ok_or_else(|| not_listed(artifact, path))
}

fn not_listed(artifact: &VerifiedArtifact, path: &Path) -> CliError {
    let files = artifact.index.published_files.iter().take(10);
    let names: Vec<&str> = files.map(|file| file.file_name.as_str()).collect();
    CliError::unverified(
        format!("{} is not a file of {}", shown_path(path), artifact.path),
        format!("the release has {}", shown_text(&names.join(", "))),
    )
}
