//! Registering the files of a release: from a code forge, or from checksums files.

use std::sync::Arc;

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
};
use futures_util::future::join_all;

use crate::{app::App, auth::Authenticated, error::ApiError};

pub async fn register(
    State(app): State<App>,
    request: Authenticated,
) -> Result<Json<AssetsResponse>, ApiError> {
    let (release, message) = match AssetsBody::parse(&request.body)? {
        AssetsBody::Release(url) => {
            let source = app.forges().locate_release(&url)?;
            assets::check_assets(&*app.store().head(), &source.dir, &request.caller)?;
            (app.download_release(source).await?, "Release registered successfully")
        }
        AssetsBody::Checksums(urls) => {
            let max_files = app.limits().checksums_files;
            if urls.len() > max_files {
                return Err(ApiError::bad_request(format!("csum_files has more than {max_files} URLs")));
            }
            let source = locate_checksums(&urls)?;
            assets::check_assets(&*app.store().head(), &source.dir, &request.caller)?;
            (fetch_checksums(&app, &source).await?, "Assets registered successfully")
        }
    };
    let (caller, max_collecting, now) = (request.caller, app.limits().collecting_per_project, app.now());
    let decide = move |head: &_| assets::register_assets(head, &release, &caller, max_collecting, now);
    let index = app.store().transact(decide).await??;
    Ok(Json(AssetsResponse { success: true, message, index_file_path: index.to_string() }))
}

async fn fetch_checksums(app: &App, source: &ChecksumsSource) -> Result<Arc<Release>, ApiError> {
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
    let dir = source.dir.clone();
    Ok(Arc::new(Release { dir, release_url: None, published_on: None, published_files }))
}
