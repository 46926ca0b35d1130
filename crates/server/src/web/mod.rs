//! Pages for people, made from the same snapshot as the answers for programs. They work without a script.

mod assets;
mod frame;
mod verify;

use axum::{Router, routing::get};
use maud::html;

pub use self::frame::Page;
use crate::app::App;

pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/", get(async || Page::new("Projects", html! { h1 { "Projects" } })))
        .route(assets::STYLE_PATH, get(assets::style))
        .merge(verify::routes())
}
