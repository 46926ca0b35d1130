//! `countersign release`

use std::time::Duration;

use countersign_api::{answers::AssetsResponse, requests::AssetsBody};
use countersign_core::{
    documents::layout,
    rules::place::{path_of_url, release_tag},
    values::{path::RepoPath, wire},
};
use indicatif::ProgressBar;
use serde_json::json;

use crate::{args::ReleaseArgs, client::ServerCall, error::CliError, output::quote, session::Session};

pub(crate) async fn run(session: &Session, args: &ReleaseArgs) -> Result<(), CliError> {
    let place = args.url.as_ref().or(args.checksums.first()).and_then(|url| path_of_url(url));
    let client = match &place {
        Some(place) => session.client_for(place)?,
        None => session.client()?,
    };
    let key = session.key_at(&client, place.as_ref()).await?;
    let body = match &args.url {
        Some(url) => AssetsBody::Release(url.clone()),
        None => AssetsBody::Checksums(args.checksums.clone()),
    };
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
    let path = answer?.index_file_path;
    if !is_index_of(&body, &path) {
        return Err(CliError::unverified(
            format!("the server answers about another release, {path}"),
            "check the URL and --server; sign nothing that it shows",
        ));
    }
    let shown = quote(path.as_str());
    let text = format!("Registered {path}\nNow enough signers sign it, each with `countersign sign {shown}`");
    session.output.result(&text, &json!({"index_file_path": path.as_str()}))
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
