//! Listeners to events: how many there are, how they wake, and how much work they cause; and each of them, from recent
//! commits to Server-Sent Events.
//!
//! Each listener reads the newest commits from its own position. After each look it rests, longer if there are more
//! listeners, so that the number of looks per second is bounded. Then it sends all that happened meanwhile. A change
//! never waits for listeners, not even to wake them.

pub mod journal;
pub mod webhooks;

use std::{convert::Infallible, fmt::Display, fmt::Write as _, mem, sync::Arc, time::Duration};

use axum::http::{HeaderMap, HeaderName};
use axum::{body::Body, body::Bytes, response::IntoResponse, response::Response};
use countersign_api::{error_code::ErrorCode, event::Event, event::EventFilter, event::EventKind};
use countersign_core::values::{key::PublicKey, path::RepoPath, shown::shown_text, wire};
use countersign_store::journal::recent_commits::{KEPT, RecentCommit, RecentCommits};
use countersign_store::{ObjectId, Store};
use futures_util::stream;
use tokio::{sync::watch, time::Instant};

use crate::http::request::{Query, bad, parse_commit_id};
use crate::http::{error::ApiError, sending::run_beside, sending::typed};
use crate::limits::semaphore::{Claimant, FairSemaphore, Permit, SemaphoreRules};
use crate::limits::{client_wait::Listening, connections::RequestSender};
use crate::{follow::background::HeldStore, metrics::Counter};

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

/// The source of events.
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
    place: Permit,
    /// Spreads listeners that began to rest together.
    spread: u32,
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
        sender: &RequestSender,
    ) -> Result<Self, ApiError> {
        let share = sender.client.as_ref().map(|client| client.share_listening()).transpose()?;
        let admitted = source.events.admit(sender.claimant());
        let (place, spread) = admitted.ok_or(ApiError::TOO_MANY_LISTENERS)?;
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
            client: sender.listen(),
            place,
            spread,
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
                self.rest_until = Instant::now() + BLOCKED.max(self.source.events.rest(self.spread));
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
            () = self.place.lost() => None,
            changed = self.end.wait_for(|end| *end > position) => changed.ok().map(drop),
            () = tokio::time::sleep_until(self.heartbeat_at) => Some(()),
        }
    }

    /// New commits do not end a rest. `None` if the server stops or needs the place for others.
    async fn rest(&mut self) -> Option<()> {
        tokio::select! {
            biased;
            _ = self.source.is_stopping.wait_for(|is_stopping| *is_stopping) => None,
            () = self.place.lost() => None,
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
            self.rest_until = Instant::now() + self.source.events.rest(self.spread);
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
        stream_of(Body::from_stream(told))
    }
}

/// The answer to a listener, with its events or without.
pub(crate) fn stream_of(body: Body) -> Response {
    typed(([(ACCEL_BUFFERING, "no")], body), "text/event-stream", "no-store")
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

    /// Adds the events of a commit. Only the last of them carries the id, so a client that is cut off between them gets
    /// all again.
    fn add(&mut self, commit: &RecentCommit) {
        let before = self.count;
        for (number, event) in commit.events().iter().enumerate() {
            if self.filter.matches(event) && self.concerns_key(event) {
                let end = if self.count > before { "\n" } else { "" };
                let (kind, body) = (event.kind.name(), &commit.bodies()[number]);
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

// All listeners: how many there are, how they wake, and how much work they cause.

/// The time between two looks, counted over all listeners, while much happens.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub struct Audience {
    pub permits: Arc<FairSemaphore>,
    /// Listeners since the start.
    admitted: Counter,
    /// How many events were sent, over all listeners.
    pub sent: Counter,
    /// The position after the newest commit, for all listeners that wait.
    end: Arc<watch::Sender<i64>>,
}

impl Audience {
    /// Must be called inside a Tokio runtime.
    pub fn start(commits: &RecentCommits, max_listeners: usize) -> Self {
        let end = Arc::new(watch::Sender::new(commits.end()));
        let (mut news, told) = (commits.subscribe(), Arc::clone(&end));
        // Waking a thousand tasks takes a while. The writer wakes only this task, which wakes the others.
        tokio::spawn(async move {
            while news.changed().await.is_ok() {
                told.send_replace(*news.borrow_and_update());
            }
        });
        // The limits of addresses bound how many listeners one address has.
        let rules = SemaphoreRules { grace: Some(Duration::ZERO), ..SemaphoreRules::of(max_listeners) };
        Self {
            permits: FairSemaphore::new(rules),
            admitted: Counter::default(),
            sent: Counter::default(),
            end,
        }
    }

    /// Tells the position behind the newest commit, a little after the store itself. The writer does not wake those who
    /// wait for it.
    pub fn subscribe(&self) -> watch::Receiver<i64> {
        self.end.subscribe()
    }

    pub fn listeners(&self) -> usize {
        self.permits.held()
    }

    /// Gives a place with a spread. If all are taken, the oldest listener of the address with most listeners goes, if
    /// that address has more than the newcomer's then will. Otherwise `None`: no one waits for a place.
    fn admit(&self, claimant: Claimant) -> Option<(Permit, u32)> {
        let place = self.permits.try_take(claimant).ok()?;
        Some((place, (self.admitted.add(1) % 8) as u32))
    }

    fn rest(&self, spread: u32) -> Duration {
        let listeners = u32::try_from(self.listeners()).unwrap_or(u32::MAX);
        // Between 12/16 and 19/16.
        BETWEEN_LOOKS * listeners * (12 + spread) / 16
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct ListenRequest {
    pub filter: EventFilter,
    /// The newest commit that the client knows. `None`: only what happens from now on.
    pub after: Option<ObjectId>,
}

impl ListenRequest {
    pub fn parse(query: &str, headers: &HeaderMap) -> Result<Self, ApiError> {
        let query = Query::parse(query, &PARAMETERS)?;
        let filter = EventFilter {
            prefix: query.get("prefix").map(RepoPath::parse).transpose().map_err(bad("prefix"))?,
            key: query.get("key").map(parse_key).transpose()?,
            kinds: query.get("type").map(parse_kinds).transpose()?,
        };
        let mut after = query.get("last_event_id").map(parse_commit).transpose()?;
        // A client that reconnects sets the header; its URL still names the older id.
        let mut ids = headers.get_all(wire::HEADER_LAST_EVENT_ID).iter();
        match (ids.next(), ids.next()) {
            // A server sends an empty id to make clients forget the last one.
            (None, _) => {}
            (Some(id), None) if id.is_empty() => {}
            (Some(id), None) => after = Some(parse_commit(&String::from_utf8_lossy(id.as_bytes()))?),
            (Some(_), Some(_)) => {
                return Err(ApiError::invalid_parameter("Last-Event-ID: given more than once"));
            }
        }
        Ok(Self { filter, after })
    }

    /// Refuses a commit that the server does not keep.
    pub(crate) async fn check(&self, store: &Store) -> Result<(), ApiError> {
        if let Some(after) = self.after {
            find(store, after).await?;
        }
        Ok(())
    }
}

const PARAMETERS: [&str; 4] = ["prefix", "key", "type", "last_event_id"];

/// The answer to a client that asks for a commit that the server no longer keeps, or never had.
pub fn not_kept(after: impl Display) -> ApiError {
    let message = format!(
        "the commit {after} is not among the newest {KEPT}: ask for the state of what you watch, and listen without \
         Last-Event-ID"
    );
    ApiError::new(ErrorCode::CommitNotKept, message)
}

fn parse_key(text: &str) -> Result<PublicKey, ApiError> {
    // A plus sign in a query means a space unless it is written as %2B, and keys contain plus signs.
    let parsed = EventFilter::parse_key(text).or_else(|error| match text.contains(' ') {
        true => EventFilter::parse_key(&text.replace(' ', "+")),
        false => Err(error),
    });
    parsed.map_err(bad("key"))
}

fn parse_kinds(text: &str) -> Result<std::collections::BTreeSet<EventKind>, ApiError> {
    let parse = |name: &str| {
        EventKind::parse(name).map_err(|_| {
            let known = EventKind::ALL.map(EventKind::name).join(", ");
            ApiError::invalid_parameter(format!("type: `{}` is not one of {known}", shown_text(name)))
        })
    };
    text.split(',').map(parse).collect()
}

fn parse_commit(text: &str) -> Result<ObjectId, ApiError> {
    parse_commit_id("Last-Event-ID", text)
}
