//! The server's clock, threads that end in time, their locks, and whether something failed lately. Tests put a fixed
//! clock in its place.

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::sync::{atomic::AtomicU64, atomic::Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{fmt, io, thread::Builder, thread::JoinHandle};

use countersign_core::values::time::Timestamp;

/// The last second of the year 9999.
pub const LAST_SECOND: i64 = 253_402_300_799;

/// The time of this machine; `None` before 1970.
pub fn since_1970() -> Option<Duration> {
    SystemTime::now().duration_since(UNIX_EPOCH).ok()
}

#[derive(Clone)]
pub struct Clock {
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    steady: Arc<dyn Fn() -> Instant + Send + Sync>,
}

impl Clock {
    /// The clock of this machine. Before 1970, which Git's commits cannot have, it stands still; from the year 10000
    /// on, which timestamps cannot have, as well (D50).
    pub fn system() -> Self {
        Self::new(|| {
            let since = since_1970().unwrap_or_default();
            let nanos = i128::try_from(since.as_nanos()).unwrap_or(i128::MAX);
            Timestamp::from_unix_nanos(nanos).unwrap_or_else(|_| {
                Timestamp::from_unix_seconds(LAST_SECOND).expect("the year 9999 has a last second")
            })
        })
    }

    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self { now: Arc::new(now), steady: Arc::new(Instant::now) }
    }

    /// Sets another measure of how much time has passed.
    #[must_use]
    pub fn with_steady(mut self, steady: impl Fn() -> Instant + Send + Sync + 'static) -> Self {
        self.steady = Arc::new(steady);
        self
    }

    pub fn now(&self) -> Timestamp {
        (self.now)()
    }

    /// A time that never goes back, whatever the clock does.
    pub(crate) fn steady(&self) -> Instant {
        (self.steady)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// A clock that only goes forwards: nanoseconds since about the start of the process.
pub fn uptime_nanos(at: Instant) -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    // In 64 bits, which last for centuries: every request passes here.
    let since = at.saturating_duration_since(*START);
    since.as_secs().wrapping_mul(1_000_000_000).wrapping_add(u64::from(since.subsec_nanos()))
}

// Threads that end before what they belong to is gone.

/// A thread that is waited for when this is dropped. What lets it end, such as the sender of its queue, must be dropped
/// before: a field that stands above this one.
#[derive(Debug)]
pub(crate) struct JoinedThread(Option<JoinHandle<()>>);

impl JoinedThread {
    pub(crate) fn start(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        Builder::new().name(name.to_owned()).spawn(work).map(Some).map(Self)
    }
}

impl Drop for JoinedThread {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            let _ = thread.join();
        }
    }
}

// Locks that a thread can take although another one has panicked while it had them.

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

pub fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

// Whether something failed lately.

/// A failure counts for so long, unless something succeeds before. Not for ever: a server that receives no changes
/// any more would never find out that its disk has room again.
pub const MEMORY: Duration = Duration::from_secs(30);

/// Why something could not be written. The error itself says it: how much room there is a moment later says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteFailure {
    NoRoom,
    Other,
}

impl WriteFailure {
    pub fn of(is_disk_full: bool) -> Self {
        if is_disk_full { Self::NoRoom } else { Self::Other }
    }
}

/// Whether something could not be written the last time, and not long ago.
#[derive(Debug, Default)]
pub struct RecentFailure {
    /// Twice the time of the failure in nanoseconds of our uptime, and one more if there was no room; 0 if the last
    /// time went well.
    failed_at: AtomicU64,
}

impl RecentFailure {
    pub fn note(&self, failure: Option<WriteFailure>, now: Instant) {
        let twice = uptime_nanos(now).max(1) << 1;
        let failed_at = failure.map_or(0, |failure| twice | u64::from(failure == WriteFailure::NoRoom));
        self.failed_at.store(failed_at, Ordering::Relaxed);
    }

    pub fn recent(&self, now: Instant) -> Option<WriteFailure> {
        let failed_at = self.failed_at.load(Ordering::Relaxed);
        let memory = u64::try_from(MEMORY.as_nanos()).unwrap_or(u64::MAX);
        let is_recent = failed_at != 0 && uptime_nanos(now).saturating_sub(failed_at >> 1) < memory;
        is_recent.then(|| WriteFailure::of(failed_at & 1 == 1))
    }
}
