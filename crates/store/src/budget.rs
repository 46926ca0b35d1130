//! How much may be stored in a day (D44): of one project, of one owner, on one host, and in all. It catches what no
//! bound of a single file or request foresees.
//!
//! What counts is what a change adds to its pack: new files, directories and the text of its commit (D201). A whole
//! day's allowance may be used at once. Those of projects, owners and hosts come back steadily. What all share comes
//! back when it is a day old, so that no 24 hours have more than that. They are kept in memory, for a bounded number of
//! projects, owners and hosts: a restart begins anew, and so does what is forgotten.

use std::sync::{Arc, Mutex, MutexGuard, atomic::AtomicU64, atomic::Ordering};
use std::{convert::Infallible, fmt, hash::Hash, time::Duration, time::Instant};

use countersign_core::values::path::RepoPath;
use quick_cache::sync::Cache;
use thiserror::Error;

use crate::machine::clock::{lock, uptime_nanos};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How many projects the budget remembers with what they have stored.
pub const MAX_PROJECTS: usize = 16_384;
pub const MAX_OWNERS: usize = 16_384;
pub const MAX_HOSTS: usize = 4_096;

/// Bytes in a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorageLimits {
    pub project: u64,
    pub owner: u64,
    pub host: u64,
    pub total: u64,
    /// What a project with active signers may store though others have used up what they share with it; and as much
    /// again for revocations and new signers, though it has used up its own; and once more for its masters.
    pub project_reserved: u64,
}

/// Whose use is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetScope {
    Project,
    /// The first name behind host and port.
    Owner,
    Host,
    Total,
}

impl BudgetScope {
    pub const ALL: [Self; 4] = [Self::Project, Self::Owner, Self::Host, Self::Total];

    pub fn name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Owner => "owner",
            Self::Host => "host",
            Self::Total => "total",
        }
    }
}

/// A change does not fit into what may be stored.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct OverBudget {
    pub scope: BudgetScope,
    /// The project, owner or host.
    pub whose: String,
    /// The size of the refused change.
    pub bytes: u64,
    pub bytes_per_day: u64,
    /// Seconds until the change would fit, rounded up.
    pub seconds: u64,
}

#[derive(Debug)]
pub struct StorageBudget {
    limits: StorageLimits,
    projects: Cache<String, Arc<ProjectUse>>,
    owners: Cache<String, Arc<Bucket>>,
    hosts: Cache<String, Arc<Bucket>>,
    total: Arc<DayUse>,
    /// Reserves have a bound as well: all of them together take as much as the total at most.
    reserves: Arc<DayUse>,
    refused: [AtomicU64; BudgetScope::ALL.len()],
}

#[derive(Debug, Default)]
struct ProjectUse {
    all: Arc<Bucket>,
    reserve: Arc<Bucket>,
    protection: Arc<Bucket>,
    masters: Arc<Bucket>,
}

/// What a change needs.
#[derive(Debug)]
pub struct Need {
    pub project: RepoPath,
    /// Whether the project has active signers.
    pub is_established: bool,
    /// Whether the change revokes, or is about who signs.
    pub is_protection: bool,
    /// Whether a master of the signers in force says it, or signers take effect that have waited (D172).
    pub is_of_masters: bool,
    pub bytes: u64,
}

/// What was taken for a change. It is given back when it is dropped, unless the change was published.
#[derive(Debug)]
#[must_use]
pub struct Charge {
    taken: Vec<(Arc<Bucket>, Rate)>,
    shared: Option<Arc<DayUse>>,
    bytes: u64,
}

impl StorageBudget {
    pub fn new(limits: StorageLimits) -> Self {
        Self {
            limits,
            projects: Cache::new(MAX_PROJECTS),
            owners: Cache::new(MAX_OWNERS),
            hosts: Cache::new(MAX_HOSTS),
            total: Arc::default(),
            reserves: Arc::default(),
            refused: Default::default(),
        }
    }

    /// How many changes were refused since the start.
    pub fn refusals(&self, scope: BudgetScope) -> u64 {
        self.refused[scope as usize].load(Ordering::Relaxed)
    }

    /// What all projects together may store now.
    pub fn bytes_left(&self, now: Instant) -> u64 {
        self.total.left(self.limits.total, uptime_nanos(now))
    }

    /// Takes what a change needs: from all four budgets, or from a reserve, or not at all.
    pub fn charge(&self, need: &Need, now: Instant) -> Result<Charge, OverBudget> {
        let now = uptime_nanos(now);
        let project = find_or_make(&self.projects, fold(&need.project));
        self.charge_budgets(need, &project, now).or_else(|over| {
            self.charge_reserves(need, &project, over.scope, now).ok_or_else(|| {
                self.refused[over.scope as usize].fetch_add(1, Ordering::Relaxed);
                over
            })
        })
    }

    fn charge_budgets(&self, need: &Need, project: &ProjectUse, now: u64) -> Result<Charge, OverBudget> {
        let owner = need.project.owner_dir().unwrap_or_else(|| need.project.clone());
        let host = need.project.host_dir().unwrap_or_else(|| need.project.clone());
        let budgets = [
            (BudgetScope::Project, Arc::clone(&project.all), need.project.clone()),
            (BudgetScope::Owner, find_or_make(&self.owners, fold(&owner)), owner),
            (BudgetScope::Host, find_or_make(&self.hosts, fold(&host)), host.clone()),
        ];
        let mut charge = Charge::of(need.bytes);
        for (scope, bucket, whose) in budgets {
            charge
                .take(&bucket, per_day(self.bytes_per_day(scope)), now)
                .map_err(|wait| self.refuse(scope, &whose, need.bytes, wait))?;
        }
        charge
            .take_shared(&self.total, self.limits.total, now)
            .map_err(|wait| self.refuse(BudgetScope::Total, &host, need.bytes, wait))?;
        Ok(charge)
    }

    /// What others have stored does not stop a project that has active signers. And whatever a single key of it has
    /// stored does not keep the others from revoking, or from taking that key out. And whatever all admins have stored
    /// does not keep the masters from a veto, or from new signers.
    fn charge_reserves(
        &self,
        need: &Need,
        project: &ProjectUse,
        refused: BudgetScope,
        now: u64,
    ) -> Option<Charge> {
        let of_others = (refused != BudgetScope::Project).then_some(&project.reserve);
        let of_protection = need.is_protection.then_some(&project.protection);
        let of_masters = need.is_of_masters.then_some(&project.masters);
        let reserves = [of_others, of_protection, of_masters].into_iter().flatten();
        let mut reserves = reserves.filter(|_| need.is_established);
        reserves.find_map(|reserve| {
            let mut charge = Charge::of(need.bytes);
            charge.take(reserve, per_day(self.limits.project_reserved), now).ok()?;
            charge.take_shared(&self.reserves, self.limits.total, now).ok()?;
            Some(charge)
        })
    }

    fn bytes_per_day(&self, scope: BudgetScope) -> u64 {
        match scope {
            BudgetScope::Project => self.limits.project,
            BudgetScope::Owner => self.limits.owner,
            BudgetScope::Host => self.limits.host,
            BudgetScope::Total => self.limits.total,
        }
    }

    fn refuse(&self, scope: BudgetScope, whose: &RepoPath, bytes: u64, wait: Duration) -> OverBudget {
        // What never fits is not worth another try before something has changed.
        let bytes_per_day = self.bytes_per_day(scope);
        let wait = if bytes > bytes_per_day { DAY } else { wait.min(DAY) };
        let seconds = (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1);
        OverBudget { scope, whose: whose.to_string(), bytes, bytes_per_day, seconds }
    }
}

impl Charge {
    fn of(bytes: u64) -> Self {
        Self { taken: Vec::with_capacity(3), shared: None, bytes }
    }

    fn take_shared(&mut self, shared: &Arc<DayUse>, most: u64, now: u64) -> Result<(), Duration> {
        shared.take_many(most, self.bytes, now)?;
        self.shared = Some(Arc::clone(shared));
        Ok(())
    }

    fn take(&mut self, bucket: &Arc<Bucket>, rate: Rate, now: u64) -> Result<(), Duration> {
        bucket.take_many(rate, self.bytes, now)?;
        self.taken.push((Arc::clone(bucket), rate));
        Ok(())
    }

    /// Keeps the charge, because the change is on disk.
    pub fn keep(mut self) {
        self.taken.clear();
        self.shared = None;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.taken.iter().for_each(|(bucket, rate)| bucket.give_back(*rate, self.bytes));
        self.shared.iter().for_each(|shared| shared.give_back(self.bytes));
    }
}

impl fmt::Display for OverBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scope, whose, bytes, bytes_per_day, seconds } = self;
        match scope {
            BudgetScope::Project => write!(f, "the project {whose}")?,
            BudgetScope::Owner => write!(f, "the owner {whose}, with all projects together,")?,
            BudgetScope::Host => write!(f, "the host {whose}, with all projects together,")?,
            BudgetScope::Total => write!(f, "this server")?,
        }
        if bytes > bytes_per_day {
            write!(
                f,
                " may store {bytes_per_day} bytes in a day, and this change alone has {bytes}: make it smaller, or"
            )?;
        } else {
            write!(
                f,
                " has stored what it may in a day ({bytes_per_day} bytes): try again in {seconds} s, or"
            )?;
        }
        write!(f, " ask the operator to raise limits.{}_bytes_per_day", scope.name())
    }
}

/// The path in small letters: letter case does not make two projects of one (D35).
fn fold(path: &RepoPath) -> String {
    path.as_str().to_ascii_lowercase()
}

fn per_day(bytes: u64) -> Rate {
    Rate::new(bytes, DAY, bytes)
}

// A steady rate with room for bursts, in one number.

/// A rate: a count in a time, of which `burst` can come at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Nanoseconds in which one comes back.
    interval: u64,
    /// Nanoseconds in which all that may come at once comes back.
    room: u64,
}

impl Rate {
    pub fn new(count: u64, per: Duration, burst: u64) -> Self {
        let per = u64::try_from(per.as_nanos()).unwrap_or(u64::MAX);
        let interval = (per / count.max(1)).max(1);
        Self { interval, room: interval.saturating_mul(burst.max(1)) }
    }
}

/// What one caller has used up: the time, in nanoseconds of the caller's clock, at which all of it has come back.
#[derive(Debug, Default)]
pub struct Bucket(AtomicU64);

impl Bucket {
    /// Takes one, or says how long until there is one.
    pub fn take(&self, rate: Rate, now: u64) -> Result<(), Duration> {
        self.take_many(rate, 1, now)
    }

    /// Takes so many, all or none, or says how long until there are so many. More than a burst there never are.
    pub fn take_many(&self, rate: Rate, count: u64, now: u64) -> Result<(), Duration> {
        let cost = rate.interval.saturating_mul(count);
        let mut full_at = self.0.load(Ordering::Relaxed);
        loop {
            let taken = full_at.max(now).saturating_add(cost);
            let latest = now.saturating_add(rate.room);
            if taken > latest {
                return Err(Duration::from_nanos(taken - latest));
            }
            match self.0.compare_exchange_weak(full_at, taken, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(other) => full_at = other,
            }
        }
    }

    /// Puts back what was taken and not used.
    pub fn give_back(&self, rate: Rate, count: u64) {
        let cost = rate.interval.saturating_mul(count);
        let give = |full_at: u64| Some(full_at.saturating_sub(cost));
        // It always gives a value, so it cannot fail.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, give);
    }

    /// How many could be taken now.
    pub fn left(&self, rate: Rate, now: u64) -> u64 {
        let used = self.0.load(Ordering::Relaxed).saturating_sub(now);
        rate.room.saturating_sub(used) / rate.interval
    }
}

const HOUR: u64 = 3_600_000_000_000;
/// How many whole hours any 24 hours lie within.
const HOURS: usize = 25;

/// What was used in the last day, hour by hour. In no 24 hours there is more than allowed, which a [`Bucket`] does not
/// promise: it gives a whole burst, and as much again until that has come back.
#[derive(Debug, Default)]
pub struct DayUse(Mutex<HourlyUse>);

#[derive(Debug, Default)]
struct HourlyUse {
    /// The newest hour of the caller's clock.
    hour: u64,
    /// The use in each hour, by its number modulo `HOURS`.
    used: [u64; HOURS],
}

impl DayUse {
    /// Takes so many of `most` in a day, all or none, or says how long until there are so many.
    pub fn take_many(&self, most: u64, count: u64, now: u64) -> Result<(), Duration> {
        let mut hours = self.advance(now);
        let newest = hours.hour;
        let mut left = most.saturating_sub(hours.used.iter().sum());
        if count <= left {
            *hours.of(newest) += count;
            return Ok(());
        }
        // The oldest hour, which is the one after the newest modulo their count, is forgotten first.
        for later in 1..=HOURS as u64 {
            left = left.saturating_add(*hours.of(newest + later));
            if count <= left {
                return Err(Duration::from_nanos((newest + later) * HOUR - now));
            }
        }
        Err(Duration::from_nanos(HOURS as u64 * HOUR))
    }

    /// Puts back what was taken a moment ago and not used.
    pub fn give_back(&self, mut count: u64) {
        let mut hours = lock(&self.0);
        for earlier in 0..HOURS as u64 {
            let hour = hours.hour + HOURS as u64 - earlier;
            let used = hours.of(hour);
            let given = count.min(*used);
            *used -= given;
            count -= given;
        }
    }

    /// How many could be taken now.
    pub fn left(&self, most: u64, now: u64) -> u64 {
        most.saturating_sub(self.advance(now).used.iter().sum())
    }

    /// Forgets what is a day old.
    fn advance(&self, now: u64) -> MutexGuard<'_, HourlyUse> {
        let mut hours = lock(&self.0);
        let hour = now / HOUR;
        for new in (hours.hour + 1..=hour).take(HOURS) {
            *hours.of(new) = 0;
        }
        hours.hour = hours.hour.max(hour);
        hours
    }
}

impl HourlyUse {
    fn of(&mut self, hour: u64) -> &mut u64 {
        &mut self.used[(hour % HOURS as u64) as usize]
    }
}

pub fn find_or_make<K: Hash + Eq + Clone, V: Default>(cache: &Cache<K, Arc<V>>, key: K) -> Arc<V> {
    // Two who come at once get one between them: otherwise each would have an allowance of its own.
    let Ok(value) = cache.get_or_insert_with(&key, || Ok::<_, Infallible>(Arc::default()));
    value
}
