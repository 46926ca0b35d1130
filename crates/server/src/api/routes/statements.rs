//! What keys say of a release or of pending signers: they withdraw, object, rebuild, revoke and veto.

use axum::{Json, http::StatusCode};
use countersign_api::answers::{ChangedResponse, RebuildResponse, RevokedResponse, VetoedResponse};
use countersign_api::requests::{
    ObjectBody, RebuildBody, RevokeBody, SignedStatement, VetoBody, WithdrawBody,
};
use countersign_core::documents::{signed_request::Withdrawal, statement::StatementKind};
use countersign_core::rules::decide::proposal::MAX_DOCUMENT_LEAD_MINUTES;
use countersign_core::rules::decide::{rebuild, statement, withdraw};
use countersign_core::values::bounds::{REASON_CHARS, REBUILD_BYTES, VETO_BYTES};
use countersign_core::values::{shown::shown_bytes, shown::shown_count, wire::routes as paths};
use countersign_store::Head;

use crate::api::{auth::Authenticated, openapi::Endpoint, openapi::Section, routing::RouteTable};
use crate::{http::error::ApiError, operate::observe, operate::observe::RequestFact};

pub(crate) fn routes() -> RouteTable {
    RouteTable::default()
        .post(paths::WITHDRAW, withdraw, Endpoint::new("withdraw", Section::Changing, "Withdraw a release")
            .about(
                "Takes back an index that still collects signatures. Its path is free again. The key that registered it can \
                 do this while the current signers file lists it, and so can every admin key. The server keeps the signed \
                 request beside the path, as proof of who withdrew the release and why, until another release is registered \
                 there.\n\n\
                 Send `subject_digest`: it makes sure that no correction is withdrawn which you have not seen. A signature \
                 cannot be taken back, because anyone can submit it again.",
            )
            .signed()
            .is_kept()
            .with_body::<WithdrawBody>(&[("withdraw", "withdraw.request")])
            .answers_with::<ChangedResponse>(200, "withdrawn", &[("withdrawn", "withdraw")])
            .refuses(400, "the body is malformed, or the path is not that of an index", "withdraw.400")
            .refuses(403, "the caller neither registered the release nor is an admin, or is a registrar and someone has signed the release, rebuilt it or objects to it; the operator has blocked the key, the host or the project; or this is a mirror", "withdraw.403")
            .refuses(404, "no file at the path", "status.404")
            .refuses(409, "the index is complete or revoked, was withdrawn already, or does not match `subject_digest`", "withdraw.409")
            .can_fail(""))
        .post(paths::OBJECT, object, Endpoint::new("object", Section::Signing, "Object to a release")
            .about(format!(
                "Records a signer's objection to a release that is complete or collects signatures. It blocks nothing; \
                 every later signer sees it first. `objection_json` is the exact text of an objection: an object with \
                 `objection`, `subject_digest` (`sha512:` and the digest of the index) and `timestamp`. `objection` has 1 \
                 to {} characters, or is null and takes back what the same key said before.\n\n\
                 The signature is over the 64 raw bytes of the SHA-512 digest of that text. `public_key` is the objector, \
                 who need not be the caller. The newest word of a key counts, so each must have a later `timestamp`.",
                shown_count(REASON_CHARS),
            ))
            .signed()
            .with_body::<ObjectBody>(&[("object", "object.request"), ("take_back", "object.request.back")])
            .answers_with::<ChangedResponse>(200, "recorded", &[("objected", "object"), ("taken_back", "object.back")])
            .refuses(400, &format!("the body or the objection is malformed; the path is not that of an index; the signature does not verify; the `timestamp` is more than {MAX_DOCUMENT_LEAD_MINUTES} minutes ahead"), "object.400")
            .refuses(403, "the objector is no signer in the current signers file; the operator has blocked the key, the host or the project; or this is a mirror", "object.403")
            .refuses(404, "no file at the path", "status.404")
            .refuses(409, "the index is revoked, or does not match `subject_digest`; the key has said something later; there is nothing to take back; or there are too many objections", "object.409")
            .can_fail(""))
        .post(paths::REBUILD, rebuild, Endpoint::new("rebuild", Section::Signing, "State a rebuild of a release")
            .about(format!(
                "Records what a builder got from the source of a release that is complete or collects signatures. It \
                 completes and blocks nothing. `rebuild_json` is the exact text of a rebuild: an object with `rebuild_of` \
                 (the path of the index), `subject_digest` (`sha512:` and the digest of the index), `source_commit` (the \
                 whole id of the commit), `files` and `timestamp`. `files` are sorted by name, each with `file_name` and \
                 `digests`, as in the index: `sha256`, `sha512` or both. Name only files that were built, and of these also \
                 those that differ: that is the evidence. A rebuild has at most {}.\n\n\
                 The signature is over the 64 raw bytes of the SHA-512 digest of that text. `public_key` is the builder, \
                 who need not be the caller. While the release collects signatures, a builder can state something else with \
                 a later `timestamp`. Once it is complete, builders that its signers file names can add a statement, and \
                 none is replaced.",
                shown_bytes(REBUILD_BYTES),
            ))
            .signed()
            .with_body::<RebuildBody>(&[("rebuild", "rebuild.request")])
            .answers_with::<RebuildResponse>(200, "recorded", &[("same", "rebuild"), ("different", "rebuild.differs")])
            .refuses(400, &format!("the body or the rebuild is malformed; the path is not that of an index; the signature does not verify; the index lists no such file, or no such digest; the `timestamp` is more than {MAX_DOCUMENT_LEAD_MINUTES} minutes ahead"), "rebuild.400")
            .refuses(403, "the key is not a builder in the current signers file, or was none when the release was completed; the operator has blocked the key, the host or the project; or this is a mirror", "rebuild.403")
            .refuses(404, "no file at the path", "status.404")
            .refuses(409, "the index is revoked, or does not match `rebuild_of` or `subject_digest`; the key has said something later; or the release is complete and the key has stated its rebuild", "rebuild.409")
            .can_fail(""))
        .post(paths::REVOKE, revoke, Endpoint::new("revoke", Section::Changing, "Revoke a release")
            .about(
                "Revokes a complete index. `revocation_json` is the exact text of a revocation document: an object with \
                 `reason` and `timestamp`, and optionally `subject_digest` (`sha512:` and the digest of the file) and \
                 `initiator`. Include `subject_digest`: without it, the revoker must also be the caller, and one \
                 signature must be enough.\n\n\
                 After a 202, other keys join by posting the same `revocation_json` with their own signature.",
            )
            .signed()
            .is_kept()
            .with_body::<RevokeBody>(&[("revoke", "revoke.request")])
            .answers_with::<RevokedResponse>(200, "revoked", &[("revoked", "revoke")])
            .answers_with::<RevokedResponse>(202, "recorded; more keys have to sign", &[("recorded", "revoke.recorded")])
            .refuses(400, "the body is malformed; the file cannot be revoked, or is already; the document is invalid, or about another file; the signature does not verify; the key is not in the revocation role", "revoke.400")
            .refuses(404, "no file at the path", "status.404")
            .refuses(409, "the file is not fully signed; another revocation is pending; this key has signed it already", "revoke.409")
            .can_be_blocked()
            .can_fail(""))
        .post(paths::VETO, veto, Endpoint::new("veto", Section::Changing, "Veto pending signers")
            .about(format!(
                "Vetoes a pending signers file. Only `master_keys` of the signers file in force can, as many as their \
                 thresholds say, before the pending file takes effect. `veto_json` is the exact text of a veto: an object \
                 with `veto` (the reason, 1 to {} characters), `project_id`, `signers_file_digest` (`sha512:` and the \
                 digest of the pending file), `previous` (that of the file in force) and `timestamp`.\n\n\
                 After a 202, other masters join by posting the same `veto_json` with their own signature. When enough \
                 have signed, the pending file goes, and the same bytes are refused until the next rotation. `veto_json` \
                 has at most {}.",
                shown_count(REASON_CHARS),
                shown_bytes(VETO_BYTES),
            ))
            .signed()
            .with_body::<VetoBody>(&[("veto", "veto.request")])
            .answers_with::<VetoedResponse>(200, "vetoed", &[("vetoed", "veto")])
            .answers_with::<VetoedResponse>(202, "recorded; more masters have to sign", &[("recorded", "veto.recorded")])
            .refuses(400, "the body is malformed; the path is not that of a pending signers file; the veto is invalid; the signature does not verify", "veto.400")
            .refuses(403, "the key is not a master key in force, or the project has none; the operator has blocked the key, the host or the project; or this is a mirror", "veto.403")
            .refuses(404, "no signers file is pending there", "veto.404")
            .refuses(409, "the veto is about another file; the pending file is a first registration, or takes effect already; another veto is pending; this key has signed it already", "veto.409")
            .can_fail(""))
}

async fn withdraw(request: Authenticated) -> Result<Json<ChangedResponse>, ApiError> {
    let withdrawal = Withdrawal::of(request.to_signed_request()?)?;
    request.check_blocks(&[&request.caller], &withdrawal.body.file_path)?;
    request.change(move |head, _| withdraw::withdraw(head, &withdrawal)).await?;
    Ok(Json(ChangedResponse::new("Release withdrawn. Its path is free again.")))
}

async fn revoke(request: Authenticated) -> Result<(StatusCode, Json<RevokedResponse>), ApiError> {
    let revoked = state(&request, StatementKind::Revocation).await?;
    let (status, message) = match revoked {
        true => (StatusCode::OK, "File revoked successfully".to_owned()),
        false => (StatusCode::ACCEPTED, "Revocation recorded. More signatures are required.".to_owned()),
    };
    Ok((status, Json(RevokedResponse { success: true, message, revoked })))
}

async fn veto(request: Authenticated) -> Result<(StatusCode, Json<VetoedResponse>), ApiError> {
    let vetoed = state(&request, StatementKind::Veto).await?;
    let (status, message) = match vetoed {
        true => (StatusCode::OK, "The pending signers are vetoed and gone.".to_owned()),
        false => (StatusCode::ACCEPTED, "Veto recorded. More signatures are required.".to_owned()),
    };
    Ok((status, Json(VetoedResponse { success: true, message, vetoed })))
}

async fn object(request: Authenticated) -> Result<Json<ChangedResponse>, ApiError> {
    let stands = state(&request, StatementKind::Objection).await?;
    Ok(Json(ChangedResponse::new(if stands { "Objection recorded" } else { "Objection taken back" })))
}

async fn rebuild(request: Authenticated) -> Result<Json<RebuildResponse>, ApiError> {
    Ok(Json(RebuildResponse::new(state(&request, StatementKind::Rebuild).await?)))
}

/// Records a statement, and says whether it is in force.
async fn state(request: &Authenticated, kind: StatementKind) -> Result<bool, ApiError> {
    let said = SignedStatement::parse(kind, &request.body)?;
    let keys = [&request.caller, &said.public_key];
    if kind == StatementKind::Veto {
        observe::note(RequestFact::File, &said.file_path);
        // A block of the project holds the signers back, and does not take the veto from its masters (D173).
        request.question.app.blocks.check_keys(&keys)?;
    } else {
        request.check_blocks(&keys, &said.file_path)?;
    }
    let decide = match kind {
        StatementKind::Revocation => {
            let signed = request.to_signed_request()?;
            let revoke = move |head: &Head, now| statement::revoke(head, &said, &signed, now);
            return Ok(request.change(revoke).await?.in_force);
        }
        StatementKind::Veto => statement::veto,
        StatementKind::Objection => statement::object,
        StatementKind::Rebuild => rebuild::rebuild,
    };
    Ok(request.change(move |head, now| decide(head, &said, now)).await?.in_force)
}
