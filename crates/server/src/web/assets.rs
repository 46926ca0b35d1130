//! The files that pages load, all from this server.

use std::sync::LazyLock;

use axum::{
    http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS},
    response::IntoResponse,
};
use countersign_core::values::digest::Sha512;

pub(super) const STYLE_PATH: &str = "/assets/style.css";
pub(super) const ICON_PATH: &str = "/assets/icon.svg";

const STYLE: &str = include_str!("style.css");
const ICON: &str = include_str!("icon.svg");

/// Contains the version of the style, so that a page never gets the style of another version.
pub(super) static STYLE_ADDRESS: LazyLock<String> =
    LazyLock::new(|| format!("{STYLE_PATH}?v={}", Sha512::of(STYLE.as_bytes()).short()));

pub(super) async fn style() -> impl IntoResponse {
    let headers = [
        (CONTENT_TYPE, "text/css; charset=utf-8"),
        (CACHE_CONTROL, "max-age=86400"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, STYLE)
}

/// Browsers ask for `/favicon.ico` unasked, and accept the same picture.
pub(super) async fn icon() -> impl IntoResponse {
    let headers = [
        (CONTENT_TYPE, "image/svg+xml"),
        (CACHE_CONTROL, "max-age=86400"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'"),
    ];
    (headers, ICON)
}
