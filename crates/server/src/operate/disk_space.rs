//! How much room the disk of the data directory has, and a warning before it is full (D57).

use std::{io, path::Path, path::PathBuf, time::Duration, time::Instant};

use crate::follow::background::Rounds;

/// How often the server looks.
const LOOK: Duration = Duration::from_secs(60);
/// The pause between two warnings.
const REMIND: Duration = Duration::from_secs(60 * 60);
const LOW_BYTES: u64 = 1 << 30;
/// One in so many bytes, which is 5%.
const LOW_SHARE: u64 = 20;

/// The file system of a directory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    /// What the server can still use. Some is reserved for root.
    pub free: u64,
    pub size: u64,
}

impl DiskSpace {
    pub fn of(dir: &Path) -> io::Result<Self> {
        let disk = rustix::fs::statvfs(dir)?;
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        Ok(Self { free: bytes(disk.f_bavail), size: bytes(disk.f_blocks) })
    }

    pub fn is_low(self) -> bool {
        self.free < LOW_BYTES || self.free < self.size / LOW_SHARE
    }
}

/// Warns while there is little room, until it is stopped.
pub(crate) fn watch(dir: PathBuf) -> io::Result<Rounds> {
    let mut warned: Option<Instant> = None;
    Rounds::start("disk-space", LOOK, move || {
        if let Ok(space) = DiskSpace::of(&dir)
            && space.is_low()
            && warned.is_none_or(|warned| warned.elapsed() >= REMIND)
        {
            warned = Some(Instant::now());
            tracing::warn!(
                free_bytes = space.free,
                size_bytes = space.size,
                "the disk of the data directory is nearly full: make room, or the server will refuse changes"
            );
        }
    })
}
