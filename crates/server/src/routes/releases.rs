//! Finds releases by the digest of a file or by their project, and projects by name.

use axum::{Extension, extract::State, http::Uri, response::Response};
use countersign_api::catalogue::ReleaseState;
use countersign_core::values::{digest::HexDigest, path::RepoPath};
use countersign_store::catalogue::{FileDigest, ProjectName, WantedReleases};

use super::files::write_and_send;
use crate::{
    catalogue::ask,
    error::ApiError,
    origin::RequestOrigin,
    query::{Query, bad},
    state::App,
};

pub(crate) async fn list(
    State(app): State<App>,
    origin: Option<Extension<RequestOrigin>>,
    uri: Uri,
) -> Result<Response, ApiError> {
    let ReleasesQuery { wanted, after } = ReleasesQuery::parse(uri.query().unwrap_or_default())?;
    let found = ask(&app, origin.as_ref(), move |look| match wanted {
        Wanted::Digest(digest) => look.releases_with(&digest, after.as_ref()),
        Wanted::Project(wanted) => look.releases_of(&wanted, after.as_ref()),
        Wanted::Newest(project) => Ok(look.newest_release_of(&project)),
    });
    let found = found.await?.map_err(bad("after"))?;
    write_and_send(&app, &found, origin.as_deref()).await
}

pub(crate) async fn find_projects(
    State(app): State<App>,
    origin: Option<Extension<RequestOrigin>>,
    uri: Uri,
) -> Result<Response, ApiError> {
    let query = Query::parse(uri.query().unwrap_or_default(), &["name"])?;
    let name = query.get("name").ok_or_else(|| ApiError::invalid_parameter("name: must be given"))?;
    let name = ProjectName::parse(name).map_err(bad("name"))?;
    let found = ask(&app, origin.as_ref(), move |look| look.projects_named(&name)).await?;
    write_and_send(&app, &found, origin.as_deref()).await
}

struct ReleasesQuery {
    wanted: Wanted,
    after: Option<RepoPath>,
}

enum Wanted {
    Digest(FileDigest),
    Project(WantedReleases),
    /// Of this project.
    Newest(RepoPath),
}

impl ReleasesQuery {
    fn parse(text: &str) -> Result<Self, ApiError> {
        let query = Query::parse(text, &["sha256", "sha512", "project", "tag", "state", "newest", "after"])?;
        let after = query.get("after").map(RepoPath::parse).transpose().map_err(bad("after"))?;
        let asked = ["sha256", "sha512", "project"].map(|name| query.get(name));
        let wanted = match asked {
            [Some(hex), None, None] => Wanted::Digest(FileDigest::Sha256(parse_digest("sha256", hex)?)),
            [None, Some(hex), None] => Wanted::Digest(FileDigest::Sha512(parse_digest("sha512", hex)?)),
            [None, None, Some(project)] => parse_project(&query, project)?,
            _ => {
                let message = "give exactly one of `sha256`, `sha512` and `project`";
                return Err(ApiError::invalid_parameter(message));
            }
        };
        if matches!(wanted, Wanted::Digest(_))
            && let Some(name) = ["tag", "state", "newest"].into_iter().find(|name| query.get(name).is_some())
        {
            return Err(ApiError::invalid_parameter(format!("{name}: goes only with `project`")));
        }
        Ok(Self { wanted, after })
    }
}

fn parse_project(query: &Query, project: &str) -> Result<Wanted, ApiError> {
    let project = RepoPath::parse(project).map_err(bad("project"))?;
    if let Some(newest) = query.get("newest") {
        if newest != "true" {
            return Err(ApiError::invalid_parameter("newest: must be true"));
        }
        if let Some(name) = ["tag", "state", "after"].into_iter().find(|name| query.get(name).is_some()) {
            return Err(ApiError::invalid_parameter(format!("{name}: does not go with `newest`")));
        }
        return Ok(Wanted::Newest(project));
    }
    // A plus sign in a query means a space, unless it is written as %2B. No tag has a space.
    let tag = query.get("tag").map(|tag| tag.replace(' ', "+"));
    if let Some(tag) = &tag {
        RepoPath::parse(tag).map_err(bad("tag"))?;
    }
    let state = query.get("state").map(ReleaseState::parse).transpose().map_err(bad("state"))?;
    Ok(Wanted::Project(WantedReleases { project, tag, state }))
}

/// In either letter case, as programs print them.
fn parse_digest<const N: usize>(name: &str, hex: &str) -> Result<HexDigest<N>, ApiError> {
    let digest = HexDigest::parse_any_case(hex);
    digest.ok_or_else(|| ApiError::invalid_parameter(format!("{name}: must be {} hexadecimal digits", 2 * N)))
}
