//! `countersign release`

use std::time::Duration;

use countersign_api::{answers::AssetsResponse, error_code::ErrorCode, requests::AssetsBody};
use countersign_core::documents::{index::PublishedFile, index::ReleaseIndex, layout, signers::Metadata};
use countersign_core::rules::reproduction::Reproduction;
use countersign_core::rules::{place::path_of_url, place::release_tag_at, stored, stored::ReleaseState};
use countersign_core::values::shown::{plural, shown_text};
use countersign_core::values::{bounds::FILE_BYTES, key::PublicKey, path::RepoPath};
use countersign_explain::describe::{describe, release::ReleaseSummary, release::summarise_release};
use countersign_explain::{progress::Names, reproduction::count_different};
use countersign_forge::checksums::{Checksums, locate_checksums};
use countersign_forge::download_url::locate_release_page;
use countersign_forge::fetch::{FetchLimits, Fetcher, Redirects, Timeouts};
use countersign_forge::pages::{ProjectPages, ReleaseAddress};
use countersign_forge::url::parse_http_url;
use countersign_server::web::links;
use indicatif::ProgressBar;
use serde_json::{Value, json};

use crate::client::targets::{FORMS, ReleaseName, ServerPath};
use crate::client::{ServerCall, ServerClient, session::Reader, session::Session};
use crate::client::{state::Shown, state::StateQuestion};
use crate::words::{error::CliError, output::quote, table::People};
use crate::{args::ReleaseArgs, keys::SigningKey};

pub(crate) async fn run(session: &Session, args: &ReleaseArgs) -> Result<(), CliError> {
    let release = PublishedRelease::find(session, args).await?;
    let PublishedRelease { client, path: release_path, .. } = &release;
    client.check_reachable().await?;
    if let Some(signed) = release.find_signed().await? {
        let is_same = release.lists_same(&signed.shown, &signed.path).await?;
        match args.if_needed {
            // The server says that nothing is to be done.
            false if is_same == Some(true) => {}
            false => confirm_replacement(session, &signed, is_same)?,
            // A registrar replaces nothing, so that it may ask (D105). A signer would.
            true if is_registrar(session, &signed)? => {}
            true => return release.show_registered(&signed.path, is_same),
        }
    }
    let listed = session.listed_keys(client, release_path.as_ref()).await?;
    let key = session.key(release_path.as_ref(), &listed)?;
    let answer = match (release.register(&key).await, release.locate_index()) {
        // Exactly these files are registered, or a complete release is.
        (Err(error), Some(path)) if error.code() == Some(ErrorCode::ReleaseRegistered) => {
            if !args.if_needed {
                return Err(explain_conflict(client, &path, error).await);
            }
            let is_same = release.lists_same(&client.state_at(&path).await?, &path).await?;
            return release.show_registered(&path, is_same);
        }
        (answer, _) => answer?,
    };
    if !release.is_index(&answer.index_file_path) {
        return Err(CliError::unverified(
            format!("the server answers about another release, {}", answer.index_file_path),
            "check the URL and --server; sign nothing that it shows",
        ));
    }
    release.show_new(answer, key.public_key()).await
}

/// The release as its forge or file server publishes it, and the server that is to collect signatures on it.
struct PublishedRelease<'a> {
    session: &'a Session,
    args: &'a ReleaseArgs,
    client: ServerClient,
    /// What settings are looked up for.
    path: Option<RepoPath>,
    body: AssetsBody,
}

impl<'a> PublishedRelease<'a> {
    async fn find(session: &'a Session, args: &'a ReleaseArgs) -> Result<Self, CliError> {
        let (url, body) = match args.names.as_slice() {
            [] => (args.checksums.first(), AssetsBody::Checksums(args.checksums.clone())),
            [url] if url.contains("://") => (Some(url), AssetsBody::Release(url.clone())),
            names => return Self::find_named(session, args, &ReleaseName::parse_one(names)?).await,
        };
        for url in url.into_iter().chain(&args.checksums) {
            parse_http_url(url).map_err(|error| {
                CliError::usage(
                    format!("`{}` is not the address of a release", shown_text(url)),
                    "give the address of the release's page, or of its checksums files with --checksums",
                )
                .because(error)
            })?;
        }
        if let AssetsBody::Release(url) = &body
            && ProjectPages::known_forge(url).is_some()
            && locate_dir(&body).is_none()
        {
            return Err(CliError::usage(
                format!("`{}` is not the address of a release", shown_text(url)),
                format!(
                    "give the address of its page, or of the project and the tag: `countersign release {} TAG`",
                    quote(url)
                ),
            ));
        }
        let path = url.and_then(|url| path_of_url(url));
        Ok(Self { session, args, client: session.client_of(path.as_ref())?, path, body })
    }

    /// The place where the project's signers file came from tells its forge, and with it the address (D241).
    async fn find_named(
        session: &'a Session,
        args: &'a ReleaseArgs,
        name: &ReleaseName,
    ) -> Result<Self, CliError> {
        let StateQuestion::Tag(tag) = &name.which else {
            return Err(CliError::usage(
                format!("`{name}` does not say which release is new"),
                "name its tag, as in `countersign release acme/app v1.0`, or give the URL of its page",
            ));
        };
        let project = ReleaseName { which: StateQuestion::Path, ..name.clone() };
        let ServerPath { client, path: project, .. } = session.find_path(&project, Reader::Signer).await?;
        let shown = client.state_at(&layout::active_signers(&project)).await?;
        let metadata = shown.history().entries.last().map(|entry| Metadata::parse(entry.metadata.as_bytes()));
        let metadata = metadata
            .transpose()
            .map_err(|error| client.unusable_content(&project, error))?
            .ok_or_else(|| {
                CliError::other(
                    format!("{} has no signers in force for {project}", client.address()),
                    "register the project first: `countersign register SIGNERS_URL`",
                )
            })?;
        let pages = ProjectPages::new(&project, metadata.origin.kind);
        let pages = pages.ok_or_else(|| CliError::usage(format!("{project} is not a project"), FORMS))?;
        let (url, body) = match pages.release(tag) {
            ReleaseAddress::Page(url) => (url.clone(), AssetsBody::Release(url)),
            ReleaseAddress::Checksums(url) => (url.clone(), AssetsBody::Checksums(vec![url])),
        };
        session.output.note(&format!("Registering {}", shown_text(&url)));
        Ok(Self { session, args, client, path: Some(project), body })
    }

    async fn register(&self, key: &SigningKey) -> Result<AssetsResponse, CliError> {
        let spinner = self.session.output.shows_progress().then(|| {
            let spinner = ProgressBar::new_spinner();
            spinner.set_message("the server fetches the release; this takes as long as its files are large");
            spinner.enable_steady_tick(Duration::from_millis(120));
            spinner
        });
        let answer = self.client.ask(key, ServerCall::assets(&self.body), AssetsResponse::parse).await;
        if let Some(spinner) = spinner {
            spinner.finish_and_clear();
        }
        answer
    }

    async fn show_new(&self, answer: AssetsResponse, you: PublicKey) -> Result<(), CliError> {
        let Self { session, client, .. } = self;
        let AssetsResponse { index_file_path: path, replaced, .. } = answer;
        let described = client.state_at(&path).await.ok();
        let described = described.and_then(|shown| describe(&shown.files, &path).ok().flatten());
        let mut text = format!("Registered {path} on {}", client.address());
        if let Some(replaced) = &replaced {
            let names = described.as_ref().map(|described| described.names().clone()).unwrap_or_default();
            let people = People { names: &names, you: Some(you) };
            text.push_str("\nIt replaces one that was collecting. ");
            text.push_str(&match people.list(replaced.signatures.iter().copied()).as_str() {
                "" => "No one had signed that one.".to_owned(),
                dropped => format!("These signatures were dropped: {}", session.output.list(dropped)),
            });
        }
        let progress = described.map_or("waits for signatures".to_owned(), |described| described.progress());
        let name = session.name_of(&path, None);
        text.push_str(&format!("\nIt {progress}, each with `countersign sign {name}`"));
        let dropped = replaced.map(|replaced| json!({"signatures": replaced.signatures}));
        self.report(&path, &text, json!({"replaced": dropped}))
    }

    /// Reports what is registered already, which `--if-needed` is for. It is not for other files (D182).
    fn show_registered(&self, path: &RepoPath, is_same: Option<bool>) -> Result<(), CliError> {
        if is_same == Some(false) {
            return Err(CliError::other(
                format!("{path} is registered with other files than the checksums files list now"),
                "a changed release needs a directory of its own; while it still collects signatures, `countersign release` \
                 without --if-needed replaces it",
            )
            .with_detail("conflict", json!("other_files")));
        }
        let text = format!("Registered before: {path} on {}", self.client.address());
        self.report(path, &text, json!({"replaced": null, "was_registered": true}))
    }

    /// Reports what is registered, with its page: there people see the release, and how to sign it.
    fn report(&self, path: &RepoPath, text: &str, mut value: Value) -> Result<(), CliError> {
        let page = format!("{}{}", self.client.address(), links::page(path));
        self.args.outputs.append(&[("INDEX", path.as_str()), ("PAGE", &page)])?;
        value["index_file_path"] = json!(path);
        value["page"] = json!(page);
        self.session.output.result(&format!("{text}\nIts page: {page}"), &value)
    }

    /// Whether the checksums files list the files of this index, read as the server would. `None` if this computer
    /// cannot tell: only the server reads the releases of forges.
    async fn lists_same(&self, shown: &Shown, path: &RepoPath) -> Result<Option<bool>, CliError> {
        let AssetsBody::Checksums(urls) = &self.body else { return Ok(None) };
        let Some(index) = shown.parsed(path, ReleaseIndex::parse)? else { return Ok(None) };
        Ok(read_checksums(urls).await.map(|files| files == index.published_files))
    }

    async fn find_signed(&self) -> Result<Option<SignedIndex>, CliError> {
        let Some(path) = self.locate_index() else { return Ok(None) };
        let shown = self.client.state_at(&path).await?;
        let summary = shown.read(|files| summarise_release(files, &path))?;
        let is_signed = |summary: &ReleaseSummary| {
            let is_stated = summary.reproduction.as_ref().is_some_and(|found| !found.commits.is_empty());
            summary.state == ReleaseState::Collecting && (is_stated || !summary.signatures.entries.is_empty())
        };
        Ok(summary.filter(is_signed).map(|summary| SignedIndex { path, summary, shown }))
    }

    /// Finds where the index would be, by the URL alone.
    fn locate_index(&self) -> Option<RepoPath> {
        locate_dir(&self.body).map(|dir| layout::index_in(&dir))
    }

    /// Whether the index of what was registered belongs at this path. What is printed will be signed.
    fn is_index(&self, path: &RepoPath) -> bool {
        match &self.body {
            AssetsBody::Release(url) => {
                let dir = path.parent().filter(|dir| layout::index_in(dir) == *path);
                dir.is_some_and(|dir| {
                    let mut projects = dir.self_and_ancestors();
                    projects.any(|project| release_tag_at(without_query(url), &project, &dir).is_some())
                })
            }
            AssetsBody::Checksums(_) => self.locate_index().as_ref() == Some(path),
        }
    }
}

/// A query on the URL of a page means nothing.
fn without_query(url: &str) -> &str {
    url.split('?').next().unwrap_or(url)
}

/// Finds where the release would be, by the URL alone.
fn locate_dir(body: &AssetsBody) -> Option<RepoPath> {
    match body {
        AssetsBody::Release(url) => locate_release_page(without_query(url)),
        AssetsBody::Checksums(urls) => path_of_url(urls.first()?)?.parent(),
    }
}

/// Reads the checksums files, or `None` if that fails. The server then says more about it.
async fn read_checksums(urls: &[String]) -> Option<Vec<PublishedFile>> {
    let source = locate_checksums(urls).ok()?;
    let fetcher = Fetcher::for_user(Timeouts::default()).ok()?;
    let limits = FetchLimits { max_bytes: FILE_BYTES as u64, redirects: Redirects::Guarded };
    let mut checksums = Checksums::default();
    for file in &source.files {
        let bytes = fetcher.get(file.request_url(), limits).await.ok()??;
        checksums.add_file(file.as_str(), &bytes).ok()?;
    }
    Some(source.list_files(checksums))
}

/// The server has one code for three cases. What it shows says which one it is.
async fn explain_conflict(client: &ServerClient, path: &RepoPath, error: CliError) -> CliError {
    const NEXT: &str = "another version needs a tag or directory of its own";
    let Ok(shown) = client.state_at(path).await else { return error };
    let (conflict, message, hint) = match stored::index_state(&shown.files, path) {
        Ok(Some(ReleaseState::Revoked)) => {
            ("revoked", format!("{path} is revoked, so nothing can be registered there"), NEXT)
        }
        Ok(Some(ReleaseState::Complete)) => {
            ("already_complete", format!("{path} is complete, so its files can no longer change"), NEXT)
        }
        Ok(Some(ReleaseState::Collecting)) => {
            let message = format!("{path} is registered with exactly these files, and collects signatures");
            ("release_registered", message, "nothing changed; `countersign status NAME` shows how far it is")
        }
        Ok(None) | Err(_) => return error,
    };
    CliError::other(message, hint)
        .naming("NAME", path.as_str())
        .with_details(error.details)
        .with_detail("conflict", json!(conflict))
        .with_request_id(error.request_id.as_deref())
}

/// An index that collects, and has signatures or statements of builders.
struct SignedIndex {
    path: RepoPath,
    summary: ReleaseSummary,
    shown: Shown,
}

fn is_registrar(session: &Session, signed: &SignedIndex) -> Result<bool, CliError> {
    let key = session.public_key_of(Some(&signed.path), &signed.shown.listed_keys()?)?;
    Ok(signed.summary.signers.file.has_registrar(&key))
}

/// Asks before signatures of others are dropped. Who has signed is read before, and not believed for more than the
/// question.
fn confirm_replacement(
    session: &Session,
    SignedIndex { path, summary, .. }: &SignedIndex,
    is_same: Option<bool>,
) -> Result<(), CliError> {
    let if_changed = if is_same.is_none() { "If its files have changed: " } else { "" };
    let names = Names::of([&*summary.signers.file]);
    let you = session.own_key();
    let people = People { names: &names, you };
    let signed = people.list(summary.signatures.signers());
    let signed = (!signed.is_empty()).then(|| format!("these signatures: {}", session.output.list(&signed)));
    let dropped = signed.into_iter().chain(summary.reproduction.as_ref().and_then(stated_text));
    session.confirm(
        &format!(
            "{path} is collecting signatures. {if_changed}Registering it again replaces it, and drops {}",
            dropped.collect::<Vec<_>>().join("; and ")
        ),
        "Register it again?",
    )
}

/// Says what builders stated, as in `what 2 builders stated (1 builder got something else)`; `None` if none did.
fn stated_text(reproduction: &Reproduction) -> Option<String> {
    let count = reproduction.commits.len();
    let different = count_different(reproduction.different.len());
    let different = different.map(|different| format!(" ({different})")).unwrap_or_default();
    (count > 0).then(|| format!("what {count} builder{} stated{different}", plural(count)))
}
