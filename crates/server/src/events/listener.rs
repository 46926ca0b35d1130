//! One listener: from recent commits to Server-Sent Events.

use std::{convert::Infallible, fmt::Write as _, mem, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{
        HeaderName,
        header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS},
    },
    response::{IntoResponse, Response},
};
use countersign_api::event::{Event, EventFilter};
use countersign_core::values::path::RepoPath;
use futures_util::stream;
use tokio::{sync::watch, time::Instant};

use super::{
    audience::{Audience, ListenerSlot},
    request::{ListenRequest, not_kept},
};
use crate::{
    error::ApiError,
    held_store::HeldStore,
    limits::semaphore::{Claimant, Permit},
    origin::RequestOrigin,
    patience::Listening,
    sending::run_beside,
};
use countersign_store::{ObjectId, Store, recent_commits::RecentCommit};

/// Proxies would close a connection that is silent for longer.
pub const HEARTBEAT: Duration = Duration::from_secs(15);
/// The most that one look sends, in bytes, and reads, in commits.
const MAX_TOLD: usize = 16 * 1024;
const MAX_LOOKED_AT: i64 = 4_096;
/// Commits to take at a time, so that the writer never waits longer.
const PIECE: usize = 64;
/// How long to wait before looking again at a client that has not taken what it was sent.
const BLOCKED: Duration = Duration::from_millis(100);

/// Tells nginx to pass on each event at once.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Where events come from.
#[derive(Debug)]
pub struct EventSource {
    pub store: Arc<HeldStore>,
    pub events: Arc<Audience>,
    /// Becomes true when the server stops.
    pub is_stopping: watch::Receiver<bool>,
}

#[derive(Debug)]
pub struct Listener {
    source: EventSource,
    filter: EventFilter,
    /// The next commit to look at.
    position: i64,
    seen: Option<ObjectId>,
    is_new: bool,
    rest_until: Instant,
    heartbeat_at: Instant,
    end: watch::Receiver<i64>,
    client: Option<Listening>,
    place: ListenerSlot,
    _share: Option<Permit>,
}

enum Look {
    Told(String),
    Nothing,
    /// The next commit is no longer kept.
    Behind,
}

impl Listener {
    pub async fn start(
        source: EventSource,
        request: ListenRequest,
        origin: Option<RequestOrigin>,
    ) -> Result<Self, ApiError> {
        let client = origin.as_ref().and_then(|origin| origin.client.as_ref());
        let share = client.map(|client| client.share_listening()).transpose()?;
        let claimant = Claimant::at(client.map(|client| client.network));
        let place = source.events.admit(claimant).ok_or_else(ApiError::too_many_listeners)?;
        let (position, seen) = match request.after {
            None => {
                let newest = source.store.recent_commits().newest();
                (newest.end, newest.commit)
            }
            Some(after) => (find(&source.store, after).await?, Some(after)),
        };
        let now = Instant::now();
        Ok(Self {
            filter: request.filter,
            position,
            seen,
            is_new: true,
            rest_until: now,
            heartbeat_at: now + HEARTBEAT,
            end: source.events.subscribe(),
            client: origin.map(|origin| origin.patience.listen()),
            place,
            _share: share,
            source,
        })
    }

    /// The next bytes to send; `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<Bytes> {
        if mem::take(&mut self.is_new) {
            return Some(self.write_mark("retry: 2000\n", "events follow"));
        }
        loop {
            self.rest().await?;
            if self.client.as_ref().is_some_and(Listening::is_blocked) {
                self.rest_until = Instant::now() + BLOCKED.max(self.place.rest());
                continue;
            }
            match self.look() {
                Look::Told(text) => {
                    self.heartbeat_at = Instant::now() + HEARTBEAT;
                    return Some(text.into());
                }
                Look::Nothing if Instant::now() >= self.heartbeat_at => return Some(self.beat()),
                Look::Nothing => {}
                Look::Behind => return None,
            }
            self.wait().await?;
        }
    }

    /// Waits for new commits, or until a heartbeat is due. `None` if the server stops or needs the place for others.
    async fn wait(&mut self) -> Option<()> {
        let position = self.position;
        tokio::select! {
            _ = self.source.is_stopping.wait_for(|is_stopping| *is_stopping) => None,
            () = self.place.held.lost() => None,
            changed = self.end.wait_for(|end| *end > position) => changed.ok().map(drop),
            () = tokio::time::sleep_until(self.heartbeat_at) => Some(()),
        }
    }

    /// New commits do not end a rest. `None` if the server stops or needs the place for others.
    async fn rest(&mut self) -> Option<()> {
        tokio::select! {
            biased;
            _ = self.source.is_stopping.wait_for(|is_stopping| *is_stopping) => None,
            () = self.place.held.lost() => None,
            () = tokio::time::sleep_until(self.rest_until) => Some(()),
        }
    }

    /// Looks at commits until there is enough to send.
    fn look(&mut self) -> Look {
        let mut told = Telling::new(&self.filter, &self.source.store);
        let (begin, mut is_behind) = (self.position, false);
        while told.text.len() < MAX_TOLD && self.position < begin + MAX_LOOKED_AT {
            let commits = self.source.store.recent_commits().from(self.position, PIECE);
            is_behind = commits.is_none();
            let commits = commits.unwrap_or_default();
            if commits.is_empty() {
                break;
            }
            told.waiting = None;
            for commit in commits {
                told.add(&commit);
                self.seen = Some(commit.id);
                self.position += 1;
                if told.text.len() >= MAX_TOLD {
                    break;
                }
            }
        }
        let (text, count) = (told.text, told.count);
        if self.position > begin {
            self.rest_until = Instant::now() + self.place.rest();
        }
        self.source.events.sent.add(count);
        match (text.is_empty(), is_behind) {
            (false, _) => Look::Told(text),
            (true, true) => Look::Behind,
            (true, false) => Look::Nothing,
        }
    }

    fn beat(&mut self) -> Bytes {
        self.heartbeat_at = Instant::now() + HEARTBEAT;
        self.write_mark("", "nothing new")
    }

    /// Makes the client remember how far the server looked, so that it continues there. Without data this is no event.
    fn write_mark(&self, fields: &str, comment: &str) -> Bytes {
        let id = self.seen.map(|id| format!("id: {id}\n")).unwrap_or_default();
        format!(": {comment}\n{fields}{id}\n").into()
    }
}

impl IntoResponse for Listener {
    fn into_response(self) -> Response {
        let told = stream::unfold(self, |mut listener| async {
            listener.next().await.map(|bytes| (Ok::<_, Infallible>(bytes), listener))
        });
        let headers = [
            (CONTENT_TYPE, "text/event-stream"),
            (CACHE_CONTROL, "no-store"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (ACCEL_BUFFERING, "no"),
        ];
        (headers, Body::from_stream(told)).into_response()
    }
}

/// The position after a commit. Commits from before the start may have to be read from disk.
async fn find(store: &Store, after: ObjectId) -> Result<i64, ApiError> {
    let recent_commits = store.recent_commits().clone();
    let found = run_beside((), move || recent_commits.position_of(&after)).await?;
    found.map(|position| position + 1).ok_or_else(|| not_kept(after))
}

/// What a listener is about to get.
struct Telling<'a> {
    filter: &'a EventFilter,
    store: &'a Store,
    /// What waits for the key in the filter, sorted. Computed when a commit first needs it.
    waiting: Option<Vec<RepoPath>>,
    text: String,
    count: u64,
}

impl<'a> Telling<'a> {
    fn new(filter: &'a EventFilter, store: &'a Store) -> Self {
        Self { filter, store, waiting: None, text: String::new(), count: 0 }
    }

    /// Only the last of a commit's events carries the id. A client that is cut off between them gets both again.
    fn add(&mut self, commit: &RecentCommit) {
        let before = self.count;
        for (place, event) in commit.events().iter().enumerate() {
            if self.filter.matches(event) && self.concerns_key(event) {
                let end = if self.count > before { "\n" } else { "" };
                let (kind, body) = (event.kind.name(), &commit.bodies()[place]);
                let _ = write!(self.text, "{end}event: {kind}\ndata: {body}\n");
                self.count += 1;
            }
        }
        if self.count > before {
            let _ = write!(self.text, "id: {}\n\n", commit.id);
        }
    }

    /// Reads the state after the commits, so the state contains every commit that is reported.
    fn concerns_key(&mut self, event: &Event) -> bool {
        let Some(key) = &self.filter.key else { return true };
        let store = self.store;
        event.concerns(
            self.waiting.get_or_insert_with(|| store.head().index.waiting_for(key).cloned().collect()),
        )
    }
}
