//! The frame of every page: head, navigation, and headers that let it load only our own files.

use axum::{
    http::{
        HeaderValue, StatusCode,
        header::{
            CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
        },
    },
    response::{IntoResponse, Response},
};
use maud::{DOCTYPE, Markup, html};

use super::assets::{ICON_PATH, STYLE_ADDRESS};

const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// The same for a page with one of our scripts, which fetches only from this server.
const SCRIPT_POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// A page without its frame.
#[derive(Debug)]
pub struct Page {
    status: StatusCode,
    title: String,
    body: Markup,
    /// The path of one of our own scripts.
    script: Option<&'static str>,
}

impl Page {
    /// `title` is text and is escaped like any other.
    pub fn new(title: impl Into<String>, body: Markup) -> Self {
        Self { status: StatusCode::OK, title: title.into(), body, script: None }
    }

    pub fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    pub fn with_script(self, path: &'static str) -> Self {
        Self { script: Some(path), ..self }
    }

    fn render(&self) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (self.title) " · Countersign" }
                    link rel="stylesheet" href=(*STYLE_ADDRESS);
                    link rel="icon" type="image/svg+xml" href=(ICON_PATH);
                    @if let Some(script) = self.script {
                        script src=(script) type="module" {}
                    }
                }
                body {
                    a.skip href="#content" { "Skip to the content" }
                    header.top {
                        nav aria-label="Main" {
                            a.home href="/" { "Countersign" }
                            a href="/activity" { "Activity" }
                            a href="/verify" { "Verify a file" }
                            a href="/docs" { "API" }
                        }
                    }
                    main #content tabindex="-1" { (self.body) }
                    footer {
                        p {
                            "These pages show what this server says. To be sure, check it with "
                            code { "countersign download" } " or " code { "countersign verify" }
                            ", which do not trust the server."
                        }
                    }
                }
            }
        }
    }
}

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        let policy = if self.script.is_some() { SCRIPT_POLICY } else { POLICY };
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
