//! The frame of every page: head, navigation, headers that let it load only our own files, and these files.

use std::sync::LazyLock;

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use countersign_core::values::{bounds::SEARCH_CHARS, digest::Sha512, shown::shown_text};
use maud::{DOCTYPE, Markup, html};

use crate::api::{openapi::asset, routing::RouteTable};
use crate::http::sending::typed;
use crate::web::{links, visit::Mirrored, visit::Visit};

const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// The content policy of the page that verifies files, whose script fetches from this server.
const FETCHING_POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
const ABOUT: &str =
    "Who signed this software release, how many had to, and how to check it without trusting this server.";

/// A page without its frame.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) status: StatusCode,
    pub(super) title: String,
    /// The description for previews elsewhere.
    pub(super) about: String,
    pub(super) body: Markup,
    /// The path of one of our own scripts that fetches.
    pub(super) script: Option<&'static str>,
    /// The address of a feed of what the page is about.
    pub(super) feed: Option<String>,
    /// What was searched for, which the field shows.
    pub(super) search: String,
    /// Whether the page says in a way what time it is, so that no tag of a state covers it.
    pub(super) changes_with_time: bool,
}

impl Page {
    /// A page. `title` is text and is escaped like any other.
    pub(super) fn new(title: impl Into<String>, body: Markup) -> Self {
        Self {
            status: StatusCode::OK,
            title: title.into(),
            about: ABOUT.to_owned(),
            body,
            script: None,
            feed: None,
            search: String::new(),
            changes_with_time: false,
        }
    }

    pub(super) fn answer(self, visit: &Visit) -> Response {
        let policy = if self.script.is_some() { FETCHING_POLICY } else { POLICY };
        let headers = [
            (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
            (CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy)),
            (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
            (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
            // The state behind a page can change at any moment.
            (CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        ];
        (self.status, headers, self.render(visit).into_string()).into_response()
    }

    fn render(&self, visit: &Visit) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                head { (self.render_head(visit)) }
                body {
                    a.skip href="#content" { "Skip to the content" }
                    (self.render_top())
                    main #content tabindex="-1" { (render_warning(visit)) (self.body) }
                    footer {
                        @if let Some(Mirrored { origin, .. }) = visit.mirrored.as_deref() {
                            p {
                                "This is a mirror of " a href=(origin) { (origin) } ", which accepts signatures and new "
                                "projects. The mirror repeats every change there by the rules."
                            }
                        }
                        p {
                            "These pages show what this server says. " code { "countersign download" } " and "
                            code { "countersign verify" } " check it without trusting the server. "
                            a href=(links::CLIENT) { "Get the client" } " · " a href=(links::LOG) { "The log" }
                        }
                    }
                }
            }
        }
    }

    fn render_head(&self, visit: &Visit) -> Markup {
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
            // Previews elsewhere need whole addresses.
            @if let Some(base_url) = visit.base_url.as_ref().filter(|_| self.status == StatusCode::OK) {
                meta property="og:url" content={ (base_url) (visit.path) };
                meta property="og:image" content={ (base_url) (PREVIEW_PATH) };
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
                    a.home href=(links::HOME) { (mark()) "Countersign" }
                    form role="search" action=(links::PROJECTS) method="get" {
                        input type="search" name="q" value=(self.search) maxlength=(SEARCH_CHARS) autocomplete="off"
                            placeholder="Search projects, or paste a SHA-256"
                            aria-label="Search projects, or paste a SHA-256";
                    }
                    nav aria-label="Main" {
                        a href=(links::PROJECTS) { "Projects" }
                        a href=(links::ALL_ACTIVITY) { "Activity" }
                        a href=(links::VERIFY) { "Verify" }
                        a href=(links::CLIENT) { "Client" }
                        a href=(links::DOCS) { "API" }
                        a href=(links::HELP) { "Help" }
                    }
                }
            }
        }
    }
}

/// A mirror that no longer follows its origin shows an old state.
fn render_warning(visit: &Visit) -> Markup {
    let Some(Mirrored { origin, refusal: Some(reason) }) = visit.mirrored.as_deref() else {
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

// The files that pages load, all from this server.

const STYLE_PATH: &str = "/assets/style.css";
const SCRIPT_PATH: &str = "/assets/page.mjs";
const ICON_PATH: &str = "/assets/icon.svg";
/// What other sites show beside a link to a page.
const PREVIEW_PATH: &str = "/assets/preview.png";

const SVG: &str = "image/svg+xml";
const FOR_A_DAY: &str = "max-age=86400";

const STYLE: &str = include_str!("assets/style.css");
const SCRIPT: &str = include_str!("assets/page.mjs");
const ICON: &str = include_str!("assets/icon.svg");
const PREVIEW: &[u8] = include_bytes!("assets/preview.png");

/// Contains the version of the style, so that a page never gets the style of another version.
pub(super) static STYLE_ADDRESS: LazyLock<String> = LazyLock::new(|| with_version(STYLE_PATH, STYLE));
static SCRIPT_ADDRESS: LazyLock<String> = LazyLock::new(|| with_version(SCRIPT_PATH, SCRIPT));

fn with_version(path: &str, text: &str) -> String {
    format!("{path}?v={}", Sha512::of(text.as_bytes()).short())
}

pub(super) fn files() -> RouteTable {
    let style = async || typed(STYLE, "text/css; charset=utf-8", FOR_A_DAY);
    let script = async || typed(SCRIPT, "text/javascript; charset=utf-8", FOR_A_DAY);
    let icon = async || ([(CONTENT_SECURITY_POLICY, "default-src 'none'")], typed(ICON, SVG, FOR_A_DAY));
    let preview = async || typed(PREVIEW, "image/png", FOR_A_DAY);
    RouteTable::default()
        .get(STYLE_PATH, style, asset("style", "The style sheet", "text/css"))
        .get(SCRIPT_PATH, script, asset("page_script", "The script of all pages", "text/javascript"))
        .get(ICON_PATH, icon, asset("icon", "The icon", SVG))
        .get(PREVIEW_PATH, preview, asset("preview", "The picture beside links to pages", "image/png"))
        // Browsers ask for it unasked, and accept the same picture.
        .get("/favicon.ico", icon, asset("favicon", "The icon, where browsers look for it", SVG))
}

/// Our mark, in the colours of the page: one signature, and another that confirms it.
pub(super) fn mark() -> Markup {
    html! {
        svg viewBox="0 0 32 32" aria-hidden="true" {
            path.first d="M5 17.500l6 6L22 9" {}
            path.second d="M16 20.500l3.500 3.500L27.500 13" {}
        }
    }
}
