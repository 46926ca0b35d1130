//! What the log of a server proves to those who download: the newest state, and every lie about it.

mod lies;
mod pins;
mod shown;
