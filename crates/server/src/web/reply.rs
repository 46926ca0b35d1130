//! Leads from a visit to its answer: a page, 304, or an error.

use axum::http::{StatusCode, header::RETRY_AFTER};
use axum::response::{IntoResponse as _, Redirect, Response};
use countersign_api::error_code::ErrorCode;
use countersign_core::rules::snapshot::ReadError;
use countersign_core::values::{digest::Sha512, path::RepoPath, shown::shown_text, wire::routes::API};
use countersign_store::{Head, ObjectId};
use maud::{Markup, html};

use crate::api::{routes::files, state::App};
use crate::http::{error::ApiError, sending::run_in_turn, sending::typed};
use crate::web::{frame::Page, frame::STYLE_ADDRESS, links, visit::Visit};

const FEED_TYPE: &str = "application/atom+xml; charset=utf-8";

#[derive(Debug)]
pub(super) enum Reply {
    Page(Page),
    /// The page has another address on this server.
    Elsewhere(String),
    Feed(Markup),
}

#[derive(Debug)]
pub(super) enum PageTrouble {
    Failed(ApiError),
    /// Nothing is at this address, but perhaps something is near.
    Missing {
        message: String,
        near: Option<RepoPath>,
    },
}

impl PageTrouble {
    /// Nothing is at this address, nor near it.
    pub(super) fn missing(message: impl Into<String>) -> Self {
        Self::Missing { message: message.into(), near: None }
    }
}

impl From<ReadError> for PageTrouble {
    fn from(error: ReadError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<ApiError> for PageTrouble {
    fn from(error: ApiError) -> Self {
        Self::Failed(error)
    }
}

/// Answers with what `render` makes of the newest state.
pub(super) async fn reply(
    app: App,
    visit: Visit,
    render: fn(&App, &Head, &Visit) -> Result<Reply, PageTrouble>,
) -> Response {
    // Read before the page is made, so that the page can be newer than its tag, but never older.
    let newest = app.store.recent_commits().newest().commit;
    let head = app.store.head();
    let tag = entity_tag(&head, newest, &visit);
    if visit.knows(&tag) {
        return files::not_modified(tag.as_bytes());
    }
    let (sender, asked) = (visit.sender.clone(), visit.clone());
    let shared = app.clone();
    let rendered = run_in_turn(&app.renderings, visit.sender.claimant(), move || {
        let reply = render(&shared, &head, &visit)?;
        Ok(match reply {
            Reply::Page(page) => (page.changes_with_time, page.at(&visit).into_response()),
            Reply::Feed(feed) => (false, typed(feed.into_string(), FEED_TYPE, "no-cache")),
            Reply::Elsewhere(address) => (false, Redirect::temporary(&address).into_response()),
        })
    });
    let rendered = match rendered.await.unwrap_or_else(|busy| Err(PageTrouble::Failed(busy))) {
        Ok((changes_with_time, response)) => {
            let bound = app.sending.bound(response, &sender).await;
            bound.map(|response| (changes_with_time, response)).map_err(PageTrouble::Failed)
        }
        Err(trouble) => Err(trouble),
    };
    match rendered {
        // The tag of a state does not cover a page that depends on the clock.
        Ok((true, response)) => {
            let now = Sha512::of(format!("{tag} {}", app.now()).as_bytes());
            with_tag(response, &format!("\"{}\"", now.short()))
        }
        Ok((false, response)) => with_tag(response, &tag),
        Err(trouble) => report(trouble, Some(&asked).filter(|asked| asked.wants_html)),
    }
}

/// Covers everything that a page depends on: the state, the newest of the recent commits, the program, and how the
/// visitor reaches the server. A commit enters the state a moment before it is among the recent ones. An activity page
/// from that moment lacks it.
pub fn entity_tag(head: &Head, newest: Option<ObjectId>, visit: &Visit) -> String {
    let program = format!("{} {}", env!("CARGO_PKG_VERSION"), *STYLE_ADDRESS);
    let others = format!("{program} {newest:?} {:?} {:?}", visit.base_url, visit.mirrored);
    format!("\"{}-{}\"", head.commit, Sha512::of(others.as_bytes()).short())
}

fn with_tag(response: Response, tag: &str) -> Response {
    if response.status() == StatusCode::OK { files::with_tag(response, tag.as_bytes()) } else { response }
}

/// A page for browsers, JSON for programs (D30).
fn report(trouble: PageTrouble, browser: Option<&Visit>) -> Response {
    let (error, near) = match trouble {
        PageTrouble::Failed(error) => (error, None),
        PageTrouble::Missing { message, near } => (ApiError::new(ErrorCode::NoSuchPage, message), near),
    };
    let Some(visit) = browser else { return error.into_response() };
    let page = error_page(&error, near.as_ref()).on_server(visit);
    // Keeps the part for the log, and `Retry-After`.
    let (told, _) = error.into_response().into_parts();
    let mut response = page.into_response();
    *response.extensions_mut() = told.extensions;
    if let Some(seconds) = told.headers.get(RETRY_AFTER) {
        response.headers_mut().insert(RETRY_AFTER, seconds.clone());
    }
    response
}

fn error_page(error: &ApiError, near: Option<&RepoPath>) -> Page {
    let title = match error.status() {
        StatusCode::NOT_FOUND => "Not found",
        StatusCode::BAD_REQUEST => "This address cannot be right",
        StatusCode::SERVICE_UNAVAILABLE => "Busy",
        _ => "Something went wrong",
    };
    let body = html! {
        h1 { (title) }
        p.wrap { bdi { (shown_text(&error.message)) } }
        @if let Some(near) = near {
            p { "Nearest to it: " a.wrap href=(links::page(near)) { bdi { (links::shown_path(near)) } } }
        }
        p { "Search with the field above, or look through " a href=(links::PROJECTS) { "all projects" } "." }
    };
    Page { status: error.status(), ..Page::new(title, body) }
}

/// Answers a request that no route answers.
pub(crate) async fn report_unknown(visit: Visit) -> Response {
    let browser = Some(&visit).filter(|visit| visit.wants_html && !visit.path.starts_with(API));
    report(PageTrouble::Failed(ApiError::NO_SUCH_ROUTE.into()), browser)
}
