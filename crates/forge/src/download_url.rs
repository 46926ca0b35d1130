//! Which indexes could list the file at a download URL, by the URL alone.
//!
//! The form of the path decides, not the host: a forge that hosts itself has the same forms as the known ones.

use countersign_core::documents::{index::AssetName, layout};
use countersign_core::values::{path::PathError, path::RepoPath, path::Scheme, wire};

use crate::file_server::{MAX_LEVELS_ABOVE, is_known_forge};
use crate::source::{ForgeKind, PathNames, ReleasePath, SplitPath};
use crate::url::{SourceUrl, UrlProblem, UrlRefusal};

const GITHUB_FORM: &str = "…/OWNER/REPOSITORY/releases/download/TAG/NAME";
const GITLAB_FORM: &str = "…/GROUP/PROJECT/-/releases/TAG/downloads/NAME";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DownloadPlace {
    pub url: SourceUrl,
    /// The candidates in the order in which they are asked for; never empty.
    pub candidates: Vec<Candidate>,
}

/// An index that could list the file, and the name under which it would.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub kind: CandidateKind,
    pub index: RepoPath,
    pub file_name: AssetName,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CandidateKind {
    /// The index of the release that the URL belongs to by its form. If it exists, it is the one.
    Release,
    /// The index of the file's own directory or one above. It is the one only if it lists the file.
    Directory,
}

impl ReleasePath<'_> {
    /// The directory in which the index of the release lies.
    fn dir(&self, url: &SourceUrl) -> Result<RepoPath, PathError> {
        let names = [self.project.join("/"), wire::RELEASES_DIR.to_owned(), self.tag.join("/")];
        url.path_on_server(&names)
    }
}

pub fn locate_download(url: &str) -> Result<DownloadPlace, UrlRefusal> {
    let url = SourceUrl::parse_release(url)?;
    let candidates = find_candidates(&url).map_err(|problem| url.refuse(problem))?;
    Ok(DownloadPlace { url, candidates })
}

/// The directory of the release whose page on a forge this is, by the form of the URL alone.
pub fn locate_release_page(url: &str) -> Option<RepoPath> {
    let url = SourceUrl::parse_release(url).ok()?;
    let segments = url.segments();
    let is_gitlab = ForgeKind::Gitlab.split_project(&segments).is_some();
    let kind = if is_gitlab { ForgeKind::Gitlab } else { ForgeKind::Github };
    let page = kind.split_release_page(&segments)?;
    let is_page = !page.tag.contains(&"downloads") && !page.tag.contains(&"permalink");
    if is_page { page.dir(&url).ok() } else { None }
}

fn find_candidates(url: &SourceUrl) -> Result<Vec<Candidate>, UrlProblem> {
    let segments = url.segments();
    let release = read_release(&segments)?;
    let name = url.plain_file_name()?;
    if is_known_forge(url.host()) {
        if (url.scheme(), url.port()) != (Scheme::Https, Scheme::Https.default_port()) {
            return Err(UrlProblem::ForgeHttpsOnly { host: url.host().clone() });
        }
        if release.is_none() {
            check_page(&segments)?;
        }
    }
    check_slashes(&segments, release.as_ref())?;
    let file_name = AssetName::parse(name)?;

    let mut places = Vec::new();
    if let Some(release) = release {
        places.push((CandidateKind::Release, release.dir(url)?, file_name.clone()));
    }
    let own_dir = url.path_on_server(url.dir_segments())?;
    let dirs = self_and_above(&own_dir, &file_name);
    places.extend(dirs.map(|(dir, name)| (CandidateKind::Directory, dir, name)));
    let mut unstorable = None;
    let mut candidates = Vec::new();
    for (kind, dir, file_name) in places {
        // Where no index can have been stored, it is not asked for.
        match dir.check_storable_dir() {
            Ok(()) => candidates.push(Candidate { kind, index: layout::index_in(&dir), file_name }),
            Err(error) => unstorable = unstorable.or(Some(error)),
        }
    }
    match unstorable {
        Some(error) if candidates.is_empty() => Err(error.into()),
        Some(_) | None => Ok(candidates),
    }
}

/// The directories of the server from the file's own upwards, with the file's name as seen from each.
fn self_and_above(own_dir: &RepoPath, name: &AssetName) -> impl Iterator<Item = (RepoPath, AssetName)> {
    // Scheme, host and port are no directories.
    let levels = own_dir.segments().count().saturating_sub(3).min(MAX_LEVELS_ABOVE);
    own_dir.self_and_ancestors().take(1 + levels).map_while(move |dir| {
        let below = format!("{}/{name}", &own_dir.as_str()[dir.as_str().len()..]);
        Some((dir, AssetName::parse(&below[1..]).ok()?))
    })
}

/// Reads the form of a forge's download; `None` where the path has another one.
fn read_release(segments: PathNames<'_>) -> Result<Option<ReleasePath<'_>>, UrlProblem> {
    if let Some(SplitPath { project, page: ["releases", rest @ ..] }) =
        ForgeKind::Gitlab.split_project(segments)
    {
        if rest.starts_with(&["permalink", "latest"]) {
            return Err(UrlProblem::LatestRelease { form: GITLAB_FORM });
        }
        // A tag has at least one segment. GitLab itself writes it as exactly one, so the first match is the right one.
        let end = rest.iter().skip(1).position(|segment| *segment == "downloads").map(|at| at + 1);
        if let Some(end) = end.filter(|end| end + 1 < rest.len()) {
            return Ok(Some(ReleasePath { project, tag: &rest[..end] }));
        }
    }
    if let Some(SplitPath { project, page: ["releases", "download", tag @ .., _] }) =
        ForgeKind::Github.split_project(segments)
        && !tag.is_empty()
    {
        return Ok(Some(ReleasePath { project, tag }));
    }
    // At any depth: a directory that holds another release tomorrow has no index that could go on being right (D36).
    if segments.windows(2).any(|pair| pair == ["releases", "latest"]) {
        return Err(UrlProblem::LatestRelease { form: GITHUB_FORM });
    }
    Ok(None)
}

/// Refuses the page of a release on a host that is certainly a forge: it is no file. Elsewhere such a path may be one.
fn check_page(segments: &[&str]) -> Result<(), UrlProblem> {
    match segments {
        [_, _, "releases", "tag", ..] => Err(UrlProblem::ReleasePage { form: GITHUB_FORM }),
        _ if segments.windows(2).any(|pair| pair == ["-", "releases"]) => {
            Err(UrlProblem::ReleasePage { form: GITLAB_FORM })
        }
        _ => Ok(()),
    }
}

/// An encoded slash is a slash in a tag, and means nothing elsewhere.
fn check_slashes(segments: &[&str], release: Option<&ReleasePath<'_>>) -> Result<(), UrlProblem> {
    let slashed = |segments: &[&str]| segments.iter().filter(|segment| segment.contains('/')).count();
    let in_tag = release.map_or(0, |release| slashed(release.tag));
    if slashed(segments) == in_tag { Ok(()) } else { Err(UrlProblem::ForbiddenInSegment) }
}
