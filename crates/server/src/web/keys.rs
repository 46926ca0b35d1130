//! The page of a key: where it is listed, what it signed, and what waits for it.

use countersign_api::catalogue::{KeyPendingResponse, KeyResponse, WaitingFile, WaitingKind};
use countersign_api::event::EventFilter;
use countersign_core::values::wire::{PUBLIC_KEY_PREFIX, routes::KEY_PAGES};
use countersign_core::values::{bounds::KEY_ENTRIES, key::PublicKey};
use countersign_core::{documents::signers::Signer, rules::quorum::Tally};
use countersign_explain::words::role_titles;
use countersign_explain::{describe::release::summarise_release, reproduction::count_different};
use countersign_store::Head;
use countersign_store::catalogue::{Catalogue, Look};
use maud::{Markup, html};

use crate::web::reply::{PageTrouble, Reply, View};
use crate::web::{frame::Page, links, parts, visit::Visit};
use crate::{api::routing::decode, http::error::ApiError};

pub(super) fn show(View { app, head, visit }: &View) -> Result<Reply, PageTrouble> {
    let given = links::below(KEY_PAGES, &visit.path).unwrap_or_default();
    let key = parse(given).ok_or_else(|| PageTrouble::missing("This is not a public key of a signer"))?;
    let address = links::key(key);
    if address != visit.path {
        return Ok(Reply::Elsewhere(address));
    }
    let look = look_into(&app.catalogue)?;
    let (known, pending) = (look.describe_key(&key), look.pending_for(&key));
    drop(look);
    let short = key.short();
    let body = html! {
        h1 { "Key " span.together { (short) } }
        p { (parts::whole_key(key)) }
        p.lede { (summary(&known)) }
        (waiting(&known, &pending))
        (listings(&known))
        (signatures(head, &known))
        (incident(&known, visit))
        p { a href={ (links::ALL_ACTIVITY) (links::query(&[("key", Some(&key.to_string()))])) } { "Everything that this key did" } }
    };
    let about = format!("Where the key {short} is listed, what it signed, and when last.");
    Ok(Reply::Page(Page { about, ..Page::new(format!("Key {short}"), body) }))
}

/// Looks into the catalogue for pages, which do not wait for it.
pub(super) fn look_into(catalogue: &Catalogue) -> Result<Look<'_>, ApiError> {
    if catalogue.is_ready() { Ok(catalogue.look()) } else { Err(ApiError::NO_CATALOGUE_YET.into()) }
}

fn parse(given: &str) -> Option<PublicKey> {
    let decoded = decode(given)?;
    read_key(&decoded).filter(|_| decoded.starts_with(PUBLIC_KEY_PREFIX))
}

/// Reads a key in the base64 of documents, or in that of addresses.
pub(super) fn read_key(text: &str) -> Option<PublicKey> {
    let (prefix, code) =
        text.strip_prefix(PUBLIC_KEY_PREFIX).map_or(("", text), |code| (PUBLIC_KEY_PREFIX, code));
    let code = code.replace('-', "+").replace('_', "/");
    let written =
        EventFilter::parse_key(text).or_else(|_| EventFilter::parse_key(&format!("{prefix}{code}")));
    written.ok()
}

fn summary(known: &KeyResponse) -> Markup {
    html! {
        @match (known.listed.is_empty(), known.signed.first()) {
            (true, None) => "No signers file in force lists this key, and no release here carries its signature.",
            (_, None) => "No release here carries its signature yet.",
            (_, Some(last)) => {
                (parts::count(known.signed_count, "release carries", "releases carry")) " its signature. The newest came "
                (parts::when(last.signed_at)) "."
            }
        }
        @if let Some(at) = known.last_signed_at {
            " It last signed something that counts " (parts::when(at)) "."
        }
        " Anyone can list any key under any name. What counts is what the key signed."
    }
}

/// Shows what waits for a key. Begun revocations come first.
fn waiting(known: &KeyResponse, pending: &KeyPendingResponse) -> Markup {
    let shown = &pending.pending[..pending.pending.len().min(KEY_ENTRIES)];
    let has_more = pending.more || shown.len() < pending.pending.len();
    html! {
        @if !shown.is_empty() {
            section aria-labelledby="waiting" {
                h2 #waiting { "Waits for this key" }
                (waiting_table(shown))
                @if has_more { p.meta { "There is more. " code { "countersign pending" } " lists it." } }
            }
        }
        @if !known.begun.is_empty() {
            section aria-labelledby="begun" {
                h2 #begun { "Revocations that it signed, and that wait for others" }
                (waiting_table(&known.begun))
            }
        }
    }
}

fn waiting_table(files: &[WaitingFile]) -> Markup {
    let rows = html! {
        @for file in files {
            tr role="row" {
                th.wrap scope="row" role="rowheader" {
                    @match file.kind {
                        WaitingKind::Signers => a href=(links::page(&file.file_path)) {
                            bdi { (links::shown_path(&file.project_id)) }
                        },
                        WaitingKind::Revocation | WaitingKind::Release | WaitingKind::Rebuild => {
                            (parts::release_link(&file.project_id, &file.file_path))
                        }
                    }
                }
                td role="cell" {
                    span.state.open { (file.kind.name()) @if file.kind == WaitingKind::Revocation { " begun" } }
                    @if let Some(different) = file.rebuilds.as_ref().and_then(|found| count_different(found.different)) {
                        " " span.state.bad { (different) }
                    }
                    @if !file.objections.is_empty() { " " (parts::objected(file.objections.len())) }
                }
                @let is_doubted = file.kind == WaitingKind::Revocation || file.rebuilds.as_ref().is_some_and(parts::is_unsettled);
                td.is-doubted[is_doubted] role="cell" {
                    (parts::progress(Tally { collected: file.collected, needed: file.needed }))
                    @if file.completes { " " span.state.open { "this key completes it" } }
                }
                td role="cell" { (parts::when(file.since)) }
            }
        }
    };
    parts::table("releases", &["What", "Kind", "Progress", "Since"], &rows)
}

fn listings(known: &KeyResponse) -> Markup {
    html! {
        @if !known.listed.is_empty() {
            section aria-labelledby="listed" {
                h2 #listed { "Listed in" }
                ul.cards {
                    @for listing in &known.listed {
                        li {
                            a.title.wrap href=(links::page(&listing.project_id)) { bdi { (links::shown_path(&listing.project_id)) } }
                            span {
                                @if listing.registrar { "registrar" } @else { (role_titles(&listing.roles)) }
                                @if listing.name.is_some() {
                                    " " (parts::who(&Signer { name: listing.name.clone(), ..Signer::nameless(known.public_key) }))
                                }
                            }
                        }
                    }
                }
                @if known.listed_more { p.meta { "More projects list it." } }
            }
        }
        @if !known.formerly.is_empty() {
            section aria-labelledby="formerly" {
                h2 #formerly { "No longer listed in" }
                ul.cards {
                    @for project in &known.formerly {
                        li { a.title.wrap href=(links::page(project)) { bdi { (links::shown_path(project)) } } }
                    }
                }
            }
        }
    }
}

fn signatures(head: &Head, known: &KeyResponse) -> Markup {
    let find_begun = |index| summarise_release(head, index).ok().flatten()?.begun;
    let rows = html! {
        @for release in &known.signed {
            tr role="row" {
                th.wrap scope="row" role="rowheader" { (parts::release_link(&release.project_id, &release.index_path)) }
                td role="cell" {
                    @match find_begun(&release.index_path) {
                        Some(begun) => {
                            (parts::state(release.state, true, release.rebuilds.as_ref())) " "
                            (begun.tally.collected) " of " (begun.tally.needed) " revokers"
                        }
                        None => (parts::state(release.state, false, release.rebuilds.as_ref())),
                    }
                    @if release.decisive { " " span.state.open { "needed" } }
                }
                td role="cell" { (parts::when(release.signed_at)) }
            }
        }
    };
    html! {
        @if !known.signed.is_empty() {
            section aria-labelledby="signed" {
                h2 #signed { "Signed" }
                (parts::table("releases", &["Release", "State", "When"], &rows))
                @if known.signed.iter().any(|release| release.decisive) {
                    p.meta { "Without this key, those marked as needed would not have been complete." }
                }
                @if known.signed.len() < known.signed_count {
                    p.meta { "These are the last " (known.signed.len()) "." }
                }
            }
        }
    }
}

/// What its owner needs when the key is stolen or lost.
fn incident(known: &KeyResponse, visit: &Visit) -> Markup {
    let is_known = !known.listed.is_empty() || !known.formerly.is_empty() || known.signed_count > 0;
    let key = known.public_key.to_string();
    html! {
        @if is_known {
            section aria-labelledby="incident" {
                h2 #incident { "Is this key stolen or lost?" }
                p {
                    "This command shows everything that the key signed, and what it could still complete, alone or with others "
                    "that you name. It prepares the next signers file, the revocations and the commands. It changes nothing."
                }
                (parts::command(links::client("incident --steal", &key, visit.base_url.as_deref())))
            }
        }
    }
}
