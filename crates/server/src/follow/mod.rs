//! Following other servers, and the one loop for work that goes on beside requests.

pub mod background;
pub mod mirror;
pub mod network;
pub(crate) mod outgoing;
pub mod witness;
