//! What is stored, by digest, project, name and key. Public: anyone can count the same from the stored files.

use axum::response::Response;
use countersign_api::catalogue::{
    KeyPendingResponse, KeyResponse, KeySignedResponse, ProjectsResponse, ReleaseState, ReleasesResponse,
};
use countersign_api::event::EventFilter;
use countersign_core::values::{
    bounds::LIST_ENTRIES, digest::HexDigest, key::PublicKey, path::RepoPath, time::Timestamp,
    wire::routes as paths,
};
use countersign_store::catalogue::{FileDigest, Look, ProjectName, ProjectSearch, WantedReleases};
use percent_encoding::percent_decode_str;
use serde::Serialize;
use serde_json::json;

use crate::api::openapi::{EXAMPLE_PROJECT, Endpoint, Parameter, Section, after_index, matching, one_of};
use crate::api::{openapi, routing::Question, routing::RouteTable};
use crate::http::{error::ApiError, request::Query, request::bad};

pub(crate) fn routes() -> RouteTable {
    let digest = |name, about, digits: usize| {
        Parameter::query(
            name,
            about,
            matching(&format!("^[0-9a-fA-F]{{{digits}}}$")),
            "0b".repeat(digits / 2),
        )
    };
    let key = || {
        let about = "A public key in any accepted form, URL-encoded: a slash in it is `%2F`.";
        Parameter::path("key", about, openapi::public_key(), openapi::example_key())
    };
    let no_key = "key: not base64 of 32 bytes";
    RouteTable::default()
        .get(paths::RELEASES, list_releases, catalogued("releases", Section::Reading, "Find releases", "give exactly one of `sha256`, `sha512` and `project`")
            .about(format!(
                "Which complete or revoked releases list a file with this digest, the oldest first; or the releases of a \
                 project, the last registered first. Give exactly one of `sha256`, `sha512` and `project`. Two projects \
                 can list the same file, so look at `project_id`. An answer has at most {LIST_ENTRIES} releases.\n\n\
                 The server read these facts from the stored files. To rely on a release, check it: its files, signatures \
                 and signers are all public.",
            ))
            .takes(digest("sha256", "The SHA-256 digest of a file, in hexadecimal.", 64))
            .takes(digest("sha512", "The SHA-512 digest of a file, in hexadecimal.", 128))
            .takes(Parameter::query("project", "The identifier of a project, in any letter case.", openapi::path(), EXAMPLE_PROJECT))
            .takes(Parameter::query("tag", "Only the release of this tag. Goes only with `project`.", openapi::path(), "v1"))
            .takes(Parameter::query("state", "Only releases in this state. Goes only with `project`.", one_of(&ReleaseState::ALL.map(ReleaseState::name)), "complete"))
            .takes(Parameter::query("newest", "Only the newest release: the highest complete version that no one has begun to revoke. Goes only with `project`, and without `tag`, `state` and `after`.", one_of(&["true"]), "true"))
            .takes(after_index())
            .answers_with::<ReleasesResponse>(200, "the releases", &[("digest", "releases")]))
        .get(paths::PROJECTS, find_projects, catalogued("projects", Section::Reading, "Find projects by name", "give exactly one of `name` and `q`")
            .about(
                "With `name`, projects whose identifiers end with these names: `acme/app` finds \
                 `https/github.com/443/acme/app`. Those with signers in force; if there are none, those that are being \
                 registered. With `q`, projects in whose identifiers all these words occur, as the search on the pages \
                 finds them. At most 100.",
            )
            .takes(Parameter::query("name", "The last names of a project's identifier, in any letter case. Give exactly one of `name` and `q`.", openapi::path(), "acme/app"))
            .takes(Parameter::query("q", "Words with spaces between them, in any letter case. A URL finds the project at, above or below it. Give exactly one of `name` and `q`.", json!({ "type": "string" }), "acme"))
            .answers_with::<ProjectsResponse>(200, "their identifiers", &[("one", "projects")]))
        .get(&format!("{}/{{key}}", paths::KEYS), describe_key, catalogued("key", Section::Reading, "What is known of a key", no_key)
            .about(
                "Where signers files in force list it, the last 25 releases that carry its signature, and revocations that it \
                 signed and that wait for others. `last_signed_at` says when it was last used: for a release, a signers file that \
                 took effect, or a revocation in force. A key that no one lists gets empty lists.",
            )
            .counted_as("keys")
            .takes(key())
            .answers_with::<KeyResponse>(200, "the key", &[("signer", "key")]))
        .get(&format!("{}/{{key}}/pending", paths::KEYS), list_pending, catalogued("key_pending", Section::Signing, "What waits for a key", no_key)
            .about(format!(
                "Begun revocations first, then signers files, then releases; of each kind the oldest first, at most \
                 {LIST_ENTRIES} in all. The same as `pending_signatures` and more, for anyone who asks.",
            ))
            .counted_as("keys")
            .takes(key())
            .answers_with::<KeyPendingResponse>(200, "what waits", &[("revocation", "key.pending")]))
        .get(&format!("{}/{{key}}/signed", paths::KEYS), list_signed, catalogued("key_signed", Section::Reading, "What a key has signed", no_key)
            .about(format!(
                "All releases that carry its signature, the newest signature first, at most {LIST_ENTRIES} in an answer. \
                 `decisive` marks those that would not have been complete without it. `countersign incident` asks this \
                 about a stolen key.",
            ))
            .counted_as("keys")
            .takes(key())
            .takes(Parameter::query("since", "Only signatures from this time or later.", json!({ "type": "string", "format": "date-time" }), "2026-01-01T00:00:00Z"))
            .takes(after_index())
            .answers_with::<KeySignedResponse>(200, "the releases", &[("signer", "key.signed")]))
}

fn catalogued(id: &'static str, section: Section, summary: &'static str, malformed: &str) -> Endpoint {
    let about = "a parameter is missing, malformed, unknown or repeated; the message names it";
    Endpoint::new(id, section, summary)
        .fails(about, ApiError::invalid_parameter(malformed))
        .can_fail("")
        .fails("the server has just started, or is busy; try again", ApiError::NO_CATALOGUE_YET)
        .limited()
}

/// Answers with what a look into the catalogue finds.
async fn answer<T: Serialize + Send + 'static>(
    question: &Question,
    find: impl FnOnce(&Look<'_>) -> Result<T, ApiError> + Send + 'static,
) -> Result<Response, ApiError> {
    let found = question.ask(find).await??;
    let answer = serde_json::to_vec(&found).expect("lists of text and numbers are always JSON");
    question.send_json(answer.into()).await
}

async fn list_releases(question: Question) -> Result<Response, ApiError> {
    let query = question.query(&["sha256", "sha512", "project", "tag", "state", "newest", "after"])?;
    let after = query.get("after").map(RepoPath::parse).transpose().map_err(bad("after"))?;
    let digest = match ["sha256", "sha512", "project"].map(|name| query.get(name)) {
        [Some(hex), None, None] => FileDigest::Sha256(parse_digest("sha256", hex)?),
        [None, Some(hex), None] => FileDigest::Sha512(parse_digest("sha512", hex)?),
        [None, None, Some(project)] => return list_releases_of(&question, &query, project, after).await,
        _ => {
            let message = "give exactly one of `sha256`, `sha512` and `project`";
            return Err(ApiError::invalid_parameter(message));
        }
    };
    refuse_beside(&query, ["tag", "state", "newest"], "goes only with `project`")?;
    answer(&question, move |look| look.releases_with(&digest, after.as_ref()).map_err(bad("after"))).await
}

async fn list_releases_of(
    question: &Question,
    query: &Query<'_>,
    project: &str,
    after: Option<RepoPath>,
) -> Result<Response, ApiError> {
    let project = RepoPath::parse(project).map_err(bad("project"))?;
    if query.is_for_newest()? {
        refuse_beside(query, ["tag", "state", "after"], "does not go with `newest`")?;
        return answer(question, move |look| Ok(look.newest_release_of(&project))).await;
    }
    let tag = query.tag()?;
    let state = query.get("state").map(ReleaseState::parse).transpose().map_err(bad("state"))?;
    let wanted = WantedReleases { project, tag, state };
    answer(question, move |look| look.releases_of(&wanted, after.as_ref()).map_err(bad("after"))).await
}

/// Refuses a query with one of these parameters, and says why.
fn refuse_beside(query: &Query<'_>, names: [&str; 3], reason: &str) -> Result<(), ApiError> {
    let found = names.into_iter().find(|name| query.get(name).is_some());
    found.map_or(Ok(()), |name| Err(ApiError::invalid_parameter(format!("{name}: {reason}"))))
}

/// Reads a digest in either letter case, as programs print it.
fn parse_digest<const N: usize>(name: &str, hex: &str) -> Result<HexDigest<N>, ApiError> {
    let digest = HexDigest::parse_any_case(hex);
    digest.ok_or_else(|| ApiError::invalid_parameter(format!("{name}: must be {} hexadecimal digits", 2 * N)))
}

async fn find_projects(question: Question) -> Result<Response, ApiError> {
    let query = question.query(&["name", "q"])?;
    match (query.get("name"), query.get("q")) {
        (Some(name), None) => {
            let name = ProjectName::parse(name).map_err(bad("name"))?;
            answer(&question, move |look| Ok(look.projects_named(&name))).await
        }
        (None, Some(words)) => {
            let search = ProjectSearch::parse(words);
            answer(&question, move |look| Ok(look.projects_found(&search))).await
        }
        _ => Err(ApiError::invalid_parameter("give exactly one of `name` and `q`")),
    }
}

async fn describe_key(question: Question) -> Result<Response, ApiError> {
    let key = parse_key(&question)?;
    answer(&question, move |look| Ok(look.describe_key(&key))).await
}

async fn list_pending(question: Question) -> Result<Response, ApiError> {
    let key = parse_key(&question)?;
    answer(&question, move |look| Ok(look.pending_for(&key))).await
}

async fn list_signed(question: Question) -> Result<Response, ApiError> {
    let key = parse_key(&question)?;
    let query = question.query(&["since", "after"])?;
    let since = query.get("since").map(Timestamp::parse).transpose().map_err(bad("since"))?;
    let after = query.get("after").map(RepoPath::parse).transpose().map_err(bad("after"))?;
    answer(&question, move |look| look.signed_by(&key, since, after.as_ref()).map_err(bad("after"))).await
}

/// The segment behind `/v1/keys/`. Bytes that are no valid key are fine: no one lists them.
fn parse_key(question: &Question) -> Result<PublicKey, ApiError> {
    let segment = question.uri.path().split('/').nth(3).unwrap_or_default();
    let decoded = percent_decode_str(segment).decode_utf8().map_err(bad("key"))?;
    EventFilter::parse_key(&decoded).map_err(bad("key"))
}
