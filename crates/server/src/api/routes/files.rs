//! Stored files: raw, the signers file that governs a path, and the signers history behind an artifact.

use std::sync::Arc;

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::{body::Body, response::IntoResponse, response::Response};
use countersign_api::{answers::ChainResponse, error_code::ErrorCode, schemas::SignersConfig};
use countersign_core::values::{path::RepoPath, wire::routes as paths};
use countersign_core::{documents::layout, rules::decide::statement::list_records};
use countersign_store::{FoundFile, Head, ObjectId, PathEntry, unreadable};

use crate::api::openapi::{Content, DescribedAnswer, Endpoint, Section, any_path, file_path};
use crate::api::routing::{JSON, Question, RouteTable, parse_tail, with_type};
use crate::api::{openapi, routes::history::HistoryEntries, routes::history::cached_chain, state::App};
use crate::{http::error::ApiError, http::sending::SMALL_BYTES};

const OCTET_STREAM: HeaderValue = HeaderValue::from_static("application/octet-stream");
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache");
/// Forty hexadecimal digits and two quotation marks.
const TAG_BYTES: usize = 42;

pub(crate) fn routes() -> RouteTable {
    RouteTable::default()
        .get_below(paths::FILES, raw, Endpoint::new("file", Section::Reading, "A stored file")
            .about(
                "The bytes of any stored file. You can keep copies, but ask again before you use one: the file at a path \
                 can change.",
            )
            .counted_as("files")
            .takes(file_path())
            .revalidated()
            .answers(describe_stored("the bytes").with_content(Content::bytes("application/octet-stream")))
            .refuses(400, "invalid path, or a directory", "path.400")
            .refuses(404, "no file at the path", "status.404")
            .with_large_answers())
        .get_below(paths::GET_SIGNERS, signers, Endpoint::new("get_signers", Section::Reading, "The signers in force for a path")
            .about("The nearest signers file in force at or above the path, byte for byte as it was published.")
            .takes(any_path())
            .revalidated()
            .answers(describe_stored("the signers file").with_content(Content::of::<SignersConfig>(&[("two_of_two", "get_signers")])))
            .refuses(400, "invalid path", "path.400")
            .fails("no signers file in any parent directory", ApiError::no_signers("https/github.com/443/acme/other"))
            .with_large_answers())
        .get_below(paths::GET_SIGNERS_CHAIN, chain, describe_chain("get_signers_chain", ""))
        // Another name for it in the specification.
        .get_below(paths::GET_ARTIFACT_SIGNERS_CHAIN, chain, describe_chain("get_artifact_signers_chain", "\n\nThe same as `get_signers_chain`, under another name."))
}

fn describe_chain(id: &'static str, note: &str) -> Endpoint {
    Endpoint::new(id, Section::Reading, "The history of a file's signers")
        .about(format!(
            "The project's signers files in order, from the first to the one that governs the file. The path must be that of \
             a complete or revoked index, or of a signers file in force. Any other path, well-formed or not, gets 400.{note}",
        ))
        .counted_as("get_signers_chain")
        .takes(file_path())
        .answers_with::<ChainResponse>(200, "the history of the signers", &[("first_signers", "chain")])
        .refuses(400, "invalid path, nothing there, not complete, or of another kind", "chain.400")
        .with_large_answers()
}

pub(crate) fn describe_stored(about: &str) -> DescribedAnswer {
    let headers = [openapi::ETAG, openapi::CACHE_CONTROL, openapi::CONTENT_LENGTH];
    DescribedAnswer::new(200, about).with_headers(headers)
}

async fn raw(question: Question) -> Result<Response, ApiError> {
    let (path, head) = (question.path()?, question.app.store.head());
    let path = match layout::project_of_newest_veto(&path) {
        Some(project) => {
            let head = Arc::clone(&head);
            question.app.sending.read(move || find_newest_veto(&head, &project, path)).await??
        }
        None => path,
    };
    let project = layout::project_of_history(&path);
    if let Some((id, project)) = project.and_then(|project| Some((head.history_id(&project)?, project))) {
        return send_history(&question, head, project, id).await;
    }
    let file = head.file(&path).map(|file| file.id).ok_or_else(|| not_a_file(&head, &path))?;
    send_file(&question, head, path, file, Head::file, OCTET_STREAM).await
}

async fn signers(question: Question) -> Result<Response, ApiError> {
    let (path, head) = (question.path()?, question.app.store.head());
    let file = head.nearest_signers(&path).map(|file| file.id);
    let file = file.ok_or_else(|| ApiError::no_signers(path.as_str()))?;
    send_file(&question, head, path, file, Head::nearest_signers, JSON).await
}

async fn chain(question: Question) -> Result<Response, ApiError> {
    let path = parse_artifact(question.tail())?;
    let head = question.app.store.head();
    let entries = question.app.sending.read(move || HistoryEntries::chain(head, &path)).await??;
    Ok(with_type(entries.send(&question).await?, JSON))
}

/// Answers with a stored file without waiting; `None` leaves the request to the handler.
pub fn read_raw(app: &App, tail: &str, headers: &HeaderMap) -> Result<Option<Response>, ApiError> {
    let (path, head) = (parse_tail(tail)?, app.store.glance());
    match head.file(&path) {
        Some(file) => Ok(serve_cached(&head, file, OCTET_STREAM, headers)),
        // It can be a history, which has to be assembled, or stand for a veto, which has to be found.
        None if layout::project_of_history(&path).is_some() => Ok(None),
        None if layout::project_of_newest_veto(&path).is_some() => Ok(None),
        None => Err(not_a_file(&head, &path)),
    }
}

pub fn read_signers(app: &App, tail: &str, headers: &HeaderMap) -> Result<Option<Response>, ApiError> {
    let (path, head) = (parse_tail(tail)?, app.store.glance());
    let file = head.nearest_signers(&path).ok_or_else(|| ApiError::no_signers(path.as_str()))?;
    Ok(serve_cached(&head, file, JSON, headers))
}

/// Answers with a chain without waiting; `None` leaves the request to the handler.
pub fn read_chain(app: &App, tail: &str) -> Result<Option<Response>, ApiError> {
    let chain = cached_chain(app, &parse_artifact(tail)?)?;
    Ok(chain.map(|chain| ([(CONTENT_TYPE, JSON)], chain).into_response()))
}

fn parse_artifact(tail: &str) -> Result<RepoPath, ApiError> {
    parse_tail(tail)
        .map_err(|error| ApiError { message: format!("Invalid artifact path: {}", error.message), ..error })
}

/// Finds the path of a project's newest veto, or of its signatures (D220).
fn find_newest_veto(head: &Head, project: &RepoPath, path: RepoPath) -> Result<RepoPath, ApiError> {
    Ok(match list_records(head, project)?.pop() {
        Some(record) if path == layout::newest_veto(project) => record.path,
        Some(record) => layout::signatures_of(&record.path),
        None => path,
    })
}

pub(crate) fn file_not_found(path: &RepoPath) -> ApiError {
    ApiError::new(ErrorCode::FileNotFound, format!("File not found: {path}"))
}

fn not_a_file(head: &Head, path: &RepoPath) -> ApiError {
    match head.entry(path) {
        Some(PathEntry::Directory) => {
            ApiError::new(ErrorCode::IsADirectory, format!("{path} is a directory"))
        }
        Some(PathEntry::File(_)) | None => file_not_found(path),
    }
}

/// A stored file, or 304 if the client has it; `None` if it must be read first.
fn serve_cached(
    head: &Head,
    file: FoundFile<'_>,
    content_type: HeaderValue,
    headers: &HeaderMap,
) -> Option<Response> {
    let tag = entity_tag(&file.id);
    if matches_tag(headers, &tag) {
        return Some(not_modified(&tag));
    }
    let content = head.cached_content(file, SMALL_BYTES)?;
    Some(tagged(Response::new(Body::from(content)), content_type, &tag))
}

/// Sends the file with this id, which `find` finds at the path. It is read away from the threads of connections.
async fn send_file(
    question: &Question,
    head: Arc<Head>,
    path: RepoPath,
    id: ObjectId,
    find: for<'a> fn(&'a Head, &RepoPath) -> Option<FoundFile<'a>>,
    content_type: HeaderValue,
) -> Result<Response, ApiError> {
    let tag = entity_tag(&id);
    if matches_tag(&question.headers, &tag) {
        return Ok(not_modified(&tag));
    }
    let read = move || {
        let found = find(&head, &path).ok_or_else(|| file_not_found(&path))?;
        Ok::<_, ApiError>(head.content(found).map_err(|error| unreadable(&path, &error))?)
    };
    let content = question.app.sending.read(read).await??;
    Ok(tagged(question.app.sending.answer(content, &question.sender).await?, content_type, &tag))
}

async fn send_history(
    question: &Question,
    head: Arc<Head>,
    project: RepoPath,
    id: ObjectId,
) -> Result<Response, ApiError> {
    let tag = entity_tag(&id);
    if matches_tag(&question.headers, &tag) {
        return Ok(not_modified(&tag));
    }
    let path = layout::history(&project);
    let entries = question.app.sending.read(move || HistoryEntries::document(head, project)).await??;
    let entries = entries.ok_or_else(|| file_not_found(&path))?;
    Ok(tagged(entries.send(question).await?, OCTET_STREAM, &tag))
}

pub(crate) fn not_modified(tag: &[u8]) -> Response {
    with_tag(StatusCode::NOT_MODIFIED.into_response(), tag)
}

/// A stored file with its headers.
pub(crate) fn tagged(mut response: Response, content_type: HeaderValue, tag: &[u8]) -> Response {
    // Room for all headers, allocated once.
    response.headers_mut().reserve(8);
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    with_tag(with_type(response, content_type), tag)
}

pub(crate) fn with_tag(mut response: Response, tag: &[u8]) -> Response {
    // A client asks again before it uses its copy, since the file at a path can change.
    response.headers_mut().insert(CACHE_CONTROL, NO_CACHE);
    if let Ok(tag) = HeaderValue::from_bytes(tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

/// The id of a blob in quotation marks.
fn entity_tag(id: &ObjectId) -> [u8; TAG_BYTES] {
    let mut tag = [b'"'; TAG_BYTES];
    let _ = id.hex_to_buf(&mut tag[1..TAG_BYTES - 1]);
    tag
}

/// Whether the client has this version (`If-None-Match`, compared weakly as for any GET).
pub(crate) fn matches_tag(headers: &HeaderMap, tag: &[u8]) -> bool {
    let is_ours = |given: &str| given == "*" || given.trim_start_matches("W/").as_bytes() == tag;
    let mut given = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    given.any(|value| value.split(',').map(str::trim).any(is_ours))
}
