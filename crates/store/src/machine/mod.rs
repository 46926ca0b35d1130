//! What the machine gives: its disk, step by step, the data directory on it, its clock and its threads.

pub mod clock;
pub mod data_dir;
pub mod disk;
