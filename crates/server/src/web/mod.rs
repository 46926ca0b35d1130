//! Pages for people, made from the same snapshot as the answers for programs. They work without a script.

mod activity;
mod assets;
mod badge;
mod changes;
pub mod command;
mod docs;
mod feed;
mod frame;
mod keys;
mod landing;
pub mod links;
mod log_facts;
pub mod overview;
pub mod paging;
pub mod parts;
mod places;
mod project;
mod projects;
mod proposal;
mod release;
pub mod reply;
mod timeline;
mod verify;
pub mod visit;

use axum::{Router, extract::State, response::Response};
use countersign_core::values::wire::routes as paths;

pub use self::frame::Page;
use self::{
    activity::ActivityScope,
    reply::{reply, report_unknown},
    visit::Visit,
};
use crate::{openapi::pages, routing::route_table::RouteTable, state::App};

/// Contains the files that pages load.
pub(crate) const ASSETS_DIR: &str = "/assets/";

pub(crate) fn routes() -> RouteTable {
    RouteTable::default()
        .get(links::HOME, home, pages::landing())
        .get(links::PROJECTS, all_projects, pages::projects())
        .get(links::ALL_ACTIVITY, all_activity, pages::activity())
        .get(links::ALL_ACTIVITY_FEED, activity_feed, pages::feed())
        .get(&format!("{}/{{key}}", paths::KEY_PAGES), key, pages::key())
        .get_below(paths::PAGES, place, pages::place())
        .get_below(paths::BADGES, badge::show, pages::badge())
        .get(assets::STYLE_PATH, assets::style, pages::style())
        .get(assets::SCRIPT_PATH, assets::script, pages::page_script())
        .get(assets::ICON_PATH, assets::icon, pages::icon())
        .get(assets::PREVIEW_PATH, assets::preview, pages::preview())
        .get("/favicon.ico", assets::icon, pages::favicon())
        .merge(docs::routes())
        .merge(verify::routes())
}

/// A page for browsers that ask for an address that is not there.
pub(crate) fn with_unknown_pages(routes: Router<App>) -> Router<App> {
    routes.fallback(report_unknown)
}

async fn home(State(app): State<App>, visit: Visit) -> Response {
    reply(app, visit, |app, head, visit| Ok(landing::show(app.store.recent_commits(), head, visit))).await
}

async fn all_projects(State(app): State<App>, visit: Visit) -> Response {
    reply(app, visit, |app, head, visit| projects::show_all(&app.catalogue, head, visit)).await
}

async fn key(State(app): State<App>, visit: Visit) -> Response {
    reply(app, visit, |app, _, visit| keys::show(&app.catalogue, visit)).await
}

async fn place(State(app): State<App>, visit: Visit) -> Response {
    reply(app, visit, |app, head, visit| places::show(app, head, visit)).await
}

async fn all_activity(State(app): State<App>, visit: Visit) -> Response {
    reply(app, visit, |app, head, visit| match visit.field("project") {
        Some(project) => activity::find_project(&app.catalogue, head, &project, visit),
        None => activity::show(app.store.recent_commits(), head, ActivityScope::Server, visit),
    })
    .await
}

async fn activity_feed(State(app): State<App>, visit: Visit) -> Response {
    reply(app, visit, |app, head, visit| {
        activity::show_feed(app.store.recent_commits(), head, ActivityScope::Server, visit)
    })
    .await
}
