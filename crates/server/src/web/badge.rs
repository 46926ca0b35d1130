//! Small pictures that say how far something is signed, for use on other sites.

use axum::http::header::{CONTENT_SECURITY_POLICY, ETAG};
use axum::http::{HeaderValue, StatusCode};
use axum::{extract::State, response::IntoResponse as _, response::Response};
use countersign_core::documents::{layout, layout::Signable};
use countersign_core::rules::snapshot::{ReadError, Snapshot as _};
use countersign_core::rules::{quorum::Tally, stored::ReleaseState};
use countersign_core::values::{bounds::PATH_BYTES, digest::Sha512, path::RepoPath, wire::routes::BADGES};
use countersign_explain::describe::proposal::tally_proposal;
use countersign_explain::describe::release::{ReleaseSummary, summarise_release};
use countersign_explain::reproduction::count_different;
use countersign_store::Head;
use maud::{Markup, html};
use serde_json::json;

use crate::api::openapi::{Content, DescribedAnswer, EXAMPLE_PROJECT, Endpoint, Parameter, Section};
use crate::api::{openapi, routing::RouteTable, routing::parse_tail, state::App};
use crate::http::sending::{run_in_turn, typed};
use crate::web::overview::{ProjectState, project_state};
use crate::web::{links, parts, projects::count_releases, visit::Visit};

const HEIGHT: usize = 20;
/// The average in the font of the badge. The text is fitted to it.
const CHAR_WIDTH: usize = 7;
const PADDING: usize = 6;

/// What a badge says. All words are our own.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Badge {
    label: &'static str,
    value: String,
    colour: &'static str,
}

// The colours of badges, dark enough for white text.
const GREEN: &str = "#1a7f37";
const AMBER: &str = "#8a5a00";
const RED: &str = "#c5221f";
const GREY: &str = "#5f6368";

pub(super) fn routes() -> RouteTable {
    let picture = |status, about| {
        let content = Content::text("image/svg+xml");
        DescribedAnswer::new(status, about).with_headers([openapi::CACHE_CONTROL]).with_content(content)
    };
    let pattern = r"^[^\\\x00-\x1f\x7f-\x9f]+\.svg$";
    let schema = json!({ "type": "string", "maxLength": PATH_BYTES, "pattern": pattern });
    let about = "The path of a project, a release or a pending signers file, and `.svg`.";
    let described = Endpoint::new("badge", Section::Pages, "A badge")
        .about("A small picture that says how far a release is signed, or how many signers a project has.")
        .counted_as("badge")
        .takes(Parameter::path("path", about, schema, format!("{EXAMPLE_PROJECT}.svg")))
        .revalidated()
        .answers(picture(200, "the picture").with_headers([openapi::ETAG]))
        .answers(picture(404, "a picture that says `unknown`"))
        .can_fail("")
        .limited();
    RouteTable::default().get_below(BADGES, show, described)
}

async fn show(State(app): State<App>, visit: Visit) -> Response {
    let head = app.store.head();
    let path = links::below(BADGES, &visit.path).and_then(|tail| tail.strip_suffix(".svg"));
    let found = match path.map(parse_tail) {
        // Reading a large index takes time.
        Some(Ok(path)) => {
            run_in_turn(&app.renderings, visit.sender.claimant(), move || find(&head, &path)).await
        }
        Some(Err(_)) | None => Ok(Ok(None)),
    };
    match found.and_then(|found| Ok(found?)) {
        Ok(Some(badge)) => draw(&badge, StatusCode::OK, &visit),
        Ok(None) => draw(&Badge::grey("unknown"), StatusCode::NOT_FOUND, &visit),
        Err(error) => error.into_response(),
    }
}

fn find(head: &Head, path: &RepoPath) -> Result<Option<Badge>, ReadError> {
    match layout::signable(path) {
        Some(Signable::Index) => find_release(head, path),
        Some(Signable::PendingSigners { project }) => {
            Ok(tally_proposal(head, &project)?.map(|tally| Badge::collecting("signers", tally)))
        }
        None if head.index.is_project(path) => {
            let is_revoking = count_releases(head, path).count().revoking > 0;
            let badge = project_state(head, path)?.map(Badge::of_project);
            // It must not be overlooked, so it takes the place of everything else.
            let begun = |badge| Badge { value: "revocation begun".to_owned(), colour: AMBER, ..badge };
            Ok(if is_revoking { badge.map(begun) } else { badge })
        }
        // The directory of a release stands for the release.
        None => find_release(head, &layout::index_in(path)),
    }
}

fn find_release(head: &Head, index: &RepoPath) -> Result<Option<Badge>, ReadError> {
    let badge = summarise_release(head, index)?.map(Badge::of_release);
    let is_withdrawn = badge.is_none() && head.contains(&layout::withdrawal_of(index));
    Ok(badge.or_else(|| is_withdrawn.then(|| Badge::grey("withdrawn"))))
}

impl Badge {
    fn of_release(release: ReleaseSummary) -> Self {
        let objections = release.objections.standing().len();
        if let Some(begun) = release.begun {
            let Tally { collected, needed } = begun.tally;
            let value = format!("{collected} of {needed} revokers");
            return Self { label: "revocation", value, colour: AMBER };
        }
        let badge = match release.state {
            ReleaseState::Collecting => Self::collecting("signed", release.tally),
            ReleaseState::Complete => {
                let (value, colour) = match &release.reproduction {
                    Some(reproduction) if reproduction.is_reproduced() => ("complete, reproduced", GREEN),
                    Some(reproduction) if reproduction.is_required => ("complete, not reproduced", AMBER),
                    Some(_) | None => ("complete", GREEN),
                };
                Self { label: "signed", value: value.to_owned(), colour }
            }
            ReleaseState::Revoked => {
                return Self { label: "signed", value: "revoked".to_owned(), colour: RED };
            }
        };
        let different = release.reproduction.map_or(0, |reproduction| reproduction.different.len());
        let objections = (objections > 0).then(|| parts::count(objections, "objection", "objections"));
        badge.after(objections).after(count_different(different))
    }

    /// Says what speaks against the release. It comes first, and nothing is green beside it.
    fn after(self, doubt: Option<String>) -> Self {
        match doubt {
            Some(doubt) => Self { value: format!("{doubt}, {}", self.value), colour: AMBER, ..self },
            None => self,
        }
    }

    fn of_project(state: ProjectState) -> Self {
        match state {
            ProjectState::Registering(tally) => Self::collecting("signers", tally),
            ProjectState::Registered { signers, is_changing: false } => {
                Self { label: "signers", value: signers.to_string(), colour: GREEN }
            }
            ProjectState::Registered { signers, is_changing: true } => {
                let value = format!("{signers}, change pending");
                Self { label: "signers", value, colour: AMBER }
            }
        }
    }

    fn collecting(label: &'static str, tally: Tally) -> Self {
        Self { label, value: tally.to_string(), colour: AMBER }
    }

    fn grey(value: &str) -> Self {
        Self { label: "signed", value: value.to_owned(), colour: GREY }
    }
}

fn draw(badge: &Badge, status: StatusCode, visit: &Visit) -> Response {
    let picture = picture(badge).into_string();
    let tag = format!("\"{}\"", Sha512::of(picture.as_bytes()).short());
    let (status, body) = if status == StatusCode::OK && visit.knows(&tag) {
        (StatusCode::NOT_MODIFIED, String::new())
    } else {
        (status, picture)
    };
    let policy = [(CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'")];
    let mut response = typed((status, policy, body), "image/svg+xml; charset=utf-8", "max-age=60");
    if let (true, Ok(tag)) = (status != StatusCode::NOT_FOUND, HeaderValue::from_str(&tag)) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

fn picture(badge: &Badge) -> Markup {
    let Badge { label, value, colour } = badge;
    let [left, right] = [label.len(), value.len()].map(|length| length * CHAR_WIDTH + 2 * PADDING);
    let text = |text: &str, from: usize, width: usize| {
        html! {
            text x=(from + width / 2) y="14" text-anchor="middle" textLength=(width - 2 * PADDING) { (text) }
        }
    };
    html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(left + right) height=(HEIGHT) role="img"
            aria-label={ (label) ": " (value) } {
            title { (label) ": " (value) }
            rect width=(left + right) height=(HEIGHT) rx="3" fill=(colour) {}
            path d={ "M3 0H" (left) "V" (HEIGHT) "H3A3 3 0 0 1 0 17V3A3 3 0 0 1 3 0Z" } fill="#3c4043" {}
            g fill="#fff" font-family="Verdana, DejaVu Sans, Geneva, sans-serif" font-size="11" {
                (text(label, 0, left)) (text(value, left, right))
            }
        }
    }
}
