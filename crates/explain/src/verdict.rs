//! The verdict on a release in one line, in the same words everywhere (D238, D239).

use countersign_core::documents::layout;
use countersign_core::rules::quorum::Tally;
use countersign_core::values::{path::RepoPath, shown::marked_name, shown::quoted};

/// What speaks against a release that is not revoked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Doubts {
    /// How far a revocation has come that waits for more signatures, and its reason.
    pub begun: Option<(Tally, String)>,
    /// What builders got that is something else, in words (D262).
    pub different: Option<String>,
    /// What signers hold against it, the oldest first.
    pub objections: Vec<String>,
}

impl Doubts {
    /// Says the gravest doubt, as in `1 of 2 revokers want it revoked: "wrong build"`.
    pub fn text(&self) -> Option<String> {
        if let Some((tally, reason)) = &self.begun {
            let Tally { collected, needed } = tally;
            return Some(format!("{collected} of {needed} revokers want it revoked: {}", quoted(reason)));
        }
        if let Some(different) = &self.different {
            return Some(different.clone());
        }
        let first = quoted(self.objections.first()?);
        Some(match self.objections.len() {
            1 => format!("1 signer objects: {first}"),
            many => format!("{many} signers object: {first}"),
        })
    }
}

/// A path as an address, as in `https://github.com/acme/app`. Letters that can look like others are marked.
pub fn shown_url(path: &RepoPath) -> String {
    let Some((server, rest)) = path.split_server() else { return marked_name(path.as_str()) };
    marked_name(&if rest.is_empty() { server } else { format!("{server}/{rest}") })
}

/// A release by its name and its project, as in `v1.1 of https://github.com/acme/app`.
pub fn shown_release(index: &RepoPath, project: &RepoPath) -> String {
    format!("{} of {}", marked_name(&layout::release_name(index, project)), shown_url(project))
}
