//! Pages for people, made from the same snapshot as the answers for programs. They work without a script.

mod activity;
mod addresses;
mod assets;
mod badge;
mod changes;
mod docs;
mod frame;
mod keys;
mod landing;
pub mod links;
pub mod overview;
pub mod parts;
mod project;
mod projects;
mod proposal;
mod release;
pub mod reply;
mod timeline;
mod verify;
pub mod visit;

use axum::{Router, extract::State, response::Response};
use countersign_api::event::EventKind;
use countersign_core::values::wire::routes as paths;
use serde_json::json;

use crate::api::openapi::{
    Content, EXAMPLE_COMMIT, HTML, Parameter, asset, living_page, matching, one_of, redirect, text, unchecked,
};
use crate::api::{openapi, routing::RouteTable, state::App};
pub use crate::web::frame::Page;
use crate::web::{reply::reply, reply::report_unknown, visit::Visit};

const SVG: &str = "image/svg+xml";
const ATOM: &str = "application/atom+xml";
/// Contains the files that pages load.
pub(crate) const ASSETS_DIR: &str = "/assets/";

pub(crate) fn routes() -> RouteTable {
    let search = || Parameter::query("q", "Words that the path of a project must contain.", text(), "acme");
    let page = || {
        Parameter::query(
            "page",
            "Which page of the list, from 1.",
            json!({ "type": "integer", "minimum": 1 }),
            1,
        )
    };
    // A form sends an empty field where people leave it empty.
    let before = || {
        Parameter::query(
            "before",
            "Only what happened before this commit.",
            matching("^[0-9a-f]{40}$|^$"),
            EXAMPLE_COMMIT,
        )
    };
    let event_type = || {
        let names: Vec<_> = EventKind::ALL.map(EventKind::name).into_iter().chain([""]).collect();
        Parameter::query("type", "Only events of this type.", one_of(&names), "complete")
    };
    let author = || Parameter::query("key", "Only what this public key did.", text(), openapi::example_key());
    let key_in_address =
        openapi::example_key().as_str().unwrap_or_default().replace('+', "-").replace('/', "_");
    RouteTable::default()
        .get(links::HOME, home, living_page("landing_page", "The first page", HTML)
            .about("What this server is for, and recent releases.")
            .takes(unchecked(search()))
            .answers(redirect("a search has an address of its own"))
            .with_error_pages())
        .get(links::PROJECTS, all_projects, living_page("projects_page", "Projects", HTML)
            .about("The projects on this server. A digest finds the releases that list it.")
            .takes(search())
            .takes(page())
            .with_error_pages())
        .get(links::ALL_ACTIVITY, all_activity, living_page("activity_page", "Activity", HTML)
            .about("What happened recently on this server.")
            .takes(unchecked(before()))
            .takes(Parameter::query("project", "The URL of a project, or its path on this server.", text(), "https://github.com/acme/app"))
            .takes(unchecked(event_type()))
            .takes(author())
            .answers(redirect("a project has its own page"))
            .with_error_pages())
        .get(links::ALL_ACTIVITY_FEED, activity_feed, living_page("activity_feed", "Activity, for feed readers", ATOM)
            .about("What happened recently on this server, as an Atom feed.")
            .takes(unchecked(event_type()))
            .takes(author())
            .with_error_pages())
        .get(&format!("{}/{{key}}", paths::KEY_PAGES), key, living_page("key_page", "A key", HTML)
            .about("Where a key is listed, what it signed, and what waits for it.")
            .takes(Parameter::path("key", "A public key, with `-` and `_` for `+` and `/`.", matching("^svc-pub:[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$"), key_in_address))
            .answers(redirect("the page is under another address"))
            .with_error_pages())
        .get_below(paths::PAGES, place, living_page("place_page", "A project or a release", HTML)
            .about("What is stored at a path: a project, a release, proposed signers, or the history of the signers.")
            .takes(openapi::any_path())
            .takes(unchecked(page()))
            .takes(unchecked(before()))
            .with_content(200, Content::text(ATOM))
            .answers(redirect("the page is under another address"))
            .refuses(400, "invalid path", "path.400")
            .with_error_pages())
        .merge(badge::routes())
        .get(assets::STYLE_PATH, assets::style, asset("style", "The style sheet", "text/css"))
        .get(assets::SCRIPT_PATH, assets::script, asset("page_script", "The script of all pages", "text/javascript"))
        .get(assets::ICON_PATH, assets::icon, asset("icon", "The icon", SVG))
        .get(assets::PREVIEW_PATH, assets::preview, asset("preview", "The picture beside links to pages", "image/png"))
        .get("/favicon.ico", assets::icon, asset("favicon", "The icon, where browsers look for it", SVG))
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
    reply(app, visit, |app, head, visit| addresses::show(app, head, visit)).await
}

async fn all_activity(State(app): State<App>, visit: Visit) -> Response {
    reply(app, visit, |app, head, visit| match visit.field("project") {
        Some(project) => activity::find_project(&app.catalogue, head, &project, visit),
        None => activity::show(app.store.recent_commits(), head, None, visit),
    })
    .await
}

async fn activity_feed(State(app): State<App>, visit: Visit) -> Response {
    reply(app, visit, |app, head, visit| activity::show_feed(app.store.recent_commits(), head, None, visit))
        .await
}
