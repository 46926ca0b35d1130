//! Counters of requests. Other parts of the server keep their own; the route for metrics gives all of them their names.

mod kinds;
mod requests;

pub use self::{
    kinds::{RequestKind, RequestKinds},
    requests::{BOUNDS, Requests},
};
