//! What is stored, by digest, project, name and key: the answers of the catalogue (D51, D52).

mod keys;
mod releases;

pub use self::{
    keys::{
        KeyListing, KeyPendingResponse, KeyResponse, KeySignedResponse, SignedRelease, WaitingFile,
        WaitingKind,
    },
    releases::{ListedRelease, ProjectsResponse, ReleasesResponse},
};
pub use countersign_core::rules::stored::ReleaseState;
