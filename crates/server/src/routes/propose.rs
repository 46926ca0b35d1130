//! Registers a project, and proposes new signers for it.

use axum::{Json, extract::State};
use countersign_api::{answers::ProposedResponse, requests::ProposeBody};
use countersign_core::{
    documents::{metadata::Origin, signed_request::SignedRequest},
    rules::decide::{self, Proposal, Proposed, register, update},
};
use countersign_forge::{forges::SignersSource, url::SourceUrl};

use crate::{
    auth::Authenticated,
    error::ApiError,
    observe::{self, RequestFact},
    state::App,
    upstream::{FetchKind, FetchTurn},
};
use countersign_store::Head;

pub async fn register_repo(
    State(app): State<App>,
    request: Authenticated,
) -> Result<Json<ProposedResponse>, ApiError> {
    let (source, signed) = (locate(&app, &request)?, request.to_signed_request()?);
    let (expiry, caps) = (app.limits.registration_expiry, app.limits.caps);
    register::check_register(&*app.store.head(), &source.project, expiry, app.now())?;
    caps.check_register(&*app.store.head(), &source.project, expiry, app.now())?;
    let claim = request.claim_fetch(request.claimant().as_stranger())?;
    let turn = app.upstream.turns.begin(FetchKind::Signers, claim).await?;
    let proposal = fetch(&app, &turn, source, signed).await?;
    let decide = move |head: &Head, now| {
        let registered = register::register(head, &proposal.retrieved_at(now), expiry, now)?;
        caps.check_register(head, &proposal.project, expiry, now)?;
        Ok::<_, ApiError>(registered)
    };
    let proposed = request.change(&app, decide).await?;
    // Only now, so that no more proposals wait for the writer than there are turns.
    drop(turn);
    Ok(answer(proposed, "Project registered successfully. Collect signatures to activate."))
}

pub async fn update_signers(
    State(app): State<App>,
    request: Authenticated,
) -> Result<Json<ProposedResponse>, ApiError> {
    let (source, signed) = (locate(&app, &request)?, request.to_signed_request()?);
    let caps = app.limits.caps;
    update::check_update(&*app.store.head(), &source.project, &request.caller)?;
    caps.check_rotations(&*app.store.head(), &source.project, app.now())?;
    let claimant = request.claimant().with_project(&source.project);
    let turn = app.upstream.turns.begin(FetchKind::Signers, request.claim_fetch(claimant)?).await?;
    let proposal = fetch(&app, &turn, source, signed).await?;
    let decide = move |head: &Head, now| {
        let updated = update::update(head, &proposal.retrieved_at(now), now)?;
        caps.check_update(head, &proposal, now)?;
        Ok::<_, ApiError>(updated)
    };
    let proposed = request.change(&app, decide).await?;
    // Only now, so that no more proposals wait for the writer than there are turns.
    drop(turn);
    Ok(answer(proposed, "Signers update proposed successfully. Collect signatures to activate."))
}

fn locate(app: &App, request: &Authenticated) -> Result<SignersSource, ApiError> {
    let body = ProposeBody::parse(&request.body)?;
    decide::check_submitter(&body.public_key, &request.caller)?;
    let note_url = || observe::note(RequestFact::File, &body.signers_file_url);
    let url = SourceUrl::parse(&body.signers_file_url).inspect_err(|_| note_url())?;
    let located = app.upstream.forges.locate_signers(&url, &app.upstream.file_servers);
    let source = located.inspect_err(|_| note_url())?;
    observe::note(RequestFact::Project, &source.project);
    app.blocks.check(&[&request.caller], &source.project)?;
    Ok(source)
}

async fn fetch(
    app: &App,
    turn: &FetchTurn,
    source: SignersSource,
    signed: SignedRequest,
) -> Result<Proposal, ApiError> {
    let fetched = app.upstream.fetch_signers(turn, &source).await?;
    Ok(Proposal {
        project: source.project,
        signers_bytes: fetched.bytes.into(),
        origin: Origin {
            kind: source.kind,
            url: source.url,
            retrieval_url: fetched.retrieval_url,
            retrieved_at: app.now().to_whole_seconds(),
        },
        submitter: signed.public_key,
        request: signed,
    })
}

fn answer(proposed: Proposed, message: &'static str) -> Json<ProposedResponse> {
    Json(ProposedResponse::new(proposed.project, proposed.required_signers.into_iter().collect(), message))
}
