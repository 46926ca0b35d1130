//! Registers the files of a release, from a code forge or from checksums files.

use std::sync::Arc;

use axum::Json;
use countersign_api::answers::{AssetsResponse, ReplacedIndex};
use countersign_api::{error_code::ErrorCode, requests::AssetsBody};
use countersign_core::rules::decide::{assets, assets::Release};
use countersign_core::values::{path::RepoPath, wire::routes as paths};
use countersign_forge::checksums::{Checksums, ChecksumsSource, locate_checksums};
use countersign_forge::fetch::{FetchLimits, Redirects};
use countersign_store::Head;
use futures_util::{StreamExt as _, stream};

use crate::api::{auth::Authenticated, openapi::Endpoint, openapi::Section, routing::RouteTable, state::App};
use crate::http::{error::ApiError, upstream::FetchClaim, upstream::FetchKind, upstream::FetchTurn};
use crate::operate::{observe, observe::RequestFact};

/// Checksums files of one release to fetch at the same time. Most often there are two, SHA-256 and SHA-512.
const AT_ONCE: usize = 2;

/// A release whose files are known, and what is needed to store and to answer.
struct FetchedRelease {
    project: RepoPath,
    release: Arc<Release>,
    /// The URLs that it was read from, for messages.
    source: String,
    message: &'static str,
    turn: Option<FetchTurn>,
}

pub(crate) fn routes() -> RouteTable {
    RouteTable::default()
        .post(paths::ASSETS, register, Endpoint::new("assets", Section::Changing, "Register a release")
            .about(
                "Registers a release, by its page on a code forge or by checksums files. The server makes an index of names \
                 and digests, which then waits for signatures. The files themselves are not kept.\n\n\
                 Every key of the signers file in force there can do this, in any role but builder. The server downloads all files of a \
                 release on a forge, which can take minutes. If the connection ends meanwhile, send the request again: it \
                 joins the download under way.",
            )
            .signed()
            .with_body::<AssetsBody>(&[("release", "assets.request"), ("checksums", "assets.request.checksums")])
            .answers_with::<AssetsResponse>(200, "registered, and waiting for signatures", &[("release", "assets"), ("replaced", "assets.replaced")])
            .refuses(400, "neither or both of the fields; a URL or address is refused; the URLs do not share a directory; no signers file is in force there; the host is not a known code forge", "assets.400")
            .refuses(403, "the caller is no signer in the current signers file, or is a registrar and would correct an index; the operator has blocked the key, the host or the project; or this is a mirror", "assets.403")
            .refuses(409, "the index is complete or revoked, or is collecting with the same content; or the project has too many collecting indexes", "assets.409")
            .can_fail(", or the release could not be fetched or is not valid"))
}

async fn register(request: Authenticated) -> Result<Json<AssetsResponse>, ApiError> {
    let app = &request.question.app;
    let FetchedRelease { project, release, source, message, turn } = match AssetsBody::parse(&request.body)? {
        AssetsBody::Release(url) => fetch_from_forge(&request, &url).await?,
        AssetsBody::Checksums(urls) => fetch_from_checksums(&request, &urls).await?,
    };
    let write = move |now| {
        release.write_index(&project, now).map_err(|error| ApiError::oversized_upstream(&source, error))
    };
    // Written and measured here: the writer has only one thread.
    let written = write(app.now())?;
    let (caller, max_collecting) = (request.caller, app.limits.collecting_per_project);
    let decide = move |head: &Head, now| {
        let later = if written.is_of(now) { None } else { Some(write(now)?) };
        let index = later.as_ref().unwrap_or(&written);
        Ok::<_, ApiError>(assets::register_assets(head, index, &caller, max_collecting)?)
    };
    let registered = request.change(decide).await?;
    // Only now, so that no more releases wait for the writer than there are turns.
    drop(turn);
    let replaced = registered.replaced.map(|keys| ReplacedIndex { signatures: keys.into_iter().collect() });
    let (message, index_file_path) = (message.to_owned(), registered.index);
    Ok(Json(AssetsResponse { success: true, message, index_file_path, replaced }))
}

async fn fetch_from_forge(request: &Authenticated, url: &str) -> Result<FetchedRelease, ApiError> {
    let upstream = &request.question.app.upstream;
    let located = upstream.forges.locate_release(url);
    let source = located.inspect_err(|_| observe::note(RequestFact::File, &url))?;
    let (project, claim) = admit(request, &source.dir)?;
    let page = source.url.clone();
    let release = upstream.download_release(source, claim).await?;
    let message = "Release registered successfully";
    Ok(FetchedRelease { project, release, source: page, message, turn: None })
}

async fn fetch_from_checksums(request: &Authenticated, urls: &[String]) -> Result<FetchedRelease, ApiError> {
    let app = &request.question.app;
    let max_files = app.limits.checksums_files;
    if urls.len() > max_files {
        let message = format!("csum_files has more than {max_files} URLs");
        return Err(ApiError::new(ErrorCode::InvalidBody, message));
    }
    let located = locate_checksums(urls);
    let source = located.inspect_err(|_| observe::note(RequestFact::File, &urls.join(" ")))?;
    let (project, claim) = admit(request, &source.dir)?;
    let turn = app.upstream.turns.begin(FetchKind::Checksums, claim).await?;
    let release = fetch_checksums(app, &turn, &source).await?;
    let files = source.files.iter().map(ToString::to_string).collect::<Vec<_>>().join("`, `");
    let message = "Assets registered successfully";
    Ok(FetchedRelease { project, release, source: files, message, turn: Some(turn) })
}

/// The project that `dir` belongs to, and the claim of a caller who may register files there. Nothing is fetched
/// before.
fn admit(request: &Authenticated, dir: &RepoPath) -> Result<(RepoPath, FetchClaim), ApiError> {
    request.check_blocks(&[&request.caller], dir)?;
    let active = assets::check_assets(&*request.question.app.store.head(), dir, &request.caller)?;
    let claim = request.claim_fetch(request.claimant().with_project(&active.project))?;
    Ok((active.project, claim))
}

async fn fetch_checksums(
    app: &App,
    turn: &FetchTurn,
    source: &ChecksumsSource,
) -> Result<Arc<Release>, ApiError> {
    let limits = FetchLimits { max_bytes: app.limits.checksums_file_bytes, redirects: Redirects::Guarded };
    let fetches: Vec<_> =
        source.files.iter().map(|file| app.upstream.fetch(turn, file.request_url(), limits)).collect();
    // Read in order, each as soon as it is there, so that few are in memory at a time.
    let mut contents = stream::iter(fetches).buffered(AT_ONCE);
    let mut checksums = Checksums::default();
    for file in &source.files {
        let Some(bytes) = contents.next().await else { break };
        checksums.add_file(file.as_str(), &bytes?)?;
        checksums.check_count(app.limits.assets)?;
    }
    let published_files = source.list_files(checksums);
    let dir = source.dir.clone();
    Ok(Arc::new(Release { dir, release_url: None, published_on: None, published_files }))
}
