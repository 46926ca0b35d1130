//! Who holds a place and who waits for one.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use tokio::{sync::watch, time::Instant};

use super::rules::{Claimant, PlaceHolder, PlaceRules};
use crate::counting::Counter;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Waits,
    Holds,
    /// To another claimant.
    Lost,
}

#[derive(Debug, Default)]
pub(super) struct PlaceState {
    /// In order of arrival.
    entries: BTreeMap<u64, Entry>,
    next: u64,
    pub(super) totals: PlaceCount,
    strangers: PlaceCount,
    by_holder: HashMap<PlaceHolder, PlaceCount>,
    /// How many places were granted so far.
    granted: u64,
    pub(super) gave_way: u64,
}

#[derive(Debug)]
struct Entry {
    claimant: Claimant,
    standing: watch::Sender<Standing>,
    since: Instant,
    moved: Arc<Counter>,
}

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct PlaceCount {
    pub(super) holding: usize,
    pub(super) waiting: usize,
    /// When one of them last got a place, as a number that grows.
    granted: u64,
}

/// Why there is no place for a newcomer, although another holder could make room.
#[derive(Debug, PartialEq, Eq)]
enum Obstacle {
    /// All places are taken.
    Total,
    /// Strangers hold all that they can have.
    Strangers,
    /// An address, a project or a key holds its whole share.
    Share(PlaceHolder),
}

impl PlaceCount {
    fn of(&mut self, standing: Standing) -> Option<&mut usize> {
        match standing {
            Standing::Waits => Some(&mut self.waiting),
            Standing::Holds => Some(&mut self.holding),
            Standing::Lost => None,
        }
    }

    fn count(mut self, standing: Standing) -> usize {
        self.of(standing).copied().unwrap_or(0)
    }
}

impl Entry {
    fn stands(&self, standing: Standing) -> bool {
        *self.standing.borrow() == standing
    }

    /// Whether others can take its place.
    fn is_beyond_grace(&self, rules: &PlaceRules, now: Instant) -> bool {
        rules.grace.is_some_and(|grace| now.saturating_duration_since(self.since) >= grace)
    }

    fn is_slow(&self, rules: &PlaceRules, now: Instant) -> bool {
        let Some(pace) = rules.pace else { return false };
        let held = now.saturating_duration_since(self.since);
        let moved = u128::from(self.moved.get());
        held >= pace.after && moved * 1_000 < u128::from(pace.bytes_per_second) * held.as_millis()
    }

    fn is_behind(&self, obstacle: &Obstacle) -> bool {
        match obstacle {
            Obstacle::Total => true,
            Obstacle::Strangers => self.claimant.is_stranger,
            Obstacle::Share(holder) => self.claimant.holders.contains(holder),
        }
    }
}

pub(super) struct Entered {
    pub(super) number: u64,
    pub(super) standing: watch::Receiver<Standing>,
}

impl PlaceState {
    /// A newcomer that holds a place or waits; `None` if there is no room to wait.
    pub(super) fn enter(
        &mut self,
        rules: &PlaceRules,
        claimant: Claimant,
        moved: Arc<Counter>,
        now: Instant,
    ) -> Option<Entered> {
        let (standing, receiver) = watch::channel(Standing::Waits);
        let number = self.next;
        self.next += 1;
        self.tally(&claimant, Standing::Waits, 1);
        self.entries.insert(number, Entry { claimant, standing, since: now, moved });
        self.admit(rules, number, now);
        let still_waits = *receiver.borrow() == Standing::Waits;
        if still_waits && rules.waiting == 0 {
            self.lose(number);
            self.entries.remove(&number);
            return None;
        }
        if still_waits && self.totals.waiting > rules.waiting {
            // The newest entry of the claimant that waits most often has to go. That can be the newcomer.
            let waiting = self.entries.iter().filter(|(_, entry)| entry.stands(Standing::Waits));
            let most = waiting.max_by_key(|(n, entry)| {
                (self.weigh(&entry.claimant, Standing::Waits, &[]), **n == number, **n)
            });
            let most = most.map_or(number, |(n, _)| *n);
            self.lose(most);
            if most == number {
                self.entries.remove(&number);
                return None;
            }
        }
        Some(Entered { number, standing: receiver })
    }

    /// How many places the claimant waits for.
    pub(super) fn count_waiting(&self, claimant: &Claimant) -> usize {
        self.weigh(claimant, Standing::Waits, &[])
    }

    /// Gives a place to one that waits, if a place is free or a holder has to give way.
    pub(super) fn admit(&mut self, rules: &PlaceRules, number: u64, now: Instant) {
        let Some(entry) = self.entries.get(&number).filter(|entry| entry.stands(Standing::Waits)) else {
            return;
        };
        let obstacles = self.obstacles(rules, &entry.claimant);
        if !obstacles.is_empty() {
            let Some(victim) = self.find_victim(rules, &entry.claimant, &obstacles, now) else { return };
            self.gave_way += 1;
            self.lose(victim);
        }
        self.grant(number, now);
    }

    /// The end of a place, or of the wait for it.
    pub(super) fn leave(&mut self, rules: &PlaceRules, number: u64) {
        self.lose(number);
        self.entries.remove(&number);
        while let Some(next) = self.find_next(rules) {
            self.grant(next, Instant::now());
        }
    }

    /// Who holds least is next. Ties go to the one that got its last place longest ago, then to the first to come.
    fn find_next(&self, rules: &PlaceRules) -> Option<u64> {
        if self.totals.waiting == 0 || self.totals.holding >= rules.total {
            return None;
        }
        let waiting = self.entries.iter().filter(|(_, entry)| entry.stands(Standing::Waits));
        let may_go = waiting.filter(|(_, entry)| self.obstacles(rules, &entry.claimant).is_empty());
        let next = may_go.min_by_key(|(number, entry)| {
            let granted = self.tallies(&entry.claimant, &[]).map(|tally| tally.granted).max();
            (self.weigh(&entry.claimant, Standing::Holds, &[]), granted, **number)
        });
        next.map(|(number, _)| *number)
    }

    fn obstacles(&self, rules: &PlaceRules, claimant: &Claimant) -> Vec<Obstacle> {
        let mut obstacles = Vec::new();
        if self.totals.holding >= rules.total {
            obstacles.push(Obstacle::Total);
        }
        if claimant.is_stranger && self.strangers.holding >= rules.strangers {
            obstacles.push(Obstacle::Strangers);
        }
        let holding = |holder| self.by_holder.get(holder).map_or(0, |tally| tally.holding);
        let full = claimant.holders.iter().filter(|holder| holding(holder) >= rules.share);
        obstacles.extend(full.cloned().map(Obstacle::Share));
        obstacles
    }

    /// The holder that has to make room for a newcomer: the oldest that is too slow, or else the oldest of those that
    /// hold most, if that is more than the newcomer will hold. A share that both have used up does not count.
    fn find_victim(
        &self,
        rules: &PlaceRules,
        newcomer: &Claimant,
        obstacles: &[Obstacle],
        now: Instant,
    ) -> Option<u64> {
        let own = self.weigh(newcomer, Standing::Holds, obstacles);
        // Checking all holders for each newcomer would cost more than most answers.
        let most = self.by_holder.values().map(|tally| tally.holding).max().unwrap_or(0);
        if rules.grace.is_none() || (rules.pace.is_none() && most <= own + 1) {
            return None;
        }
        let holding = self.entries.iter().filter(|(_, entry)| {
            entry.stands(Standing::Holds)
                && entry.is_beyond_grace(rules, now)
                && obstacles.iter().all(|obstacle| entry.is_behind(obstacle))
        });
        let weighed = holding.map(|(number, entry)| {
            let weight = self.weigh(&entry.claimant, Standing::Holds, obstacles);
            (entry.is_slow(rules, now), weight, *number)
        });
        let found = weighed.filter(|(is_slow, weight, _)| *is_slow || *weight > own + 1);
        let found = found.max_by_key(|(is_slow, weight, number)| {
            (*is_slow, if *is_slow { 0 } else { *weight }, std::cmp::Reverse(*number))
        });
        found.map(|(_, _, number)| number)
    }

    /// The highest count among the claimant's address, project and key.
    fn weigh(&self, claimant: &Claimant, standing: Standing, except: &[Obstacle]) -> usize {
        self.tallies(claimant, except).map(|tally| tally.count(standing)).max().unwrap_or(0)
    }

    fn tallies(&self, claimant: &Claimant, except: &[Obstacle]) -> impl Iterator<Item = PlaceCount> {
        let counted = claimant.holders.iter().filter(|holder| {
            !except.iter().any(|obstacle| matches!(obstacle, Obstacle::Share(full) if full == *holder))
        });
        counted.filter_map(|holder| self.by_holder.get(holder).copied())
    }

    fn grant(&mut self, number: u64, now: Instant) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        entry.since = now;
        let claimant = self.change(number, Standing::Holds);
        self.granted += 1;
        for holder in claimant.iter().flat_map(|claimant| &claimant.holders) {
            if let Some(tally) = self.by_holder.get_mut(holder) {
                tally.granted = self.granted;
            }
        }
    }

    fn lose(&mut self, number: u64) {
        self.change(number, Standing::Lost);
    }

    fn change(&mut self, number: u64, to: Standing) -> Option<Claimant> {
        let entry = self.entries.get(&number)?;
        let (from, claimant) = (entry.standing.send_replace(to), entry.claimant.clone());
        // Add first, then remove: an empty tally would be forgotten in between.
        self.tally(&claimant, to, 1);
        self.tally(&claimant, from, -1);
        Some(claimant)
    }

    fn tally(&mut self, claimant: &Claimant, standing: Standing, by: isize) {
        let strangers = claimant.is_stranger.then_some(&mut self.strangers);
        for tally in [Some(&mut self.totals), strangers].into_iter().flatten() {
            tally.of(standing).into_iter().for_each(|count| *count = count.saturating_add_signed(by));
        }
        for holder in &claimant.holders {
            let tally = self.by_holder.entry(holder.clone()).or_default();
            tally.of(standing).into_iter().for_each(|count| *count = count.saturating_add_signed(by));
            if tally.holding == 0 && tally.waiting == 0 {
                self.by_holder.remove(holder);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.by_holder.is_empty() && self.totals.holding + self.totals.waiting == 0
    }
}
