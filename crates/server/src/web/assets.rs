//! What pages load besides themselves: nothing from anywhere else.

use axum::{
    http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS},
    response::IntoResponse,
};

pub(super) const STYLE_PATH: &str = "/assets/style.css";

pub(super) async fn style() -> impl IntoResponse {
    let headers = [
        (CONTENT_TYPE, "text/css; charset=utf-8"),
        (CACHE_CONTROL, "max-age=3600"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, include_str!("style.css"))
}
