//! Endpoints that only read.

use countersign_api::{
    answers::{ChainResponse, FilesToSignResponse, PendingResponse, StatusResponse},
    schemas::SignersConfig,
    state::StateDocument,
};

use super::{
    endpoint::{CACHE_CONTROL, CONTENT_LENGTH, Content, DescribedAnswer, ETAG, Endpoint, Section},
    parameters::{self, any_path, file_path, if_none_match},
};
use crate::error::ApiError;

pub fn pending_signatures() -> Endpoint {
    Endpoint::new(
        "pending_signatures",
        Section::Signing,
        "What waits for my signature",
        "The files that collect signatures, and that the caller can sign and has not signed. Master keys see only \
         signers files. `revocations` lists begun revocations that the caller can join, with the same fields as \
         `GET /v1/keys/{key}/pending`.",
    )
    .signed()
    .answers_with::<PendingResponse>(
        200,
        "sorted paths",
        &[("one", "pending"), ("objection", "pending.objection"), ("revocation", "pending.revocation")],
    )
    .can_be_elsewhere()
    .can_fail("")
}

pub fn signature_status() -> Endpoint {
    Endpoint::new(
        "signature_status",
        Section::Signing,
        "How far a file has come",
        "The status of an index or a pending signers file. Keys of the signers file in force, in any role, can ask for \
         it. For a pending signers file, its own keys can ask as well.",
    )
    .signed()
    .with_parameter(file_path())
    .answers_with::<StatusResponse>(
        200,
        "whether it is complete",
        &[("complete", "status"), ("revoked", "status.revoked"), ("waits", "status.waits")],
    )
    .refuses(400, "invalid path", "path.400")
    .refuses(403, "the caller is not in the signers file; or this is a mirror", "status.403")
    .refuses(
        404,
        "no such file, a file that collects no signatures, or no signers file for it",
        "status.404",
    )
    .can_fail("")
}

pub fn files_to_sign() -> Endpoint {
    Endpoint::new(
        "files_to_sign",
        Section::Signing,
        "What to sign for a file",
        "The content of the file and, for a signers file, of its metadata. Parse it before you sign it: it must be \
         the kind of document that the path names, for the project that the path names.",
    )
    .signed()
    .with_parameter(file_path())
    .answers_with::<FilesToSignResponse>(200, "the content by path", &[("index", "files_to_sign")])
    .refuses(400, "invalid path", "path.400")
    .can_be_elsewhere()
    .refuses(404, "no file at the path", "status.404")
    .can_fail("")
}

pub fn file() -> Endpoint {
    Endpoint::new(
        "file",
        Section::Reading,
        "A stored file",
        "The bytes of any stored file. You can keep copies, but ask again before you use one: the file at a path \
         can change.",
    )
    .counted_as("files")
    .with_parameter(file_path())
    .with_parameter(if_none_match())
    .answers(stored("the bytes").with_content(Content::bytes()))
    .answers(DescribedAnswer::not_modified())
    .refuses(400, "invalid path, or a directory", "path.400")
    .refuses(404, "no file at the path", "status.404")
    .can_fail("")
    .can_be_busy()
    .limited()
}

pub fn signers() -> Endpoint {
    Endpoint::new(
        "get_signers",
        Section::Reading,
        "The signers in force for a path",
        "The nearest signers file in force at or above the path, byte for byte as it was published.",
    )
    .with_parameter(any_path())
    .with_parameter(if_none_match())
    .answers(
        stored("the signers file")
            .with_content(Content::of::<SignersConfig>(&[("two_of_two", "get_signers")])),
    )
    .answers(DescribedAnswer::not_modified())
    .refuses(400, "invalid path", "path.400")
    .fails(
        "no signers file in any parent directory",
        &ApiError::no_signers("https/github.com/443/acme/other"),
    )
    .can_fail("")
    .can_be_busy()
    .limited()
}

pub fn chain() -> Endpoint {
    describe_chain("get_signers_chain", "")
}

/// Another name for it in the specification.
pub fn artifact_chain() -> Endpoint {
    describe_chain("get_artifact_signers_chain", "\n\nThe same as `get_signers_chain`, under another name.")
}

fn describe_chain(id: &'static str, note: &str) -> Endpoint {
    let about = "The project's signers files in order, from the first to the one that governs the file. The path must \
                 be that of a complete or revoked index, or of a signers file in force. Any other path, well-formed or \
                 not, gets 400.";
    Endpoint::new(id, Section::Reading, "The history of a file's signers", &format!("{about}{note}"))
        .counted_as("get_signers_chain")
        .with_parameter(file_path())
        .answers_with::<ChainResponse>(200, "the history of the signers", &[("first_signers", "chain")])
        .refuses(400, "invalid path, nothing there, not complete, or of another kind", "chain.400")
        .can_fail("")
        .can_be_busy()
        .limited()
}

pub fn state() -> Endpoint {
    Endpoint::new(
        "state",
        Section::Reading,
        "The state of a release or a project",
        "Everything that the server has about one release, or about the signers of one project, as of one commit. The path \
         is that of an index, of a release's directory, of a project, or of a signers file. For a complete or revoked \
         release, `bundle` is the bundle that `countersign bundle` writes, with what the log proves; the saved answer \
         verifies like a bundle. For everything else, `files` has the exact stored texts: signatures so far, signers that \
         are proposed, objections, a begun revocation or veto, a withdrawal. The server's word is a hint where to look: \
         check signatures yourself.",
    )
    .with_parameter(any_path())
    .with_parameter(parameters::tag_below())
    .with_parameter(parameters::newest_below())
    .with_parameter(parameters::history_after())
    .with_parameter(parameters::log_size())
    .with_parameter(if_none_match())
    .answers(stored("the state").with_content(Content::of::<StateDocument<'_>>(&[("complete", "state")])))
    .answers(DescribedAnswer::not_modified())
    .refuses(400, "invalid path or question", "path.400")
    .refuses(404, "no release and no project at the path", "status.404")
    .can_fail("")
    .can_be_busy()
    .limited()
}

fn stored(about: &str) -> DescribedAnswer {
    DescribedAnswer::new(200, about).with_header(ETAG).with_header(CACHE_CONTROL).with_header(CONTENT_LENGTH)
}
