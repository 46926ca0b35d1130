//! What only few can hold at a time, shared fairly (D46): connections, turns to fetch, downloads, listeners, followers,
//! large bodies, pages, and the bytes of large answers.
//!
//! A permit belongs to an address, a project and a key, as far as they are known. Each of them is limited to its share.
//! When all permits are held, a newcomer can take the permit of a holder that has more than its part, is too slow, or
//! is a connection that waits for its client. Among those that wait, the one that holds least is next.

use std::sync::{Arc, Mutex};
use std::{cmp::Reverse, collections::BTreeMap, collections::HashMap, net::IpAddr, time::Duration};

use countersign_core::values::{key::PublicKey, path::RepoPath};
use countersign_store::machine::clock::lock;
use thiserror::Error;
use tokio::{sync::Notify, time::Instant, time::timeout};

use crate::{limits::client_wait::ClientWait, limits::client_wait::OnDrop, metrics::Counter};

/// How often a waiting newcomer checks whether a holder has become too slow.
pub const BETWEEN_LOOKS: Duration = Duration::from_millis(200);
/// The part of the connections that make room at once. Checking all of them for each new one would cost more.
const PART: usize = 32;

#[derive(Debug, Clone, Copy)]
pub struct SemaphoreRules {
    pub total: usize,
    /// The most permits of one address, one project or one key.
    pub share: usize,
    /// The most permits of all strangers together. A stranger is a caller that is no signer of an active project.
    pub strangers: usize,
    /// How many can wait, and how long.
    pub waiting: usize,
    pub max_wait: Duration,
    /// How long a holder keeps its permit at least. `None` means until it gives the permit back.
    pub grace: Option<Duration>,
    pub pace: Option<MinimumPace>,
}

/// A holder that moves fewer bytes after this time is too slow.
#[derive(Debug, Clone, Copy)]
pub struct MinimumPace {
    pub bytes_per_second: u64,
    pub after: Duration,
}

impl SemaphoreRules {
    /// Anyone can have all of them, no one waits, and no holder loses its permit.
    pub const fn of(total: usize) -> Self {
        Self {
            total,
            share: total,
            strangers: total,
            waiting: 0,
            max_wait: Duration::ZERO,
            grace: None,
            pace: None,
        }
    }

    /// Rules with no limit but that for one address, one project or one key.
    pub const fn each(share: usize) -> Self {
        Self { share, ..Self::of(usize::MAX) }
    }

    /// The most permits that can be held for this part together.
    fn limit(&self, part: &ClaimantPart) -> usize {
        match part {
            ClaimantPart::Anyone => self.total,
            ClaimantPart::Stranger => self.strangers,
            ClaimantPart::Address(_) | ClaimantPart::Project(_) | ClaimantPart::Key(_) => self.share,
        }
    }
}

/// The caller that claims a permit, as far as it is known.
#[derive(Debug, Clone)]
pub struct Claimant {
    parts: Vec<ClaimantPart>,
}

/// What a permit is counted for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum ClaimantPart {
    /// All claimants have this part.
    Anyone,
    /// All strangers have this part.
    Stranger,
    Address(IpAddr),
    Project(RepoPath),
    Key(PublicKey),
}

impl ClaimantPart {
    /// Whether this part has a share. Without it, the part has a limit of its own.
    fn has_share(&self) -> bool {
        !matches!(self, Self::Anyone | Self::Stranger)
    }
}

impl Default for Claimant {
    fn default() -> Self {
        Self { parts: vec![ClaimantPart::Anyone] }
    }
}

impl Claimant {
    /// A claimant at an address, which is `None` if limits are switched off.
    pub fn at(address: Option<IpAddr>) -> Self {
        Self::default().with(address.map(ClaimantPart::Address))
    }

    pub fn with_key(self, key: &PublicKey) -> Self {
        self.with([ClaimantPart::Key(*key)])
    }

    pub fn with_project(self, project: &RepoPath) -> Self {
        self.with([ClaimantPart::Project(project.clone())])
    }

    /// Marks a key that no active project lists.
    pub fn as_stranger(self) -> Self {
        self.with([ClaimantPart::Stranger])
    }

    fn with(mut self, parts: impl IntoIterator<Item = ClaimantPart>) -> Self {
        self.parts.extend(parts);
        self
    }
}

/// The refusal of a permit, because too many others hold or want one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoPermit;

/// The permit went to another claimant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("this request had to make room for others that waited. Try again in a moment")]
pub struct GaveWay;

#[derive(Debug)]
pub struct FairSemaphore {
    rules: SemaphoreRules,
    state: Mutex<State>,
    /// How many claimants got no permit since the start.
    pub refused: Counter,
}

/// A permit, or a position among those that wait. Dropping it gives it back.
#[derive(Debug)]
pub struct Permit {
    semaphore: Arc<FairSemaphore>,
    number: u64,
    signals: Signals,
}

impl FairSemaphore {
    pub fn new(rules: SemaphoreRules) -> Arc<Self> {
        Arc::new(Self { rules, state: Mutex::default(), refused: Counter::default() })
    }

    /// Takes a permit, or waits for one as long as the rules say.
    pub async fn take(self: &Arc<Self>, claimant: Claimant) -> Result<Permit, NoPermit> {
        self.take_within(claimant, 1, self.rules.max_wait).await
    }

    /// Takes so many as one, or waits for them. Only single ones can be taken from a holder.
    pub async fn take_within(
        self: &Arc<Self>,
        claimant: Claimant,
        weight: usize,
        max_wait: Duration,
    ) -> Result<Permit, NoPermit> {
        let permit = self.enter(claimant, weight, None)?;
        let (wake, begun) = (Arc::clone(&permit.signals.changed), Instant::now());
        loop {
            let changed = wake.notified();
            match permit.standing() {
                PermitState::Holds => return Ok(permit),
                PermitState::Lost => return Err(self.refuse()),
                PermitState::Waits => {}
            }
            let left = max_wait.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(self.refuse());
            }
            if timeout(left.min(BETWEEN_LOOKS), changed).await.is_err() {
                lock(&self.state).admit(&self.rules, permit.number, Instant::now());
            }
        }
    }

    /// Takes a permit if one is free now, or can be taken from a holder.
    pub fn try_take(self: &Arc<Self>, claimant: Claimant) -> Result<Permit, NoPermit> {
        self.try_take_many(claimant, 1)
    }

    /// Takes so many as one, if they are free now.
    pub fn try_take_many(self: &Arc<Self>, claimant: Claimant, weight: usize) -> Result<Permit, NoPermit> {
        let permit = self.enter(claimant, weight, None)?;
        if permit.standing() == PermitState::Holds { Ok(permit) } else { Err(self.refuse()) }
    }

    /// Ends some connections that wait for their clients and are like this, if there are more than `limit`.
    pub fn end_idle(&self, limit: usize, is_like: impl Fn(&ClientWait) -> bool) {
        let mut state = lock(&self.state);
        let is_like = |entry: &Entry| entry.client_wait.as_deref().is_some_and(&is_like);
        if state.idle_connections(is_like).count() > limit {
            let victims = state.find_idle(limit, is_like);
            state.evict(&victims);
        }
    }

    /// Takes a permit or a position among those that wait. If it is for a connection, connections that wait for their
    /// clients make room for it, those first that have waited longest.
    pub(crate) fn enter(
        self: &Arc<Self>,
        claimant: Claimant,
        weight: usize,
        client_wait: Option<Arc<ClientWait>>,
    ) -> Result<Permit, NoPermit> {
        let (signals, since) = (Signals::default(), Instant::now());
        let entry = Entry {
            claimant,
            weight: weight.max(1),
            standing: PermitState::Waits,
            since,
            stopped: None,
            signals: signals.clone(),
            client_wait,
        };
        let number = lock(&self.state).enter(&self.rules, entry).ok_or_else(|| self.refuse())?;
        Ok(Permit { semaphore: Arc::clone(self), number, signals })
    }

    fn refuse(&self) -> NoPermit {
        self.refused.add(1);
        NoPermit
    }

    pub fn total(&self) -> usize {
        self.rules.total
    }

    pub fn held(&self) -> usize {
        lock(&self.state).tally_of(&ClaimantPart::Anyone).holding
    }

    pub fn waiting(&self) -> usize {
        lock(&self.state).tally_of(&ClaimantPart::Anyone).waiting
    }

    /// How many holders lost their permit to others since the start.
    pub fn gave_way(&self) -> u64 {
        lock(&self.state).gave_way
    }

    /// Whether no permit is held or awaited, and no claimant is remembered.
    pub fn is_empty(&self) -> bool {
        let state = lock(&self.state);
        state.entries.is_empty() && state.by_part.is_empty()
    }
}

impl Permit {
    /// Does `work` until the permit is lost.
    pub async fn keep<T>(&self, work: impl Future<Output = T>) -> Result<T, GaveWay> {
        tokio::select! {
            biased;
            () = self.lost() => Err(GaveWay),
            done = work => Ok(done),
        }
    }

    /// Does work of the server, such as reading what the holder gets. It does not count as time that the holder takes.
    pub async fn keep_waiting<T>(&self, work: impl Future<Output = T>) -> Result<T, GaveWay> {
        self.change_entry(|entry| entry.stopped = Some(Instant::now()));
        let _goes_on = OnDrop(|| {
            self.change_entry(|entry| {
                entry.since += entry.stopped.take().map(|stopped| stopped.elapsed()).unwrap_or_default();
            });
        });
        self.keep(work).await
    }

    /// Returns when the permit went to another claimant.
    pub async fn lost(&self) {
        loop {
            let changed = self.signals.changed.notified();
            if self.standing() == PermitState::Lost {
                return;
            }
            changed.await;
        }
    }

    /// Counts the bytes that the holder has moved, for work that reports its progress.
    pub fn meter(&self) -> Arc<Counter> {
        Arc::clone(&self.signals.moved)
    }

    fn change_entry(&self, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = lock(&self.semaphore.state).entries.get_mut(&self.number) {
            change(entry);
        }
    }

    fn standing(&self) -> PermitState {
        lock(&self.semaphore.state)
            .entries
            .get(&self.number)
            .map_or(PermitState::Lost, |entry| entry.standing)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = lock(&self.semaphore.state);
        state.remove(self.number);
        state.grant_waiting(&self.semaphore.rules, Instant::now());
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PermitState {
    Waits,
    Holds,
    /// The permit went to another claimant.
    Lost,
}

/// What the holder and the semaphore tell each other.
#[derive(Debug, Clone, Default)]
struct Signals {
    moved: Arc<Counter>,
    changed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    /// The claims in order of arrival.
    entries: BTreeMap<u64, Entry>,
    next: u64,
    by_part: HashMap<ClaimantPart, ClaimantPermits>,
    /// How many permits were granted so far.
    granted: u64,
    gave_way: u64,
}

#[derive(Debug)]
struct Entry {
    claimant: Claimant,
    weight: usize,
    standing: PermitState,
    since: Instant,
    /// When the holder began to wait for the server, if it does.
    stopped: Option<Instant>,
    signals: Signals,
    /// The permit's connection, if it is for one.
    client_wait: Option<Arc<ClientWait>>,
}

#[derive(Debug, Default, Clone, Copy)]
struct ClaimantPermits {
    /// The weight of the permits that are held.
    holding: usize,
    waiting: usize,
    /// When one of them last got a permit, as a number that grows.
    granted: u64,
}

impl ClaimantPermits {
    fn change(&mut self, standing: PermitState, by: isize) {
        match standing {
            PermitState::Waits => self.waiting = self.waiting.saturating_add_signed(by.signum()),
            PermitState::Holds => self.holding = self.holding.saturating_add_signed(by),
            PermitState::Lost => {}
        }
    }
}

impl Entry {
    fn is_slow(&self, rules: &SemaphoreRules, now: Instant) -> bool {
        let Some(pace) = rules.pace else { return false };
        let held = self.held(now);
        let moved = u128::from(self.signals.moved.get());
        held >= pace.after && moved * 1_000 < u128::from(pace.bytes_per_second) * held.as_millis()
    }

    /// How long the holder had the permit and did not wait for the server.
    fn held(&self, now: Instant) -> Duration {
        self.stopped.unwrap_or(now).saturating_duration_since(self.since)
    }

    fn is_behind(&self, obstacles: &[ClaimantPart]) -> bool {
        obstacles.iter().all(|part| self.claimant.parts.contains(part))
    }
}

impl State {
    /// The number of a newcomer that holds a permit or waits; `None` if there is no room to wait.
    fn enter(&mut self, rules: &SemaphoreRules, entry: Entry) -> Option<u64> {
        let (number, now) = (self.next, entry.since);
        self.next += 1;
        self.tally(&entry.claimant, PermitState::Waits, 1);
        self.entries.insert(number, entry);
        self.admit(rules, number, now);
        let waiting = self.tally_of(&ClaimantPart::Anyone).waiting;
        if self.entries[&number].standing != PermitState::Waits || waiting <= rules.waiting {
            return Some(number);
        }
        // Where no one can wait, a refusal looks at no other entry.
        if rules.waiting == 0 {
            self.remove(number);
            return None;
        }
        // The newest entry of the claimant that waits most often has to go. That can be the newcomer.
        let most = self.waiting().max_by_key(|(n, entry)| {
            let waiting = self.tallies(&entry.claimant, &[]).map(|tally| tally.waiting).max();
            (waiting, *n == number, *n)
        });
        let most = most.map_or(number, |(n, _)| n);
        if most == number {
            self.remove(number);
            return None;
        }
        self.change(most, PermitState::Lost);
        Some(number)
    }

    /// Gives a permit to one that waits, if enough are free or a holder has to give way.
    fn admit(&mut self, rules: &SemaphoreRules, number: u64, now: Instant) {
        let do_others_wait = self.tally_of(&ClaimantPart::Anyone).waiting > 1;
        if do_others_wait {
            self.grant_waiting(rules, now);
        }
        let Some(entry) = self.entries.get(&number).filter(|entry| entry.standing == PermitState::Waits)
        else {
            return;
        };
        let obstacles = self.obstacles(rules, entry);
        if !obstacles.is_empty() {
            let victims = match entry.client_wait {
                Some(_) => {
                    let limit = obstacles.iter().map(|part| rules.limit(part)).min();
                    self.find_idle(limit.unwrap_or(rules.total), |other| other.is_behind(&obstacles))
                }
                None => self.find_victim(rules, entry, &obstacles, now).into_iter().collect(),
            };
            if victims.is_empty() {
                return;
            }
            self.evict(&victims);
        } else if do_others_wait {
            // One that wants more than is free is next.
            return;
        }
        self.grant(number, now);
    }

    /// Gives permits to those that wait, as far as there are enough. One that wants many is not passed over.
    fn grant_waiting(&mut self, rules: &SemaphoreRules, now: Instant) {
        while let Some(next) = self.find_next(rules) {
            self.grant(next, now);
        }
    }

    /// Finds the claim that is next: that of the claimant who holds least. Ties go to the one that got its last permit
    /// longest ago, then to the first to come.
    fn find_next(&self, rules: &SemaphoreRules) -> Option<u64> {
        let all = self.tally_of(&ClaimantPart::Anyone);
        if all.waiting == 0 || all.holding >= rules.total {
            return None;
        }
        let is_total = |part: &ClaimantPart| *part == ClaimantPart::Anyone;
        let may_go = self.waiting().filter(|(_, entry)| self.obstacles(rules, entry).iter().all(is_total));
        let (number, next) = may_go.min_by_key(|(number, entry)| {
            let granted = self.tallies(&entry.claimant, &[]).map(|tally| tally.granted).max();
            (self.weigh(&entry.claimant, &[]), granted, *number)
        })?;
        self.obstacles(rules, next).is_empty().then_some(number)
    }

    fn waiting(&self) -> impl Iterator<Item = (u64, &Entry)> {
        let entries = self.entries.iter().map(|(number, entry)| (*number, entry));
        entries.filter(|(_, entry)| entry.standing == PermitState::Waits)
    }

    /// The parts of the claimant for which too few permits are left. Another holder with all of them could make room.
    fn obstacles(&self, rules: &SemaphoreRules, entry: &Entry) -> Vec<ClaimantPart> {
        let is_full = |part: &&ClaimantPart| {
            self.tally_of(part).holding.saturating_add(entry.weight) > rules.limit(part)
        };
        entry.claimant.parts.iter().filter(is_full).cloned().collect()
    }

    /// The holder that has to make room for a newcomer: the oldest that is too slow, or else the oldest of those that
    /// hold most, if that is more than the newcomer will hold. A share that both have used up does not count.
    fn find_victim(
        &self,
        rules: &SemaphoreRules,
        newcomer: &Entry,
        obstacles: &[ClaimantPart],
        now: Instant,
    ) -> Option<u64> {
        let grace = rules.grace?;
        let own = self.weigh(&newcomer.claimant, obstacles);
        // Checking all holders for each newcomer would cost more than most answers.
        let with_share = self.by_part.iter().filter(|(part, _)| part.has_share());
        let most = with_share.map(|(_, tally)| tally.holding).max().unwrap_or(0);
        if rules.pace.is_none() && most <= own + 1 {
            return None;
        }
        let holding = self.entries.iter().filter(|(_, entry)| {
            entry.standing == PermitState::Holds && entry.held(now) >= grace && entry.is_behind(obstacles)
        });
        let weighed = holding.map(|(number, entry)| {
            (entry.is_slow(rules, now), self.weigh(&entry.claimant, obstacles), *number)
        });
        let found = weighed.filter(|(is_slow, weight, _)| *is_slow || *weight > own + 1);
        let found = found.max_by_key(|(is_slow, weight, number)| {
            (*is_slow, if *is_slow { 0 } else { *weight }, Reverse(*number))
        });
        found.map(|(_, _, number)| number)
    }

    fn idle_connections(&self, may_go: impl Fn(&Entry) -> bool) -> impl Iterator<Item = (u64, u64)> {
        let holding = self.entries.iter().filter(move |(_, e)| e.standing == PermitState::Holds && may_go(e));
        let with_client_wait =
            holding.filter_map(|(number, entry)| Some((*number, entry.client_wait.as_ref()?)));
        let waiting = with_client_wait.filter(|(_, client_wait)| client_wait.is_waiting());
        waiting.map(|(number, client_wait)| (client_wait.since(), number))
    }

    /// Some of the connections that have waited longest for their clients: a part of `limit`.
    fn find_idle(&self, limit: usize, may_go: impl Fn(&Entry) -> bool) -> Vec<u64> {
        let mut waiting: Vec<_> = self.idle_connections(may_go).collect();
        let count = (limit / PART).max(1).min(waiting.len());
        if count > 0 {
            waiting.select_nth_unstable(count - 1);
        }
        waiting[..count].iter().map(|(_, number)| *number).collect()
    }

    /// What the claimant's address, project or key holds, whichever holds most.
    fn weigh(&self, claimant: &Claimant, except: &[ClaimantPart]) -> usize {
        self.tallies(claimant, except).map(|tally| tally.holding).max().unwrap_or(0)
    }

    fn tallies(&self, claimant: &Claimant, except: &[ClaimantPart]) -> impl Iterator<Item = ClaimantPermits> {
        let counted = claimant.parts.iter().filter(|part| part.has_share() && !except.contains(part));
        counted.map(|part| self.tally_of(part))
    }

    fn tally_of(&self, part: &ClaimantPart) -> ClaimantPermits {
        self.by_part.get(part).copied().unwrap_or_default()
    }

    fn grant(&mut self, number: u64, now: Instant) {
        self.change(number, PermitState::Holds);
        let Some(entry) = self.entries.get_mut(&number) else { return };
        entry.since = now;
        self.granted += 1;
        for part in &entry.claimant.parts {
            if let Some(tally) = self.by_part.get_mut(part) {
                tally.granted = self.granted;
            }
        }
    }

    fn evict(&mut self, victims: &[u64]) {
        self.gave_way += victims.len() as u64;
        victims.iter().for_each(|number| self.change(*number, PermitState::Lost));
    }

    fn change(&mut self, number: u64, to: PermitState) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        let from = std::mem::replace(&mut entry.standing, to);
        entry.signals.changed.notify_waiters();
        if let Some(client_wait) = entry.client_wait.as_ref().filter(|_| to == PermitState::Lost) {
            client_wait.give_way();
        }
        let (claimant, weight) = (entry.claimant.clone(), entry.weight.cast_signed());
        // Add first, then remove: an empty tally would be forgotten in between.
        self.tally(&claimant, to, weight);
        self.tally(&claimant, from, -weight);
    }

    /// The end of a permit, or of the wait for it.
    fn remove(&mut self, number: u64) {
        if let Some(entry) = self.entries.remove(&number) {
            self.tally(&entry.claimant, entry.standing, -entry.weight.cast_signed());
        }
    }

    fn tally(&mut self, claimant: &Claimant, standing: PermitState, by: isize) {
        for part in &claimant.parts {
            let tally = self.by_part.entry(part.clone()).or_default();
            tally.change(standing, by);
            if tally.holding == 0 && tally.waiting == 0 {
                self.by_part.remove(part);
            }
        }
    }
}
