//! Counters of requests. Each component keeps its own counters; the metrics route names them.

pub(crate) mod counting;
mod requests;
pub mod severity;

pub use crate::metrics::requests::{BOUNDS, Latencies, PAGE, RequestKind, RequestKinds, Requests};
