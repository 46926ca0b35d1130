//! What the log of a server proves to those who download: the newest state, and every lie about it.

mod ages;
mod lies;
mod monitor;
mod pins;
mod revoking;
mod shown;
mod state_lies;
mod witnessed;
