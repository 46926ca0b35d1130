//! What is counted, and how much a refusal or failure matters. Each component keeps its own counters; the metrics route
//! names them.

use std::time::Duration;

use axum::http::StatusCode;
use countersign_forge::{fetch::FetchError, release::AssetProblem, release::ReleaseError};

pub(crate) use countersign_store::writer::stats::Counter;

/// An enum whose cases have names. Adds `ALL`, in which a case stands at `case as usize`, and `name`.
macro_rules! named {
    ($(#[$about:meta])* pub enum $of:ident { $($(#[$why:meta])* $case:ident = $name:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $of {
            $($(#[$why])* $case,)+
        }

        impl $of {
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$case),+];

            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$case => $name,)+
                }
            }
        }
    };
}
pub(crate) use named;

// Counters of requests. Each read passes here, so this costs a few additions.

/// Every status that the server answers; the most frequent first.
const STATUSES: [u16; 16] = [200, 304, 404, 400, 401, 429, 202, 403, 405, 408, 409, 413, 431, 500, 503, 507];
/// Upper bounds of latencies in seconds, from a read to the download of a release.
pub const BOUNDS: [f64; 17] = [
    0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0,
    30.0, 300.0,
];

/// Answered requests by kind, status and latency.
#[derive(Debug, Default)]
pub struct Requests {
    kinds: [Cell; MAX_KINDS],
    upstream: [Counter; UpstreamFault::ALL.len()],
}

/// How long requests took.
#[derive(Debug, Clone, Copy)]
pub struct Latencies {
    /// The counts in the order of the bounds, and last the count above them.
    pub counts: [u64; BOUNDS.len() + 1],
    /// The sum of all.
    pub nanos: u64,
}

#[derive(Debug, Default)]
struct Cell {
    /// The last one is for any other status.
    statuses: [Counter; STATUSES.len() + 1],
    /// The last one is for what took longer.
    latencies: [Counter; BOUNDS.len() + 1],
    nanos: Counter,
}

impl Requests {
    pub(crate) fn record(&self, kind: RequestKind, status: StatusCode, took: Duration) {
        let cell = &self.kinds[kind.0];
        let slot = STATUSES.iter().position(|known| *known == status.as_u16());
        cell.statuses[slot.unwrap_or(STATUSES.len())].add(1);
        let nanos = took.as_secs().wrapping_mul(1_000_000_000).wrapping_add(u64::from(took.subsec_nanos()));
        let seconds = took.as_secs_f64();
        let slot = BOUNDS.iter().position(|bound| seconds <= *bound);
        cell.latencies[slot.unwrap_or(BOUNDS.len())].add(1);
        cell.nanos.add(nanos);
    }

    pub(crate) fn note_upstream(&self, fault: UpstreamFault) {
        self.upstream[fault as usize].add(1);
    }

    /// Requests that failed because of an upstream.
    pub fn upstream_failures(&self, fault: UpstreamFault) -> u64 {
        self.upstream[fault as usize].get()
    }

    /// Statuses with their counts; `None` is any other status.
    pub fn by_status(&self, kind: RequestKind) -> impl Iterator<Item = (Option<u16>, u64)> {
        let counts = self.kinds[kind.0].statuses.iter().map(Counter::get);
        STATUSES.into_iter().map(Some).chain([None]).zip(counts)
    }

    pub fn latencies(&self, kind: RequestKind) -> Latencies {
        let cell = &self.kinds[kind.0];
        Latencies { counts: cell.latencies.each_ref().map(Counter::get), nanos: cell.nanos.get() }
    }
}

// Names for kinds of requests. The route table defines this fixed set, so strangers cannot add to it.

const MAX_KINDS: usize = 32;
/// The name of all pages, with what they consist of.
pub const PAGE: &str = "page";

/// The kind of a request, by its path alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestKind(usize);

#[derive(Debug)]
pub struct RequestKinds {
    names: Vec<&'static str>,
    exact: Vec<(String, RequestKind)>,
    below: Vec<(String, RequestKind)>,
    ending: Vec<(String, RequestKind)>,
    unlimited: Vec<RequestKind>,
}

impl RequestKind {
    /// The kind of requests that no route answers, or that are not valid.
    pub const OTHER: Self = Self(0);
}

impl Default for RequestKinds {
    fn default() -> Self {
        let (names, unlimited) = (vec!["other"], Vec::new());
        Self { names, exact: Vec::new(), below: Vec::new(), ending: Vec::new(), unlimited }
    }
}

impl RequestKinds {
    /// Counts requests for a path under a name. A path that ends with a slash stands for everything below it,
    /// except `/` itself. No rate limit holds up a kind that is not limited, such as health checks.
    pub fn add(&mut self, path: &str, name: &'static str, is_limited: bool) {
        let kind = self.add_name(name, is_limited);
        let paths = if path.len() > 1 && path.ends_with('/') { &mut self.below } else { &mut self.exact };
        paths.push((path.to_owned(), kind));
    }

    /// Counts requests whose path ends like this, and is no other's, under a name.
    pub fn add_ending(&mut self, ending: &str, name: &'static str, is_limited: bool) {
        let kind = self.add_name(name, is_limited);
        self.ending.push((ending.to_owned(), kind));
    }

    fn add_name(&mut self, name: &'static str, is_limited: bool) -> RequestKind {
        let known = self.names.iter().position(|known| *known == name);
        let kind = RequestKind(known.unwrap_or(self.names.len()));
        if known.is_none() {
            assert!(self.names.len() < MAX_KINDS, "there are counters for {MAX_KINDS} kinds of requests");
            self.names.push(name);
        }
        if !is_limited {
            self.unlimited.push(kind);
        }
        kind
    }

    pub fn is_limited(&self, kind: RequestKind) -> bool {
        !self.unlimited.contains(&kind)
    }

    pub fn is_page(&self, kind: RequestKind) -> bool {
        self.names.get(kind.0).is_some_and(|name| *name == PAGE)
    }

    pub fn kind_of(&self, path: &str) -> RequestKind {
        // Most requests are reads below a directory.
        let below = self.below.iter().find(|(dir, _)| path.starts_with(dir.as_str()));
        let found = below.or_else(|| self.exact.iter().find(|(known, _)| known == path));
        let found = found.or_else(|| self.ending.iter().find(|(ending, _)| path.ends_with(ending)));
        found.map_or(RequestKind::OTHER, |(_, kind)| *kind)
    }

    pub fn all(&self) -> impl Iterator<Item = (RequestKind, &'static str)> {
        self.names.iter().enumerate().map(|(index, name)| (RequestKind(index), *name))
    }
}

// How much a refusal or failure matters to the operator, for the log and the metrics.

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
