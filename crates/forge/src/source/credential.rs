//! A forge's access token, and the header that it is in requests for one project (D49). No text of ours ever shows it.

use std::fmt;

use percent_encoding::percent_decode_str;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use thiserror::Error;
use url::Url;

use super::kind::ForgeKind;

#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TokenError {
    #[error("the token is empty")]
    Empty,
    #[error("the token has a space, a line break or another character that is not printable ASCII")]
    Characters,
}

/// A token for some places. Its `Debug` shows no secret: the header's value is marked as sensitive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    api: Url,
    /// The project's own places: in the API, and its pages. The publisher of a release chooses what its assets link to,
    /// and digests and sizes of whatever the token opens would become public.
    places: Vec<Url>,
    pub(crate) header: (HeaderName, HeaderValue),
}

impl Token {
    pub fn new(text: String) -> Result<Self, TokenError> {
        if text.is_empty() {
            return Err(TokenError::Empty);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::Characters);
        }
        Ok(Self(text))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Credential {
    /// A credential for `places`, which lie on any origin; the token is only sent to the API's own.
    pub(crate) fn new(kind: ForgeKind, token: &Token, api: &Url, places: Vec<Url>) -> Self {
        let (name, text) = match kind {
            ForgeKind::Github => (AUTHORIZATION, format!("Bearer {}", token.0)),
            ForgeKind::Gitlab => (HeaderName::from_static("private-token"), token.0.to_owned()),
            ForgeKind::Forgejo => (AUTHORIZATION, format!("token {}", token.0)),
        };
        let mut value = HeaderValue::try_from(text).expect("printable ASCII: checked in Token::new");
        value.set_sensitive(true);
        Self { api: api.clone(), places, header: (name, value) }
    }

    /// Whether a URL is one of the project's own on the API's origin. With no other request the token goes along.
    pub fn is_for(&self, url: &Url) -> bool {
        let is_place = |place: &Url| place.origin() == url.origin() && lies_below(place.path(), url.path());
        self.api.origin() == url.origin() && self.places.iter().any(is_place)
    }

    /// Makes the credential good for this place of the project as well.
    pub(crate) fn with_place(mut self, place: Url) -> Self {
        self.places.push(place);
        self
    }
}

/// Whether a path is a directory or lies below it, however the server may decode it. Forges find projects in any letter case.
fn lies_below(dir: &str, path: &str) -> bool {
    let mut segments = path.split('/');
    let is_inside = dir.trim_end_matches('/').split('/').all(|name| {
        segments.next().is_some_and(|segment| decode(segment).eq_ignore_ascii_case(&decode(name)))
    });
    is_inside && !segments.any(climbs)
}

/// Whether a segment is, or hides, a step to another directory: a server may decode it more than once.
fn climbs(segment: &str) -> bool {
    let mut decoded = segment.to_owned();
    for _ in 0..3 {
        if decoded.split(['/', '\\']).any(|part| matches!(part, "." | "..")) {
            return true;
        }
        decoded = decode(&decoded);
    }
    false
}

fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}
