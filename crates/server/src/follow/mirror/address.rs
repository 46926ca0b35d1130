//! The address of the server that a mirror follows.

use std::{fmt, str::FromStr, time::Duration};

use countersign_core::values::{shown::shown_text, wire::routes::JOURNAL};
use countersign_forge::url::parse_bare_url;
use countersign_store::ObjectId;
use thiserror::Error;

/// The address of an origin. It stands on pages and in commands that people paste, so it contains nothing with a
/// special meaning for a shell or a browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginAddress {
    /// The address without a slash at its end.
    text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{}` is not the address of a signing server: write it as https://HOST or http://HOST:PORT", shown_text(.0))]
pub struct NotAnOrigin(String);

impl FromStr for OriginAddress {
    type Err = NotAnOrigin;

    fn from_str(text: &str) -> Result<Self, NotAnOrigin> {
        let refuse = || NotAnOrigin(text.to_owned());
        let url = parse_bare_url(text.trim()).ok_or_else(refuse)?;
        let text = url.as_str().trim_end_matches('/');
        let is_plain =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | ':' | '.' | '-' | '_' | '~' | '[' | ']');
        if !text.chars().all(is_plain) {
            return Err(refuse());
        }
        Ok(Self { text: text.to_owned() })
    }
}

impl OriginAddress {
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The address at which the origin serves the commits after this one, or all of them.
    pub(crate) fn journal_after(&self, commit: Option<ObjectId>, wait_seconds: u64) -> String {
        let after = commit.map(|commit| format!("after={commit}&")).unwrap_or_default();
        format!("{}{JOURNAL}?{after}wait={wait_seconds}", self.text)
    }
}

impl fmt::Display for OriginAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

// The settings of a mirror: which server it follows, and how far behind it is still ready.

#[derive(Debug, Clone)]
pub struct MirrorSettings {
    pub origin: OriginAddress,
    /// How long a mirror can be out of date before it is not ready.
    pub max_lag: Duration,
}
