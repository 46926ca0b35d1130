//! What a URL was found to mean: the project or release, and the requests that read it.

use std::{fmt, str::FromStr};

use countersign_core::{documents::signers::SourceKind, values::path::RepoPath};
use percent_encoding::percent_decode_str;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use thiserror::Error;
use url::Url;

use crate::url::{Host, shown_text};

/// The place at which a signers file is to be read, and the project that it speaks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignersSource {
    pub kind: SourceKind,
    pub project: RepoPath,
    /// The URL as given.
    pub url: String,
    /// The requests for the file; several if the URL does not tell the branch from the path: then exactly one of them
    /// must exist. For each, the ways to ask for it, of which the next is taken where one finds nothing.
    pub retrievals: Vec<Vec<Retrieval>>,
    /// Whether the branch must have a `/` in its name for the file to be in an allowed place.
    pub needs_slashed_branch: bool,
}

/// A GET request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingRequest {
    pub url: Url,
    /// The media type to ask for.
    pub accept: Option<&'static str>,
    /// The credential, sent only to the origin that it is for, wherever redirects lead.
    pub credential: Option<Credential>,
}

/// One request for a signers file, in a form that can only name a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retrieval {
    pub request: OutgoingRequest,
    /// The branch's own page in the API, which must exist first: a raw URL alone would let the forge decide where the
    /// branch's name ends.
    pub branch: Option<Url>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedSigners {
    pub bytes: Vec<u8>,
    /// The URL as requested, not where a redirect led.
    pub retrieval_url: String,
}

/// The place at which a release is to be read, and the directory that its index belongs into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseSource {
    pub kind: ForgeKind,
    pub project: RepoPath,
    pub tag: String,
    /// The page of the release as given, without a query.
    pub url: String,
    /// The directory of the index, `<project>/releases/tag/<tag>`.
    pub dir: RepoPath,
    /// The URL of the project in the API.
    pub api_project: Url,
    /// Spellings of one request, to be tried in this order.
    pub api_urls: Vec<Url>,
    pub credential: Option<Credential>,
}

impl OutgoingRequest {
    pub(crate) fn plain(url: Url) -> Self {
        Self { url, accept: None, credential: None }
    }
}

// A forge's access token, and the header that it is in requests for one project (D49). No text of ours ever shows it.

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
    own_urls: Vec<Url>,
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
    pub(crate) fn new(kind: ForgeKind, token: &Token, api: &Url, own_urls: Vec<Url>) -> Self {
        let (name, text) = match kind {
            ForgeKind::Github => (AUTHORIZATION, format!("Bearer {}", token.0)),
            ForgeKind::Gitlab => (HeaderName::from_static("private-token"), token.0.to_owned()),
            ForgeKind::Forgejo => (AUTHORIZATION, format!("token {}", token.0)),
        };
        let mut value = HeaderValue::try_from(text).expect("printable ASCII: checked in Token::new");
        value.set_sensitive(true);
        Self { api: api.clone(), own_urls, header: (name, value) }
    }

    /// Whether a URL is one of the project's own on the API's origin. With no other request the token goes along.
    pub fn is_for(&self, url: &Url) -> bool {
        let is_below = |own: &Url| own.origin() == url.origin() && lies_below(own.path(), url.path());
        self.api.origin() == url.origin() && self.own_urls.iter().any(is_below)
    }

    /// Makes the credential good for this place of the project as well.
    pub(crate) fn with_own_url(mut self, own: Url) -> Self {
        self.own_urls.push(own);
        self
    }
}

/// Whether a path is a directory or lies below it, however the server may decode it. Forges find projects in any letter
/// case.
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

// The kinds of forges whose URLs and APIs we know.

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

/// The path of a release's page or download.
pub(crate) struct ReleasePath<'a> {
    pub(crate) project: PathNames<'a>,
    /// Segments of the URL, at least one, in which an encoded slash separates as well.
    pub(crate) tag: PathNames<'a>,
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
    pub(crate) fn of(kind: SourceKind) -> Option<Self> {
        match kind {
            SourceKind::FileServer => None,
            SourceKind::Github => Some(Self::Github),
            SourceKind::Gitlab => Some(Self::Gitlab),
            SourceKind::Forgejo => Some(Self::Forgejo),
        }
    }

    pub(crate) fn source_kind(self) -> SourceKind {
        match self {
            Self::Github => SourceKind::Github,
            Self::Gitlab => SourceKind::Gitlab,
            Self::Forgejo => SourceKind::Forgejo,
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

    /// Reads the path of a release's page; `None` where the path has another form.
    pub(crate) fn split_release_page<'a>(self, segments: PathNames<'a>) -> Option<ReleasePath<'a>> {
        let SplitPath { project, page } = self.split_project(segments)?;
        match (self, page) {
            (Self::Github | Self::Forgejo, ["releases", "tag", tag @ ..])
            | (Self::Gitlab, ["releases", tag @ ..])
                if !tag.is_empty() =>
            {
                Some(ReleasePath { project, tag })
            }
            (Self::Github | Self::Gitlab | Self::Forgejo, _) => None,
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
            .find(|kind| kind.source_kind().name() == text)
            .ok_or_else(|| ForgeKindError(shown_text(text)))
    }
}
