//! Addresses of pages and of things elsewhere, and commands to paste. Text from strangers is encoded, quoted or left
//! out.

use countersign_core::documents::layout;
use countersign_core::values::wire::routes::{BADGES, FILES, KEY_PAGES, PAGES};
use countersign_core::values::{key::PublicKey, path::RepoPath, shown::marked_name, shown::shown_text};
use countersign_explain::words::shown_url;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::{Url, form_urlencoded};

/// The characters to encode in a path: all except slashes and those without a special meaning.
const IN_PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

pub(super) const HOME: &str = "/";
pub(super) const PROJECTS: &str = "/projects";
/// The activity of the whole server, as a page and, below, as a feed.
pub(super) const ALL_ACTIVITY: &str = "/activity";
pub(super) const ALL_ACTIVITY_FEED: &str = "/activity.atom";
pub(super) const VERIFY: &str = "/verify";
pub(super) const HELP: &str = "/help";
/// How to get the client.
pub(super) const CLIENT: &str = "/client";
pub(super) const LOG: &str = "/log";
/// The reference of the API, for people.
pub(super) const DOCS: &str = "/docs";

/// The name of the page with the activity below a path. A stranger's name never begins like this (D6).
pub(super) const ACTIVITY: &str = "svc.activity";
/// The activity at a path as a feed.
pub(super) const FEED: &str = "svc.activity.atom";

/// A query with those of these fields that have a value; nothing if none has.
pub(super) fn query(fields: &[(&str, Option<&str>)]) -> String {
    query_before(fields, "").trim_end_matches(['?', '&']).to_owned()
}

/// A query with those of these fields that have a value, and with `more` behind them.
pub(super) fn query_before(fields: &[(&str, Option<&str>)], more: &str) -> String {
    let given = fields.iter().filter_map(|(name, value)| Some((name, (*value)?)));
    let mut query = form_urlencoded::Serializer::new(String::new());
    let query = query.extend_pairs(given).finish();
    format!("?{query}{}{more}", if query.is_empty() { "" } else { "&" })
}

/// What follows a route in a path, which does not begin with a slash.
pub(super) fn below<'a>(route: &str, path: &'a str) -> Option<&'a str> {
    path.strip_prefix(route)?.strip_prefix('/')
}

pub fn page(path: &RepoPath) -> String {
    format!("{PAGES}/{}", encode(path.as_str()))
}

pub(super) fn activity(path: &RepoPath) -> String {
    format!("{}/{ACTIVITY}", page(path))
}

pub(super) fn feed(path: &RepoPath) -> String {
    format!("{}/{FEED}", page(path))
}

/// The link to a key, with the letters of base64 that mean nothing in an address, so that no proxy takes two slashes
/// for one.
pub(super) fn key(key: PublicKey) -> String {
    format!("{KEY_PAGES}/{}", key.to_string().replace('+', "-").replace('/', "_"))
}

pub(super) fn history(project: &RepoPath) -> String {
    page(&layout::history(project))
}

pub(super) fn file(path: &RepoPath) -> String {
    format!("{FILES}/{}", encode(path.as_str()))
}

pub(super) fn badge(path: &RepoPath) -> String {
    format!("{BADGES}/{}.svg", encode(path.as_str()))
}

pub(super) fn verify(index: &RepoPath) -> String {
    format!("{VERIFY}?path={}", encode(index.as_str()))
}

pub(super) fn encode(text: &str) -> String {
    utf8_percent_encode(text, IN_PATH).to_string()
}

/// An outside address that is safe to follow, in normal form: a web address without a password.
pub fn outside(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let is_plain = matches!(url.scheme(), "http" | "https") && url.username().is_empty();
    (is_plain && url.password().is_none()).then(|| url.to_string())
}

/// The project's own URL, outside this server.
pub fn home_of(project: &RepoPath) -> Option<String> {
    let (server, rest) = project.split_server()?;
    outside(&format!("{server}/{}", encode(rest)))
}

/// A path as people write it, without a default port.
pub fn shown_path(path: &RepoPath) -> String {
    let url = shown_url(path);
    url.strip_prefix("https://").unwrap_or(&url).to_owned()
}

/// The name of a release within its project: its tag, or its directory.
pub(super) fn release_name(project: &RepoPath, index: &RepoPath) -> String {
    marked_name(&layout::release_name(index, project))
}

// Commands to paste. Text from strangers is one quoted word, and never contains invisible characters.

/// The word where the visitor has to fill in the address of the server.
const UNKNOWN_SERVER: &str = "SERVER";

/// The command `countersign VERB SUBJECT --server BASE_URL`; `None` if the shell would run something other than the
/// page shows.
pub fn client(verb: &str, subject: &str, base_url: Option<&str>) -> Option<String> {
    let is_plain = !subject.starts_with('-') && shown_text(subject) == subject;
    let server = base_url.unwrap_or(UNKNOWN_SERVER);
    is_plain.then(|| format!("countersign {verb} {} --server {server}", quote(subject)))
}

/// Quotes one word for a POSIX shell.
pub fn quote(text: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | ':' | '+' | '@');
    if !text.is_empty() && text.chars().all(is_safe) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
