//! Whether a recorded history of calls is linearizable, for the signatures of one release.
//!
//! The sequential model is a set of keys that grows. Signing adds a key once and is refused from then on; a read gives
//! the whole set, or says whether one key is in it. A call without an answer has taken effect at any time after its
//! start, or never.
//!
//! A search through orders (Wing and Gong, Lowe) takes exponential time in the worst case. This model needs none.
//! Each key comes in by one call, and that call is known: the one that succeeded, or else the first without an answer.
//! So every result says which calls come before which. With the order in time this is a graph, and the history is
//! linearizable exactly if the graph has no cycle. A cycle is also the shortest way to show what is wrong.

use std::sync::{Mutex, PoisonError, atomic::AtomicU64, atomic::Ordering};
use std::{collections::BTreeMap, collections::BTreeSet, collections::VecDeque, fmt};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallResult {
    /// 200: the signature of this key was added.
    Signed(usize),
    /// 409: the signature of this key was there.
    SignedBefore(usize),
    /// No answer, or one that says nothing about the effect, such as 503.
    Unknown(usize),
    /// The keys that a read gave.
    Read(BTreeSet<usize>),
    /// Whether a read showed one key; it said nothing about others.
    ReadKey { key: usize, is_there: bool },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedCall {
    pub node: usize,
    pub start: u64,
    /// The time of the answer, ignored if the result is unknown.
    pub end: u64,
    pub result: CallResult,
}

/// Records calls from several threads.
#[derive(Debug, Default)]
pub struct CallRecorder {
    clock: AtomicU64,
    calls: Mutex<Vec<RecordedCall>>,
}

impl CallRecorder {
    /// Makes a call. One that gives `None`, such as a read that failed, says nothing and is left out.
    pub fn record(&self, node: usize, call: impl FnOnce() -> Option<CallResult>) {
        let start = self.clock.fetch_add(1, Ordering::SeqCst);
        let result = call();
        let end = self.clock.fetch_add(1, Ordering::SeqCst);
        if let Some(result) = result {
            let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
            calls.push(RecordedCall { node, start, end, result });
        }
    }

    pub fn into_calls(self) -> Vec<RecordedCall> {
        self.calls.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls that no order explains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contradiction {
    /// One key succeeded twice.
    SignedTwice { key: usize, calls: [RecordedCall; 2] },
    /// A result shows a key that no call can have added.
    NeverSigned { key: usize, call: RecordedCall },
    /// Each call must come before the next one, for this reason, and the last before the first.
    Cycle(Vec<(RecordedCall, Reason)>),
}

/// The reason why a call comes before the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    EndedEarlier,
    /// The next one shows the key that this one added.
    IsShown(usize),
    /// This call does not show the key that the next one added.
    DoesNotShow(usize),
}

pub fn check(calls: &[RecordedCall]) -> Result<(), Contradiction> {
    let added = find_additions(calls)?;
    let order = Order::new(calls, &added)?;
    match order.find_cycle() {
        None => Ok(()),
        Some(cycle) => Err(Contradiction::Cycle(cycle)),
    }
}

/// The call that added each key, as an index.
fn find_additions(calls: &[RecordedCall]) -> Result<BTreeMap<usize, usize>, Contradiction> {
    let mut added = BTreeMap::new();
    for (at, call) in calls.iter().enumerate() {
        if let CallResult::Signed(key) = call.result
            && let Some(other) = added.insert(key, at)
        {
            let calls = [calls[other].clone(), call.clone()];
            return Err(Contradiction::SignedTwice { key, calls });
        }
    }
    let is_answered: BTreeSet<_> = added.keys().copied().collect();
    for (at, call) in calls.iter().enumerate() {
        if let CallResult::Unknown(key) = call.result
            && !is_answered.contains(&key)
        {
            // Without an end, an earlier start allows all that a later one does.
            let first = added.entry(key).or_insert(at);
            if call.start < calls[*first].start {
                *first = at;
            }
        }
    }
    Ok(added)
}

impl CallResult {
    /// The keys that were there before the call.
    fn shown(&self) -> Vec<&usize> {
        match self {
            Self::Signed(_) | Self::Unknown(_) | Self::ReadKey { is_there: false, .. } => Vec::new(),
            Self::SignedBefore(key) | Self::ReadKey { key, is_there: true } => vec![key],
            Self::Read(keys) => keys.iter().collect(),
        }
    }

    /// Whether the key came after the call.
    fn hides(&self, asked: usize) -> bool {
        match self {
            Self::Signed(_) | Self::Unknown(_) | Self::SignedBefore(_) => false,
            Self::ReadKey { key, is_there } => *key == asked && !is_there,
            Self::Read(keys) => !keys.contains(&asked),
        }
    }
}

/// The order of calls: which come before which.
struct Order<'a> {
    calls: &'a [RecordedCall],
    /// The order by the results; the order in time follows from the calls.
    told: Vec<Vec<(usize, Reason)>>,
}

impl<'a> Order<'a> {
    fn new(calls: &'a [RecordedCall], added: &BTreeMap<usize, usize>) -> Result<Self, Contradiction> {
        let mut told = vec![Vec::new(); calls.len()];
        for (at, call) in calls.iter().enumerate() {
            for &key in call.result.shown() {
                let missing = || Contradiction::NeverSigned { key, call: call.clone() };
                told[*added.get(&key).ok_or_else(missing)?].push((at, Reason::IsShown(key)));
            }
            let hidden = added.iter().filter(|(key, _)| call.result.hides(**key));
            told[at].extend(hidden.map(|(key, addition)| (*addition, Reason::DoesNotShow(*key))));
        }
        Ok(Self { calls, told })
    }

    fn end(&self, call: usize) -> u64 {
        match self.calls[call].result {
            CallResult::Unknown(_) => u64::MAX,
            CallResult::Signed(_)
            | CallResult::SignedBefore(_)
            | CallResult::Read(_)
            | CallResult::ReadKey { .. } => self.calls[call].end,
        }
    }

    fn next(&self, call: usize) -> impl Iterator<Item = (usize, Reason)> + '_ {
        let later = (0..self.calls.len()).filter(move |other| self.end(call) < self.calls[*other].start);
        self.told[call].iter().copied().chain(later.map(|other| (other, Reason::EndedEarlier)))
    }

    /// The shortest cycle through one of the calls that are on cycles or between them.
    fn find_cycle(&self) -> Option<Vec<(RecordedCall, Reason)>> {
        let mut before = vec![0_usize; self.calls.len()];
        (0..self.calls.len()).flat_map(|call| self.next(call)).for_each(|(next, _)| before[next] += 1);
        let mut free: Vec<_> = (0..self.calls.len()).filter(|call| before[*call] == 0).collect();
        while let Some(call) = free.pop() {
            for (next, _) in self.next(call) {
                before[next] -= 1;
                if before[next] == 0 {
                    free.push(next);
                }
            }
        }
        let left: Vec<_> = (0..self.calls.len()).filter(|call| before[*call] > 0).collect();
        // A few attempts find a short one; a thorough search would take long for no better explanation.
        let cycles = left.iter().filter_map(|call| self.shortest_cycle(*call)).take(8);
        cycles.min_by_key(Vec::len)
    }

    fn shortest_cycle(&self, start: usize) -> Option<Vec<(RecordedCall, Reason)>> {
        let mut from = vec![None; self.calls.len()];
        let mut waiting = VecDeque::from([start]);
        while let Some(call) = waiting.pop_front()
            && from[start].is_none()
        {
            for (next, reason) in self.next(call) {
                if from[next].is_none() {
                    from[next] = Some((call, reason));
                    waiting.push_back(next);
                }
            }
        }
        let mut cycle = Vec::new();
        let mut call = start;
        loop {
            let (before, reason) = from[call]?;
            cycle.push((self.calls[before].clone(), reason));
            call = before;
            if call == start {
                cycle.reverse();
                return Some(cycle);
            }
        }
    }
}

impl fmt::Display for RecordedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, start, end, result } = self;
        write!(f, "[{start}..{end}] node {node} ")?;
        match result {
            CallResult::Signed(key) => write!(f, "signs with key {key}: 200"),
            CallResult::SignedBefore(key) => write!(f, "signs with key {key}: 409"),
            CallResult::Unknown(key) => write!(f, "signs with key {key}: unknown"),
            CallResult::Read(keys) => write!(f, "reads {keys:?}"),
            CallResult::ReadKey { key, is_there: true } => write!(f, "reads that key {key} has signed"),
            CallResult::ReadKey { key, is_there: false } => write!(f, "reads that key {key} has not signed"),
        }
    }
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SignedTwice { key, calls: [one, other] } => {
                write!(f, "key {key} succeeded twice:\n  {one}\n  {other}")
            }
            Self::NeverSigned { key, call } => {
                write!(f, "no call can have added key {key}, which this one shows:\n  {call}")
            }
            Self::Cycle(calls) => {
                write!(f, "no order explains these calls:")?;
                for (call, reason) in calls {
                    write!(f, "\n  {call}\n    comes before the next: {reason}")?;
                }
                write!(f, "\n  and so on, with the first again")
            }
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EndedEarlier => write!(f, "it ended before that one began"),
            Self::IsShown(key) => write!(f, "that one shows key {key}"),
            Self::DoesNotShow(key) => write!(f, "it does not show key {key}"),
        }
    }
}
