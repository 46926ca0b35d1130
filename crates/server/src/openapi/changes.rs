//! Endpoints that change something.

use countersign_api::{
    answers::{
        AssetsResponse, ChangedResponse, ProposedResponse, RevokedResponse, SignedResponse, VetoedResponse,
    },
    requests::{AssetsBody, ObjectBody, ProposeBody, RevokeBody, SignaturesBody, VetoBody, WithdrawBody},
};
use countersign_core::{
    rules::decide::MAX_LEAD_MINUTES,
    values::{
        bounds::{REASON_CHARS, VETO_BYTES},
        shown::{shown_bytes, shown_count},
    },
};

use super::endpoint::{Endpoint, Section};

pub fn register_repo() -> Endpoint {
    Endpoint::new(
        "register_repo",
        Section::Changing,
        "Register a project",
        "Registers a project by the signers file at a URL. The server fetches the file, stores it as pending, and \
         keeps the signed request as proof of who sent it.\n\n\
         `public_key` must be the key that signs the request, and must be listed in the file. The submitter \
         signs the file like every other signer. `required_signers` lists the keys that have yet to sign.",
    )
    .signed()
    .is_kept()
    .with_body::<ProposeBody>(&[("register", "propose.request")])
    .answers_with::<ProposedResponse>(200, "registered, and waiting for signatures", &[("registered", "register")])
    .refuses(400, &format!("the body, the URL or the address of its host is refused; `public_key` is invalid, not the caller's, or not in the file; the file's `timestamp` is more than {MAX_LEAD_MINUTES} minutes ahead"), "propose.400")
    .refuses(409, "the project is registered, its registration is in progress, or it overlaps with another project; or too many registrations beside it wait for signatures", "register.409")
    .can_be_blocked()
    .can_fail(", or the signers file could not be fetched or is not valid")
}

pub fn update_signers() -> Endpoint {
    Endpoint::new(
        "update_signers",
        Section::Changing,
        "Propose new signers",
        "Proposes a new signers file for a project that has one in force. The URL decides the project.\n\n\
         `public_key` must be the key that signs the request, and be listed in the current file, in any role. \
         Proposing the pending file again changes nothing; the answer lists who is missing.",
    )
    .signed()
    .is_kept()
    .with_body::<ProposeBody>(&[("update", "propose.request")])
    .answers_with::<ProposedResponse>(200, "proposed, and waiting for signatures", &[("proposed", "update")])
    .refuses(400, &format!("the body, the URL or the address is refused; the project is not registered, or its first signers file is not in force yet; `public_key` is invalid, not the caller's, or not in the current file; the new `timestamp` is not later than the current one, or more than {MAX_LEAD_MINUTES} minutes ahead"), "update.400")
    .refuses(409, "another proposal is pending, and the caller is neither admin nor master, or an admin where a master has a part in it and rotations wait; the masters have vetoed this very file; or too many proposals were replaced already", "update.409")
    .can_be_blocked()
    .can_fail(", or the signers file could not be fetched or is not valid")
}

pub fn assets() -> Endpoint {
    Endpoint::new(
        "assets",
        Section::Changing,
        "Register a release",
        "Registers a release, by its page on a code forge or by checksums files. The server makes an index of names \
         and digests, which then waits for signatures. The files themselves are not kept.\n\n\
         Every key of the signers file in force there can do this, in any role. The server downloads all files of a \
         release on a forge, which can take minutes. If the connection ends meanwhile, send the request again: it \
         joins the download under way.",
    )
    .signed()
    .with_body::<AssetsBody>(&[("release", "assets.request"), ("checksums", "assets.request.checksums")])
    .answers_with::<AssetsResponse>(200, "registered, and waiting for signatures", &[("release", "assets"), ("replaced", "assets.replaced")])
    .refuses(400, "neither or both of the fields; a URL or address is refused; the URLs do not share a directory; no signers file is in force there; the host is not a known code forge", "assets.400")
    .refuses(403, "the caller is not in the current signers file, or is a registrar and would correct an index; the operator has blocked the key, the host or the project; or this is a mirror", "assets.403")
    .refuses(409, "the index is complete or revoked, or is collecting with the same content; or the project has too many collecting indexes", "assets.409")
    .can_fail(", or the release could not be fetched or is not valid")
}

pub fn withdraw() -> Endpoint {
    Endpoint::new(
        "withdraw",
        Section::Changing,
        "Withdraw a release",
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
    .refuses(403, "the caller neither registered the release nor is an admin, or is a registrar and someone has signed the release or objects to it; the operator has blocked the key, the host or the project; or this is a mirror", "withdraw.403")
    .refuses(404, "no file at the path", "status.404")
    .refuses(409, "the index is complete or revoked, was withdrawn already, or does not match `subject_digest`", "withdraw.409")
    .can_fail("")
}

pub fn object() -> Endpoint {
    Endpoint::new(
        "object",
        Section::Signing,
        "Object to a release",
        &format!(
            "Records a signer's objection to a release that is complete or collects signatures. It blocks nothing; \
             every later signer sees it first. `objection_json` is the exact text of an objection: an object with \
             `objection`, `subject_digest` (`sha512:` and the digest of the index) and `timestamp`. `objection` has 1 \
             to {} characters, or is null and takes back what the same key said before.\n\n\
             The signature is over the 64 raw bytes of the SHA-512 digest of that text. `public_key` is the objector, \
             who need not be the caller. The newest word of a key counts, so each must have a later `timestamp`.",
            shown_count(REASON_CHARS),
        ),
    )
    .signed()
    .with_body::<ObjectBody>(&[("object", "object.request"), ("take_back", "object.request.back")])
    .answers_with::<ChangedResponse>(200, "recorded", &[("objected", "object"), ("taken_back", "object.back")])
    .refuses(400, &format!("the body or the objection is malformed; the path is not that of an index; the signature does not verify; the `timestamp` is more than {MAX_LEAD_MINUTES} minutes ahead"), "object.400")
    .refuses(403, "the objector is not in the current signers file; the operator has blocked the key, the host or the project; or this is a mirror", "object.403")
    .refuses(404, "no file at the path", "status.404")
    .refuses(409, "the index is revoked, or does not match `subject_digest`; the key has said something later; there is nothing to take back; or there are too many objections", "object.409")
    .can_fail("")
}

pub fn revoke() -> Endpoint {
    Endpoint::new(
        "revoke",
        Section::Changing,
        "Revoke a release",
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
    .can_fail("")
}

pub fn veto() -> Endpoint {
    Endpoint::new(
        "veto",
        Section::Changing,
        "Veto pending signers",
        &format!(
            "Vetoes a pending signers file. Only `master_keys` of the signers file in force can, as many as their \
             thresholds say, before the pending file takes effect. `veto_json` is the exact text of a veto: an object \
             with `veto` (the reason, 1 to {} characters), `project_id`, `signers_file_digest` (`sha512:` and the \
             digest of the pending file), `previous` (that of the file in force) and `timestamp`.\n\n\
             After a 202, other masters join by posting the same `veto_json` with their own signature. When enough \
             have signed, the pending file goes, and the same bytes are refused until the next rotation. `veto_json` \
             has at most {}.",
            shown_count(REASON_CHARS),
            shown_bytes(VETO_BYTES),
        ),
    )
    .signed()
    .with_body::<VetoBody>(&[("veto", "veto.request")])
    .answers_with::<VetoedResponse>(200, "vetoed", &[("vetoed", "veto")])
    .answers_with::<VetoedResponse>(202, "recorded; more masters have to sign", &[("recorded", "veto.recorded")])
    .refuses(400, "the body is malformed; the path is not that of a pending signers file; the veto is invalid; the signature does not verify", "veto.400")
    .refuses(403, "the key is not a master key in force, or the project has none; the operator has blocked the key, the host or the project; or this is a mirror", "veto.403")
    .refuses(404, "no signers file is pending there", "veto.404")
    .refuses(409, "the veto is about another file; the pending file is a first registration, or takes effect already; another veto is pending; this key has signed it already", "veto.409")
    .can_fail("")
}

pub fn submit_signatures() -> Endpoint {
    Endpoint::new(
        "submit_signatures",
        Section::Signing,
        "Submit signatures",
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
    .answers_with::<SignedResponse>(
        200,
        "accepted",
        &[("collecting", "sign"), ("complete", "sign.complete"), ("waits", "sign.waits")],
    )
    .refuses(400, "the body is malformed; no such file; the file collects no signatures; a path is missing, or there is one too many; a signature does not verify", "sign.400")
    .refuses(403, "the signer may not sign this file; the operator has blocked the key, the host or the project; or this is a mirror", "sign.403")
    .refuses(409, "the file is complete or revoked, or this key has signed it already", "sign.409")
    .can_fail("")
}
