//! A token as the header of requests for one project (D49).

use percent_encoding::percent_decode_str;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use url::Url;

use super::{kind::ForgeKind, token::Token};

/// Its `Debug` shows no secret: the header's value is marked as sensitive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    api: Url,
    /// The project's own places: in the API, and its pages. The publisher of a release chooses what its assets link to,
    /// and digests and sizes of whatever the token opens would become public.
    places: Vec<Url>,
    name: HeaderName,
    value: HeaderValue,
}

impl Credential {
    /// `places` lie on any origin; the token is only sent to the API's own.
    pub(super) fn new(kind: ForgeKind, token: &Token, api: &Url, places: Vec<Url>) -> Self {
        let (name, text) = match kind {
            ForgeKind::Github => (AUTHORIZATION, format!("Bearer {}", token.reveal())),
            ForgeKind::Gitlab => (HeaderName::from_static("private-token"), token.reveal().to_owned()),
            ForgeKind::Forgejo => (AUTHORIZATION, format!("token {}", token.reveal())),
        };
        let mut value = HeaderValue::try_from(text).expect("printable ASCII: checked in Token::new");
        value.set_sensitive(true);
        Self { api: api.clone(), places, name, value }
    }

    /// For a request that it is for.
    pub(crate) fn header(&self) -> (HeaderName, HeaderValue) {
        (self.name.clone(), self.value.clone())
    }

    /// Whether a URL is one of the project's own on the API's origin. With no other request the token goes along.
    pub fn is_for(&self, url: &Url) -> bool {
        let is_place = |place: &Url| place.origin() == url.origin() && lies_below(place.path(), url.path());
        self.api.origin() == url.origin() && self.places.iter().any(is_place)
    }

    /// Good for this place of the project as well.
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
