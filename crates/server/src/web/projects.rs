//! Lists of projects: all of them, those that a search finds, those below a directory.

use countersign_api::catalogue::{ListedRebuilds, ListedRelease};
use countersign_core::documents::layout;
use countersign_core::rules::{reproduction::Reproduction, stored, stored::ReleaseState};
use countersign_core::values::shown::{marked_name, shown_count, shown_text};
use countersign_core::values::{bounds::PAGE_ROWS, digest::Sha256, digest::Sha512, path::RepoPath};
use countersign_store::{Head, catalogue::Catalogue, catalogue::FileDigest, catalogue::ProjectSearch};
use maud::{Markup, html};

use crate::web::overview::{ReleaseCounts, ReleaseEntry, ReleaseList};
use crate::web::reply::{PageTrouble, Reply, View};
use crate::web::{frame::Page, keys, links, parts, visit::BY_NUMBER, visit::Visit};

pub(super) fn show_all(view: &View) -> Result<Reply, PageTrouble> {
    let View { app, head, visit } = view;
    if let Some(digest) = read_digest(&visit.search) {
        return show_listing(&app.catalogue, &digest, visit);
    }
    let search = ProjectSearch::parse(&visit.search);
    let projects = head.index.projects().filter(|(folded, _)| search.matches(folded));
    let mut found: Vec<&RepoPath> = projects.map(|(_, project)| project).collect();
    put_revoking_first(&app.catalogue, &mut found);
    let paging = view.paging(PAGE_ROWS, found.len())?;
    let words = Some(visit.search.as_str()).filter(|_| !search.is_empty());
    let target = format!("{}{}", links::PROJECTS, links::query_before(&[("q", words)], "page="));
    let body = html! {
        h1 { "Projects" }
        @if search.is_empty() {
            p.lede {
                (parts::count(found.len(), "project", "projects")) ", "
                (parts::count(head.index.collecting_count(), "file", "files")) " waiting for signatures"
            }
        } @else {
            p.lede role="status" {
                (parts::count(found.len(), "project", "projects")) " found for "
                q { bdi { (shown_text(&visit.search)) } } " · " a href=(links::PROJECTS) { "show all" }
            }
        }
        @if found.is_empty() && search.is_empty() {
            p { "There are no projects yet. Register one with " code { "countersign register URL" } "." }
        }
        (list(head, &found[paging.range()]))
        (paging.links("projects", &target, BY_NUMBER))
    };
    let title = if search.is_empty() { "Projects".to_owned() } else { shown_text(&visit.search) };
    Ok(Reply::Page(Page { search: visit.search.clone(), ..Page::new(title, body) }))
}

/// Projects in which a revocation waits for signatures. Soon after a start no one can tell yet, without a look at all.
fn put_revoking_first(catalogue: &Catalogue, projects: &mut [&RepoPath]) {
    if catalogue.is_ready() {
        let look = catalogue.look();
        let revoking = look.revoking_projects();
        projects.sort_by_key(|project| !revoking.contains(project));
    }
}

fn read_digest(text: &str) -> Option<FileDigest> {
    let text = text.strip_prefix("sha256:").or_else(|| text.strip_prefix("sha512:")).unwrap_or(text);
    let short = || Sha256::parse_any_case(text).map(FileDigest::Sha256);
    short().or_else(|| Sha512::parse_any_case(text).map(FileDigest::Sha512))
}

/// The releases that list a file with this digest.
fn show_listing(catalogue: &Catalogue, digest: &FileDigest, visit: &Visit) -> Result<Reply, PageTrouble> {
    let look = keys::look_into(catalogue)?;
    let found = look.releases_with(digest, None).map_or_else(|_| Vec::new(), |found| found.releases);
    drop(look);
    let rows = html! {
        @for ListedRelease { index_path, project_id, file_name, state, revocation_begun, rebuilds, .. } in &found {
            tr role="row" {
                th.wrap scope="row" role="rowheader" { (parts::release_link(project_id, index_path)) }
                td.wrap role="cell" { bdi { (marked_name(file_name.as_deref().unwrap_or_default())) } }
                td role="cell" {
                    (parts::state(*state, revocation_begun.is_some(), rebuilds.as_ref()))
                }
            }
        }
    };
    let body = html! {
        h1 { "Releases with this file" }
        p.lede.wrap { code { (visit.search) } }
        @if found.is_empty() {
            p { "No complete or revoked release on this server lists a file with this digest." }
        } @else {
            p { "Anyone can list any digest. Look at the project, and " a href=(links::VERIFY) { "verify the file" } "." }
            (parts::table("releases", &["Release", "File", "State"], &rows))
        }
    };
    Ok(Reply::Page(Page { search: visit.search.clone(), ..Page::new("Releases with a file", body) }))
}

/// Shows the projects below; `None` if no project lies there.
pub(super) fn show_below(view: &View, dir: &RepoPath) -> Result<Option<Reply>, PageTrouble> {
    let View { app, head, .. } = view;
    let found = head.index.projects_below(dir);
    if found.is_empty() {
        return Ok(None);
    }
    let mut found: Vec<&RepoPath> = found.iter().collect();
    put_revoking_first(&app.catalogue, &mut found);
    let paging = view.paging(PAGE_ROWS, found.len())?;
    let name = links::shown_path(dir);
    let body = html! {
        (parts::crumbs(dir.parent().as_ref()))
        h1.wrap { bdi { (name) } }
        p.lede {
            (parts::count(found.len(), "project", "projects")) " here · "
            a href=(links::activity(dir)) { "Activity" }
        }
        (list(head, &found[paging.range()]))
        (paging.links("projects", &format!("{}?page=", links::page(dir)), BY_NUMBER))
    };
    Ok(Some(Reply::Page(Page { feed: Some(links::feed(dir)), ..Page::new(name, body) })))
}

fn list(head: &Head, projects: &[&RepoPath]) -> Markup {
    html! {
        @if !projects.is_empty() {
            ul.cards {
                @for project in projects {
                    li {
                        a.title.wrap href=(links::page(project)) { bdi { (links::shown_path(project)) } }
                        div.states { (describe(head, project)) }
                    }
                }
            }
        }
    }
}

fn describe(head: &Head, project: &RepoPath) -> Markup {
    let is_registered = head.entry(&layout::active_signers(project)).is_some();
    let is_pending = head.index.is_collecting(&layout::pending_signers(project));
    html! {
        @if !is_registered {
            span.state.open { "registering" }
        } @else {
            @let releases = count_releases(head, project);
            (counts(releases.count()))
            @if let Some(newest) = releases.find_newest().and_then(ReleaseEntry::index) {
                span.newest {
                    "newest " a.wrap href=(links::page(&newest)) { bdi { (links::release_name(project, &newest)) } } " "
                    (parts::state(ReleaseState::Complete, false, read_rebuilds(head, &newest).as_ref()))
                }
            }
            @if is_pending { span.state.open { "signers change pending" } }
        }
    }
}

/// How far builders have reproduced a release; `None` if they do not, or it cannot be read.
fn read_rebuilds(head: &Head, index: &RepoPath) -> Option<ListedRebuilds> {
    let signers = stored::signers_copy(head, index).ok()?;
    Reproduction::read(head, index, &signers).ok()?.as_ref().map(ListedRebuilds::of)
}

/// Shows the counts of releases. Begun revocations come first.
fn counts(counts: ReleaseCounts) -> Markup {
    let ReleaseCounts { collecting, complete, revoked, revoking } = counts;
    html! {
        @if counts.total() == 0 { span.none { "no releases" } }
        @if revoking > 0 { span.state.open { (parts::count(revoking, "revocation", "revocations")) " begun" } }
        @if complete > 0 { span.state.good { (shown_count(complete)) " complete" } }
        @if collecting > 0 { span.state.open { (shown_count(collecting)) " collecting" } }
        @if revoked > 0 { span.state.bad { (shown_count(revoked)) " revoked" } }
    }
}

/// Counts the releases from the tree alone, without reading a file.
pub(super) fn count_releases(head: &Head, project: &RepoPath) -> ReleaseList {
    let mut releases = ReleaseList::below(project);
    head.walk_below(project, &mut |path| releases.see(path));
    releases
}
