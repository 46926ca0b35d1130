//! The state of one release or one project, as of one commit (D232).

use std::sync::Arc;

use axum::{body::Bytes, response::Response};
use countersign_api::error_code::ErrorCode;
use countersign_api::state::{DroppedReleases, LogAnswer, LogConsistency, StateDocument, StateResponse};
use countersign_core::proof::{bundle::Staple, state::State, state::StateSubject};
use countersign_core::values::digest::{Sha256, Sha512};
use countersign_core::values::{path::RepoPath, wire::routes as paths};
use countersign_core::{documents::fields::parse_digest, documents::layout, rules::snapshot::Snapshot as _};
use countersign_log::NoStaple;
use countersign_store::Head;
use serde_json::json;

use crate::api::openapi::{Content, Endpoint, Parameter, Section};
use crate::api::routes::files::{describe_stored, file_not_found, matches_tag, not_modified, tagged};
use crate::api::routing::{JSON, Question, RouteTable};
use crate::api::{openapi, state::App};
use crate::http::{error::ApiError, request::Query, request::bad};

/// How often the newest release can be revoked while a question for it is answered.
const MOST_LOOKS: usize = 4;

pub(crate) fn routes() -> RouteTable {
    RouteTable::default()
        .get_below(paths::STATE, state, Endpoint::new("state", Section::Reading, "The state of a release or a project")
            .about(
                "Everything that the server has about one release, or about the signers of one project, as of one commit. The path \
                 is that of an index, of a release's directory, of a project, or of a signers file. For a complete or revoked \
                 release, `bundle` is the bundle that `countersign bundle` writes, with what the log proves; the saved answer \
                 verifies like a bundle. For everything else, `files` has the exact stored texts: signatures so far, signers that \
                 are proposed, objections, a begun revocation or veto, a withdrawal. The server's word is a hint where to look: \
                 check signatures yourself.",
            )
            .takes(openapi::any_path())
            .takes(Parameter::query("tag", "The release of the project at the path that has this tag, or this directory.", openapi::path(), "v1"))
            .takes(Parameter::query("newest", "The newest release of the project at the path: the highest complete version that no one has begun to revoke. `skipped` lists the higher versions that were passed over. If the project has no such release, the answer is about the project. With `tag`, this parameter changes nothing.", openapi::one_of(&["true"]), "true"))
            .takes(Parameter::query("history_after", "Leave out the entries of the history up to that of the signers file with this digest, which you have. If the history has no such entry, it is whole.", openapi::matching("^sha512:[0-9a-f]{128}$"), format!("sha512:{}", "0".repeat(128))))
            .takes(Parameter::query("log_size", "The size of the log that you have seen. `log.consistency` then proves that the staple is of the same log.", json!({ "type": "integer", "minimum": 0, "maximum": i64::MAX }), 7))
            .revalidated()
            .answers(describe_stored("the state").with_content(Content::of::<StateDocument<'_>>(&[("complete", "state")])))
            .refuses(400, "invalid path or question", "path.400")
            .refuses(404, "no release and no project at the path", "status.404")
            .with_large_answers())
}

async fn state(question: Question) -> Result<Response, ApiError> {
    let (path, query) = (question.path()?, question.query(&["tag", "newest", "history_after", "log_size"])?);
    let (is_for_newest, tag) = (query.is_for_newest()?, query.tag()?);
    let known = Known::parse(&query)?;
    let WrittenState { bytes, tag } = match tag {
        // A release that is named is the only one with that name, and so the newest.
        None if is_for_newest => find_newest(&question, path, known).await?,
        tag => {
            let app = Arc::clone(&question.app);
            let read = move || read_state(&app, &path, tag.as_deref(), known).map(WrittenState::of);
            question.app.sending.read(read).await??
        }
    };
    if matches_tag(&question.headers, tag.as_bytes()) {
        return Ok(not_modified(tag.as_bytes()));
    }
    Ok(tagged(question.app.sending.answer(bytes, &question.sender).await?, JSON, tag.as_bytes()))
}

/// An answer in bytes, written beside the threads of connections: a history can have megabytes.
struct WrittenState {
    bytes: Bytes,
    tag: String,
}

impl WrittenState {
    fn of(answer: StateResponse) -> Self {
        let bytes = answer.write();
        let tag = format!("\"{}\"", &Sha256::of(&bytes).to_string()[..40]);
        Self { bytes: bytes.into(), tag }
    }
}

/// What the client has seen before.
#[derive(Debug, Clone, Copy)]
struct Known {
    history_after: Option<Sha512>,
    log_size: Option<u64>,
}

impl Known {
    fn parse(query: &Query<'_>) -> Result<Self, ApiError> {
        let after = query.get("history_after").map(parse_digest).transpose();
        let log_size = query.get("log_size").map(str::parse).transpose();
        Ok(Self {
            history_after: after.map_err(bad("history_after"))?,
            log_size: log_size.map_err(bad("log_size"))?,
        })
    }
}

/// Reads what is at the path, or the release of the project there with this tag, or in this directory.
fn read_state(
    app: &App,
    path: &RepoPath,
    tag: Option<&str>,
    known: Known,
) -> Result<StateResponse, ApiError> {
    let find = |head: &Head| match tag {
        None => StateSubject::find(head, path),
        Some(tag) => StateSubject::find_tag(head, path, tag),
    };
    let missing = || match tag {
        None => file_not_found(path),
        Some(tag) => ApiError::new(ErrorCode::FileNotFound, format!("Release not found: {tag} of {path}")),
    };
    let first = app.store.head();
    let before = find(&first).ok_or_else(missing)?;
    // The state is never older than what the log proves of it.
    let (head, staple) = match (app.log.get(), &before) {
        (Some(log), StateSubject::Release(index)) => {
            let (head, staple) = log.staple(|| app.store.head(), index);
            (head, Some(staple))
        }
        (None, _) | (_, StateSubject::Project(_)) => (first, None),
    };
    let subject = find(&head).ok_or_else(missing)?;
    let staple = staple.filter(|_| subject == before);
    let mut state = State::gather(&*head, subject)?;
    let (staple, log) = answer_of_log(app, &state, staple, known.log_size);
    let history_after = known.history_after.filter(|known| state.leave_out(known));
    let drops = match &state.subject {
        StateSubject::Project(project) => DroppedReleases::of(&*head, project)?,
        StateSubject::Release(_) => DroppedReleases::default(),
    };
    Ok(StateResponse {
        commit: head.commit.to_string(),
        committed_at: head.committed_at()?,
        state,
        staple,
        log,
        history_after,
        drops,
        skipped: Vec::new(),
    })
}

fn answer_of_log(
    app: &App,
    state: &State,
    staple: Option<Result<Staple, NoStaple>>,
    seen: Option<u64>,
) -> (Option<Staple>, LogAnswer) {
    let (staple, refusal) = match staple.filter(|_| state.evidence.is_some()).transpose() {
        Ok(staple) => (staple, None),
        Err(refusal) => (None, Some(refusal)),
    };
    let answer = LogAnswer {
        key: app.log.get().map(|log| log.key().clone()),
        is_soon: matches!(refusal, Some(NoStaple::NotLogged { .. })),
        no_staple: refusal.map(|refusal| refusal.to_string()),
        consistency: prove_consistency(app, staple.as_ref(), seen),
    };
    (staple, answer)
}

/// Proves that the log of a staple and the one that the client has seen are one log, whichever is larger.
fn prove_consistency(app: &App, staple: Option<&Staple>, seen: Option<u64>) -> Option<LogConsistency> {
    let (log, shown) = (app.log.get()?, staple?.proof.index + 1);
    let (from, to) = (shown.min(seen?), shown.max(seen?));
    Some(LogConsistency { from, to, hashes: log.prove_consistency(from, to)? })
}

/// The release in this directory; of a project, its newest one, and which higher versions are not offered. The
/// catalogue names it, and another head can show it.
async fn find_newest(question: &Question, project: RepoPath, known: Known) -> Result<WrittenState, ApiError> {
    for _ in 0..MOST_LOOKS {
        let (project, app) = (project.clone(), Arc::clone(&question.app));
        let found = question.ask(move |look| {
            let index = layout::index_in(&project);
            let newest = match app.store.head().contains(&index) {
                true => None,
                false => look.newest_release_of(&project).releases.into_iter().next(),
            };
            let skipped = look.skipped_above(&project, newest.as_ref());
            let is_none = newest.is_none();
            let subject = newest.map_or_else(|| project.clone(), |newest| newest.index_path);
            let answer = read_state(&app, &subject, None, known)?;
            // Without any, what is at the path itself is shown.
            let evidence = answer.state.evidence.as_ref();
            let is_complete = is_none || evidence.is_some_and(|evidence| evidence.revocation.is_none());
            Ok::<_, ApiError>(is_complete.then(|| WrittenState::of(StateResponse { skipped, ..answer })))
        });
        if let Some(answer) = found.await?? {
            return Ok(answer);
        }
    }
    Err(ApiError::BUSY.into())
}
