//! `countersign fsck`: a sound history passes, and every kind of tampering is found.

mod bombs;
mod damage;
mod fifos;
mod formats;
mod git;
mod places;
mod server;
mod sound;
