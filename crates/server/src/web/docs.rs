//! The reference of the API, from the same descriptions as `/openapi.json`.
use maud::html;

use super::Page;

pub(super) async fn docs() -> Page {
    Page::new("API", html! { h1 { "API" } })
}
