//! Guarded requests (D28): every hop is checked before it is requested, and nothing unbounded is read.

pub(crate) mod download;
pub(crate) mod error;
mod fetcher;

pub use crate::fetch::download::{Download, Redirects};
pub use crate::fetch::error::{FetchError, Hop, HopRefusal, Timeouts, TryAgain, Wait};
pub use crate::fetch::fetcher::{FetchLimits, Fetcher, Post, SendError};
pub use crate::https::SetupError;
