//! The page of a project: its releases, its signers, and what is proposed.

use crate::web::overview::{
    project::{ProjectOverview, RoleOverview, describe_project},
    proposal::ProposalOverview,
    release::{ReleaseState, ReleaseSummary, summarise_release},
    releases::ReleaseEntry,
};
use countersign_core::{
    documents::{layout, signers::Role},
    values::{path::RepoPath, shown::shown_text},
};
use maud::{Markup, html};

use super::{
    frame::Page,
    links,
    paging::Paging,
    parts, projects,
    proposal::{change_list, condition_summary},
    reply::{PageTrouble, Reply},
    visit::Visit,
};
use countersign_store::Head;

const RELEASES_PER_PAGE: usize = 50;

pub(super) fn show(head: &Head, id: &RepoPath, visit: &Visit) -> Result<Reply, PageTrouble> {
    let missing = || PageTrouble::Missing { message: format!("No project is at {id}"), near: None };
    let project = describe_project(head, id)?.ok_or_else(missing)?;
    let releases = projects::count_releases(head, id);
    let counts = releases.count();
    let paging =
        Paging::of(visit.page, RELEASES_PER_PAGE, releases.len()).ok_or_else(projects::no_such_page)?;
    let shown = releases.newest(paging.range());
    let name = links::shown_path(id);
    let is_first_page = paging.page() == 1;
    let body = html! {
        (parts::crumbs(id))
        h1.wrap { (name) }
        (facts(&project))
        @if let Some(proposal) = project.proposal.as_ref().filter(|_| is_first_page) { (notice(proposal)) }
        section aria-labelledby="releases" {
            h2 #releases { "Releases" }
            p.facts { (projects::counts(counts)) }
            @if !shown.is_empty() { (release_table(head, id, &shown)) }
            (paging.links("releases", &format!("{}?page=", links::page(id))))
        }
        @if is_first_page {
            (signers(&project))
            (badge(id, visit))
        }
    };
    Ok(Reply::Page(Page::new(name, body)))
}

fn facts(project: &ProjectOverview) -> Markup {
    let id = &project.id;
    html! {
        p.lede {
            @match &project.signers {
                Some(_) => span.state.good { "registered" },
                None => span.state.open { "registering" },
            }
            " " code.wrap { (shown_text(id.as_str())) }
        }
        ul.links {
            @if project.signers.is_some() {
                li { a href=(links::history(id)) { "Signers history" } }
            }
            li { a href=(links::activity(id)) { "Activity" } }
            @if let Some(home) = links::home_of(id) {
                li { a href=(home) rel="nofollow noopener noreferrer" { "Project at its home" } }
            }
        }
    }
}

fn notice(proposal: &ProposalOverview) -> Markup {
    html! {
        section.notice aria-labelledby="pending" {
            h2 #pending {
                @if proposal.is_first {
                    "The first signers file waits for signatures"
                } @else {
                    "A change of the signers waits for signatures"
                }
            }
            @if !proposal.is_first {
                h3 { "What it changes" }
                (change_list(proposal))
            }
            h3 { "Who is missing" }
            (condition_summary(proposal))
            p { a href=(links::page(&proposal.path)) { "See the proposal and how to sign it" } }
        }
    }
}

fn release_table(head: &Head, id: &RepoPath, releases: &[ReleaseEntry]) -> Markup {
    html! {
        table role="table" {
            caption { "Releases, the highest version first" }
            thead role="rowgroup" {
                tr role="row" {
                    th scope="col" role="columnheader" { "Release" }
                    th scope="col" role="columnheader" { "State" }
                    th scope="col" role="columnheader" { "Signatures" }
                    th scope="col" role="columnheader" { "Last signature" }
                }
            }
            tbody role="rowgroup" { @for entry in releases { (release_row(head, id, entry)) } }
        }
    }
}

fn release_row(head: &Head, id: &RepoPath, entry: &ReleaseEntry) -> Markup {
    // An operator can store a name by hand that no path can spell.
    let Ok(dir) = RepoPath::parse(&entry.dir) else { return html! {} };
    let index = layout::index_in(&dir);
    html! {
        tr role="row" {
            th.wrap scope="row" role="rowheader" { a href=(links::page(&index)) { (release_name(id, &dir)) } }
            td role="cell" { (parts::state(entry.state)) }
            @match summarise_release(head, &index) {
                Ok(Some(ReleaseSummary { state, tally, last_signed_at })) => {
                    td role="cell" {
                        @if state == ReleaseState::Collecting {
                            (parts::bar(tally.collected, tally.needed, "Signatures collected"))
                        } @else {
                            (tally.collected) " of " (tally.needed) " needed"
                        }
                    }
                    td role="cell" {
                        @match last_signed_at { Some(at) => (parts::when(at)), None => "none yet" }
                    }
                }
                // An error in one must not hide the others.
                Ok(None) | Err(_) => td role="cell" colspan="2" { "cannot be read" },
            }
        }
    }
}

/// The name of a release within its project: its tag, or its directory.
pub(super) fn release_name(project: &RepoPath, dir: &RepoPath) -> String {
    let inside = dir.as_str().strip_prefix(project.as_str()).and_then(|rest| rest.strip_prefix('/'));
    let inside = inside.unwrap_or_else(|| dir.file_name());
    shown_text(inside.strip_prefix("releases/tag/").unwrap_or(inside))
}

fn signers(project: &ProjectOverview) -> Markup {
    html! {
        section aria-labelledby="signers" {
            h2 #signers {
                @if project.signers.is_some() { "Signers" } @else { "Proposed signers" }
            }
            p.hint { "Every group of a role has to reach its own threshold. Names come from the signers file; only the key counts." }
            div.roles { @for role in &project.roles { (role_section(role)) } }
            @if let Some(file) = &project.signers {
                p.hint {
                    "This signers file is dated " (parts::when(file.timestamp())) ". "
                    a href=(links::file(&layout::active_signers(&project.id))) { "The file itself" }
                }
            }
        }
    }
}

fn role_section(role: &RoleOverview) -> Markup {
    html! {
        section.role {
            h3 { (role_name(role.role)) }
            @if let Some(stand_in) = stand_in(role) { p.hint { (stand_in) } }
            @for group in &role.groups {
                p.threshold { strong { (group.threshold) " of " (group.signers.len()) } " needed" }
                (parts::people(&group.signers))
            }
        }
    }
}

pub(super) fn role_name(role: Role) -> &'static str {
    match role {
        Role::Artifact => "Artifact signers",
        Role::Admin => "Admins",
        Role::Master => "Masters",
        Role::Revocation => "Revokers",
    }
}

/// What applies if the file does not list a role (D8).
fn stand_in(role: &RoleOverview) -> Option<&'static str> {
    match (role.role, role.is_explicit) {
        (_, true) | (Role::Artifact, false) => None,
        (Role::Admin, false) => Some("Not listed: the artifact signers are the admins."),
        (Role::Master, false) => Some("No one: only the admins can change the signers."),
        (Role::Revocation, false) => Some("Not listed: any one admin can revoke."),
    }
}

fn badge(id: &RepoPath, visit: &Visit) -> Markup {
    let origin = visit.origin.as_deref().unwrap_or("https://SERVER");
    let markdown = format!("[![signers]({origin}{})]({origin}{})", links::badge(id), links::page(id));
    html! {
        section aria-labelledby="badge" {
            h2 #badge { "Badge" }
            p { a href=(links::badge(id)) { "The badge of this project" } ", for a README:" }
            (parts::command(Some(markdown)))
        }
    }
}
