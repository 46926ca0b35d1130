//! What stays on disk: through restarts, kills, full disks, damage, and many writers at once.

mod concurrency;
mod damage;
mod data_directory;
mod disk_full;
mod kills;
mod kills_and_gc;
pub(crate) mod kills_load;
mod pauses;
mod restarts;
