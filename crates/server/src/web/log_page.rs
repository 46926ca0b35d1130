//! The page about the log of this server: who it is, how far it has come, and who watches it (D267).

use countersign_core::values::wire::routes::{LOG_CHECKPOINT, LOG_KEY};
use countersign_core::values::{shown::shown_text, verifier_key::VerifierKey};
use maud::{Markup, html};

use crate::nodes::log_summary::{LogSummary, MinuteSummary, WitnessSummary};
use crate::web::reply::{PageTrouble, Reply, View};
use crate::web::{frame::Page, links, parts, visit::Visit};

/// The picture has a bar of this width and this height for each minute, with a gap behind it.
const BAR: usize = 8;
const STEP: usize = 10;
const HEIGHT: usize = 40;

pub(super) fn show(View { app, visit, .. }: &View) -> Result<Reply, PageTrouble> {
    let summary = app.log.get().map(|log| LogSummary::of(log, &app.cosigning, app.role.mirror(), app.now()));
    let witness = app.witness.as_ref().map(|witness| witness.keys()).unwrap_or_default();
    let body = html! {
        h1 { "The log" }
        p.lede {
            "A log has every change of the server, in one order. Witnesses, servers of others, confirm again and again that "
            "nothing in it was taken away or replaced. So the server cannot show different people different histories."
        }
        @match &summary {
            Some(summary) => (about(summary, &witness, visit)),
            None => (without_log(visit)),
        }
    };
    let page = Page { changes_with_time: true, ..Page::new("The log", body) };
    Ok(Reply::Page(page))
}

fn about(summary: &LogSummary, witness: &[VerifierKey], visit: &Visit) -> Markup {
    html! {
        @if let Some(trouble) = &summary.trouble {
            section.card.hero.is-bad role="alert" aria-labelledby="trouble" {
                h2 #trouble { "The log does not go on" }
                p.reason.wrap { bdi { (shown_text(trouble)) } }
            }
        }
        @if let Some(origin) = &summary.mirror_of {
            section.card aria-labelledby="copy" {
                h2 #copy { "A copy" }
                p {
                    "This server is a mirror. It copies the log of " a href=(origin) { (origin) } ", and shows only "
                    "checkpoints whose root it has computed itself from the commits. It signs none. "
                    a href={ (origin) (links::LOG) } { "The page of the origin" } " has the witnesses."
                }
                @for key in witness { p { "It is also a witness of that log, with the key " (copied_key(&key.to_string())) } }
            }
        }
        dl.facts {
            dt { "Origin" }
            dd { bdi { (shown_text(&summary.origin)) } }
            dt { "Key" }
            dd { (copied_key(&summary.key)) }
            dt { "Size" }
            dd { (parts::count(usize::try_from(summary.size).unwrap_or(usize::MAX), "commit", "commits")) }
            dt { "Newest checkpoint" }
            dd { a href=(LOG_CHECKPOINT) { (summary.newest_text()) } }
            dt { "Proofs are made for" }
            dd { (summary.proven_text()) }
        }
        section aria-labelledby="hour" {
            h2 #hour { "The last hour" }
            (picture(summary))
            p.meta {
                (summary.hour_text()) ". A bar is a minute, and a high one has new commits. "
                @if summary.quorum.is_some() {
                    "A filled one has enough cosignatures. Without changes, witnesses confirm the newest checkpoint again."
                }
            }
        }
        @if summary.mirror_of.is_none() { (witnesses(summary)) (become_witness(summary, visit)) }
    }
}

fn copied_key(key: &str) -> Markup {
    html! { code.wrap data-copies="the key" { bdi { (shown_text(key)) } } }
}

/// The name and the id of a verifier key. The key itself can have 2,000 characters.
fn short_key(key: &str) -> String {
    let mut parts = key.splitn(3, '+');
    let (name, id) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    shown_text(&format!("{name}+{id}"))
}

fn witnesses(summary: &LogSummary) -> Markup {
    let row = |witness: &WitnessSummary| {
        html! {
            tr role="row" {
                th scope="row" role="rowheader" {
                    bdi { (shown_text(&witness.name)) }
                    details.meta { summary { bdi { (short_key(&witness.key)) } } (copied_key(&witness.key)) }
                }
                td role="cell" {
                    @match witness.cosigned_at {
                        Some(at) => (parts::when(at)),
                        None => "not since this start",
                    }
                    @if let Some(size) = witness.cosigned_size { ", " (parts::count(usize::try_from(size).unwrap_or(usize::MAX), "commit", "commits")) }
                    @if witness.is_stopped { " " span.state.bad { "has stopped" } }
                }
                td role="cell" {
                    @if witness.replays { "replays the rules" } @else { "checks consistency" }
                }
            }
        }
    };
    html! {
        section aria-labelledby="witnesses" {
            h2 #witnesses { "Witnesses" }
            @if summary.witnesses.is_empty() {
                p { "None yet. Proofs rest on this server's word alone." }
            } @else {
                (parts::table("witnesses", &["Witness", "Cosigned last", "Checks"], &html! { @for witness in &summary.witnesses { (row(witness)) } }))
                p.meta {
                    @if let Some(quorum) = &summary.quorum { "Needed for a proof: " (quorum) ". " }
                    "What a witness checks is the operator's word. Projects choose the witnesses that count for them."
                }
            }
        }
    }
}

fn become_witness(summary: &LogSummary, visit: &Visit) -> Markup {
    let server = visit.changing_server().unwrap_or("SERVER");
    let watch = format!(
        "countersign witness {server} --key witness.key --data-dir witness --poll --log-key {}",
        summary.key
    );
    html! {
        section aria-labelledby="become" {
            h2 #become { "Become a witness" }
            p {
                "Run a witness on a machine that has nothing to do with this server. It repeats every change by the rules, and "
                "cosigns only what it has checked. Make a key, under a name that you keep:"
            }
            (parts::copyable(Some("countersign admin witness init --key witness.key --name witness.example.org".to_owned())))
            p { "Start the witness. This one asks for checkpoints itself, so nothing has to reach it:" }
            (parts::copyable(Some(watch)))
            p {
                "Then send the line that the first command printed to the operator of this server, and to the projects whose signers "
                "file names your witness. Any other witness of "
                a href="https://c2sp.org/tlog-witness" rel="nofollow noopener noreferrer" { "tlog-witness" }
                " can follow this log too, by its " a href=(LOG_KEY) { "key" } "."
            }
        }
    }
}

fn without_log(visit: &Visit) -> Markup {
    html! {
        section.card aria-labelledby="none" {
            h2 #none { "This server keeps no log" }
            @match visit.mirrored.as_deref() {
                Some(mirrored) => p {
                    "It is a mirror of " a href=(mirrored.origin) { (mirrored.origin) } ", and has not seen a log there. When the "
                    "origin has one, the mirror copies it."
                },
                None => {
                    p { "So nothing proves that it shows everyone the same, and the newest state. Its operator makes a log with:" }
                    (parts::copyable(Some("countersign admin log init --origin sign.example.org/log".to_owned())))
                    p { "The command prints a table for the configuration file. The log begins when the server is started again." }
                }
            }
        }
    }
}

/// Bars for 60 minutes, the newest on the right. Its words stand below it, and are its label.
fn picture(summary: &LogSummary) -> Markup {
    let minutes = &summary.last_hour.minutes;
    let width = minutes.len() * STEP;
    let height = |minute: &Option<MinuteSummary>| match minute {
        Some(MinuteSummary { has_new_commits: true, .. }) => HEIGHT,
        Some(_) => HEIGHT / 2,
        None => 2,
    };
    html! {
        svg.hour viewBox={ "0 0 " (width) " " (HEIGHT) } role="img" aria-label=(summary.hour_text()) {
            @for (i, minute) in minutes.iter().enumerate() {
                @let high = height(minute);
                rect.is-cosigned[minute.is_some_and(|of| of.is_cosigned)].is-empty[minute.is_none()]
                    x=(i * STEP + 1) y=(HEIGHT - high) width=(BAR) height=(high) {}
            }
        }
    }
}
