//! What waits for signatures, what to sign, and how far a file has come.

use std::sync::Arc;

use axum::{Json, body::Bytes, response::Response};
use countersign_api::answers::{FilesToSignResponse, PendingResponse, SignedResponse, StatusResponse};
use countersign_api::requests::SignaturesBody;
use countersign_core::rules::{decide::sign, stored};
use countersign_core::values::{
    bounds::PENDING_LIST_BYTES, key::PublicKey, path::RepoPath, wire::routes as paths,
};
use countersign_store::{Head, catalogue::Look};

use crate::api::openapi::{Endpoint, Section, file_path};
use crate::api::{auth::Authenticated, routes::files::file_not_found, routing::RouteTable};
use crate::{api::state::wait_until_ready, http::error::ApiError};

pub(crate) fn routes() -> RouteTable {
    RouteTable::default()
        .get(paths::PENDING_SIGNATURES, list_pending, Endpoint::new("pending_signatures", Section::Signing, "What waits for my signature")
            .about(
                "The files that collect signatures, and that the caller can sign and has not signed. Master keys see only \
                 signers files. `revocations` lists begun revocations that the caller can join, and `rebuilds` releases \
                 that a builder is asked to build, with the same fields as `GET /v1/keys/{key}/pending`.",
            )
            .signed()
            .answers_with::<PendingResponse>(200, "sorted paths", &[("one", "pending"), ("objection", "pending.objection"), ("revocation", "pending.revocation")])
            .can_be_elsewhere()
            .can_fail(""))
        .get_below(paths::FILES_TO_SIGN, to_sign, Endpoint::new("files_to_sign", Section::Signing, "What to sign for a file")
            .about(
                "The content of the file and, for a signers file, of its metadata. Parse it before you sign it: it must be \
                 the kind of document that the path names, for the project that the path names.",
            )
            .signed()
            .takes(file_path())
            .answers_with::<FilesToSignResponse>(200, "the content by path", &[("index", "files_to_sign")])
            .refuses(400, "invalid path", "path.400")
            .can_be_elsewhere()
            .refuses(404, "no file at the path", "status.404")
            .can_fail(""))
        .post(paths::SIGNATURES, submit, Endpoint::new("submit_signatures", Section::Signing, "Submit signatures")
            .about(
                "Submits one signer's signatures on one file. For an index, `signatures` has that one path; for a pending \
                 signers file, the file and its metadata. The server takes all of them or none.\n\n\
                 Each signature is over the 64 raw bytes of the SHA-512 digest of the stored bytes. `public_key` is the \
                 signer, who need not be the caller.\n\n\
                 Signers whose predecessors have a `rotation_delay_hours` wait when they have all signatures, unless the masters \
                 in force are among those who signed, by their own thresholds. `waits_until` says until when.",
            )
            .counted_as("signatures")
            .signed()
            .with_body::<SignaturesBody>(&[("signers_file", "sign.request"), ("index", "sign.request.index")])
            .answers_with::<SignedResponse>(200, "accepted", &[("collecting", "sign"), ("complete", "sign.complete"), ("waits", "sign.waits")])
            .refuses(400, "the body is malformed; no such file; the file collects no signatures; a path is missing, or there is one too many; a signature does not verify", "sign.400")
            .refuses(403, "the signer may not sign this file; the operator has blocked the key, the host or the project; or this is a mirror", "sign.403")
            .refuses(409, "the file is complete or revoked, or this key has signed it already", "sign.409")
            .can_fail(""))
        .get_below(paths::SIGNATURES, status, Endpoint::new("signature_status", Section::Signing, "How far a file has come")
            .about(
                "The status of an index or a pending signers file. Keys of the signers file in force, in any role, can ask for \
                 it. For a pending signers file, its own keys can ask as well.",
            )
            .signed()
            .takes(file_path())
            .answers_with::<StatusResponse>(200, "whether it is complete", &[("complete", "status"), ("revoked", "status.revoked"), ("waits", "status.waits")])
            .refuses(400, "invalid path", "path.400")
            .refuses(403, "the caller is not in the signers file; or this is a mirror", "status.403")
            .refuses(404, "no such file, a file that collects no signatures, or no signers file for it", "status.404")
            .can_fail(""))
}

/// Lists what waits for the caller. This takes no turn of the public questions, so strangers cannot hold up signers.
async fn list_pending(Authenticated { question, caller, .. }: Authenticated) -> Result<Response, ApiError> {
    let app = &question.app;
    wait_until_ready(app).await?;
    let catalogue = Arc::clone(&app.catalogue);
    let answer = app.sending.read(move || write_pending(&catalogue.look(), &caller)).await?;
    question.send_json(answer.into()).await
}

fn write_pending(look: &Look<'_>, caller: &PublicKey) -> Vec<u8> {
    let head = look.head();
    let files = PendingResponse::within(PENDING_LIST_BYTES, &**head, head.index.waiting_for(caller));
    let (revocations, rebuilds) = (look.revocations_for(caller), look.rebuilds_for(caller));
    let answer = PendingResponse { revocations, rebuilds, ..files };
    serde_json::to_vec(&answer).expect("a list of text is always JSON")
}

async fn to_sign(Authenticated { question, .. }: Authenticated) -> Result<Response, ApiError> {
    let (path, head) = (question.path()?, question.app.store.head());
    let answer = question.app.sending.read(move || write_to_sign(&head, &path)).await??;
    question.send_json(answer).await
}

fn write_to_sign(head: &Head, path: &RepoPath) -> Result<Bytes, ApiError> {
    let files = stored::files_to_sign(head, path)?.ok_or_else(|| file_not_found(path))?;
    let text = |(path, bytes): (RepoPath, Arc<[u8]>)| match String::from_utf8(bytes.to_vec()) {
        Ok(text) => Ok((path, text)),
        Err(_) => Err(stored::corrupt(&path, "it is not UTF-8")),
    };
    let answer = FilesToSignResponse { files: files.into_iter().map(text).collect::<Result<_, _>>()? };
    Ok(serde_json::to_vec(&answer).expect("text by text is always JSON").into())
}

async fn submit(request: Authenticated) -> Result<Json<SignedResponse>, ApiError> {
    let body = SignaturesBody::parse(&request.body)?;
    request.check_blocks(&[&request.caller, &body.public_key], &body.file_path)?;
    let prepared = body.prepare(&*request.question.app.store.head());
    let signed = request.change(move |head, now| sign::sign_prepared(head, &prepared, now)).await?;
    Ok(Json(SignedResponse { is_complete: signed.is_complete, waits_until: signed.waits_until }))
}

async fn status(
    Authenticated { question, caller, .. }: Authenticated,
) -> Result<Json<StatusResponse>, ApiError> {
    let (path, head) = (question.path()?, question.app.store.head());
    let state = stored::file_status(&*head, &path, &caller)?;
    Ok(Json(match stored::agreement(&*head, &path)? {
        Some(agreement) => StatusResponse::waiting(path, agreement.due_at),
        None => StatusResponse::new(path, state),
    }))
}
