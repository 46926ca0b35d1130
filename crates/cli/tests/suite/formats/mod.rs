//! Signatures for other programs: signed in one act and stored. `export` has what those programs make of them.

mod signed;
mod submitted;
