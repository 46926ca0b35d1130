//! The page of a signers file that waits for signatures.

use countersign_core::documents::{layout, signers::Signer};
use countersign_core::values::{path::RepoPath, shown::shown_text, time::Timestamp};
use countersign_explain::describe::proposal::{
    ProposalDescription, VetoedProposal, describe_proposal, list_vetoed,
};
use countersign_explain::progress::{ConditionProgress, WayProgress, asked_text, condition_text, way_name};
use maud::{Markup, html};

use crate::web::reply::{PageTrouble, Reply, View};
use crate::web::{changes::change_list, frame::Page, links, parts, parts::log_facts};

pub(super) fn show(View { app, head, visit }: &View, project: &RepoPath) -> Result<Reply, PageTrouble> {
    let missing = || {
        let message = format!(
            "No signers file waits for signatures at {project}: it may be in force already, or was replaced"
        );
        PageTrouble::missing_near(message, head.index.is_project(project).then(|| project.clone()))
    };
    let Some(proposal) = describe_proposal(&**head, project)? else {
        let vetoed = list_vetoed(&**head, project)?.into_iter().next();
        return vetoed.map(|vetoed| show_vetoed(project, &vetoed)).ok_or_else(missing);
    };
    let name = links::shown_path(project);
    let title = if proposal.is_first { "First signers" } else { "Change of the signers" };
    let body = html! {
        (parts::crumbs(Some(project)))
        h1.wrap { (title) " of " bdi { (name) } }
        p.lede {
            @match proposal.waits_until {
                Some(until) => { span.state.bad { "waiting" } " " (takes_force(&proposal, until, app.now())) },
                None => { span.state.open { "collecting" } " takes effect when all of the conditions below are met" },
            }
        }
        (begun_veto(&proposal))
        section aria-labelledby="changes" {
            h2 #changes { @if proposal.is_first { "What it says" } @else { "What it changes" } }
            (change_list(&proposal.changes))
        }
        section aria-labelledby="signatures" {
            h2 #signatures { "Signatures" }
            ul.conditions {
                @for condition in &proposal.conditions {
                    li {
                        p { (condition_mark(condition)) " " (condition_text(condition.kind)) }
                        (way_list(condition))
                    }
                }
            }
        }
        section aria-labelledby="sign" {
            h2 #sign { "Sign" }
            p { "The client shows what would be signed, and asks:" }
            (parts::command(links::client("sign", proposal.path.as_str(), visit.changing_server())))
        }
        @if proposal.has_masters {
            section aria-labelledby="veto" {
                h2 #veto { "Veto" }
                p { "The masters in force can stop it until it takes effect. They give a reason with " code { "--reason" } ":" }
                (parts::command(links::client("veto", proposal.project.as_str(), visit.changing_server())))
            }
        }
        (about(&proposal))
    };
    let changes_with_time = proposal.waits_until.is_some();
    Ok(Reply::Page(Page { changes_with_time, ..Page::new(format!("{title} of {name}"), body) }))
}

/// What is left of a proposal that the masters vetoed.
fn show_vetoed(project: &RepoPath, vetoed: &VetoedProposal) -> Reply {
    let name = links::shown_path(project);
    let title = format!("Vetoed: change of the signers of {name}");
    let body = html! {
        (parts::crumbs(Some(project)))
        h1.wrap { "Change of the signers of " bdi { (name) } " " span.state.bad { "vetoed" } }
        p.lede { "It was proposed, and the masters stopped it. Nothing is pending now." }
        section.card.hero.is-open aria-labelledby="vetoed" {
            h2 #vetoed { "Why" }
            (why_vetoed(vetoed))
            p.meta { a href=(links::page(project)) { "The project" } }
        }
    };
    Reply::Page(Page { about: format!("{title}."), ..Page::new(title, body) })
}

/// The reason of a veto, and who signed it.
pub(super) fn why_vetoed(vetoed: &VetoedProposal) -> Markup {
    let masters: Vec<Signer> = vetoed.signed.iter().map(|member| member.signer.clone()).collect();
    html! {
        p.reason { q.wrap { bdi { (shown_text(&vetoed.reason)) } } }
        p.meta {
            "Vetoed by " (parts::who_list(&masters))
            @if let Some(at) = vetoed.vetoed_at { ", " (parts::when(at)) } ". "
            a href=(links::file(&vetoed.path)) { "The signed veto" }
        }
    }
}

/// A short form: how far each condition has come, and whom to ask next.
pub(super) fn condition_summary(proposal: &ProposalDescription) -> Markup {
    html! {
        ul.conditions.brief {
            @for condition in &proposal.conditions {
                li {
                    (condition_mark(condition)) " " (condition_text(condition.kind))
                    ": " (parts::progress(condition.tally))
                }
            }
        }
        p.open-part { "More from " (asked_text(&proposal.conditions)) ":" }
        (parts::people(&proposal.missing))
    }
}

fn condition_mark(condition: &ConditionProgress) -> Markup {
    html! { @if condition.is_met { span.state.good { "met" } } @else { span.state.open { "open" } } }
}

/// Lists the ways to meet a condition, one of which is enough. Once one is taken, the others do not matter.
fn way_list(condition: &ConditionProgress) -> Markup {
    let shown = |way: &&WayProgress| !condition.is_met || way.is_met;
    html! {
        @for (i, way) in condition.ways.iter().filter(shown).enumerate() {
            div.way {
                @if i > 0 { p.or { "or instead" } }
                @if let Some(role) = way.role.filter(|_| condition.ways.len() > 1) {
                    p.way-name { (way_name(role)) }
                }
                @for group in &way.groups { (parts::group(group)) }
            }
        }
    }
}

/// Says when the signers take effect: all signatures are there.
pub(super) fn takes_force(proposal: &ProposalDescription, until: Timestamp, now: Timestamp) -> Markup {
    if until <= now {
        return html! {
            "has all signatures and was due " (parts::when(until)) ". The server's operator holds it back with a block. "
            "It takes effect when the block ends, unless the operator removes it first with "
            code { "countersign admin drop" }
        };
    }
    html! {
        "has all signatures, and takes effect " (parts::when(until))
        @if proposal.has_masters { ", unless the masters veto it" } @else { ". There are no masters who could veto it" }
    }
}

/// What a master began, in the words of that master.
pub(super) fn begun_veto(proposal: &ProposalDescription) -> Markup {
    html! {
        @if let Some(veto) = &proposal.veto {
            p.alarm.wrap {
                "A veto was begun, and " (parts::progress(veto.tally)) ": "
                bdi { (shown_text(&veto.reason)) }
            }
        }
    }
}

fn about(proposal: &ProposalDescription) -> Markup {
    let ProposalDescription { path, origin, submitter, digest, log, .. } = proposal;
    html! {
        section aria-labelledby="about" {
            h2 #about { "About this file" }
            dl {
                @if let Some(submitter) = submitter {
                    dt { "Proposed by" }
                    dd { (parts::who(submitter)) }
                }
                dt { "Fetched" }
                dd { (parts::when(origin.retrieved_at)) " from " (parts::outside(&origin.url)) }
                dt { "Digest" }
                dd { (parts::digest(&digest.to_prefixed(), "the digest")) }
                @if let Some(log) = log { (log_facts(log)) }
                dt { "Files" }
                dd {
                    a href=(links::file(path)) { "signers file" } ", "
                    a href=(links::file(&layout::metadata_of(path))) { "metadata" } ", "
                    a href=(links::file(&layout::registration_of(path))) { "request of the submitter" } ", "
                    a href=(links::file(&layout::pending_signatures_of(path))) { "signatures" }
                }
            }
        }
    }
}
