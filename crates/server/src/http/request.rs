//! What a request says beside its body: the parameters behind the question mark, ids of commits, the `Host` header, the
//! encodings that it accepts, and the id that the server gives it.

use std::{borrow::Cow, fmt::Display, sync::LazyLock, sync::atomic::AtomicU64, sync::atomic::Ordering};

use axum::http::header::{ACCEPT_ENCODING, HOST};
use axum::http::{HeaderMap, Version};
use countersign_core::values::{path::RepoPath, shown::shown_text};
use countersign_store::ObjectId;
use url::form_urlencoded;
use uuid::Uuid;

use crate::http::error::ApiError;

/// The query of a request, with each known parameter at most once.
pub(crate) struct Query<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Query<'a> {
    pub(crate) fn parse(text: &'a str, known: &[&str]) -> Result<Self, ApiError> {
        let mut fields: Vec<(Cow<'a, str>, Cow<'a, str>)> = Vec::new();
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            if !known.contains(&name.as_ref()) {
                let (name, known) = (shown_text(&name), known.join("`, `"));
                return Err(ApiError::invalid_parameter(format!("`{name}` is not one of `{known}`")));
            }
            if fields.iter().any(|(given, _)| *given == name) {
                return Err(ApiError::invalid_parameter(format!("{name}: given more than once")));
            }
            fields.push((name, value));
        }
        Ok(Self(fields))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_ref())
    }

    /// The tag of a release. A plus sign in a query means a space, unless it is written as %2B. No tag has a space.
    pub(crate) fn tag(&self) -> Result<Option<String>, ApiError> {
        let tag = self.get("tag").map(|tag| tag.replace(' ', "+"));
        tag.map(|tag| RepoPath::parse(&tag).map(|_| tag)).transpose().map_err(bad("tag"))
    }

    /// Whether the question is about the newest release.
    pub(crate) fn is_for_newest(&self) -> Result<bool, ApiError> {
        match self.get("newest") {
            None => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(ApiError::invalid_parameter("newest: must be true")),
        }
    }
}

/// A parameter whose value is refused.
pub(crate) fn bad<E: Display>(name: &str) -> impl Fn(E) -> ApiError {
    move |error| ApiError::invalid_parameter(format!("{name}: {error}"))
}

/// Reads the id of a commit, in either letter case. `name` is the parameter or header that has it.
pub(crate) fn parse_commit_id(name: &str, text: &str) -> Result<ObjectId, ApiError> {
    let is_hex = text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let parsed = ObjectId::from_hex(text.to_ascii_lowercase().as_bytes()).ok();
    parsed.filter(|_| is_hex).ok_or_else(|| {
        ApiError::invalid_parameter(format!("{name}: must be the id of a commit, of 40 hexadecimal digits"))
    })
}

// The `Host` header (RFC 9112, section 3.2). A request of HTTP/1.1 has exactly one, and its value is a host.

/// Checks the `Host` header. If there were two, a proxy could take the one that the server does not.
pub fn check_host(version: Version, headers: &HeaderMap) -> Result<(), ApiError> {
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return Err(ApiError::malformed("the Host header is given more than once"));
    }
    match host {
        Some(host) if is_host_and_port(host.as_bytes()) => Ok(()),
        Some(_) => Err(ApiError::malformed("the Host header is not the name of a host")),
        None if version == Version::HTTP_11 => {
            Err(ApiError::malformed("a request of HTTP/1.1 needs a Host header"))
        }
        None => Ok(()),
    }
}

/// `host [":" port]` of RFC 3986, where a host can be empty.
fn is_host_and_port(text: &[u8]) -> bool {
    let rest = if text.first() == Some(&b'[') { after_literal(text) } else { after_name(text) };
    match rest {
        Some([]) => true,
        Some([b':', port @ ..]) => port.iter().all(u8::is_ascii_digit),
        Some(_) | None => false,
    }
}

fn after_literal(text: &[u8]) -> Option<&[u8]> {
    let end = text.iter().position(|byte| *byte == b']')?;
    let inside = text.get(1..end)?;
    let is_inside = |byte: &u8| byte.is_ascii_alphanumeric() || b":.-_~".contains(byte);
    (!inside.is_empty() && inside.iter().all(is_inside)).then(|| &text[end + 1..])
}

fn after_name(mut text: &[u8]) -> Option<&[u8]> {
    let is_in_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(byte);
    loop {
        let end = text.iter().position(|byte| !is_in_name(byte)).unwrap_or(text.len());
        text = &text[end..];
        match text {
            [b'%', a, b, rest @ ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => text = rest,
            [b'%', ..] => return None,
            _ => return Some(text),
        }
    }
}

/// Whether the client wants gzip at least as much as an answer that is not compressed (RFC 9110, section 12.5.3).
/// Without the header it may understand nothing else than that. What is malformed accepts nothing.
pub fn accepts_gzip(headers: &HeaderMap) -> bool {
    let (mut gzip, mut identity, mut other) = (None, None, None);
    let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    for part in values.flat_map(|value| value.split(',')) {
        let (coding, weight) = part
            .split_once(';')
            .map_or((part, Some(1_000)), |(coding, weight)| (coding, parse_weight(weight)));
        let coding = coding.trim().to_ascii_lowercase();
        let known = match coding.as_str() {
            // An old name, which means the same.
            "gzip" | "x-gzip" => &mut gzip,
            "identity" => &mut identity,
            "*" => &mut other,
            _ => continue,
        };
        *known = Some(weight.unwrap_or(0));
    }
    let gzip = gzip.or(other).unwrap_or(0);
    gzip > 0 && gzip >= identity.unwrap_or(0)
}

/// Reads `q=0.5` as thousandths.
fn parse_weight(text: &str) -> Option<u16> {
    let text = text.trim();
    let value = text.strip_prefix("q=").or_else(|| text.strip_prefix("Q="))?;
    let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
    let is_number = fraction.len() <= 3 && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let thousandths: u16 = format!("{fraction:0<3}").parse().ok().filter(|_| is_number)?;
    match whole {
        "0" => Some(thousandths),
        "1" if thousandths == 0 => Some(1_000),
        _ => None,
    }
}

/// Makes the id of a request, which its answer and its log lines carry. It is different for every request of every run.
/// A `Uuid` for each would ask the system for random bytes with every request.
pub fn new_request_id() -> String {
    static RUN: LazyLock<u64> = LazyLock::new(|| Uuid::new_v4().as_u64_pair().0);
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("{:016x}-{:08x}", *RUN, NEXT.fetch_add(1, Ordering::Relaxed))
}
