//! `countersign verify`

use std::{collections::BTreeMap, collections::BTreeSet, fs, io, path::Path, path::PathBuf};

use countersign_api::catalogue::{ListedRelease, ReleaseState};
use countersign_api::state::{StateResponse, is_answer};
use countersign_core::documents::index::{AssetName, Digests, PublishedFile};
use countersign_core::documents::{layout, said::ObjectionsFile};
use countersign_core::proof::{bundle::Bundle, bundle::Staple, verify::VerifiedArtifact};
use countersign_core::rules::reproduction::Reproduction;
use countersign_core::rules::snapshot::{ReadError, Snapshot as _};
use countersign_core::values::shown::{marked_name, shown_text};
use countersign_core::values::{bounds::STATE_BYTES, json::ParseError, path::RepoPath};
use countersign_explain::words::{shown_release, shown_url};
use countersign_explain::{describe::release::RevocationDescription, reproduction::count_different};
use serde_json::{Value, json};

use crate::client::session::{Reader, Session};
use crate::client::{ServerClient, targets::ReleaseName, targets::choose_fitting};
use crate::commands::download::{FoundEvidence, find_accepted, find_release, listed};
use crate::evidence::freshness::{ShownState, StateSource, read_staple};
use crate::evidence::report::{AcceptedRelease, AlsoIn, CheckedFile, Report, also_in_text};
use crate::evidence::{download, download::hash_file, proof, proof::Network, release::shown_name};
use crate::words::error::{CliError, ErrorKind, shown_path};
use crate::words::output::{Output, quote};
use crate::{args::VerifyArgs, settings::config_dir::read_bounded};

pub(crate) async fn run(session: &Session, args: &VerifyArgs) -> Result<(), CliError> {
    if args.whole {
        refuse_links(&args.files)?;
    }
    let files = list_files(&args.files)?;
    let verification = Verification { session, args };
    if let Some(url) = &args.url {
        return verification.by_url(url, &files).await;
    }
    if let Some(path) = &args.bundle {
        return verification.by_bundle(path, &files).await;
    }
    if !args.release.is_empty() {
        let mut found = find_release(session, &ReleaseName::parse_one(&args.release)?).await?;
        let verified = found.accept(session, &args.proof, verification.given_staple()?).await?;
        return verification.check_all(&verified, &files, None);
    }
    if args.whole || args.outputs.file.is_some() {
        return Err(CliError::usage(
            "--whole and --outputs are about one release, and none is named",
            "name it with --release NAME, or pass its --bundle FILE",
        ));
    }
    verification.by_digest(&files).await
}

/// One run of the command.
#[derive(Clone, Copy)]
struct Verification<'a> {
    session: &'a Session,
    args: &'a VerifyArgs,
}

impl Verification<'_> {
    async fn by_url(&self, url: &str, files: &[GivenFile]) -> Result<(), CliError> {
        let name = ReleaseName::parse_one(&[url.to_owned()])?;
        let staple = self.given_staple()?;
        let (found, verified) = find_accepted(self.session, &name, &self.args.proof, staple).await?;
        match (&found.file, files) {
            (Some(named), [given]) => {
                let file = listed(&verified.accepted.artifact, &named.name)?;
                self.conclude(&verified, &[(file, given)], None)
            }
            _ => self.check_all(&verified, files, None),
        }
    }

    async fn by_bundle(&self, path: &Path, files: &[GivenFile]) -> Result<(), CliError> {
        let wanted = &self.args.proof;
        let SavedBundle { bundle, objections, begun } = SavedBundle::read(path)?;
        let accepted = proof::accept(&bundle.evidence, wanted.signers_digest, Network::Offline).await?;
        let given = self.given_staple()?;
        let is_given = given.is_some();
        let (artifact, staple) = (&accepted.artifact, given.or(bundle.staple));
        let (session, from) = (self.session, StateSource::Bundle);
        let state = ShownState { session, wanted, artifact, from, staple, is_given };
        let log = state.check().await?;
        let mut verified = AcceptedRelease { accepted, log, objections, begun, passed_over: Vec::new() };
        if wanted.strict {
            verified = verified.refuse_begun()?;
        }
        self.check_all(&verified, files, Some(bundle.bundled_at.to_string()))
    }

    fn given_staple(&self) -> Result<Option<Staple>, CliError> {
        self.args.staple.as_deref().map(read_staple).transpose()
    }

    /// Checks all files, which must be of this one release.
    fn check_all(
        &self,
        verified: &AcceptedRelease,
        files: &[GivenFile],
        bundled_at: Option<String>,
    ) -> Result<(), CliError> {
        let artifact = &verified.accepted.artifact;
        let pairs = if self.args.whole {
            pair_whole(artifact, files)?
        } else {
            let pair = |given| find_by_name(artifact, given).map(|file| (file, given));
            files.iter().map(pair).collect::<Result<Vec<_>, _>>()?
        };
        self.conclude(verified, &pairs, bundled_at)
    }

    /// Compares each file with the one that it claims to be, and reports.
    fn conclude(
        &self,
        verified: &AcceptedRelease,
        pairs: &[(&PublishedFile, &GivenFile)],
        bundled_at: Option<String>,
    ) -> Result<(), CliError> {
        let mut checked = Vec::new();
        for (file, GivenFile { path, .. }) in pairs.iter().copied() {
            let size = download::check_local(path, file, self.session.output)?;
            checked.push(CheckedFile { file, size, path });
        }
        Report { release: verified, files: checked, also_in: Vec::new(), bundled_at }
            .show(self.session.output)?;
        let artifact = &verified.accepted.artifact;
        let mut outputs = vec![("INDEX", artifact.path.as_str()), ("STATE", "verified")];
        let reproduction = artifact.reproduction.as_ref();
        let is_reproduced = reproduction.map(Reproduction::is_reproduced);
        outputs.extend(is_reproduced.map(|is| ("REBUILDS", if is { "reproduced" } else { "missing" })));
        let different = reproduction.and_then(|found| count_different(found.different.len()));
        outputs.extend(different.as_deref().map(|different| ("DIFFERENT", different)));
        self.args.outputs.append(&outputs)
    }

    /// The release of each file is found by what the file is. Every file is looked at before one that fails ends the
    /// command.
    async fn by_digest(&self, files: &[GivenFile]) -> Result<(), CliError> {
        let Self { session, args } = *self;
        let name = args.project.as_ref().map(|name| ReleaseName::parse_one(std::slice::from_ref(name)));
        let project = name.transpose()?.and_then(|name| name.written_path());
        let clients = match project.filter(|project| session.names_server(project)) {
            // Other servers have nothing to say of it.
            Some(project) => vec![session.client_of(Some(&project))?],
            None => session.clients(Reader::Downloader)?,
        };
        // Files of one release are checked together.
        let mut releases: BTreeMap<RepoPath, FoundFiles> = BTreeMap::new();
        let mut failed: Vec<FailedFiles> = Vec::new();
        for GivenFile { path, .. } in files {
            let found = self.find_by_digest(&clients, path).await;
            match found.and_then(|listings| self.choose_project(path, listings)) {
                Ok((listing, also_in)) => {
                    let index = listing.index.clone();
                    let files = FoundFiles { listing, also_in, paths: Vec::new() };
                    releases.entry(index).or_insert(files).paths.push(path.clone());
                }
                Err(error) => failed.push(FailedFiles { paths: vec![path.clone()], error }),
            }
        }
        let several = files.len() > 1;
        let mut reports: Vec<Value> = Vec::new();
        for (index, FoundFiles { listing, also_in, paths }) in releases {
            let accepted = async {
                self.confirm_first_use(&listing, &also_in)?;
                let mut found = FoundEvidence::at(&listing.client, &index).await?;
                found.accept(session, &args.proof, self.given_staple()?).await
            };
            let verified = match accepted.await {
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
            let report = Report { release: &verified, files, also_in, bundled_at: None };
            if several {
                session.output.line(&report.text(session.output));
                report.warn_if_quiet(session.output);
                reports.push(report.json());
            } else {
                report.show(session.output)?;
            }
        }
        finish(session.output, several, reports, failed)
    }

    /// The complete releases that list the file, and behind them the revoked ones, of which the evidence says when and
    /// why.
    async fn find_by_digest(&self, clients: &[ServerClient], path: &Path) -> Result<Vec<Listing>, CliError> {
        let Digests { sha256, sha512 } = hash_file(path, self.session.output)?.digests;
        let (sha256, sha512) =
            (sha256.map(|digest| digest.to_string()), sha512.map(|digest| digest.to_string()));
        let (mut complete, mut revoked, mut collecting) = (Vec::new(), Vec::new(), None);
        for client in clients {
            if !complete.is_empty() {
                break;
            }
            for (name, hex) in [("sha256", &sha256), ("sha512", &sha512)] {
                let Some(hex) = hex else { continue };
                for ListedRelease { index_path: index, project_id: project, state, signatures, .. } in
                    client.releases(&[(name, hex)]).await?.releases
                {
                    let is_revoked = state == ReleaseState::Revoked;
                    let listing = Listing { client: client.clone(), index, project, is_revoked };
                    match state {
                        ReleaseState::Complete => complete.push(listing),
                        ReleaseState::Revoked => revoked.push(listing),
                        ReleaseState::Collecting => {
                            collecting = collecting.or(Some((listing.index, signatures)))
                        }
                    }
                }
            }
        }
        complete.append(&mut revoked);
        if !complete.is_empty() {
            return Ok(complete);
        }
        let file = shown_path(path);
        if let Some((index, tally)) = collecting {
            return Err(CliError::unverified(
                format!("{file} is in {index}, which is not complete: it {tally}"),
                format!(
                    "do not use it before the project has signed it; `countersign status {index}` shows who is missing"
                ),
            ));
        }
        let servers: Vec<String> = clients.iter().map(ServerClient::address).collect();
        let known = self.session.known_projects();
        let project = match (&self.args.project, known.as_slice()) {
            (Some(project), _) => quote(project),
            (None, [only]) => quote(only.as_str()),
            (None, _) => "PROJECT".to_owned(),
        };
        Err(CliError::unverified(
            format!("{file} is in no complete release that {} knows", servers.join(" or ")),
            format!(
                "do not use it. A release that still collects signatures is not found by its files: `countersign releases \
                 {project}` shows it. If you know where the file came from, pass --url URL; another server: --server URL"
            ),
        ))
    }

    /// Anyone can list any file, so a server must not choose the project (D250). Returns the others that list the file
    /// too.
    fn choose_project(
        &self,
        path: &Path,
        listings: Vec<Listing>,
    ) -> Result<(Listing, Vec<AlsoIn>), CliError> {
        let projects: BTreeSet<&RepoPath> = listings.iter().map(|listing| &listing.project).collect();
        let projects: Vec<RepoPath> = projects.into_iter().cloned().collect();
        let names = || projects.iter().map(shown_url).collect::<Vec<_>>().join(" and ");
        let meant = match &self.args.project {
            Some(name) => match ReleaseName::parse_one(std::slice::from_ref(name))?.written_path() {
                Some(path) => projects.iter().find(|project| **project == path).cloned(),
                None => choose_fitting(name, &projects)?,
            }
            .ok_or_else(|| {
                CliError::unverified(
                    format!(
                        "{} is in no release of {}, but of {}",
                        shown_path(path),
                        marked_name(name),
                        names()
                    ),
                    "do not use it, unless that is the project that you mean",
                )
            })?,
            None => {
                let known = self.session.known_projects();
                let mut seen = projects.iter().filter(|project| known.contains(project));
                match (projects.as_slice(), seen.next(), seen.next()) {
                    ([only], _, _) | (_, Some(only), None) => only.clone(),
                    _ => {
                        return Err(CliError::usage(
                            format!("{} is listed by {}", shown_path(path), names()),
                            "anyone can list any file. Say which project you mean, as you know it from its own site: \
                             --project URL",
                        ));
                    }
                }
            }
        };
        let other = |project: RepoPath| {
            let is_revoked = listings.iter().all(|listing| listing.project != project || listing.is_revoked);
            AlsoIn { project, is_revoked }
        };
        let others = projects.into_iter().filter(|project| *project != meant).map(other).collect();
        let listing = listings.into_iter().find(|listing| listing.project == meant);
        Ok((listing.expect("the project is that of a listing"), others))
    }

    /// Asks on first use of a project that only the server named.
    fn confirm_first_use(&self, listing: &Listing, also_in: &[AlsoIn]) -> Result<(), CliError> {
        let (Self { session, args }, Listing { index, project, .. }) = (*self, listing);
        let is_named = args.project.is_some() || args.proof.signers_digest.is_some();
        if is_named || session.known_projects().contains(project) {
            return Ok(());
        }
        let others = also_in_text(also_in).map(|others| format!(" {others}.")).unwrap_or_default();
        let release = shown_release(index, project);
        let about =
            format!("The server says that this is {release}, which this computer has never seen.{others}");
        let asked = session.confirm(&about, "Is this the project that you mean?");
        asked.map_err(|error| error.with_hint(format!("name it, which asks nothing: --project {project}")))
    }
}

/// What is published next is this directory: each file must be where the signed index has it, and every one once
/// (D158).
fn pair_whole<'a>(
    artifact: &'a VerifiedArtifact,
    files: &'a [GivenFile],
) -> Result<Vec<(&'a PublishedFile, &'a GivenFile)>, CliError> {
    let mut here: BTreeSet<&AssetName> = BTreeSet::new();
    let mut pairs = Vec::new();
    for given in files {
        let named = given.listed_as.as_deref().and_then(|listed_as| artifact.file(listed_as));
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
    let (path, names) = (&artifact.path, shown_text(&names));
    Err(CliError::unverified(
        match missing.len() {
            1 => format!("1 file of {path} is not here: {names}"),
            count => format!("{count} files of {path} are not here: {names}"),
        },
        format!("`countersign download {path} -o DIR` fetches and verifies all of them"),
    ))
}

/// Files that are not verified, all for the same reason.
struct FailedFiles {
    paths: Vec<PathBuf>,
    error: CliError,
}

fn finish(
    output: Output,
    several: bool,
    reports: Vec<Value>,
    mut failed: Vec<FailedFiles>,
) -> Result<(), CliError> {
    if failed.is_empty() {
        return match several {
            true => output.result("", &json!({"verified": true, "releases": reports})),
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
        output.show(&format!("{} {}: {error}", output.bad("NOT verified"), shown_path(path)));
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
            "file": path.display().to_string(), "error": error.to_string(), "kind": error.kind(),
        })).collect::<Vec<_>>(),
    });
    let (count, names) = (each.len(), names.join(", "));
    let (message, hint) = match count {
        1 => (format!("1 file is not verified: {names}"), "do not use this file"),
        _ => (format!("{count} files are not verified: {names}"), "do not use these files"),
    };
    Err(CliError::new(kind, message, hint).with_details(details))
}

/// Files of one release, which was found by their digests.
struct FoundFiles {
    listing: Listing,
    /// The other projects that list one of the files.
    also_in: Vec<AlsoIn>,
    paths: Vec<PathBuf>,
}

/// A release that lists a file.
struct Listing {
    client: ServerClient,
    index: RepoPath,
    project: RepoPath,
    is_revoked: bool,
}

/// A bundle, alone or in the saved answer of a server about a release, which also has what signers said against it.
pub(super) struct SavedBundle {
    pub(super) bundle: Bundle,
    objections: ObjectionsFile,
    begun: Option<RevocationDescription>,
}

impl SavedBundle {
    pub(super) fn read(path: &Path) -> Result<Self, CliError> {
        let bytes = read_bounded(path, STATE_BYTES)?;
        let not_a_bundle = |error: ParseError| {
            let message = format!("{} is not a bundle", shown_path(path));
            CliError::unverified(message, "make one with `countersign bundle NAME -o FILE`").because(error)
        };
        let saved = match is_answer(&bytes).map_err(not_a_bundle)? {
            false => Bundle::parse(&bytes).map(|bundle| Self {
                bundle,
                objections: ObjectionsFile::default(),
                begun: None,
            }),
            true => StateResponse::parse(&bytes).and_then(|answer| Self::of_answer(&answer)),
        };
        saved.map_err(not_a_bundle)
    }

    fn of_answer(answer: &StateResponse) -> Result<Self, ParseError> {
        let none = || ParseError::new("bundle", "the release was not complete when this was saved");
        let bundle = answer.bundle().ok_or_else(none)?;
        let index = &bundle.evidence.path;
        let read = || {
            let files = answer.state.to_files()?;
            let objections = files.read_document(&layout::objections_of(index), ObjectionsFile::parse)?;
            Ok((objections.unwrap_or_default(), RevocationDescription::begun(&files, index)?))
        };
        let (objections, begun) =
            read().map_err(|error: ReadError| ParseError::new("files", error.to_string()))?;
        Ok(Self { bundle, objections, begun })
    }
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
    let own = hash_file(path, Output::silent())?;
    let found = artifact.index.published_files.iter().find(|file| own.is(file));
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

// The files that a user names, and those in the directories that a user names.

#[derive(Debug)]
struct GivenFile {
    path: PathBuf,
    /// The path of the file below the directory that was named, with `/`, or the file's own name if it was named
    /// itself. `None` if this is not text, because every name in an index is.
    listed_as: Option<String>,
}

fn list_files(given: &[PathBuf]) -> Result<Vec<GivenFile>, CliError> {
    let mut files = Vec::new();
    for path in given {
        // A file that is not there is no failed verification.
        if !fs::metadata(path).map_err(|error| CliError::file("read", path, error))?.is_dir() {
            let listed_as = path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
            files.push(GivenFile { path: path.clone(), listed_as });
            continue;
        }
        let before = files.len();
        add_directory(path, Some(""), &mut files)?;
        if files.len() == before {
            return Err(CliError::usage(
                format!("{} has no files", shown_path(path)),
                "name files, or a directory with files",
            ));
        }
    }
    Ok(files)
}

/// Refuses links where a whole release must be. A link could lead elsewhere by the time someone publishes it.
fn refuse_links(given: &[PathBuf]) -> Result<(), CliError> {
    for path in given {
        // Without a slash at the end, which would follow the link.
        let path: PathBuf = path.components().collect();
        let found = fs::symlink_metadata(&path).map_err(|error| CliError::file("read", &path, error))?;
        if !found.is_file() && !found.is_dir() {
            return Err(special(&path));
        }
    }
    Ok(())
}

/// Adds the files below a directory. `listed_as` is its path below the one that was named, and empty for that one.
fn add_directory(dir: &Path, listed_as: Option<&str>, files: &mut Vec<GivenFile>) -> Result<(), CliError> {
    let mut entries: Vec<fs::DirEntry> = fs::read_dir(dir)
        .and_then(Iterator::collect::<io::Result<_>>)
        .map_err(|error| CliError::file("read", dir, error))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let kind = entry.file_type().map_err(|error| CliError::file("read", &path, error))?;
        let name = entry.file_name();
        let listed_as = listed_as.zip(name.to_str()).map(|(above, name)| match above {
            "" => name.to_owned(),
            above => format!("{above}/{name}"),
        });
        if kind.is_dir() {
            add_directory(&path, listed_as.as_deref(), files)?;
        } else if kind.is_file() {
            files.push(GivenFile { path, listed_as });
        } else {
            return Err(special(&path));
        }
    }
    Ok(())
}

fn special(path: &Path) -> CliError {
    CliError::unverified(
        format!("{} is neither a file nor a directory", shown_path(path)),
        "a link, device or pipe can become another file after it was verified. Put the file itself there",
    )
}
