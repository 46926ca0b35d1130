//! Atom feeds (RFC 4287) of what happened.

use countersign_core::{
    documents::signers::Signer,
    values::{digest::Sha512, time::Timestamp},
};
use countersign_explain::signers::shown_signer;
use countersign_store::ObjectId;
use maud::{Markup, PreEscaped, html};

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
pub(super) fn write(title: &str, page: &str, own: &str, entries: &[Entry], origin: Option<&str>) -> Markup {
    let origin = origin.unwrap_or_default();
    // A feed must say when it changed, also if nothing happened yet.
    let never = || "1970-01-01T00:00:00Z".to_owned();
    let updated = entries.first().map_or_else(never, |newest| newest.time.to_string());
    html! {
        (PreEscaped("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n"))
        feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en" {
            id { (identify(&format!("{origin}{own}"))) }
            title { (title) " · Countersign" }
            updated { (updated) }
            author { name { "Countersign" } }
            link rel="self" type="application/atom+xml" href={ (origin) (own) } {}
            link rel="alternate" type="text/html" href={ (origin) (page) } {}
            @for entry in entries {
                entry {
                    id { (identify(&format!("{} {}", entry.commit, entry.number))) }
                    title { (entry.title) }
                    updated { (entry.time) }
                    link rel="alternate" type="text/html" href={ (origin) (entry.page) } {}
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
