//! Lists of projects: all of them, those that a search finds, those below a directory.

use crate::web::overview::{
    releases::{ReleaseCounts, ReleaseList},
    search::Search,
};
use countersign_core::{
    documents::layout,
    values::{path::RepoPath, shown::shown_text},
};
use maud::{Markup, html};
use url::form_urlencoded;

use super::{
    frame::Page,
    links,
    paging::Paging,
    parts,
    reply::{PageTrouble, Reply},
    visit::Visit,
};
use countersign_store::Head;

const PER_PAGE: usize = 25;

pub(super) fn show_all(head: &Head, visit: &Visit) -> Result<Reply, PageTrouble> {
    let search = Search::parse(&visit.search);
    let found: Vec<&RepoPath> = head
        .index
        .projects()
        .filter(|(folded, _)| search.matches(folded))
        .map(|(_, project)| project)
        .collect();
    let paging = Paging::of(visit.page, PER_PAGE, found.len()).ok_or_else(no_such_page)?;
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("q", &visit.search).finish();
    let target =
        if search.is_empty() { "/projects?page=".to_owned() } else { format!("/projects?{query}&page=") };
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
                q { bdi { (shown_text(&visit.search)) } } " · " a href="/projects" { "show all" }
            }
        }
        @if found.is_empty() && search.is_empty() {
            p { "There are no projects yet. Register one with " code { "countersign register URL" } "." }
        }
        (list(head, &found[paging.range()]))
        (paging.links("projects", &target))
    };
    let title = if search.is_empty() { "Projects".to_owned() } else { shown_text(&visit.search) };
    Ok(Reply::Page(Page::new(title, body).with_search(&visit.search)))
}

/// `None` if no project lies below.
pub(super) fn show_below(head: &Head, dir: &RepoPath, visit: &Visit) -> Result<Option<Reply>, PageTrouble> {
    let found = head.index.projects_below(dir);
    if found.is_empty() {
        return Ok(None);
    }
    let paging = Paging::of(visit.page, PER_PAGE, found.len()).ok_or_else(no_such_page)?;
    let shown: Vec<&RepoPath> = found[paging.range()].iter().collect();
    let name = links::shown_path(dir);
    let body = html! {
        (parts::crumbs(dir.parent().as_ref()))
        h1.wrap { bdi { (name) } }
        p.lede {
            (parts::count(found.len(), "project", "projects")) " here · "
            a href=(links::activity(dir)) { "Activity" }
        }
        (list(head, &shown))
        (paging.links("projects", &format!("{}?page=", links::page(dir))))
    };
    Ok(Some(Reply::Page(Page::new(name, body).with_feed(links::feed(dir)))))
}

pub(super) fn no_such_page() -> PageTrouble {
    PageTrouble::Missing { message: "The list has no such page".to_owned(), near: None }
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
            (counts(count_releases(head, project).count()))
            @if is_pending { span.state.open { "signers change pending" } }
        }
    }
}

/// Begun revocations come first.
fn counts(counts: ReleaseCounts) -> Markup {
    let ReleaseCounts { collecting, complete, revoked, revoking } = counts;
    html! {
        @if counts.total() == 0 { span.none { "no releases" } }
        @if revoking > 0 { span.state.bad { (parts::count(revoking, "revocation", "revocations")) " begun" } }
        @if complete > 0 { span.state.good { (parts::number(complete as u64)) " complete" } }
        @if collecting > 0 { span.state.open { (parts::number(collecting as u64)) " collecting" } }
        @if revoked > 0 { span.state.bad { (parts::number(revoked as u64)) " revoked" } }
    }
}

/// From the tree alone, without reading a file.
pub(super) fn count_releases(head: &Head, project: &RepoPath) -> ReleaseList {
    let mut releases = ReleaseList::below(project);
    head.files.walk_below(project, &mut |path| releases.see(path));
    releases
}
