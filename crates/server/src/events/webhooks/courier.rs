//! The task of one webhook: reads commits, sends the events that pass its filters, and remembers its progress.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::http::{HeaderMap, HeaderName, HeaderValue, header::CONTENT_TYPE};
use countersign_api::event::{Event, EventFilter};
use countersign_cluster::webhooks::WebhookProgress;
use countersign_core::values::wire;
use countersign_forge::fetch::{Fetcher, Post, SendError, TryAgain};
use countersign_store::{
    ObjectId, Store, StoreError, journal::recent_commits::RecentCommit, machine::clock::Clock,
};
use tokio::{sync::watch, time::timeout, time::timeout_at};

use crate::events::webhooks::progress::{Commits, DeliveryPosition, FoundCommits, Piece, Progress};
use crate::events::webhooks::settings::{DeliveryOutcome, Webhook, WebhookStats};
use crate::follow::background::{Attempt, Backoff, HeldStore, Trying, until_stopped};

/// The pause after a failure to read the repository.
const UNREADABLE_WAIT: Duration = Duration::from_secs(60);
const GONE: u16 = 410;
/// How long a node delivers before another one can go on.
const TURN_LIMIT: Duration = Duration::from_secs(60);
/// How often a node that does not deliver asks whether it should.
const TURN_PAUSE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Courier {
    pub(crate) webhook: Webhook,
    pub(crate) progress: Progress,
    /// The table in which nodes agree on which of them delivers.
    pub(crate) turns: Option<WebhookProgress>,
    pub(crate) stats: Arc<WebhookStats>,
    pub(crate) store: Arc<HeldStore>,
    pub(crate) clock: Clock,
    pub(crate) fetcher: Fetcher,
    pub(crate) stop: watch::Receiver<bool>,
    pub(crate) said: LoggedOnce,
}

/// What was logged and is not logged again.
#[derive(Debug, Default)]
pub(crate) struct LoggedOnce {
    is_gone: bool,
    is_unrecorded: bool,
}

struct Stopped;

impl Courier {
    pub(crate) async fn run(mut self) {
        if let Err(error) = self.fetcher.check_target(&self.webhook.url) {
            tracing::warn!(webhook = %self.webhook.name, %error, "nothing of this webhook will be delivered");
        }
        let Err(Stopped) = match self.turns.take() {
            Some(turns) => self.take_turns(turns).await,
            None => self.deliver_all().await,
        };
        self.record().await;
    }

    async fn deliver_all(&mut self) -> Result<Infallible, Stopped> {
        let mut new_commits = self.store.recent_commits().subscribe();
        let mut commits = self.find_commits().await?;
        loop {
            new_commits.borrow_and_update();
            let read;
            (read, commits) = read_on(commits).await;
            match read {
                Ok(Some(piece)) if piece.commits.is_empty() => self.wait_for(&mut new_commits).await?,
                Ok(Some(piece)) => self.deliver_piece(piece).await?,
                Ok(None) => commits = self.find_commits().await?,
                Err(error) => self.wait_after(&error).await?,
            }
        }
    }

    /// Delivers while no other node does.
    async fn take_turns(&mut self, mut turns: WebhookProgress) -> Result<Infallible, Stopped> {
        let mut new_commits = self.store.recent_commits().subscribe();
        loop {
            new_commits.borrow_and_update();
            let claimed = turns.claim().await;
            let was_unrecorded = std::mem::replace(&mut self.said.is_unrecorded, claimed.is_err());
            match claimed {
                Ok(Some(claim)) => {
                    let newest = self.store.head().commit;
                    let begin = claim.commit.unwrap_or(newest);
                    self.progress.advance(DeliveryPosition::after(begin));
                    let mut done = begin;
                    // Not for ever: while a receiver fails, another node may reach it.
                    let delivering = timeout(TURN_LIMIT, self.deliver_new(&mut done));
                    let delivered = delivering.await.unwrap_or(Ok(()));
                    let recorded =
                        if done.is_null() { claim.release().await } else { claim.finish(done).await };
                    if let Err(error) = recorded {
                        let webhook = &self.webhook.name;
                        tracing::warn!(%webhook, %error, "events of this webhook may be delivered again");
                    }
                    delivered?;
                }
                Ok(None) => self.stats.forget_done(),
                Err(error) => {
                    let webhook = &self.webhook.name;
                    if !was_unrecorded {
                        tracing::warn!(%webhook, %error, "the webhook waits for the database");
                    }
                }
            }
            let news = timeout(TURN_PAUSE, new_commits.changed());
            let _ = until_stopped(self.stop.clone(), news).await.ok_or(Stopped)?;
        }
    }

    /// What there is now. `done` is the last commit that needs nothing more; it stays as it is if this node does not
    /// have it yet, so that another one delivers.
    async fn deliver_new(&mut self, done: &mut ObjectId) -> Result<(), Stopped> {
        let Ok(FoundCommits::At(mut commits)) = self.find(*done).await? else { return Ok(()) };
        loop {
            let read;
            (read, commits) = read_on(commits).await;
            let Ok(Some(piece)) = read else { return Ok(()) };
            if piece.commits.is_empty() {
                return Ok(());
            }
            for (position, commit) in (piece.begin..).zip(&piece.commits) {
                self.deliver_commit(commit).await?;
                self.stats.note_done(position);
                *done = commit.id;
            }
        }
    }

    /// Finds where to continue. The first commit is the last one that was looked at.
    async fn find_commits(&mut self) -> Result<Commits, Stopped> {
        loop {
            let commit = self.progress.position().commit;
            match self.find(commit).await? {
                Ok(FoundCommits::At(commits)) => return Ok(commits),
                Ok(FoundCommits::Nowhere { commits, newest }) => {
                    let webhook = &self.webhook.name;
                    tracing::warn!(
                        %webhook, last = %commit, %newest,
                        "the last commit that was delivered is not in the repository: was it restored? The webhook \
                         continues after the newest commit"
                    );
                    self.progress.advance(DeliveryPosition::after(newest));
                    self.record().await;
                    return Ok(commits);
                }
                Ok(FoundCommits::Empty) => self.wait(UNREADABLE_WAIT).await?,
                Err(error) => self.wait_after(&error).await?,
            }
        }
    }

    async fn find(&self, commit: ObjectId) -> Result<Result<FoundCommits, StoreError>, Stopped> {
        let recent_commits = Arc::clone(self.store.recent_commits());
        let finding = in_background(move || Commits::find(&recent_commits, commit));
        until_stopped(self.stop.clone(), finding).await.ok_or(Stopped)
    }

    async fn deliver_piece(&mut self, piece: Piece) -> Result<(), Stopped> {
        for (position, commit) in (piece.begin..).zip(&piece.commits) {
            self.deliver_commit(commit).await?;
            self.stats.note_done(position);
            if self.progress.due().is_some_and(|due| due <= tokio::time::Instant::now()) {
                self.record().await;
            }
        }
        Ok(())
    }

    async fn deliver_commit(&mut self, commit: &RecentCommit) -> Result<(), Stopped> {
        let (events, position) = (commit.events(), self.progress.position());
        let done = if position.commit == commit.id { position.events.unwrap_or(events.len()) } else { 0 };
        for (number, event) in events.iter().enumerate().skip(done) {
            if is_wanted(&self.webhook.filters, event, &self.store) {
                self.deliver(commit, number, event).await?;
                // If the server is killed before this is on disk, it delivers the event again.
                self.progress.advance(DeliveryPosition { commit: commit.id, events: Some(number + 1) });
                if number + 1 < events.len() {
                    self.record().await;
                }
            }
        }
        let is_delivered = self.progress.position().events.is_some();
        self.progress.advance(DeliveryPosition::after(commit.id));
        if is_delivered {
            self.record().await;
        }
        Ok(())
    }

    /// Tries until the receiver accepts it.
    async fn deliver(&mut self, commit: &RecentCommit, number: usize, event: &Event) -> Result<(), Stopped> {
        let post = self.post_for(commit, number, event);
        let mut trying = Trying::new(self.webhook.retries, self.stats.is_failing());
        let stop = self.stop.clone();
        let mut delivery = Delivery { courier: self, post, failures: 0 };
        until_stopped(stop, trying.succeed(&mut delivery)).await.ok_or(Stopped)
    }

    fn post_for(&self, commit: &RecentCommit, number: usize, event: &Event) -> Post {
        let body = commit.bodies()[number].clone();
        let value = |text: &str| HeaderValue::from_str(text).expect("letters, digits and punctuation");
        let headers = HeaderMap::from_iter([
            (CONTENT_TYPE, HeaderValue::from_static("application/json")),
            (HeaderName::from_static(wire::HEADER_EVENT), HeaderValue::from_static(event.kind.name())),
            (HeaderName::from_static(wire::HEADER_DELIVERY), value(&format!("{}.{number}", commit.id))),
            (
                HeaderName::from_static(wire::HEADER_WEBHOOK_SIGNATURE),
                value(&self.webhook.secret.sign(body.as_bytes())),
            ),
        ]);
        Post { headers, body: body.into(), timeout: self.webhook.timeout }
    }

    fn behind(&self) -> Option<i64> {
        self.stats.behind(self.store.recent_commits().end())
    }

    fn until(&self, again: TryAgain) -> Option<Duration> {
        match again {
            TryAgain::In(wait) => Some(wait),
            TryAgain::At(time) => time.ahead_of(self.clock.now()),
            TryAgain::Later => None,
        }
    }

    /// Records the progress. If that fails, the events are delivered again after a restart. Nothing else happens.
    async fn record(&mut self) {
        let recorded = self.progress.record().await;
        let was_unrecorded = std::mem::replace(&mut self.said.is_unrecorded, recorded.is_err());
        let webhook = &self.webhook.name;
        match recorded {
            Ok(()) if was_unrecorded => {
                tracing::info!(%webhook, "the progress of the webhook is stored again");
            }
            Err(error) if !was_unrecorded => tracing::error!(
                %webhook, %error,
                "the progress of the webhook cannot be stored: after a restart, events will be delivered again"
            ),
            Ok(()) | Err(_) => {}
        }
    }

    /// Waits for new commits. Meanwhile records that events needed no delivery.
    async fn wait_for(&mut self, new_commits: &mut watch::Receiver<i64>) -> Result<(), Stopped> {
        loop {
            // The sender lives as long as the app, which this task holds.
            let news = new_commits.changed();
            let stop = self.stop.clone();
            let told = match self.progress.due() {
                Some(due) => until_stopped(stop, timeout_at(due, news)).await.ok_or(Stopped)?.is_ok(),
                None => until_stopped(stop, news).await.map(|_| true).ok_or(Stopped)?,
            };
            if told {
                return Ok(());
            }
            self.record().await;
        }
    }

    async fn wait_after(&mut self, error: &StoreError) -> Result<(), Stopped> {
        let webhook = &self.webhook.name;
        tracing::error!(%webhook, %error, "the webhook waits: commits cannot be read");
        self.wait(UNREADABLE_WAIT).await
    }

    async fn wait(&mut self, time: Duration) -> Result<(), Stopped> {
        until_stopped(self.stop.clone(), tokio::time::sleep(time)).await.ok_or(Stopped)
    }
}

/// One event on its way.
struct Delivery<'a> {
    courier: &'a mut Courier,
    post: Post,
    failures: u64,
}

impl Attempt for Delivery<'_> {
    type Failure = SendError;

    async fn attempt(&mut self) -> Result<(), SendError> {
        self.courier.fetcher.post(&self.courier.webhook.url, self.post.clone()).await?;
        self.courier.said.is_gone = false;
        self.courier.stats.note(DeliveryOutcome::Delivered);
        Ok(())
    }

    /// Logs when failures begin, and when the receiver first says that it is gone for good, but not each try.
    fn report(&mut self, error: &SendError, was_failing: bool) {
        let (webhook, behind, failures) = (&self.courier.webhook.name, self.courier.behind(), self.failures);
        let is_gone = matches!(error, SendError::Status { status: GONE, .. });
        if !was_failing {
            tracing::warn!(%webhook, %error, behind, "the webhook fails; the server tries again until it works");
        } else {
            tracing::debug!(%webhook, %error, failures, behind, "the webhook still fails");
        }
        if is_gone && !self.courier.said.is_gone {
            tracing::warn!(%webhook, "the receiver says that it is gone for good: remove the webhook, or change its URL");
            self.courier.said.is_gone = true;
        }
        self.failures += 1;
        let outcome = if error.is_refused() { DeliveryOutcome::Refused } else { DeliveryOutcome::Failed };
        self.courier.stats.note(outcome);
    }

    fn recover(&mut self) {
        let (webhook, behind) = (&self.courier.webhook.name, self.courier.behind());
        tracing::info!(%webhook, failures = self.failures, behind, "the webhook works again");
    }

    fn wait(&mut self, error: &SendError, backoff: &mut Backoff) -> Duration {
        backoff.wait(error.again().and_then(|again| self.courier.until(again)))
    }
}

fn is_wanted(filters: &[EventFilter], event: &Event, store: &Store) -> bool {
    let waiting_for = |key| store.head().index.waiting_for(key).cloned().collect::<Vec<_>>();
    filters.iter().any(|filter| {
        filter.matches(event) && filter.key.as_ref().is_none_or(|key| event.concerns(&waiting_for(key)))
    })
}

async fn read_on(mut commits: Commits) -> (Result<Option<Piece>, StoreError>, Commits) {
    in_background(move || (commits.read(), commits)).await
}

/// Does work on a thread that no request needs.
async fn in_background<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        // It panicked, or the program ends. The next start reads everything again.
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => std::future::pending().await,
        },
    }
}
