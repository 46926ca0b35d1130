//! The kinds of forges whose URLs and APIs we know.

use std::str::FromStr;

use countersign_core::documents::metadata::OriginKind;
use thiserror::Error;

use crate::{host::Host, shown::shown_text};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForgeKind {
    Github,
    Gitlab,
    Forgejo,
}

/// Segments of a path.
pub(crate) type PathNames<'a> = &'a [&'a str];

/// The path of a repository's page, cut in two.
pub(crate) struct SplitPath<'a> {
    pub(crate) project: PathNames<'a>,
    /// The names that follow those of the repository.
    pub(crate) page: PathNames<'a>,
}

/// The public forges, which are read over https on their usual port.
pub(crate) const KNOWN: [(&str, ForgeKind); 4] = [
    ("github.com", ForgeKind::Github),
    ("gitlab.com", ForgeKind::Gitlab),
    ("codeberg.org", ForgeKind::Forgejo),
    ("gitea.com", ForgeKind::Forgejo),
];

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a kind of forge: write `github`, `gitlab` or `forgejo`")]
pub struct ForgeKindError(String);

impl ForgeKind {
    /// The kind of forge; `None` for a file server.
    pub(crate) fn of(origin: OriginKind) -> Option<Self> {
        match origin {
            OriginKind::FileServer => None,
            OriginKind::Github => Some(Self::Github),
            OriginKind::Gitlab => Some(Self::Gitlab),
            OriginKind::Forgejo => Some(Self::Forgejo),
        }
    }

    pub(crate) fn origin(self) -> OriginKind {
        match self {
            Self::Github => OriginKind::Github,
            Self::Gitlab => OriginKind::Gitlab,
            Self::Forgejo => OriginKind::Forgejo,
        }
    }

    pub(crate) fn split_project<'a>(self, segments: PathNames<'a>) -> Option<SplitPath<'a>> {
        match self {
            Self::Github | Self::Forgejo => {
                let (project, page) = segments.split_at_checked(2)?;
                Some(SplitPath { project, page })
            }
            // A project has at least one group.
            Self::Gitlab => {
                let dash = segments.iter().position(|segment| *segment == "-").filter(|dash| *dash >= 2)?;
                Some(SplitPath { project: &segments[..dash], page: &segments[dash + 1..] })
            }
        }
    }

    /// The usual place of the API on a host.
    pub(crate) fn api_path(self) -> &'static str {
        match self {
            Self::Github => "api/v3",
            Self::Gitlab => "api/v4",
            Self::Forgejo => "api/v1",
        }
    }
}

pub(crate) fn is_known(host: &Host) -> bool {
    KNOWN.iter().any(|(known, _)| *known == host.as_str())
}

impl FromStr for ForgeKind {
    type Err = ForgeKindError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Github, Self::Gitlab, Self::Forgejo]
            .into_iter()
            .find(|kind| kind.origin().name() == text)
            .ok_or_else(|| ForgeKindError(shown_text(text)))
    }
}
