//! Guarded requests (D28): every hop is checked before it is requested, and nothing unbounded is read.

mod access;
pub(crate) mod download;
mod error;
mod fetcher;
pub(crate) mod pace;
mod rate_limit;
pub(crate) mod route;
mod send;
mod signers;

pub use crate::https::SetupError;

pub use self::{
    download::Download,
    error::{FetchError, Hop, HopRefusal, TryAgain, Wait},
    fetcher::{FetchLimits, Fetcher},
    pace::Timeouts,
    route::Redirects,
    send::{Post, SendError},
};
