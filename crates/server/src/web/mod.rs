//! Pages for people, made from the same snapshot as the answers for programs. They work without a script.

mod assets;
mod docs;
mod frame;

use maud::html;

pub use self::frame::Page;
use crate::{openapi::pages, table::Table};

pub(crate) fn routes() -> Table {
    Table::default()
        .get("/", async || Page::new("Projects", html! { h1 { "Projects" } }), pages::projects())
        .get("/docs", docs::docs, pages::docs())
        .get(assets::STYLE_PATH, assets::style, pages::style())
}
