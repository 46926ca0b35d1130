//! How far a release or proposed signers have come, from one state of the repository. Pages, the catalogue and the client
//! show these descriptions; none of them puts its own together.

pub mod proposal;
pub mod release;
