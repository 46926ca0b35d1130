//! What a user can type to name a release: always the same forms (D60).

use std::fmt;

use countersign_core::values::path::{RepoPath, is_name};
use countersign_core::values::shown::shown_text;
use countersign_core::values::wire::routes::{BADGES, PAGES};
use countersign_core::{documents::layout, rules::place::path_of_url};

use crate::error::CliError;

pub(crate) const FORMS: &str = "name a release as PROJECT TAG (acme/app v1.0), by the URL of its page or of one of \
                                its files, or by its path (https/github.com/443/acme/app/releases/tag/v1.0)";

/// One release or project, as typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReleaseName {
    pub(crate) subject: NamedSubject,
    /// The tag or directory below the project, where it stands by itself.
    pub(crate) tag: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NamedSubject {
    Url(String),
    Path(RepoPath),
    /// The last segments of a project's identifier, such as `acme/app`.
    Short(String),
}

impl ReleaseName {
    /// Reads words one after the other: each begins a new name, except for a word behind a project, which is its tag.
    pub(crate) fn parse_all(words: &[String]) -> Result<Vec<Self>, CliError> {
        let mut names: Vec<Self> = Vec::new();
        for word in words {
            let begins = begins_name(word);
            if let Some(last) = names.last_mut()
                && last.tag.is_none()
                && last.may_have_tag()
                && !begins
            {
                last.tag = Some(word.clone());
                continue;
            }
            names.push(Self { subject: parse_subject(word)?, tag: None });
        }
        Ok(names)
    }

    /// Exactly one.
    pub(crate) fn parse_one(words: &[String]) -> Result<Self, CliError> {
        let mut names = Self::parse_all(words)?;
        match (names.pop(), names.is_empty()) {
            (Some(name), true) => Ok(name),
            _ => {
                Err(CliError::usage(format!("`{}` is not one release", shown_text(&words.join(" "))), FORMS))
            }
        }
    }

    fn may_have_tag(&self) -> bool {
        match &self.subject {
            NamedSubject::Short(_) => true,
            NamedSubject::Path(path) => layout::signable(path).is_none(),
            NamedSubject::Url(url) => !url.contains("/releases/") && !is_page(url),
        }
    }

    /// The path that the name has by itself, if it says the host: what settings are looked up by.
    pub(crate) fn written_path(&self) -> Option<RepoPath> {
        match &self.subject {
            NamedSubject::Path(path) => Some(path.clone()),
            NamedSubject::Url(url) => match split_page(url) {
                Some(page) => Some(page.path),
                None => path_of_url(url.split(['?', '#']).next().unwrap_or(url)),
            },
            NamedSubject::Short(_) => None,
        }
    }
}

/// As it was typed.
impl fmt::Display for ReleaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            NamedSubject::Url(text) | NamedSubject::Short(text) => f.write_str(text)?,
            NamedSubject::Path(path) => f.write_str(path.as_str())?,
        }
        self.tag.iter().try_for_each(|tag| write!(f, " {tag}"))
    }
}

/// A page of a signing server, which names the server as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerPage {
    pub(crate) server: String,
    pub(crate) path: RepoPath,
}

pub(crate) fn split_page(url: &str) -> Option<ServerPage> {
    let url = url.split(['?', '#']).next()?;
    let after_scheme = url.find("://")? + 3;
    [PAGES, BADGES].iter().find_map(|route| {
        let dir = format!("{route}/");
        let at = url[after_scheme..].find(&dir)? + after_scheme;
        let path = url[at + dir.len()..].trim_end_matches('/');
        if !is_path(path) {
            return None;
        }
        // In the address of a page, names are percent-encoded as in any URL.
        let (scheme, rest) = path.split_once('/')?;
        let decoded = path_of_url(&format!("{scheme}://{}", with_port(rest)?))?;
        Some(ServerPage { server: url[..at].to_owned(), path: decoded })
    })
}

/// `host/443/a` as `host:443/a`.
fn with_port(rest: &str) -> Option<String> {
    let (host, rest) = rest.split_once('/')?;
    Some(format!("{host}:{rest}"))
}

fn is_page(url: &str) -> bool {
    split_page(url).is_some()
}

fn is_path(word: &str) -> bool {
    ["http/", "https/"].iter().any(|scheme| word.starts_with(scheme)) && RepoPath::parse(word).is_ok()
}

/// Whether a word cannot be a tag.
fn begins_name(word: &str) -> bool {
    word.contains("://") || is_path(word)
}

fn parse_subject(word: &str) -> Result<NamedSubject, CliError> {
    if word.contains("://") {
        // Of a directory, as a browser shows it.
        return Ok(NamedSubject::Url(word.trim_end_matches('/').to_owned()));
    }
    if is_path(word) {
        return RepoPath::parse(word)
            .map(NamedSubject::Path)
            .map_err(|error| CliError::usage(error.to_string(), FORMS));
    }
    let is_short = word.contains('/') && word.split('/').all(is_name);
    if !is_short {
        return Err(CliError::usage(format!("`{}` names no project", shown_text(word)), FORMS));
    }
    Ok(NamedSubject::Short(word.to_owned()))
}
