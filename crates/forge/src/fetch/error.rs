//! What can go wrong on the way to a file, in words that are safe to show.

use std::{error::Error as StdError, time::Duration};

use countersign_core::values::{bounds::REDIRECTS, time::Timestamp, wire};
use thiserror::Error;
use tokio::time::Instant;
use url::Url;

use crate::{guard::GuardRefusal, guard::find_refusal, url::shown_text};

/// An error of a fetch. Absence is `Ok(None)`, except if a file was asked for that must be there.
#[derive(Debug, Error)]
pub enum FetchError {
    #[error("{url} is not fetched: {reason}")]
    Refused { url: String, hop: Hop, reason: HopRefusal },
    #[error("{url} answered with status {status}")]
    Status { url: String, status: u16 },
    #[error("{url} timed out: {wait}")]
    TimedOut { url: String, wait: Wait },
    #[error("{url} sends too slowly: less than {bytes_per_second} bytes a second for {window:?}")]
    TooSlow { url: String, bytes_per_second: u64, window: Duration },
    #[error("{url} is larger than the allowed {max_bytes} bytes")]
    TooLarge { url: String, max_bytes: u64 },
    #[error("{url} could not be read: {reason}")]
    Broken { url: String, reason: String },
    #[error("{url} refused the request with status {status} because there were too many: try again {again}")]
    RateLimited { url: String, status: u16, again: TryAgain },
    #[error(
        "{url} refused the configured token with status {status}: have the operator check that it is still valid and \
         may read the repository"
    )]
    TokenRefused { url: String, status: u16 },
    #[error(
        "`{url}` was not found: there is no such file on a branch of that name, or the repository is private and the \
         server has no token for it"
    )]
    NoSuchFile { url: String },
    #[error(
        "`{url}` names no signers file: on a branch, the file must be `{}` at the root, or directly inside `{}`, `{}` or \
         `{}` there, and there is no branch whose name would make it so", wire::SIGNERS_FILE,
        wire::PUBLISHED_SIGNERS_DIRS[0], wire::PUBLISHED_SIGNERS_DIRS[1], wire::PUBLISHED_SIGNERS_DIRS[2]
    )]
    NoSuchBranch { url: String },
    #[error("`{url}` was not found: there is no such file")]
    NotOnServer { url: String },
    #[error(
        "`{url}` can be read in two ways, and both files exist: put the signers file on a branch whose name does not \
         end in the name of its directory"
    )]
    Ambiguous { url: String },
    #[error(
        "{url} answered with a web page instead of the file: is the repository public, and the branch right?"
    )]
    WebPage { url: String },
}

/// The time at which a server that was asked too often will answer again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TryAgain {
    #[error("in {} seconds", .0.as_secs())]
    In(Duration),
    #[error("after {0}")]
    At(Timestamp),
    #[error("later")]
    Later,
}

/// Whose choice a URL was: the caller's, or a server's on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hop {
    AsGiven,
    Redirect,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HopRefusal {
    #[error(transparent)]
    Guard(#[from] GuardRefusal),
    #[error("the redirect leads to something that is not a URL")]
    NotAUrl,
    #[error("the redirect leaves the scheme, host and port of the URL: give the URL that it leads to")]
    OtherOrigin,
    #[error(
        "the redirect leads from https to plain http, where anyone on the way could read and change it: give the URL \
         that it leads to, if that is what you want"
    )]
    LeavesTls,
    #[error("only http and https URLs are fetched")]
    NotHttp,
    #[error("there are more than {REDIRECTS} redirects")]
    TooManyRedirects,
}

/// The limit of time that ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Wait {
    #[error("no connection within {0:?}")]
    Connect(Duration),
    #[error("nothing received for {0:?}")]
    Idle(Duration),
    #[error("not finished within {0:?}")]
    Total(Duration),
}

impl FetchError {
    /// Whether the server said that there is no such file, rather than nothing, or something else.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::NoSuchFile { .. } | Self::NoSuchBranch { .. } | Self::NotOnServer { .. })
    }

    /// Whether the caller's own URL is at fault (400), rather than what the upstream did (500): D25.
    pub fn is_refused_as_given(&self) -> bool {
        matches!(self, Self::Refused { hop: Hop::AsGiven, .. } | Self::NoSuchBranch { .. })
    }
}

/// Why there was no answer.
pub(super) enum RequestFailure {
    Refused(GuardRefusal),
    TimedOut(Wait),
    Broken(String),
}

impl RequestFailure {
    pub(super) fn of(error: &reqwest::Error, timeouts: Timeouts, url: &Url) -> Self {
        if let Some(refusal) = find_refusal(error) {
            return Self::Refused(refusal.clone().at_port(url));
        }
        if error.is_timeout() {
            return Self::TimedOut(if error.is_connect() {
                Wait::Connect(timeouts.connect)
            } else {
                Wait::Idle(timeouts.idle)
            });
        }
        // The outer layers only repeat the URL, with its query, and say that sending failed.
        let innermost = causes(error).last().map(ToString::to_string).unwrap_or_default();
        Self::Broken(shown_text(&innermost))
    }
}

fn causes<'e>(error: &'e (dyn StdError + 'static)) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error| (*error).source())
}

// How long we wait for a server, also for one that only drips to keep us waiting (D49).

#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// The limit for a connection, with name resolution and TLS.
    pub connect: Duration,
    /// The limit for the next bytes.
    pub idle: Duration,
    /// The limit for the whole of one `get`, redirects included.
    pub total: Duration,
    /// The time after which a body must have come at the slowest rate that we wait for, and again in each such time
    /// (D49).
    pub pace: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(20),
            total: Duration::from_secs(60),
            pace: Duration::from_secs(15),
        }
    }
}

/// Bytes a second of signers files, checksums files and what a forge says of a release.
pub(crate) const DOCUMENT_RATE: u64 = 1 << 10;
pub(crate) const ASSET_RATE: u64 = 16 << 10;

/// Measures what came since the window began. On average over each window it must be the rate, or more: a file server
/// that drips must not hold a turn for as long as the whole may take.
pub(super) struct Pace {
    pub(super) bytes_per_second: u64,
    pub(super) window: Duration,
    begun: Instant,
    pub(super) bytes: u64,
}

impl Pace {
    pub(super) fn start(bytes_per_second: u64, window: Duration) -> Self {
        Self { bytes_per_second, window, begun: Instant::now(), bytes: 0 }
    }

    /// The time at which enough must have come.
    pub(super) fn end(&self) -> Instant {
        self.begun + self.window
    }

    /// Ends a window, and begins the next one if enough came in this one.
    pub(super) fn begin_next(&mut self) -> bool {
        let enough = u128::from(self.bytes_per_second) * self.window.as_millis() / 1_000;
        let is_enough = u128::from(self.bytes) >= enough;
        *self = Self::start(self.bytes_per_second, self.window);
        is_enough
    }
}
