//! The first page: what this is, how to check a file, how to begin to sign, and what is new.

use std::collections::HashSet;

use countersign_api::event::{Event, EventKind};
use countersign_core::rules::snapshot::Snapshot as _;
use countersign_core::values::{bounds::FIRST_PAGE_RELEASES, path::RepoPath};
use countersign_explain::describe::release::{ReleaseSummary, summarise_release};
use countersign_store::Head;
use countersign_store::journal::recent_commits::{RecentCommit, RecentCommits};
use maud::{Markup, html};

use crate::web::reply::{PageTrouble, Reply, View};
use crate::web::{frame::Page, links, parts, visit::Visit};

/// The page of a signers file, as a forge shows it.
const SIGNERS_URL: &str = "https://github.com/acme/app/blob/main/svc.signers.json";
/// How many commits about releases are looked at: each release has several.
const COMMITS: usize = 200;

pub(super) fn show(View { app, head, visit }: &View) -> Result<Reply, PageTrouble> {
    // A search has an address of its own.
    if !visit.search.is_empty() || visit.page != Some(1) {
        let (words, page) = (visit.field("q"), visit.field("page"));
        let query = links::query(&[("q", words.as_deref()), ("page", page.as_deref())]);
        return Ok(Reply::Elsewhere(format!("{}{query}", links::PROJECTS)));
    }
    let body = html! {
        div.welcome {
            h1 { "Releases that one stolen key cannot forge" }
            p.lede {
                "Each project here names its signers and how many of them must agree. A release counts only when enough of "
                "them have signed it, and anyone can check that without trusting this server."
            }
        }
        div.three {
            (check_card(visit))
            (sign_card(visit))
            (audit_card())
        }
        (recent(head, &find_newest(app.store.recent_commits())))
    };
    let feed = Some(links::ALL_ACTIVITY_FEED.to_owned());
    Ok(Reply::Page(Page { feed, ..Page::new("Signed releases", body) }))
}

fn check_card(visit: &Visit) -> Markup {
    let download = "https://github.com/acme/app/releases/download/v1.0/app.tar.gz";
    html! {
        section.card {
            h2 { "Check a download" }
            p { "Drop the file. Your browser finds its release and verifies the signatures." }
            p { a.button href=(links::VERIFY) { "Verify a file" } }
            p.meta { "Or let the client download it, and trust no page:" }
            (parts::command(links::client("download", download, visit.base_url.as_deref())))
        }
    }
}

fn sign_card(visit: &Visit) -> Markup {
    let register = links::client("register", SIGNERS_URL, visit.changing_server());
    let register = register.map(|command| format!("{command} --key alice"));
    html! {
        section.card {
            h2 { "Sign for your project" }
            ol {
                li { "Each signer makes a key: " code { "countersign keygen --out alice" } }
                li {
                    "Publish who signs, in your repository: "
                    code { "countersign signers new --artifact alice=alice.pub bob=bob.pub --threshold 2 -o svc.signers.json" }
                }
                li { "Register the project, and let everyone sign:" }
            }
            (parts::command(register))
        }
    }
}

fn audit_card() -> Markup {
    html! {
        section.card {
            h2 { "Audit everything" }
            p { "All state is one Git repository. Follow it, clone it, replay it." }
            ul {
                li {
                    a href=(links::ALL_ACTIVITY) { "Activity" } ", also as an "
                    a href=(links::ALL_ACTIVITY_FEED) { "Atom feed" }
                }
                li { a href=(links::DOCS) { "API reference" } }
            }
        }
    }
}

fn recent(head: &Head, newest: &[RepoPath]) -> Markup {
    let projects = head.index.project_count();
    html! {
        section aria-labelledby="newest" {
            h2 #newest { "Recent releases" }
            @if newest.is_empty() { p { "There are no releases yet." } } @else { (release_table(head, newest)) }
            p.meta {
                a href=(links::PROJECTS) {
                    @if projects == 0 { "0 projects" } @else { "All " (parts::count(projects, "project", "projects")) }
                }
                " · " (parts::count(head.index.collecting_count(), "file", "files")) " waiting for signatures"
            }
        }
    }
}

/// The releases that something happened to most recently.
fn find_newest(recent_commits: &RecentCommits) -> Vec<RepoPath> {
    const MEANT: [EventKind; 6] = [
        EventKind::Release,
        EventKind::Complete,
        EventKind::Objection,
        EventKind::RebuildDiffers,
        EventKind::Revocation,
        EventKind::Revoked,
    ];
    let is_meant = |event: &Event| MEANT.contains(&event.kind);
    let is_wanted = |commit: &RecentCommit| commit.events().iter().any(is_meant);
    let commits = recent_commits.before(i64::MAX, COMMITS, is_wanted);
    let mut seen = HashSet::new();
    let events =
        commits.iter().flat_map(|(_, commit)| commit.events().iter().filter(|event| is_meant(event)));
    let paths = events.map(|event| event.path.clone());
    paths.filter(|path| seen.insert(path.clone())).take(FIRST_PAGE_RELEASES).collect()
}

/// The table of releases. Begun revocations come first, then those of which builders got something else.
fn release_table(head: &Head, releases: &[RepoPath]) -> Markup {
    let mut rows: Vec<_> = releases
        .iter()
        .filter_map(|path| Some((path, head.governing_project(path)?, summarise_release(head, path).ok()??)))
        .collect();
    let is_different = |summary: &ReleaseSummary| {
        summary.reproduction.as_ref().is_some_and(|found| !found.different.is_empty())
    };
    rows.sort_by_key(|(_, _, summary)| (summary.begun.is_none(), !is_different(summary)));
    let rows = html! {
        @for (path, project, summary) in &rows {
            tr role="row" {
                th.wrap scope="row" role="rowheader" { (parts::release_link(project, path)) }
                (parts::standing_cells(summary))
            }
        }
    };
    parts::table("releases", &parts::STANDING_COLUMNS, &rows)
}
