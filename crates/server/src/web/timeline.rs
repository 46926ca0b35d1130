//! The signers history of a project, the newest step first, and Atom feeds of events.

use countersign_core::values::{bounds::PAGE_STEPS, digest::Sha512, path::RepoPath, time::Timestamp};
use countersign_core::{documents::layout, documents::signers::Signer, rules::stored};
use countersign_explain::words::shown_signer;
use countersign_store::{Head, ObjectId};
use maud::{Markup, PreEscaped, html};

use crate::web::overview::{TimelineStep, list_steps};
use crate::web::reply::{PageTrouble, Reply};
use crate::web::{
    changes::change_list, frame::Page, links, parts, projects, visit::BY_AGE, visit::Paging, visit::Visit,
};

pub(super) fn show(head: &Head, project: &RepoPath, visit: &Visit) -> Result<Option<Reply>, PageTrouble> {
    let len = stored::history_len(head, project);
    if len == 0 {
        return Ok(None);
    }
    let paging = Paging::of(visit.page, PAGE_STEPS, len).ok_or_else(projects::no_such_page)?;
    let steps = list_steps(head, project, paging.range_from_end())?;
    let name = links::shown_path(project);
    let path = layout::history(project);
    let body = html! {
        (parts::crumbs(Some(project)))
        h1.wrap { "Signers history of " bdi { (name) } }
        p.lede {
            (parts::count(len, "signers file has", "signers files have"))
            " been in force. The signers before each one agreed to it."
        }
        ol.timeline reversed start=(steps.last().map_or(0, |step| step.number)) {
            @for step in steps.iter().rev() { (step_item(step, step.number == len)) }
        }
        (paging.links("the history", &format!("{}?page=", links::page(&path)), BY_AGE))
        section aria-labelledby="check" {
            h2 #check { "Check it" }
            p { "This page shows what the server says. The client fetches the whole history and verifies each step:" }
            (parts::command(links::client("signers history", project.as_str(), visit.base_url.as_deref())))
            p { a href=(links::file(&path)) { "The history as it is stored" } }
        }
    };
    Ok(Some(Reply::Page(Page::new(format!("Signers history of {name}"), body))))
}

fn step_item(step: &TimelineStep, is_current: bool) -> Markup {
    html! {
        li #{ "step-" (step.number) } {
            h2 {
                "Step " (step.number) ", " (parts::day(step.activated_at))
                @if is_current { " " span.state.good { "in force" } }
            }
            h3 { @if step.number == 1 { "What it says" } @else { "What changed" } }
            (change_list(&step.changes))
            h3 { "Who agreed" }
            (parts::members(&step.agreed))
            details {
                summary { "Where it came from" }
                dl {
                    dt { "Fetched" }
                    dd { (parts::when(step.origin.retrieved_at)) " from " (parts::outside(&step.origin.url)) }
                    dt { "Dated" }
                    dd { (parts::when(step.dated)) }
                    dt { "Digest" }
                    dd { (parts::digest(&step.digest.to_prefixed(), "the digest")) }
                }
            }
        }
    }
}

// Atom feeds (RFC 4287) of events.

pub(super) struct Entry {
    pub(super) commit: ObjectId,
    pub(super) time: Timestamp,
    /// The number of the event among those of its commit.
    pub(super) number: usize,
    pub(super) title: String,
    /// The address of its page on this server.
    pub(super) page: String,
    pub(super) by: Option<Signer>,
}

/// Writes a feed. `page` and `own` are addresses on this server, of the page with the same content and of the feed.
pub(super) fn write(title: &str, page: &str, own: &str, entries: &[Entry], base_url: Option<&str>) -> Markup {
    let base_url = base_url.unwrap_or_default();
    // A feed must say when it changed, also if nothing happened yet.
    let never = || "1970-01-01T00:00:00Z".to_owned();
    let updated = entries.first().map_or_else(never, |newest| newest.time.to_string());
    html! {
        (PreEscaped("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"))
        feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en" {
            id { (identify(&format!("{base_url}{own}"))) }
            title { (title) " · Countersign" }
            updated { (updated) }
            author { name { "Countersign" } }
            link rel="self" type="application/atom+xml" href={ (base_url) (own) } {}
            link rel="alternate" type="text/html" href={ (base_url) (page) } {}
            @for entry in entries {
                entry {
                    id { (identify(&format!("{} {}", entry.commit, entry.number))) }
                    title { (entry.title) }
                    updated { (entry.time) }
                    link rel="alternate" type="text/html" href={ (base_url) (entry.page) } {}
                    content type="text" {
                        (entry.title)
                        @if let Some(by) = &entry.by { ", by " (shown_signer(by)) }
                    }
                }
            }
        }
    }
}

/// An identifier that never changes, in the form of a UUID of version 8.
fn identify(text: &str) -> String {
    let digest = Sha512::of(text.as_bytes()).to_string();
    let part = |from: usize, to: usize| digest.get(from..to).unwrap_or_default();
    format!("urn:uuid:{}-{}-8{}-a{}-{}", part(0, 8), part(8, 12), part(12, 15), part(15, 18), part(18, 30))
}
