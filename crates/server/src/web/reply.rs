//! Leads from a visit to its answer: a page, 304, or an error.

use std::sync::Arc;

use axum::http::{StatusCode, header::RETRY_AFTER};
use axum::response::{IntoResponse as _, Redirect, Response};
use countersign_api::error_code::ErrorCode;
use countersign_core::values::{digest::Sha512, path::RepoPath, shown::shown_text, wire::routes::API};
use countersign_store::{Head, ObjectId};
use maud::{Markup, html};

use crate::api::{routes::files, state::App};
use crate::http::{error::ApiError, sending::run_in_turn, sending::typed};
use crate::web::{frame::Page, frame::STYLE_ADDRESS, links, visit::Paging, visit::Visit};

const FEED_TYPE: &str = "application/atom+xml; charset=utf-8";

#[derive(Debug)]
pub(super) enum Reply {
    Page(Page),
    /// The page has another address on this server.
    Elsewhere(String),
    Feed(Markup),
}

/// No page, and perhaps where something is near.
#[derive(Debug)]
pub(super) struct PageTrouble {
    error: ApiError,
    near: Option<RepoPath>,
}

impl PageTrouble {
    /// Nothing is at this address, nor near it.
    pub(super) fn missing(message: impl Into<String>) -> Self {
        Self::missing_near(message, None)
    }

    /// Nothing is at this address, but perhaps something is near.
    pub(super) fn missing_near(message: impl Into<String>, near: Option<RepoPath>) -> Self {
        Self { error: ApiError::new(ErrorCode::NoSuchPage, message), near }
    }

    pub(super) fn no_such_page() -> Self {
        Self::missing("The list has no such page")
    }
}

impl<E: Into<ApiError>> From<E> for PageTrouble {
    fn from(error: E) -> Self {
        Self { error: error.into(), near: None }
    }
}

/// A visit, and the newest state, which its page shows.
#[derive(Debug)]
pub(super) struct View {
    pub(super) app: App,
    pub(super) head: Arc<Head>,
    pub(super) visit: Visit,
}

impl View {
    /// The part of a long list that the visitor wants.
    pub(super) fn paging(&self, per_page: usize, total: usize) -> Result<Paging, PageTrouble> {
        Paging::of(self.visit.page, per_page, total).ok_or_else(PageTrouble::no_such_page)
    }
}

/// Makes a page.
pub(super) type Show = fn(&View) -> Result<Reply, PageTrouble>;

/// Answers with what `show` makes of the newest state.
pub(super) async fn reply(app: App, visit: Visit, show: Show) -> Response {
    let replied = try_reply(app, &visit, show).await;
    replied.unwrap_or_else(|trouble| report(trouble, Some(&visit).filter(|visit| visit.wants_html)))
}

async fn try_reply(app: App, visit: &Visit, show: Show) -> Result<Response, PageTrouble> {
    // Read before the page is made, so that the page can be newer than its tag, but never older.
    let newest = app.store.recent_commits().newest().commit;
    let view = View { head: app.store.head(), visit: visit.clone(), app: Arc::clone(&app) };
    let tag = entity_tag(&view.head, newest, visit);
    if visit.knows(&tag) {
        return Ok(files::not_modified(tag.as_bytes()));
    }
    let render = move || {
        let (response, tag) = match show(&view)? {
            Reply::Elsewhere(address) => return Ok(Redirect::temporary(&address).into_response()),
            Reply::Feed(feed) => (typed(feed.into_string(), FEED_TYPE, "no-cache"), tag),
            // The tag of a state does not cover a page that depends on the clock.
            Reply::Page(page) if page.changes_with_time => {
                let now = Sha512::of(format!("{tag} {}", view.app.now()).as_bytes());
                (page.answer(&view.visit), format!("\"{}\"", now.short()))
            }
            Reply::Page(page) => (page.answer(&view.visit), tag),
        };
        Ok::<_, PageTrouble>(files::with_tag(response, tag.as_bytes()))
    };
    let response = run_in_turn(&app.renderings, visit.sender.claimant(), render).await??;
    Ok(app.sending.bound(response, &visit.sender).await?)
}

/// Covers everything that a page depends on: the state, the newest of the recent commits, the program, and how the
/// visitor reaches the server. A commit enters the state a moment before it is among the recent ones. An activity page
/// from that moment lacks it.
pub fn entity_tag(head: &Head, newest: Option<ObjectId>, visit: &Visit) -> String {
    let program = format!("{} {}", env!("CARGO_PKG_VERSION"), *STYLE_ADDRESS);
    let others = format!("{program} {newest:?} {:?} {:?}", visit.base_url, visit.mirrored);
    format!("\"{}-{}\"", head.commit, Sha512::of(others.as_bytes()).short())
}

/// A page for browsers, JSON for programs (D30).
fn report(PageTrouble { error, near }: PageTrouble, browser: Option<&Visit>) -> Response {
    let Some(visit) = browser else { return error.into_response() };
    let page = error_page(&error, near.as_ref());
    // Keeps the part for the log, and `Retry-After`.
    let (told, _) = error.into_response().into_parts();
    let mut response = page.answer(visit);
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
    report(ApiError::NO_SUCH_ROUTE.into(), browser)
}
