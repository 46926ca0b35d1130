//! `countersign release`

use std::time::Duration;

use countersign_api::{answers::AssetsResponse, requests::AssetsBody};
use countersign_core::{
    documents::{layout, signatures::SignatureSet, signers::SignersFile},
    rules::place::{path_of_url, release_tag},
    values::{key::PublicKey, path::RepoPath, wire},
};
use countersign_explain::progress::Names;
use countersign_forge::download_url::locate_release_page;
use indicatif::ProgressBar;
use serde_json::json;

use crate::{
    args::ReleaseArgs,
    client::{ServerCall, ServerClient},
    error::CliError,
    people::People,
    prompt,
    session::Session,
};

pub(crate) async fn run(session: &Session, args: &ReleaseArgs) -> Result<(), CliError> {
    let place = args.url.as_ref().or(args.checksums.first()).and_then(|url| path_of_url(url));
    let client = match &place {
        Some(place) => session.client_for(place)?,
        None => session.client()?,
    };
    let body = match &args.url {
        Some(url) => AssetsBody::Release(url.clone()),
        None => AssetsBody::Checksums(args.checksums.clone()),
    };
    confirm_replacement(session, &client, &body).await?;
    let key = session.key_at(&client, place.as_ref()).await?;
    let spinner = session.output.shows_progress().then(|| {
        let spinner = ProgressBar::new_spinner();
        spinner.set_message("the server fetches the release; this takes as long as its files are large");
        spinner.enable_steady_tick(Duration::from_millis(120));
        spinner
    });
    let answer = client.ask(&key, ServerCall::Assets(&body), AssetsResponse::parse).await;
    if let Some(spinner) = spinner {
        spinner.finish_and_clear();
    }
    let AssetsResponse { index_file_path: path, replaced, .. } = answer?;
    if !is_index_of(&body, &path) {
        return Err(CliError::unverified(
            format!("the server answers about another release, {path}"),
            "check the URL and --server; sign nothing that it shows",
        ));
    }
    let replaced = match replaced {
        Some(replaced) => Some((find_names(&client, &path).await, replaced.signatures)),
        None => None,
    };
    let shown = session.name_of(&path, None);
    let mut text = format!("Registered {path}");
    if let Some((names, fallen)) = &replaced {
        let people = People { names, you: Some(key.public_key()) };
        text.push_str("\nIt replaces one that was collecting. ");
        text.push_str(&match fallen.as_slice() {
            [] => "No one had signed that one.".to_owned(),
            fallen => format!("These signatures fell: {}", people.list(fallen.iter().copied())),
        });
    }
    text.push_str(&format!("\nNow enough signers sign it, each with `countersign sign {shown}`"));
    let fallen = replaced.map(
        |(_, fallen)| json!({"signatures": fallen.iter().map(PublicKey::to_string).collect::<Vec<_>>()}),
    );
    session.output.result(&text, &json!({"index_file_path": path.as_str(), "replaced": fallen}))
}

/// Asks before signatures of others fall. Who has signed is read before, and not believed for more than the question.
async fn confirm_replacement(
    session: &Session,
    client: &ServerClient,
    body: &AssetsBody,
) -> Result<(), CliError> {
    let Some(path) = locate_index(body) else { return Ok(()) };
    let set = client.parsed(&layout::pending_signatures_of(&path), SignatureSet::parse).await?;
    let Some(set) = set.filter(|set| !set.entries.is_empty()) else { return Ok(()) };
    let names = find_names(client, &path).await;
    let you = if session.has_key() { session.public_key().ok() } else { None };
    let people = People { names: &names, you };
    session.output.show_question(
        &format!(
            "{path} is collecting signatures. Registering it again replaces it, and these signatures fall: {}",
            people.list(set.signers())
        ),
        session.confirmation(),
    );
    prompt::confirm(session.confirmation(), "Register it again?")
}

/// What the signers beside the index are called.
async fn find_names(client: &ServerClient, path: &RepoPath) -> Names {
    let copy = client.parsed(&layout::signers_copy_of(path), SignersFile::parse).await;
    copy.ok().flatten().map(|file| Names::of([&file])).unwrap_or_default()
}

/// Where the index would be, by the URL alone.
fn locate_index(body: &AssetsBody) -> Option<RepoPath> {
    let dir = match body {
        AssetsBody::Release(url) => locate_release_page(url.split('?').next().unwrap_or(url)),
        AssetsBody::Checksums(urls) => {
            urls.first().and_then(|url| path_of_url(url)).and_then(|file| file.parent())
        }
    };
    dir.map(|dir| layout::index_in(&dir))
}

/// Whether this is where the index of what was registered belongs: what is printed will be signed.
fn is_index_of(body: &AssetsBody, path: &RepoPath) -> bool {
    match body {
        AssetsBody::Release(url) => {
            // A query on the page's URL means nothing.
            let url = url.split('?').next().unwrap_or(url);
            path.self_and_ancestors().any(|project| {
                let tag = release_tag(url, &project);
                tag.is_some_and(|tag| {
                    path.as_str() == format!("{project}/releases/tag/{tag}/{}", wire::INDEX_FILE)
                })
            })
        }
        AssetsBody::Checksums(urls) => {
            let dir = urls.first().and_then(|url| path_of_url(url)).and_then(|file| file.parent());
            dir.is_some_and(|dir| layout::index_in(&dir) == *path)
        }
    }
}
