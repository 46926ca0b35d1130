//! What is stored, by digest, project, name and key.

use countersign_api::catalogue::{
    KeyPendingResponse, KeyResponse, KeySignedResponse, ProjectsResponse, ReleasesResponse,
};
use countersign_core::values::bounds::LIST_ENTRIES;

use super::{
    endpoint::{Endpoint, Section},
    parameters,
};
use crate::error::ApiError;

pub fn releases() -> Endpoint {
    let endpoint = Endpoint::new(
        "releases",
        Section::Reading,
        "Find releases",
        &format!(
            "Which complete or revoked releases list a file with this digest, the oldest first; or the releases of a \
             project, the last registered first. Give exactly one of `sha256`, `sha512` and `project`. Two projects \
             can list the same file, so look at `project_id`. An answer has at most {LIST_ENTRIES} releases.\n\n\
             The server read these facts from the stored files. To rely on a release, check it: its files, signatures \
             and signers are all public.",
        ),
    )
    .with_parameter(parameters::sha256())
    .with_parameter(parameters::sha512())
    .with_parameter(parameters::project())
    .with_parameter(parameters::tag())
    .with_parameter(parameters::release_state())
    .with_parameter(parameters::newest())
    .with_parameter(parameters::after())
    .answers_with::<ReleasesResponse>(200, "the releases", &[("digest", "releases")]);
    catalogued(endpoint, "give exactly one of `sha256`, `sha512` and `project`")
}

pub fn projects() -> Endpoint {
    let endpoint = Endpoint::new(
        "projects",
        Section::Reading,
        "Find projects by name",
        "Projects whose identifiers end with these names: `acme/app` finds `https/github.com/443/acme/app`. Those with \
         signers in force; if there are none, those that are being registered. At most 100.",
    )
    .with_parameter(parameters::project_name())
    .answers_with::<ProjectsResponse>(200, "their identifiers", &[("one", "projects")]);
    catalogued(endpoint, "name: must be given")
}

pub fn key() -> Endpoint {
    let endpoint = Endpoint::new(
        "key",
        Section::Reading,
        "What is known of a key",
        "Where signers files in force list it, the last 25 releases that carry its signature, and revocations that it \
         signed and that wait for others. `last_signed_at` says when it was last used: for a release, a signers file that \
         took effect, or a revocation in force. A key that no one lists gets empty lists.",
    )
    .with_parameter(parameters::key())
    .answers_with::<KeyResponse>(200, "the key", &[("signer", "key")]);
    catalogued(endpoint.counted_as("keys"), "key: not base64 of 32 bytes")
}

pub fn key_pending() -> Endpoint {
    let endpoint = Endpoint::new(
        "key_pending",
        Section::Signing,
        "What waits for a key",
        &format!(
            "Begun revocations first, then signers files, then releases; of each kind the oldest first, at most \
             {LIST_ENTRIES} in all. The same as `pending_signatures` and more, for anyone who asks.",
        ),
    )
    .with_parameter(parameters::key())
    .answers_with::<KeyPendingResponse>(200, "what waits", &[("revocation", "key.pending")]);
    catalogued(endpoint.counted_as("keys"), "key: not base64 of 32 bytes")
}

pub fn key_signed() -> Endpoint {
    let endpoint = Endpoint::new(
        "key_signed",
        Section::Reading,
        "What a key has signed",
        &format!(
            "All releases that carry its signature, the newest signature first, at most {LIST_ENTRIES} in an answer. \
             `decisive` marks those that would not have been complete without it. `countersign incident` asks this \
             about a stolen key.",
        ),
    )
    .with_parameter(parameters::key())
    .with_parameter(parameters::since_time())
    .with_parameter(parameters::after())
    .answers_with::<KeySignedResponse>(200, "the releases", &[("signer", "key.signed")]);
    catalogued(endpoint.counted_as("keys"), "key: not base64 of 32 bytes")
}

fn catalogued(endpoint: Endpoint, malformed: &str) -> Endpoint {
    let about = "a parameter is missing, malformed, unknown or repeated; the message names it";
    endpoint
        .fails(about, &ApiError::invalid_parameter(malformed))
        .can_fail("")
        .fails("the server has just started, or is busy; try again", &ApiError::no_catalogue_yet())
        .limited()
}
