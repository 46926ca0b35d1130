//! Pages for people, made from the same snapshot as the answers for programs. They work without a script.

mod activity;
mod badge;
mod changes;
mod docs;
mod frame;
mod help;
mod keys;
mod landing;
pub mod links;
mod log_page;
pub mod overview;
pub mod parts;
mod project;
mod projects;
mod proposal;
mod release;
pub mod reply;
mod timeline;
mod verdict;
mod verify;
pub mod visit;

use axum::extract::State;
use countersign_api::event::EventKind;
use countersign_core::documents::{layout, layout::Signable};
use countersign_core::values::{path::RepoPath, wire, wire::routes as paths, wire::routes::PAGES};
use countersign_store::Head;
use serde_json::json;

use crate::api::openapi::{
    EXAMPLE_COMMIT, Endpoint, HTML, Parameter, living_page, matching, one_of, redirect, text, unchecked,
};
use crate::api::{openapi, routing::RouteTable, routing::parse_tail, state::App};
pub(crate) use crate::web::reply::report_unknown;
use crate::web::reply::{PageTrouble, Reply, Show, View, reply};
use crate::web::visit::Visit;

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
    let pages: [(&str, Show, Endpoint); 6] = [
        (
            links::HOME,
            landing::show,
            living_page("landing_page", "The first page", &[HTML])
                .about("What this server is for, and recent releases.")
                .takes(unchecked(search()))
                .answers(redirect("a search has an address of its own")),
        ),
        (
            links::PROJECTS,
            projects::show_all,
            living_page("projects_page", "Projects", &[HTML])
                .about("The projects on this server. A digest finds the releases that list it.")
                .takes(search())
                .takes(page()),
        ),
        (
            links::ALL_ACTIVITY,
            activity::show_all,
            living_page("activity_page", "Activity", &[HTML])
                .about("What happened recently on this server.")
                .takes(unchecked(before()))
                .takes(Parameter::query(
                    "project",
                    "The URL of a project, or its path on this server.",
                    text(),
                    "https://github.com/acme/app",
                ))
                .takes(unchecked(event_type()))
                .takes(author())
                .answers(redirect("a project has its own page")),
        ),
        (
            links::ALL_ACTIVITY_FEED,
            |view| activity::show_feed(view, None),
            living_page("activity_feed", "Activity, for feed readers", &[ATOM])
                .about("What happened recently on this server, as an Atom feed.")
                .takes(unchecked(event_type()))
                .takes(author()),
        ),
        (
            links::LOG,
            log_page::show,
            living_page("log_page", "The log", &[HTML])
                .about("The log of this server: its key, its newest checkpoint, its witnesses, and how to become one."),
        ),
        (
            &format!("{}/{{key}}", paths::KEY_PAGES),
            keys::show,
            living_page("key_page", "A key", &[HTML])
                .about("Where a key is listed, what it signed, and what waits for it.")
                .takes(Parameter::path(
                    "key",
                    "A public key, with `-` and `_` for `+` and `/`.",
                    matching("^svc-pub:[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$"),
                    key_in_address,
                ))
                .answers(redirect("the page is under another address")),
        ),
    ];
    let pages = pages.into_iter().fold(RouteTable::default(), |routes, (path, show, endpoint)| {
        let show = async move |State(app): State<App>, visit: Visit| reply(app, visit, show).await;
        routes.get(path, show, endpoint.with_error_pages())
    });
    let show_path = async |State(app): State<App>, visit: Visit| reply(app, visit, show_path).await;
    pages
        .get_below(paths::PAGES, show_path, living_page("place_page", "A project or a release", &[HTML, ATOM])
            .about("What is stored at a path: a project, a release, proposed signers, or the history of the signers.")
            .takes(openapi::any_path())
            .takes(unchecked(page()))
            .takes(unchecked(before()))
            .answers(redirect("the page is under another address"))
            .refuses(400, "invalid path", "path.400")
            .with_error_pages())
        .merge(badge::routes())
        .merge(frame::files())
        .merge(docs::routes())
        .merge(help::routes())
        .merge(verify::routes())
}

/// Finds which page belongs to a mirror path.
fn show_path(view: &View) -> Result<Reply, PageTrouble> {
    let View { head, visit, .. } = view;
    let tail = links::below(PAGES, &visit.path).unwrap_or_default();
    let path = parse_tail(tail)?;
    let canonical = links::page(&path);
    if !is_same_address(&canonical, &visit.path) {
        return Ok(Reply::Elsewhere(canonical));
    }
    if let Some(Signable::PendingSigners { project }) = layout::signable(&path) {
        return proposal::show(view, &project);
    }
    let missing =
        || PageTrouble::missing_near(format!("Nothing is stored at {path}"), find_near(head, &path));
    let within = || path.parent().ok_or_else(missing);
    let found = match path.file_name() {
        wire::INDEX_FILE => release::show(view, &path)?,
        wire::HISTORY_FILE => timeline::show(view, &within()?)?,
        links::ACTIVITY => Some(activity::show(view, Some(&within()?))?),
        links::FEED => Some(activity::show_feed(view, Some(&within()?))?),
        _ if head.index.is_project(&path) => Some(project::show(view, &path)?),
        _ => projects::show_below(view, &path)?.or_else(|| find_elsewhere(head, &path)),
    };
    found.ok_or_else(missing)
}

/// The directory of a release stands for the release. Any other path in a project stands for the project.
fn find_elsewhere(head: &Head, path: &RepoPath) -> Option<Reply> {
    head.entry(path)?;
    let index = layout::index_in(path);
    let page = match head.entry(&index).or_else(|| head.entry(&layout::withdrawal_of(&index))) {
        Some(_) => index,
        None => path.self_and_ancestors().find(|above| head.index.is_project(above))?,
    };
    Some(Reply::Elsewhere(links::page(&page)))
}

/// The project in another spelling, or else the nearest directory above that has a page.
fn find_near(head: &Head, path: &RepoPath) -> Option<RepoPath> {
    let project = head.index.projects_overlapping(path).into_iter().next();
    let has_page = |above: &RepoPath| above.segments().count() > 2 && head.entry(above).is_some();
    project.or_else(|| path.self_and_ancestors().skip(1).find(has_page))
}

/// Whether two addresses differ only in their encoding.
fn is_same_address(a: &str, b: &str) -> bool {
    let decode = |text| percent_encoding::percent_decode_str(text).collect::<Vec<u8>>();
    decode(a) == decode(b)
}
