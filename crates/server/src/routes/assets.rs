//! Registering the files of a release from checksums files.

use axum::{Json, extract::State};
use countersign_core::{
    api::{AssetsBody, AssetsResponse},
    checksums::Checksums,
    decide::assets::{self, Release},
    index::PublishedFile,
};
use countersign_forge::{
    checksums::{ChecksumsSource, locate_checksums},
    fetch::{Limits, Redirects},
    url::SourceUrl,
};

use futures_util::future::join_all;

use crate::{app::App, auth::Authenticated, error::ApiError};

pub async fn register(
    State(app): State<App>,
    request: Authenticated,
) -> Result<Json<AssetsResponse>, ApiError> {
    let urls = match AssetsBody::parse(&request.body)? {
        AssetsBody::Checksums(urls) => urls,
        AssetsBody::Release(url) => return Err(refuse_release(&url)?),
    };
    let max_files = app.limits().checksums_files;
    if urls.len() > max_files {
        return Err(ApiError::bad_request(format!("csum_files has more than {max_files} URLs")));
    }
    let source = locate_checksums(&urls)?;
    assets::check_assets(&*app.store().head(), &source.dir, &request.caller)?;
    let release = fetch_release(&app, &source).await?;
    let (caller, max_collecting, now) = (request.caller, app.limits().collecting_per_project, app.now());
    let decide = move |head: &_| assets::register_assets(head, &release, &caller, max_collecting, now);
    let index = app.store().transact(decide).await??;
    Ok(Json(AssetsResponse {
        success: true,
        message: "Assets registered successfully",
        index_file_path: index.to_string(),
    }))
}

/// Releases of code forges are not read yet.
fn refuse_release(url: &str) -> Result<ApiError, ApiError> {
    let url = SourceUrl::parse(url)?;
    Ok(ApiError::bad_request(format!(
        "Invalid release URL: releases on {} cannot be read by this version; register checksums files with csum_files",
        url.host().as_str()
    )))
}

async fn fetch_release(app: &App, source: &ChecksumsSource) -> Result<Release, ApiError> {
    let limits = Limits { max_bytes: app.limits().checksums_file_bytes, redirects: Redirects::Guarded };
    let contents = join_all(source.files.iter().map(|file| app.fetch(file.request_url(), limits))).await;
    let mut checksums = Checksums::default();
    for (file, bytes) in source.files.iter().zip(contents) {
        checksums.add_file(file.as_str(), &bytes?)?;
        checksums.check_count(app.limits().assets)?;
    }
    let published_files = checksums
        .files
        .into_iter()
        .map(|(file_name, digests)| {
            let source = source.url_of(file_name.as_str());
            PublishedFile { file_name, size: None, source, digests }
        })
        .collect();
    Ok(Release { dir: source.dir.clone(), release_url: None, published_on: None, published_files })
}
