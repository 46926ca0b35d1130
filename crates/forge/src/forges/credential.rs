//! A token as the header of requests to one origin.

use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use url::Url;

use super::{ForgeKind, Token};
use crate::fetch::is_same_origin;

/// Its `Debug` shows no secret: the header's value is marked as sensitive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Credential {
    api: Url,
    name: HeaderName,
    value: HeaderValue,
}

impl Credential {
    pub(super) fn new(kind: ForgeKind, token: &Token, api: &Url) -> Self {
        let (name, text) = match kind {
            ForgeKind::Github => (AUTHORIZATION, format!("Bearer {}", token.reveal())),
            ForgeKind::Gitlab => (HeaderName::from_static("private-token"), token.reveal().to_owned()),
            ForgeKind::Forgejo => (AUTHORIZATION, format!("token {}", token.reveal())),
        };
        let mut value = HeaderValue::try_from(text).expect("printable ASCII: checked in Token::new");
        value.set_sensitive(true);
        Self { api: api.clone(), name, value }
    }

    /// The header for a request to this URL: none, unless it goes to the API's own origin.
    pub(crate) fn header_for(&self, url: &Url) -> Option<(HeaderName, HeaderValue)> {
        self.is_for(url).then(|| (self.name.clone(), self.value.clone()))
    }

    pub(crate) fn is_for(&self, url: &Url) -> bool {
        is_same_origin(&self.api, url)
    }
}
