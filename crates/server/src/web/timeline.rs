//! The signers history of a project, the newest step first.

use countersign_core::values::{bounds::PAGE_STEPS, path::RepoPath};
use countersign_core::{documents::layout, rules::stored};
use maud::{Markup, html};

use crate::web::overview::{TimelineStep, list_steps};
use crate::web::reply::{PageTrouble, Reply, View};
use crate::web::{changes::change_list, frame::Page, links, parts, visit::BY_AGE};

pub(super) fn show(view: &View, project: &RepoPath) -> Result<Option<Reply>, PageTrouble> {
    let head = &*view.head;
    let len = stored::history_len(head, project);
    if len == 0 {
        return Ok(None);
    }
    let paging = view.paging(PAGE_STEPS, len)?;
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
            (parts::command(links::client("signers history", project.as_str(), view.visit.base_url.as_deref())))
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
