//! Work beside the requests, until the server stops: tasks, threads that do the same again and again, and the loop that
//! tries, backs off, and says once that it fails.

use std::sync::{Arc, OnceLock, atomic::AtomicBool, atomic::Ordering};
use std::{
    error::Error, io, mem, ops::Deref, panic::AssertUnwindSafe, panic::catch_unwind, thread, time::Duration,
};

use countersign_log::TransparencyLog;
use countersign_store::{Store, machine::data_dir::DataDir};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::{sync::watch, task::JoinHandle, task::spawn_blocking, time::sleep};

/// A task that goes on until it is told to stop.
#[derive(Debug)]
pub(crate) struct Background {
    stop: watch::Sender<bool>,
    working: JoinHandle<()>,
}

impl Background {
    pub(crate) fn start<F: Future<Output = ()> + Send + 'static>(
        work: impl FnOnce(watch::Receiver<bool>) -> F,
    ) -> Self {
        let (stop, stopped) = watch::channel(false);
        Self { stop, working: tokio::spawn(work(stopped)) }
    }

    pub(crate) async fn stop(self) -> io::Result<()> {
        self.stop.send_replace(true);
        self.working.await.map_err(io::Error::other)
    }
}

/// A thread that does the same again and again: it may block, and it leaves the runtime's clock alone.
#[derive(Debug)]
pub(crate) struct Rounds {
    is_stopping: Arc<AtomicBool>,
    thread: thread::JoinHandle<()>,
}

impl Rounds {
    /// Begins at once, and rests between two rounds.
    pub(crate) fn start(
        name: &str,
        rest: Duration,
        mut round: impl FnMut() + Send + 'static,
    ) -> io::Result<Self> {
        let is_stopping = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&is_stopping);
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            while !stopping.load(Ordering::Relaxed) {
                // A panic was logged where it happened. The next round begins anew.
                let _ = catch_unwind(AssertUnwindSafe(&mut round));
                thread::park_timeout(rest);
            }
        })?;
        Ok(Self { is_stopping, thread })
    }

    /// A round that is under way is finished first.
    pub(crate) async fn stop(self) -> io::Result<()> {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        let joined = spawn_blocking(|| self.thread.join()).await.map_err(io::Error::other)?;
        joined.map_err(|_| io::Error::other("a thread panicked"))
    }
}

/// The shortest and the longest wait between two tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    pub min: Duration,
    pub max: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self { min: Duration::from_secs(1), max: Duration::from_secs(5 * 60) }
    }
}

/// The waits between tries, each about twice as long as the one before.
#[derive(Debug)]
pub struct Backoff {
    retries: Retries,
    longest: Duration,
}

impl Backoff {
    pub fn new(retries: Retries) -> Self {
        Self { retries, longest: retries.min }
    }

    /// Begins with the shortest wait again.
    pub(crate) fn reset(&mut self) {
        *self = Self::new(self.retries);
    }

    pub(crate) fn wait(&mut self, asked: Option<Duration>) -> Duration {
        let mut bytes = [0; 4];
        // Without it, those that failed together retry together, which does no harm.
        let _ = SystemRandom::new().fill(&mut bytes);
        self.next_wait(f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX), asked)
    }

    /// `chance`, from 0 to 1, spreads those that failed together. `asked` is the other side's wish. It can make the
    /// wait longer, up to the operator's maximum.
    pub fn next_wait(&mut self, chance: f64, asked: Option<Duration>) -> Duration {
        let Retries { min, max } = self.retries;
        self.longest = self.longest.saturating_mul(2).min(max);
        let shortest = (self.longest / 2).max(min);
        let spread = self.longest.saturating_sub(shortest).mul_f64(chance.clamp(0.0, 1.0));
        (shortest + spread).max(asked.unwrap_or_default()).min(max)
    }
}

/// Something that is tried until it works.
pub trait Attempt: Send {
    type Failure: Send;

    /// One try. It can be dropped before it is done.
    fn attempt(&mut self) -> impl Future<Output = Result<(), Self::Failure>> + Send;

    /// Logs a failure. Only the first since it last worked is news.
    fn report(&mut self, failure: &Self::Failure, was_failing: bool);

    /// Logs that it works again.
    fn recover(&mut self);

    /// How long to wait after a failure.
    fn wait(&mut self, failure: &Self::Failure, backoff: &mut Backoff) -> Duration;

    /// Whether a failure is neither news nor a reason to say later that it works again.
    fn is_expected(&self, _failure: &Self::Failure) -> bool {
        false
    }

    /// Returns when the next try after one that worked is due.
    fn rest(&mut self) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// How the tries went so far.
#[derive(Debug)]
pub struct Trying {
    backoff: Backoff,
    is_failing: bool,
}

impl Trying {
    pub fn new(retries: Retries, is_failing: bool) -> Self {
        Self { backoff: Backoff::new(retries), is_failing }
    }

    /// Tries until it works.
    pub async fn succeed(&mut self, task: &mut impl Attempt) {
        while let Err(failure) = task.attempt().await {
            if !task.is_expected(&failure) {
                task.report(&failure, mem::replace(&mut self.is_failing, true));
            }
            sleep(task.wait(&failure, &mut self.backoff)).await;
        }
        self.backoff.reset();
        if mem::take(&mut self.is_failing) {
            task.recover();
        }
    }

    async fn go_on(mut self, task: &mut impl Attempt) {
        loop {
            self.succeed(task).await;
            task.rest().await;
        }
    }
}

/// Tries again and again, and returns the task when the server stops.
pub async fn keep_trying<T: Attempt>(mut task: T, retries: Retries, stop: watch::Receiver<bool>) -> T {
    until_stopped(stop, Trying::new(retries, false).go_on(&mut task)).await;
    task
}

/// Works until the server stops; `None` if it does before the end. A dropped server has stopped as well.
pub async fn until_stopped<T>(mut stop: watch::Receiver<bool>, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        done = work => Some(done),
        _ = stop.wait_for(|is_stopping| *is_stopping) => None,
    }
}

/// Why something could not be opened or started, with its causes, for the operator.
pub type BoxedError = Box<dyn Error + Send + Sync>;

// The store together with the lock of its data directory.

#[derive(Debug)]
pub struct HeldStore {
    pub store: Store,
    /// Dropped last: the lock holds until the store has stopped writing.
    pub data_dir: DataDir,
}

impl Deref for HeldStore {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

/// A slot in which handlers find the log. The log of another server comes once its key is known.
pub type LogSlot = Arc<OnceLock<Arc<TransparencyLog>>>;
