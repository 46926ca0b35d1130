//! Registers a project, and proposes new signers for it.

use axum::Json;
use countersign_api::{answers::ProposedResponse, requests::ProposeBody};
use countersign_core::documents::{signed_request::SignedRequest, signers::SignersOrigin};
use countersign_core::rules::decide::proposal::{
    MAX_DOCUMENT_LEAD_MINUTES, Proposal, Proposed, check_submitter,
};
use countersign_core::rules::decide::{register, update};
use countersign_core::rules::snapshot::Change;
use countersign_core::values::{time::Timestamp, wire::routes as paths};
use countersign_forge::{forges::SignersSource, url::SourceUrl};
use countersign_store::Head;

use crate::api::{auth::Authenticated, openapi::Endpoint, openapi::Section, routing::RouteTable};
use crate::http::{error::ApiError, upstream::FetchKind};
use crate::limits::semaphore::Claimant;
use crate::operate::{observe, observe::RequestFact};

pub(crate) fn routes() -> RouteTable {
    RouteTable::default()
        .post(paths::REGISTER_REPO, register_repo, Endpoint::new("register_repo", Section::Changing, "Register a project")
            .about(
                "Registers a project by the signers file at a URL. The server fetches the file, stores it as pending, and \
                 keeps the signed request as proof of who sent it.\n\n\
                 `public_key` must be the key that signs the request, and must be listed in the file. The submitter \
                 signs the file like every other signer. `required_signers` lists the keys that have yet to sign.",
            )
            .signed()
            .is_kept()
            .with_body::<ProposeBody>(&[("register", "propose.request")])
            .answers_with::<ProposedResponse>(200, "registered, and waiting for signatures", &[("registered", "register")])
            .refuses(400, &format!("the body, the URL or the address of its host is refused; `public_key` is invalid, not the caller's, or not in the file; the file's `timestamp` is more than {MAX_DOCUMENT_LEAD_MINUTES} minutes ahead"), "propose.400")
            .refuses(409, "the project is registered, its registration is in progress, or it overlaps with another project; or too many registrations beside it wait for signatures", "register.409")
            .can_be_blocked()
            .can_fail(", or the signers file could not be fetched or is not valid"))
        .post(paths::UPDATE_SIGNERS, update_signers, Endpoint::new("update_signers", Section::Changing, "Propose new signers")
            .about(
                "Proposes a new signers file for a project that has one in force. The URL decides the project.\n\n\
                 `public_key` must be the key that signs the request, and be listed in the current file, in any role but builder. \
                 Proposing the pending file again changes nothing; the answer lists who is missing.",
            )
            .signed()
            .is_kept()
            .with_body::<ProposeBody>(&[("update", "propose.request")])
            .answers_with::<ProposedResponse>(200, "proposed, and waiting for signatures", &[("proposed", "update")])
            .refuses(400, &format!("the body, the URL or the address is refused; the project is not registered, or its first signers file is not in force yet; `public_key` is invalid, not the caller's, or not in the current file; the new `timestamp` is not later than the current one, or more than {MAX_DOCUMENT_LEAD_MINUTES} minutes ahead"), "update.400")
            .refuses(409, "another proposal is pending, and the caller is neither admin nor master, or an admin where a master has a part in it and rotations wait; the masters have vetoed this very file; or too many proposals were replaced already", "update.409")
            .can_be_blocked()
            .can_fail(", or the signers file could not be fetched or is not valid"))
}

async fn register_repo(request: Authenticated) -> Result<Json<ProposedResponse>, ApiError> {
    let (source, signed) = (locate(&request)?, request.to_signed_request()?);
    let app = &request.question.app;
    let (expiry, caps) = (app.limits.registration_expiry(), app.limits.clone());
    register::check_register(&*app.store.head(), &source.project, expiry, app.now())?;
    caps.check_register(&*app.store.head(), &source.project, expiry, app.now())?;
    let decide = move |head: &Head, proposal: &Proposal, now| {
        let registered = register::register(head, &proposal.retrieved_at(now), expiry, now)?;
        caps.check_register(head, &proposal.project, expiry, now)?;
        Ok(registered)
    };
    let message = "Project registered successfully. Collect signatures to activate.";
    propose(&request, request.claimant().as_stranger(), source, signed, decide, message).await
}

async fn update_signers(request: Authenticated) -> Result<Json<ProposedResponse>, ApiError> {
    let (source, signed) = (locate(&request)?, request.to_signed_request()?);
    let app = &request.question.app;
    let caps = app.limits.clone();
    update::check_update(&*app.store.head(), &source.project, &request.caller)?;
    caps.check_rotations(&*app.store.head(), &source.project, app.now())?;
    let decide = move |head: &Head, proposal: &Proposal, now| {
        let updated = update::update(head, &proposal.retrieved_at(now), now)?;
        caps.check_update(head, proposal, now)?;
        Ok(updated)
    };
    let claimant = request.claimant().with_project(&source.project);
    let message = "Signers update proposed successfully. Collect signatures to activate.";
    propose(&request, claimant, source, signed, decide, message).await
}

fn locate(request: &Authenticated) -> Result<SignersSource, ApiError> {
    let (body, app) = (ProposeBody::parse(&request.body)?, &request.question.app);
    check_submitter(&body.public_key, &request.caller)?;
    let note_url = || observe::note(RequestFact::File, &body.signers_file_url);
    let url = SourceUrl::parse(&body.signers_file_url).inspect_err(|_| note_url())?;
    let located = app.upstream.forges.locate_signers(&url, &app.upstream.file_servers);
    let source = located.inspect_err(|_| note_url())?;
    observe::note(RequestFact::Project, &source.project);
    app.blocks.check(&[&request.caller], &source.project)?;
    Ok(source)
}

/// Fetches a signers file, and proposes it as `decide` says.
async fn propose(
    request: &Authenticated,
    claimant: Claimant,
    source: SignersSource,
    signed: SignedRequest,
    decide: impl Fn(&Head, &Proposal, Timestamp) -> Result<(Change, Proposed), ApiError> + Send + 'static,
    message: &'static str,
) -> Result<Json<ProposedResponse>, ApiError> {
    let app = &request.question.app;
    let turn = app.upstream.turns.begin(FetchKind::Signers, request.claim_fetch(claimant)?).await?;
    let fetched = app.upstream.fetch_signers(&turn, &source).await?;
    let proposal = Proposal {
        project: source.project,
        signers_bytes: fetched.bytes.into(),
        origin: SignersOrigin {
            kind: source.kind,
            url: source.url,
            retrieval_url: fetched.retrieval_url,
            retrieved_at: app.now().to_whole_seconds(),
        },
        submitter: signed.public_key,
        request: signed,
    };
    let proposed = request.change(move |head, now| decide(head, &proposal, now)).await?;
    // Only now, so that no more proposals wait for the writer than there are turns.
    drop(turn);
    Ok(Json(ProposedResponse::new(
        proposed.project,
        proposed.required_signers.into_iter().collect(),
        message,
    )))
}
