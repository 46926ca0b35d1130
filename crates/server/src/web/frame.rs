//! The frame of every page: head, navigation, and headers that let it load only our own files.

use std::sync::Arc;

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use countersign_core::values::{bounds::SEARCH_CHARS, shown::shown_text};
use maud::{DOCTYPE, Markup, html};

use crate::web::assets::{ICON_PATH, PREVIEW_PATH, SCRIPT_ADDRESS, STYLE_ADDRESS};
use crate::web::{assets, links, visit::Mirrored, visit::Visit};

const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// The content policy of the page that verifies files, whose script fetches from this server.
const FETCHING_POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
const ABOUT: &str =
    "Who signed this software release, how many had to, and how to check it without trusting this server.";

/// A page without its frame.
#[derive(Debug)]
pub struct Page {
    status: StatusCode,
    title: String,
    /// The description for previews elsewhere.
    about: String,
    body: Markup,
    /// The path of one of our own scripts that fetches.
    script: Option<&'static str>,
    /// The address of a feed of what the page is about.
    feed: Option<String>,
    search: String,
    address: Option<PageAddress>,
    mirrored: Option<Arc<Mirrored>>,
    changes_with_time: bool,
}

#[derive(Debug)]
struct PageAddress {
    /// The address at which the visitor reaches the server.
    origin: String,
    path: String,
}

impl Page {
    /// A page. `title` is text and is escaped like any other.
    pub fn new(title: impl Into<String>, body: Markup) -> Self {
        Self {
            status: StatusCode::OK,
            title: title.into(),
            about: ABOUT.to_owned(),
            body,
            script: None,
            feed: None,
            search: String::new(),
            address: None,
            mirrored: None,
            changes_with_time: false,
        }
    }

    pub fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    pub fn with_script(self, path: &'static str) -> Self {
        Self { script: Some(path), ..self }
    }

    pub fn with_about(self, about: impl Into<String>) -> Self {
        Self { about: about.into(), ..self }
    }

    /// Says what time it is in a way, so that no tag of a state covers it.
    pub fn changing_with_time(self) -> Self {
        Self { changes_with_time: true, ..self }
    }

    pub fn changes_with_time(&self) -> bool {
        self.changes_with_time
    }

    pub fn with_feed(self, address: String) -> Self {
        Self { feed: Some(address), ..self }
    }

    /// Shows what was searched for in the field.
    pub fn with_search(self, words: &str) -> Self {
        Self { search: words.to_owned(), ..self }
    }

    /// Previews elsewhere need whole addresses.
    pub(super) fn at(self, visit: &Visit) -> Self {
        let address = visit.origin.clone().map(|origin| PageAddress { origin, path: visit.path.clone() });
        Self { address, ..self.on_server(visit) }
    }

    /// Says whether this is a mirror.
    pub(super) fn on_server(self, visit: &Visit) -> Self {
        Self { mirrored: visit.mirrored.clone(), ..self }
    }

    fn render(&self) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                head { (self.render_head()) }
                body {
                    a.skip href="#content" { "Skip to the content" }
                    (self.render_top())
                    main #content tabindex="-1" { (self.render_warning()) (self.body) }
                    footer {
                        @if let Some(Mirrored { origin, .. }) = self.mirrored.as_deref() {
                            p {
                                "This is a mirror of " a href=(origin) { (origin) } ", which accepts signatures and new "
                                "projects. The mirror repeats every change there by the rules."
                            }
                        }
                        p {
                            "These pages show what this server says. " code { "countersign download" } " and "
                            code { "countersign verify" } " check it without trusting the server."
                        }
                    }
                }
            }
        }
    }

    /// A mirror that no longer follows its origin shows an old state.
    fn render_warning(&self) -> Markup {
        let Some(Mirrored { origin, refusal: Some(reason) }) = self.mirrored.as_deref() else {
            return html! {};
        };
        html! {
            section.card.hero.is-bad role="alert" aria-labelledby="stopped" {
                h2 #stopped { "This mirror has stopped following its origin" }
                p {
                    "It shows the last state that it could check. " a href=(origin) { (origin) }
                    " has other commits than this mirror, or commits that break the rules:"
                }
                p.reason.wrap { bdi { (shown_text(reason)) } }
            }
        }
    }

    fn render_head(&self) -> Markup {
        html! {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (self.title) " · Countersign" }
            meta name="description" content=(self.about);
            meta property="og:site_name" content="Countersign";
            meta property="og:type" content="website";
            meta property="og:title" content=(self.title);
            meta property="og:description" content=(self.about);
            @if let Some(PageAddress { origin, path }) = &self.address {
                meta property="og:url" content={ (origin) (path) };
                meta property="og:image" content={ (origin) (PREVIEW_PATH) };
                meta name="twitter:card" content="summary_large_image";
            }
            link rel="stylesheet" href=(*STYLE_ADDRESS);
            link rel="icon" type="image/svg+xml" href=(ICON_PATH);
            @if let Some(feed) = &self.feed {
                link rel="alternate" type="application/atom+xml" title="Activity" href=(feed);
            }
            script src=(*SCRIPT_ADDRESS) type="module" {}
            @if let Some(script) = self.script { script src=(script) type="module" {} }
        }
    }

    fn render_top(&self) -> Markup {
        html! {
            header.top {
                div {
                    a.home href=(links::HOME) { (assets::mark()) "Countersign" }
                    form role="search" action=(links::PROJECTS) method="get" {
                        input type="search" name="q" value=(self.search) maxlength=(SEARCH_CHARS) autocomplete="off"
                            placeholder="Search projects, or paste a SHA-256"
                            aria-label="Search projects, or paste a SHA-256";
                    }
                    nav aria-label="Main" {
                        a href=(links::ALL_ACTIVITY) { "Activity" }
                        a href=(links::VERIFY) { "Verify" }
                        a href=(links::DOCS) { "API" }
                    }
                }
            }
        }
    }
}

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        let policy = if self.script.is_some() { FETCHING_POLICY } else { POLICY };
        let headers = [
            (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
            (CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy)),
            (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
            (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
            // The state behind a page can change at any moment.
            (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        ];
        (self.status, headers, self.render().into_string()).into_response()
    }
}
