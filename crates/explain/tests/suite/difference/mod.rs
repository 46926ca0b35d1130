//! What a proposed signers file changes, in words for those who sign it (D8, D15, D39).

mod any_files;
mod changes;
