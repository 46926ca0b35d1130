//! Whether an index is about the place where it lies: a server must not show the index of one release for another.

use percent_encoding::percent_decode_str;
use thiserror::Error;

use crate::documents::{index::PublishedFile, index::ReleaseIndex, layout, layout::Signable};
use crate::values::path::{Authority, RepoPath, UrlParts, is_host, is_name};
use crate::values::shown::shown_text;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlaceError {
    #[error("{} is not the path of an index", shown_text(.0.as_str()))]
    NotAnIndex(RepoPath),
    #[error("it names the project {}, which does not contain it", shown_text(.0.as_str()))]
    OtherProject(RepoPath),
    #[error("it is the index of another release, {0}")]
    OtherRelease(String),
    #[error("its file {name} comes from another place, {url}")]
    OtherSource { name: String, url: String },
}

/// The path that a URL has in a repository: `https://host/a/b` is `https/host/443/a/b`.
pub fn path_of_url(url: &str) -> Option<RepoPath> {
    RepoPath::parse(&join(&segments_of_url(url)?)?).ok()
}

/// The segments of that path, for an http(s) URL that is the place of a file or directory and nothing more. Each is
/// percent-decoded by itself: a `%2F` separates nothing here.
fn segments_of_url(url: &str) -> Option<Vec<String>> {
    let UrlParts { scheme, authority, path, after_path } = UrlParts::split(url)?;
    let authority = Authority::split(authority);
    let port = authority.port().ok()?.unwrap_or(scheme.default_port());
    let is_odd = |c: char| c == '\\' || c.is_whitespace() || c.is_control();
    if !is_host(authority.host) || path.contains(is_odd) || !after_path.is_empty() {
        return None;
    }
    let server = [scheme.as_str().to_owned(), authority.host.to_ascii_lowercase(), port.to_string()];
    let path = path.strip_prefix('/').unwrap_or(path);
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.is_empty() {
        return Some(server.into());
    }
    let decode = |segment: &str| {
        let decoded = percent_decode_str(segment).decode_utf8().ok()?.into_owned();
        is_name(&decoded).then_some(decoded)
    };
    server.into_iter().map(Some).chain(path.split('/').map(decode)).collect()
}

/// Joins segments to the text of a path; `None` if a segment holds a slash of its own.
fn join(segments: &[String]) -> Option<String> {
    let is_apart = !segments.iter().any(|segment| segment.contains('/'));
    is_apart.then(|| segments.join("/"))
}

/// The segments below a project, of a URL that lies in it.
fn below<'a>(segments: &'a [String], project: &RepoPath) -> Option<&'a [String]> {
    let names: Vec<&str> = project.segments().collect();
    let (own, below) = segments.split_at_checked(names.len())?;
    (own == names).then_some(below)
}

/// Checks that an index speaks of the project, the release and the sources that its own path names (D34).
pub fn check_place(index: &ReleaseIndex, path: &RepoPath) -> Result<(), PlaceError> {
    let dir = path.parent().filter(|_| layout::signable(path) == Some(Signable::Index));
    let dir = dir.ok_or_else(|| PlaceError::NotAnIndex(path.clone()))?;
    let project = &index.project_id;
    if dir != *project && !dir.is_inside(project) {
        return Err(PlaceError::OtherProject(project.clone()));
    }
    match &index.release_url {
        Some(url) => {
            let tag = release_tag_at(url, project, &dir);
            let tag = tag.ok_or_else(|| PlaceError::OtherRelease(shown_text(url)))?;
            index.published_files.iter().try_for_each(|file| check_asset(file, project, &tag))
        }
        None => index.published_files.iter().try_for_each(|file| {
            let path = segments_of_url(&file.source).and_then(|segments| join(&segments));
            if path == Some(format!("{dir}/{}", file.file_name)) { Ok(()) } else { Err(misplaced(file)) }
        }),
    }
}

/// The tag that the page of a release names, if that release of this project lies in `dir`.
pub fn release_tag_at(url: &str, project: &RepoPath, dir: &RepoPath) -> Option<String> {
    release_tag(url, project).filter(|tag| layout::tag_of_release(dir, project) == Some(tag))
}

/// The tag that the page of a release names, if it is a page of this project. In a tag, a `%2F` separates (D6).
pub fn release_tag(url: &str, project: &RepoPath) -> Option<String> {
    let segments = segments_of_url(url)?;
    let tag = match below(&segments, project)? {
        [releases, tag, rest @ ..] if releases == "releases" && tag == "tag" => rest,
        [dash, releases, rest @ ..] if dash == "-" && releases == "releases" => rest,
        _ => return None,
    };
    let tag = tag.join("/");
    tag.split('/').all(is_name).then_some(tag)
}

/// An asset may be a link to anywhere; but if it is in the project's own releases, it is in this one.
fn check_asset(file: &PublishedFile, project: &RepoPath, tag: &str) -> Result<(), PlaceError> {
    if !may_be_in_releases(&file.source, project) {
        return Ok(());
    }
    let segments = segments_of_url(&file.source).unwrap_or_default();
    let name = file.file_name.as_str();
    let is_right = match below(&segments, project) {
        Some([releases, download, rest @ ..]) if releases == "releases" && download == "download" => {
            rest.join("/") == format!("{tag}/{name}")
        }
        Some([dash, releases, rest @ ..]) if dash == "-" && releases == "releases" => {
            let rest = rest.join("/");
            let below = rest.strip_prefix(tag).and_then(|rest| rest.strip_prefix("/downloads/"));
            below.is_some_and(|file| file.rsplit('/').next() == Some(name))
        }
        Some(_) | None => false,
    };
    if is_right { Ok(()) } else { Err(misplaced(file)) }
}

/// Whether someone could read the URL, in whatever loose way, as one below the project's releases. Such a URL has to
/// be one in the strict way.
fn may_be_in_releases(url: &str, project: &RepoPath) -> bool {
    let url: String = url.chars().filter(|c| !c.is_control()).collect();
    let url = url.trim().replace('\\', "/");
    let Some((_, rest)) = url.split_once(':') else { return false };
    let rest = rest.trim_start_matches('/');
    let rest = &rest[..rest.find(['?', '#']).unwrap_or(rest.len())];
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let host = match host.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => host,
        _ => host,
    };
    let decoded = percent_decode_str(path).decode_utf8_lossy();
    let mut segments: Vec<&str> = Vec::new();
    for segment in decoded.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    let same_host = project.host().is_some_and(|own| own.eq_ignore_ascii_case(host.trim_end_matches('.')));
    let names: Vec<&str> = project.names().collect();
    let begins_with = |prefix: &[&str]| {
        let mut pairs = segments.iter().zip(prefix);
        segments.len() >= prefix.len() && pairs.all(|(a, b)| a.eq_ignore_ascii_case(b))
    };
    let releases = |tail: &[&'static str]| begins_with(&[&names[..], tail].concat());
    same_host && (releases(&["releases"]) || releases(&["-", "releases"]))
}

fn misplaced(file: &PublishedFile) -> PlaceError {
    PlaceError::OtherSource { name: shown_text(file.file_name.as_str()), url: shown_text(&file.source) }
}
