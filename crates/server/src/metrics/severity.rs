//! How much a refusal or failure matters to the operator, for the log and the metrics.

use countersign_forge::{fetch::FetchError, release::AssetProblem, release::ReleaseError};

use crate::metrics::counting::named;

named! {
    /// What an upstream did wrong. The status is 500, as the specification says, and the server is well.
    pub enum UpstreamFault {
        /// The other server answered that there is no such file or release.
        Missing = "missing",
        /// No whole answer came.
        Unreachable = "unreachable",
        /// What it sent cannot be used.
        Invalid = "invalid",
    }
}

/// The level of the log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// A client that asks too often must not fill the log: `debug`.
    Flood,
    /// The caller can do something about it, or try again: `info`.
    Refusal,
    /// `warn`
    Upstream(UpstreamFault),
    /// The server failed: `error`.
    Failure,
}

impl From<&FetchError> for UpstreamFault {
    fn from(error: &FetchError) -> Self {
        match error {
            FetchError::NoSuchFile { .. }
            | FetchError::NoSuchBranch { .. }
            | FetchError::NotOnServer { .. } => Self::Missing,
            FetchError::Status { .. }
            | FetchError::TimedOut { .. }
            | FetchError::TooSlow { .. }
            | FetchError::Broken { .. }
            | FetchError::RateLimited { .. }
            | FetchError::TokenRefused { .. } => Self::Unreachable,
            FetchError::Refused { .. }
            | FetchError::TooLarge { .. }
            | FetchError::Ambiguous { .. }
            | FetchError::WebPage { .. } => Self::Invalid,
        }
    }
}

impl From<&ReleaseError> for UpstreamFault {
    fn from(error: &ReleaseError) -> Self {
        match error {
            ReleaseError::Fetch(error) => error.into(),
            ReleaseError::NotFound { .. } => Self::Missing,
            ReleaseError::NotADocument { .. } | ReleaseError::Refused { .. } => Self::Invalid,
            ReleaseError::Asset { problem, .. } => match problem {
                AssetProblem::Fetch(error) => error.into(),
                AssetProblem::NotFound { .. } => Self::Missing,
                AssetProblem::Interrupted { .. } => Self::Unreachable,
                AssetProblem::WebPage { .. }
                | AssetProblem::Size { .. }
                | AssetProblem::Overlong { .. }
                | AssetProblem::Digest { .. } => Self::Invalid,
            },
        }
    }
}
