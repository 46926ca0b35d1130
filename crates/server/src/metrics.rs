//! Counters of requests. Each component keeps its own counters; the metrics route names them.

pub(crate) mod counter;
mod kinds;
pub(crate) mod names;
mod requests;

pub(crate) use self::names::named;
pub use self::{
    counter::Counter,
    kinds::{RequestKind, RequestKinds},
    requests::{BOUNDS, Latencies, Requests},
};
