//! What happened, newest first, as the commits tell it: on the whole server, or at and below a path.

use std::sync::Arc;

use countersign_api::event::{Event, EventFilter, EventKind};
use countersign_core::{
    documents::{
        layout::{self, Signable},
        signers::Signer,
    },
    rules::{snapshot::Snapshot as _, stored},
    values::{key::PublicKey, path::RepoPath},
};
use countersign_explain::signers::named_signer;
use maud::{Markup, html};

use super::{
    frame::Page,
    links, parts,
    reply::{PageTrouble, Reply},
    visit::Visit,
};
use countersign_store::{
    Head, ObjectId,
    log::{KEPT, Log, Logged},
};

const PER_PAGE: usize = 50;

/// `below` is `None` for the whole server.
pub(super) fn show(
    log: &Log,
    head: &Head,
    below: Option<&RepoPath>,
    visit: &Visit,
) -> Result<Reply, PageTrouble> {
    let address = below.map_or_else(|| "/activity".to_owned(), links::activity);
    let position = match visit.before.as_deref() {
        None => i64::MAX,
        Some(id) => find_position(log, id).ok_or_else(|| no_such_commit(below))?,
    };
    let filter = EventFilter { prefix: below.cloned(), ..EventFilter::default() };
    let is_meant = |event: &Event| filter.matches(event);
    let is_wanted = |commit: &Logged| commit.events().iter().any(is_meant);
    let mut commits = log.before(position, PER_PAGE + 1, is_wanted);
    if let Some(path) = below.filter(|path| commits.is_empty() && head.entry(path).is_none()) {
        return Err(PageTrouble::Missing { message: format!("Nothing is stored at {path}"), near: None });
    }
    let has_more = commits.len() > PER_PAGE;
    commits.truncate(PER_PAGE);
    let oldest = commits.last().map(|(_, commit)| commit.id.to_string());
    let place = below.map(links::shown_path);
    let title = place.as_ref().map_or_else(|| "Activity".to_owned(), |place| format!("Activity of {place}"));
    let body = html! {
        @if let Some(below) = below { (parts::crumbs(below)) }
        h1.wrap { (title) }
        @if commits.is_empty() { p { "Nothing happened here" @if visit.before.is_some() { " before that" } "." } }
        ol.activity { @for (_, commit) in &commits { (commit_item(head, commit, &is_meant)) } }
        @if has_more || visit.before.is_some() {
            nav.pager aria-label="Pages of the activity" {
                @if visit.before.is_some() { a href=(address) { "Newest" } }
                @if let Some(oldest) = oldest.filter(|_| has_more) {
                    a href={ (address) "?before=" (oldest) } rel="next" { "Older" }
                }
            }
        }
        @if !has_more { (horizon(log)) }
    };
    Ok(Reply::Page(Page::new(title, body)))
}

fn find_position(log: &Log, id: &str) -> Option<i64> {
    log.position_of(&ObjectId::from_hex(id.as_bytes()).ok()?)
}

fn no_such_commit(below: Option<&RepoPath>) -> PageTrouble {
    let message = format!("That change is not among the newest {}", parts::number(KEPT as u64));
    PageTrouble::Missing { message, near: below.cloned() }
}

/// How far back this page looks.
fn horizon(log: &Log) -> Markup {
    let is_all = log.before(i64::MAX, KEPT, |_| true).len() < KEPT;
    html! {
        p.hint {
            @if is_all {
                "This goes back to the beginning of this server."
            } @else {
                "This page looks at the newest " (parts::number(KEPT as u64)) " changes of the server. All of them are in "
                "its Git repository."
            }
        }
    }
}

fn commit_item(head: &Head, commit: &Arc<Logged>, is_meant: &impl Fn(&Event) -> bool) -> Markup {
    html! {
        @for event in commit.events().iter().rev().filter(|event| is_meant(event)) {
            li {
                span.what { (mark(event.kind)) " " (subject(event)) }
                span.by {
                    @if let Some(key) = event.key {
                        span.who-by { "by " (parts::who(&name_signer(head, &event.path, key))) }
                        " "
                    }
                    span.at { (parts::when(commit.time)) }
                }
            }
        }
    }
}

fn mark(kind: EventKind) -> Markup {
    match kind {
        EventKind::Registration => html! { span.state.open { "registered" } },
        EventKind::Proposal => html! { span.state.open { "signers proposed" } },
        EventKind::Signature => html! { span.state.plain { "signed" } },
        EventKind::Complete => html! { span.state.good { "complete" } },
        EventKind::Activated => html! { span.state.good { "signers in force" } },
        EventKind::Release => html! { span.state.open { "release added" } },
        EventKind::Revocation => html! { span.state.bad { "revocation begun" } },
        EventKind::Revoked => html! { span.state.bad { "revoked" } },
        EventKind::Dropped => html! { span.state.plain { "dropped by the operator" } },
    }
}

/// A proposal can be gone by now; its project cannot.
fn subject(event: &Event) -> Markup {
    let path = &event.path;
    match layout::signable(path) {
        Some(Signable::Index) => {
            let dir = path.parent().unwrap_or_else(|| path.clone());
            html! { a.wrap href=(links::page(path)) { (links::shown_path(&dir)) } }
        }
        Some(Signable::PendingSigners { .. }) | None => {
            let project = layout::project_of_signers_dir(path).unwrap_or_else(|| path.clone());
            html! { "signers of " a.wrap href=(links::page(&project)) { (links::shown_path(&project)) } }
        }
    }
}

/// The signer's name in the signers file in force, or in the one that waits to be the first.
fn name_signer(head: &Head, path: &RepoPath, key: PublicKey) -> Signer {
    let nameless = || Signer { key, name: None };
    let governing = stored::governing_signers(head, path).ok().flatten().map(|active| active.file);
    let waiting = || head.read_signers(path).ok().flatten().map(|waiting| waiting.file);
    let signers = match layout::signable(path) {
        Some(Signable::PendingSigners { .. }) => governing.or_else(waiting),
        Some(Signable::Index) | None => governing,
    };
    signers.map_or_else(nameless, |signers| named_signer(&signers, key))
}
