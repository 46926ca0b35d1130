//! The task that follows the origin: asks for what came after the newest commit, lets the store repeat it, and asks
//! again.

use std::{pin::Pin, sync::Arc, time::Duration, time::Instant};

use countersign_core::values::shown::shown_text;
use countersign_forge::https::SetupError;
use countersign_store::journal::{JournalEntry, follow::FollowError, read::JournalReader};
use countersign_store::{ObjectId, StoreError, machine::clock::Clock};
use tokio::{sync::watch, time::sleep};

use crate::follow::background::{Attempt, Backoff, HeldStore, Retries, keep_trying};
use crate::follow::mirror::exchange::{JournalAnswer, JournalClient, unreadable_journal};
use crate::follow::mirror::memory::{FollowStop, OriginPast, OwnPast};
use crate::follow::mirror::state::{EntryGroup, MirrorState};
use crate::follow::outgoing::ExchangeFailure;

const MIN_RETRY: Duration = Duration::from_millis(250);
/// The least time between two questions, if an origin answers with nothing and does not wait as it was asked to.
const MIN_ROUND: Duration = Duration::from_secs(1);

type Repeating = Pin<Box<dyn Future<Output = Result<(), FollowError>> + Send>>;

/// Copies the commits of the origin for ever; [`crate::follow::mirror::log`] copies its checkpoints.
#[derive(Debug)]
pub(crate) struct HistoryCopier {
    origin: JournalClient,
    state: Arc<MirrorState>,
    store: Arc<HeldStore>,
    clock: Clock,
    /// Kept while the origin does not know the newest commit.
    past: Option<OwnPast>,
    /// When the newest round began, and whether it brought commits.
    begun: Instant,
    has_followed: bool,
}

/// Why a round did not end well.
#[derive(Debug)]
pub(crate) enum Setback {
    Failed(ExchangeFailure),
    /// The origin does not have the newest commits of this mirror.
    OriginBehind,
    /// The mirror stops following.
    Refused(Box<FollowStop>),
}

impl From<ExchangeFailure> for Setback {
    fn from(failure: ExchangeFailure) -> Self {
        Self::Failed(failure)
    }
}

impl Attempt for HistoryCopier {
    type Failure = Setback;

    async fn attempt(&mut self) -> Result<(), Setback> {
        loop {
            self.wait_until_allowed().await;
            let before = self.state.followed.get();
            self.begun = Instant::now();
            let round = self.round().await;
            self.has_followed = self.state.followed.get() > before;
            match round {
                Err(Setback::Refused(refusal)) => self.state.refuse(*refusal),
                Err(setback) => return Err(setback),
                Ok(()) => {
                    self.past = None;
                    return Ok(());
                }
            }
        }
    }

    fn report(&mut self, setback: &Setback, was_failing: bool) {
        let reason = match setback {
            Setback::Failed(failure) => failure.reason.as_str(),
            Setback::OriginBehind => "the origin does not have the newest commits of this mirror",
            Setback::Refused(refusal) => &refusal.reason,
        };
        self.state.note_failure(reason);
        let is_behind = matches!(setback, Setback::OriginBehind);
        let is_news = if is_behind { self.state.note_origin_behind() } else { !was_failing };
        let origin = &self.state.origin;
        if is_news {
            tracing::warn!(%origin, reason, "the mirror cannot follow; it keeps what it has and tries again");
        } else {
            tracing::debug!(%origin, reason, "the mirror still cannot follow");
        }
    }

    fn recover(&mut self) {
        tracing::info!(origin = %self.state.origin, "the mirror follows again");
    }

    fn wait(&mut self, setback: &Setback, backoff: &mut Backoff) -> Duration {
        if self.has_followed {
            backoff.reset();
        }
        let asked = match setback {
            Setback::Failed(failure) => failure.asked_wait,
            Setback::OriginBehind | Setback::Refused(_) => None,
        };
        backoff.wait(None).max(asked.unwrap_or_default())
    }

    async fn rest(&mut self) {
        if !self.has_followed {
            sleep(MIN_ROUND.saturating_sub(self.begun.elapsed())).await;
        }
    }
}

impl HistoryCopier {
    pub(crate) fn new(
        state: Arc<MirrorState>,
        store: Arc<HeldStore>,
        clock: Clock,
    ) -> Result<Self, SetupError> {
        let origin = JournalClient::new(state.origin.clone(), state.max_lag)?;
        Ok(Self { origin, state, store, clock, past: None, begun: Instant::now(), has_followed: false })
    }

    /// Follows until the server stops. What the store works on it finishes.
    pub(crate) async fn run(self, stop: watch::Receiver<bool>) {
        if let Some(refusal) = self.state.refusal() {
            let FollowStop { origin, at, reason, .. } = &*refusal;
            tracing::error!(origin, at, reason, "the mirror does not follow, and serves what it has");
        }
        let retries = Retries { min: MIN_RETRY, max: self.origin.wait };
        let copier = keep_trying(self, retries, stop).await;
        tracing::debug!(origin = %copier.state.origin, "stopped following");
    }

    async fn wait_until_allowed(&self) {
        let mut resumed = self.state.resumed.subscribe();
        while self.state.refusal().is_some() {
            let _ = resumed.changed().await;
            tracing::info!(origin = %self.state.origin, "the operator lets the mirror try again");
        }
    }

    /// One question, and everything that it is answered with.
    async fn round(&mut self) -> Result<(), Setback> {
        let tip = self.tip();
        match (self.origin.wait_after(tip).await?, tip) {
            (Some(answer), _) => self.take(answer, tip).await,
            (None, Some(tip)) => self.compare(tip).await,
            // Every origin knows the beginning.
            (None, None) => Ok(()),
        }
    }

    /// The newest commit, or `None` before the first one.
    fn tip(&self) -> Option<ObjectId> {
        Some(self.store.head().commit).filter(|commit| !commit.is_null())
    }

    /// Reads the next commits while the store repeats those before.
    async fn take(&self, mut answer: JournalAnswer, tip: Option<ObjectId>) -> Result<(), Setback> {
        // A mirror that has this commit was up to date at this time.
        let (newest, made) = (answer.newest, Instant::now());
        if tip.is_some() && newest == tip {
            self.state.note_up_to_date(made);
        }
        let (mut reader, mut group) = (JournalReader::default(), EntryGroup::default());
        let (mut working, mut is_empty) = (None, true);
        let mut end: Option<Result<(), ExchangeFailure>> = None;
        loop {
            if end.is_none()
                && let Err(error) = group.fill(&mut reader)
            {
                end = Some(Err(unreadable_journal(error)));
            }
            if working.is_none() && !group.is_empty() {
                is_empty = false;
                working = Some(self.repeat(group.take(), newest, made));
                // A full group has left commits in the reader, and the end of the answer is no end before they are
                // read.
                continue;
            }
            if working.is_none()
                && let Some(end) = end
            {
                if is_empty && end.is_ok() {
                    self.state.note_up_to_date(Instant::now());
                }
                return Ok(end?);
            }
            let can_read = end.is_none() && group.has_room();
            tokio::select! {
                repeated = async { working.as_mut().expect("checked below").await }, if working.is_some() => {
                    working = None;
                    repeated.map_err(|error| self.judge(error))?;
                }
                read = answer.chunk(), if can_read => match read {
                    Ok(Some(bytes)) => {
                        self.state.received_bytes.add(bytes.len() as u64);
                        reader.push(&bytes);
                    }
                    Ok(None) => end = Some(std::mem::take(&mut reader).finish().map_err(unreadable_journal)),
                    Err(error) => end = Some(Err(error)),
                },
            }
        }
    }

    /// Lets the store repeat commits. The newest one was the origin's newest at the time `made`.
    fn repeat(&self, entries: Vec<JournalEntry>, newest: Option<ObjectId>, made: Instant) -> Repeating {
        let (store, state) = (Arc::clone(&self.store), Arc::clone(&self.state));
        let count = entries.len() as u64;
        let is_kept = entries.iter().any(|entry| Some(entry.id) == newest);
        Box::pin(async move {
            let followed = store.follow(entries).await;
            // Also if only some of them were good.
            if !store.head().commit.is_null() {
                state.note_first_commit();
            }
            followed?;
            state.followed.add(count);
            if is_kept {
                state.note_up_to_date(made);
            }
            Ok(())
        })
    }

    /// What the store does not repeat is the origin's fault, unless the store itself failed.
    fn judge(&self, error: FollowError) -> Setback {
        let (ours, theirs) = match &error {
            // No server stores these.
            FollowError::Store(
                StoreError::Conflict { .. }
                | StoreError::TooLarge { .. }
                | StoreError::TooLargeToShare { .. },
            ) => (None, None),
            FollowError::Store(error) => {
                let what = "what the origin sent cannot be stored";
                return ExchangeFailure::caused(what, error).into();
            }
            FollowError::Elsewhere { id, newest, .. } => (newest.as_ref(), Some(id)),
            FollowError::OtherId { claimed, made } => (Some(made), Some(claimed)),
            FollowError::Illegal { id, .. } => (None, Some(id)),
        };
        self.refusal(error.to_string(), ours.copied(), theirs.copied())
    }

    /// The origin does not know the newest commit: does it lack it, or has it another one?
    async fn compare(&mut self, tip: ObjectId) -> Result<(), Setback> {
        if self.past.as_ref().is_none_or(|past| past.commits.first() != Some(&tip)) {
            let past = OwnPast::read(Arc::clone(self.store.recent_commits()), tip).await;
            let unreadable =
                |error| ExchangeFailure::caused("the mirror's own commits cannot be read", &error);
            self.past = Some(past.map_err(unreadable)?);
        }
        let past = self.past.as_ref().expect("it was just read");
        match past.compare(&self.origin).await? {
            // Another node answered, or the origin caught up meanwhile.
            OriginPast::Same => Ok(()),
            OriginPast::Ends => Err(Setback::OriginBehind),
            OriginPast::Differs { shared: Some(shared), ours, theirs } => {
                let reason = format!(
                    "the origin has rewritten its past: after the commit {shared} it has {theirs}, and this mirror has \
                     {ours}"
                );
                Err(self.refusal(reason, Some(ours), Some(theirs)))
            }
            OriginPast::Differs { shared: None, ours, theirs } => {
                let reason = format!(
                    "the origin has another repository: it begins with the commit {theirs}, and this mirror with {ours}"
                );
                Err(self.refusal(reason, Some(ours), Some(theirs)))
            }
        }
    }

    fn refusal(&self, reason: String, ours: Option<ObjectId>, theirs: Option<ObjectId>) -> Setback {
        Setback::Refused(Box::new(FollowStop {
            at: self.clock.now().to_whole_seconds().to_string(),
            origin: self.state.origin.to_string(),
            reason: shown_text(&reason),
            ours: ours.map(|id| id.to_string()),
            theirs: theirs.map(|id| id.to_string()),
        }))
    }
}
