//! Finds which page belongs to a mirror path.

use countersign_core::documents::{layout, layout::Signable};
use countersign_core::values::{path::RepoPath, wire, wire::routes::PAGES};
use countersign_store::Head;

use crate::api::{routing::parse_tail, state::App};
use crate::web::reply::{PageTrouble, Reply};
use crate::web::{activity, links, project, projects, proposal, release, timeline, visit::Visit};

pub(super) fn show(app: &App, head: &Head, visit: &Visit) -> Result<Reply, PageTrouble> {
    let recent_commits = app.store.recent_commits();
    let tail = links::below(PAGES, &visit.path).unwrap_or_default();
    let path = parse_tail(tail)?;
    let canonical = links::page(&path);
    if !is_same_address(&canonical, &visit.path) {
        return Ok(Reply::Elsewhere(canonical));
    }
    if let Some(Signable::PendingSigners { project }) = layout::signable(&path) {
        return proposal::show(head, &project, visit, app.now());
    }
    let found = match path.file_name() {
        wire::INDEX_FILE => release::show(head, &path, visit)?,
        wire::HISTORY_FILE => match path.parent() {
            Some(project) => timeline::show(head, &project, visit)?,
            None => None,
        },
        links::ACTIVITY => match path.parent() {
            Some(below) => Some(activity::show(recent_commits, head, Some(&below), visit)?),
            None => None,
        },
        links::FEED => match path.parent() {
            Some(below) => Some(activity::show_feed(recent_commits, head, Some(&below), visit)?),
            None => None,
        },
        _ if head.index.is_project(&path) => Some(project::show(app, head, &path, visit)?),
        _ => match projects::show_below(&app.catalogue, head, &path, visit)? {
            Some(list) => Some(list),
            None => find_elsewhere(head, &path),
        },
    };
    found.ok_or_else(|| PageTrouble::Missing {
        message: format!("Nothing is stored at {path}"),
        near: find_near(head, &path),
    })
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
