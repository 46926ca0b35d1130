//! The files that pages load, all from this server.

use std::sync::LazyLock;

use axum::{http::header::CONTENT_SECURITY_POLICY, response::IntoResponse};
use countersign_core::values::digest::Sha512;
use maud::{Markup, html};

use crate::http::sending::typed;

pub(super) const STYLE_PATH: &str = "/assets/style.css";
pub(super) const SCRIPT_PATH: &str = "/assets/page.mjs";
pub(super) const ICON_PATH: &str = "/assets/icon.svg";
/// What other sites show beside a link to a page.
pub(super) const PREVIEW_PATH: &str = "/assets/preview.png";

const FOR_A_DAY: &str = "max-age=86400";

const STYLE: &str = include_str!("assets/style.css");
const SCRIPT: &str = include_str!("assets/page.mjs");
const ICON: &str = include_str!("assets/icon.svg");
const PREVIEW: &[u8] = include_bytes!("assets/preview.png");

/// Contains the version of the style, so that a page never gets the style of another version.
pub(super) static STYLE_ADDRESS: LazyLock<String> = LazyLock::new(|| with_version(STYLE_PATH, STYLE));
pub(super) static SCRIPT_ADDRESS: LazyLock<String> = LazyLock::new(|| with_version(SCRIPT_PATH, SCRIPT));

fn with_version(path: &str, text: &str) -> String {
    format!("{path}?v={}", Sha512::of(text.as_bytes()).short())
}

pub(super) async fn style() -> impl IntoResponse {
    typed(STYLE, "text/css; charset=utf-8", FOR_A_DAY)
}

pub(super) async fn script() -> impl IntoResponse {
    typed(SCRIPT, "text/javascript; charset=utf-8", FOR_A_DAY)
}

/// Browsers ask for `/favicon.ico` unasked, and accept the same picture.
pub(super) async fn icon() -> impl IntoResponse {
    ([(CONTENT_SECURITY_POLICY, "default-src 'none'")], typed(ICON, "image/svg+xml", FOR_A_DAY))
}

pub(super) async fn preview() -> impl IntoResponse {
    typed(PREVIEW, "image/png", FOR_A_DAY)
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
