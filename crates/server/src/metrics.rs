//! Counters of requests. Each component keeps its own counters; the metrics route names them.

mod kinds;
mod requests;

pub use self::{
    kinds::{PAGE, RequestKind, RequestKinds},
    requests::{BOUNDS, Latencies, Requests},
};
