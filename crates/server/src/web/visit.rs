//! What a page can know about its request, such as which part of a long list it shows.

use std::{ops::Range, sync::Arc};

use axum::extract::FromRequestParts;
use axum::http::header::{ACCEPT, HOST, HeaderName, IF_NONE_MATCH};
use axum::http::{HeaderMap, request::Parts};
use countersign_core::values::{bounds::SEARCH_CHARS, path::Authority, path::is_this_machine};
use maud::{Markup, html};
use url::form_urlencoded;

use crate::follow::mirror::{MirrorState, exchange::OriginAddress};
use crate::{api::state::App, limits::connections::RequestSender};

const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

#[derive(Debug, Clone)]
pub struct Visit {
    /// The path as received, with its percent-encoding.
    pub(super) path: String,
    pub(super) wants_html: bool,
    /// The address at which the visitor reaches the server, such as `https://sign.example.org`; `None` if that is
    /// unknown.
    pub base_url: Option<String>,
    /// What is mirrored here; `None` on a server that accepts changes.
    pub(super) mirrored: Option<Arc<Mirrored>>,
    /// The number of the page, counted from 1; `None` if the parameter is not a page number.
    pub page: Option<usize>,
    pub search: String,
    query: String,
    known_tags: Vec<String>,
    pub(super) sender: RequestSender,
}

/// What pages of a mirror say about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mirrored {
    pub(super) origin: OriginAddress,
    /// The reason why it no longer follows its origin.
    pub(super) refusal: Option<String>,
}

impl Mirrored {
    fn of(mirror: &MirrorState) -> Self {
        let refusal = mirror.refusal().map(|refusal| format!("{} ({})", refusal.reason, refusal.at));
        Self { origin: mirror.origin.clone(), refusal }
    }
}

impl Visit {
    /// The server that accepts changes: the origin of a mirror, or else the one that the visitor reached.
    pub(super) fn changing_server(&self) -> Option<&str> {
        let mirrored = self.mirrored.as_ref().map(|mirrored| mirrored.origin.as_str());
        mirrored.or(self.base_url.as_deref())
    }

    /// A field of the query that is not empty.
    pub(super) fn field(&self, name: &str) -> Option<String> {
        find_field(&self.query, name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    /// Whether the visitor has this version already.
    pub fn knows(&self, tag: &str) -> bool {
        self.known_tags.iter().any(|known| known == tag)
    }

    pub fn of(parts: &Parts, is_tls: bool, mirror: Option<&MirrorState>) -> Self {
        let query = parts.uri.query().unwrap_or_default();
        let field = |name: &str| find_field(query, name);
        let tags = parts.headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        let tags = tags.flat_map(|value| value.split(','));
        Self {
            path: parts.uri.path().to_owned(),
            wants_html: wants_html(&parts.headers),
            base_url: read_base_url(parts, is_tls),
            mirrored: mirror.map(Mirrored::of).map(Arc::new),
            page: field("page").map_or(Some(1), |page| page.parse().ok().filter(|page| *page > 0)),
            search: field("q").unwrap_or_default().trim().chars().take(SEARCH_CHARS).collect(),
            query: query.to_owned(),
            sender: RequestSender::of(parts),
            known_tags: tags.map(|tag| tag.trim().trim_start_matches("W/").to_owned()).collect(),
        }
    }
}

impl FromRequestParts<App> for Visit {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Self::Rejection> {
        Ok(Self::of(parts, app.is_tls, app.role.mirror()))
    }
}

/// Browsers ask for HTML; programs get JSON (D30).
pub(super) fn wants_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.into_iter().any(|value| value.contains("text/html"))
}

/// Reads the origin. It goes into commands that people paste, so it must contain nothing with a special meaning for a
/// shell or a browser.
fn read_base_url(Parts { uri, headers, .. }: &Parts, is_tls: bool) -> Option<String> {
    // A target in absolute form names the host and overrides the header (RFC 9112, section 3.2.2).
    let in_target = uri.authority().map(|authority| authority.as_str());
    let host = in_target.or_else(|| headers.get(HOST)?.to_str().ok()).filter(|host| is_host(host))?;
    let forwarded = headers.get(FORWARDED_PROTO).and_then(|value| value.to_str().ok());
    let is_here = is_this_machine(Authority::split(host).host);
    let scheme = match forwarded {
        Some("http") => "http",
        Some("https") => "https",
        // If no proxy says otherwise, a server that is not on the visitor's machine should have TLS in front of it.
        Some(_) | None if is_here && !is_tls => "http",
        Some(_) | None => "https",
    };
    Some(format!("{scheme}://{host}"))
}

fn is_host(host: &str) -> bool {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '[' | ']' | '-');
    !host.is_empty() && host.len() <= 255 && host.chars().all(is_safe) && !host.starts_with('-')
}

fn find_field(query: &str, name: &str) -> Option<String> {
    let mut fields = form_urlencoded::parse(query.as_bytes());
    fields.find_map(|(field, value)| (field == name).then(|| value.into_owned()))
}

// Long lists, a page at a time.

/// One page of a list, and how many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paging {
    pub(super) page: usize,
    per_page: usize,
    total: usize,
}

/// The names of the neighbouring pages.
pub const BY_NUMBER: [&str; 2] = ["Previous", "Next"];
/// The names of the neighbouring pages of a list with the newest first.
pub(super) const BY_AGE: [&str; 2] = ["Newer", "Older"];

impl Paging {
    /// The page with this number; `None` if there is no such page. The first page always exists.
    pub fn of(page: Option<usize>, per_page: usize, total: usize) -> Option<Self> {
        let paging = Self { page: page?, per_page, total };
        (paging.page <= paging.pages()).then_some(paging)
    }

    /// The positions of the page in the list.
    pub fn range(&self) -> Range<usize> {
        let from = (self.page - 1) * self.per_page;
        from..self.total.min(from + self.per_page)
    }

    /// The range of the page in a list in reverse order.
    pub fn range_from_end(&self) -> Range<usize> {
        let Range { start, end } = self.range();
        self.total - end..self.total - start
    }

    fn pages(&self) -> usize {
        self.total.div_ceil(self.per_page).max(1)
    }

    /// Links to the other pages, if there are any. `target` is the address up to the number.
    pub fn links(&self, what: &str, target: &str, [back, on]: [&str; 2]) -> Markup {
        let Self { page, .. } = *self;
        let pages = self.pages();
        let link = |to: usize, name: &str, rel: &str| {
            html! { a href={ (target) (to) } rel=(rel) { (name) } }
        };
        let near: Vec<usize> =
            (1..=pages).filter(|other| *other == 1 || *other == pages || other.abs_diff(page) <= 1).collect();
        html! {
            @if pages > 1 {
                nav.pager aria-label={ "Pages of " (what) } {
                    @if page > 1 { (link(page - 1, back, "prev")) }
                    @for (i, other) in near.iter().enumerate() {
                        @if i > 0 && near[i - 1] + 1 < *other { span aria-hidden="true" { "…" } }
                        @if *other == page {
                            span aria-current="page" { (page) }
                        } @else {
                            a href={ (target) (other) } aria-label={ "Page " (other) } { (other) }
                        }
                    }
                    @if page < pages { (link(page + 1, on, "next")) }
                }
            }
        }
    }
}
