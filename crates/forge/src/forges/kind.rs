//! The kinds of forges whose URLs and APIs we know.

use std::str::FromStr;

use countersign_core::documents::metadata::OriginKind;
use thiserror::Error;

use crate::shown::shown_text;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForgeKind {
    Github,
    Gitlab,
    Forgejo,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a kind of forge: write `github`, `gitlab` or `forgejo`")]
pub struct ForgeKindError(String);

impl ForgeKind {
    /// `None` for a file server.
    pub(super) fn of(origin: OriginKind) -> Option<Self> {
        match origin {
            OriginKind::FileServer => None,
            OriginKind::Github => Some(Self::Github),
            OriginKind::Gitlab => Some(Self::Gitlab),
            OriginKind::Forgejo => Some(Self::Forgejo),
        }
    }

    pub(super) fn origin(self) -> OriginKind {
        match self {
            Self::Github => OriginKind::Github,
            Self::Gitlab => OriginKind::Gitlab,
            Self::Forgejo => OriginKind::Forgejo,
        }
    }

    /// The usual place of the API on a host.
    pub(super) fn api_path(self) -> &'static str {
        match self {
            Self::Github => "api/v3",
            Self::Gitlab => "api/v4",
            Self::Forgejo => "api/v1",
        }
    }
}

impl FromStr for ForgeKind {
    type Err = ForgeKindError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Github, Self::Gitlab, Self::Forgejo]
            .into_iter()
            .find(|kind| kind.origin().as_str() == text)
            .ok_or_else(|| ForgeKindError(shown_text(text)))
    }
}
