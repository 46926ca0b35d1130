//! How the log of this server stands, for people: gathered once, for the page `/log` and for
//! `countersign admin log status` (D267).

use std::sync::{Arc, atomic::Ordering};
use std::{collections::BTreeMap, time::Duration};

use countersign_core::log::checkpoint::SignedCheckpoint;
use countersign_core::values::shown::{plural, shown_count};
use countersign_core::values::{time::Timestamp, verifier_key::VerifierKey};
use countersign_log::{CheckpointMinute, RECENT_MINUTES, TransparencyLog};
use serde::Serialize;

use crate::follow::mirror::MirrorState;
use crate::nodes::asking::CosigningStats;

#[derive(Debug, Clone, Serialize)]
pub struct LogSummary {
    pub origin: String,
    /// The verifier key.
    pub key: String,
    /// The server whose log this is a copy of.
    pub mirror_of: Option<String>,
    /// Commits that have a leaf.
    pub size: u64,
    /// The newest checkpoint, and when it was made or seen, if that was after the start.
    pub newest_size: Option<u64>,
    pub newest_at: Option<Timestamp>,
    /// The checkpoint that proofs are made for, and since when its witnesses vouch for it.
    pub proven_size: Option<u64>,
    pub proven_as_of: Option<Timestamp>,
    /// Which witnesses must cosign; `None` if none must.
    pub quorum: Option<String>,
    pub witnesses: Vec<WitnessSummary>,
    pub last_hour: LastHour,
    /// Why the log does not go on, or does not sign.
    pub trouble: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct WitnessSummary {
    /// The name of the witness in the policy.
    pub name: String,
    pub key: String,
    /// Commits in the newest checkpoint that it has cosigned, and when, as far as the server knows.
    pub cosigned_size: Option<u64>,
    pub cosigned_at: Option<Timestamp>,
    /// Whether it replays the rules, by the operator's word.
    pub replays: bool,
    /// Whether it says that it cosigns nothing more until its operator decides.
    pub is_stopped: bool,
}

/// The last hour in minutes, the newest last.
#[derive(Debug, Clone, Serialize)]
pub struct LastHour {
    pub minutes: Vec<Option<MinuteSummary>>,
    /// When the server started, if that was less than an hour ago. It remembers nothing before.
    pub since: Option<Timestamp>,
}

/// A minute with a checkpoint, or in which the newest one was given to witnesses again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MinuteSummary {
    pub has_new_commits: bool,
    pub is_cosigned: bool,
}

impl LogSummary {
    pub fn of(
        log: &TransparencyLog,
        cosigning: &[Arc<CosigningStats>],
        mirror: Option<&MirrorState>,
        now: Timestamp,
    ) -> Self {
        let (policy, recent) = (log.policy(), log.recent());
        let (newest, proven) = (log.newest_checkpoint(), log.cosigned_checkpoint());
        let newest_size = newest.as_ref().map(|newest| newest.checkpoint().size);
        let made = recent.newest.filter(|(size, _)| Some(*size) == newest_size);
        let as_of = policy.as_ref().zip(proven.as_ref()).and_then(|(policy, proven)| {
            policy.as_of(proven.cosignatures().map(|by| (by.witness.clone(), by.time)))
        });
        let known = last_cosigned([&newest, &proven].into_iter().flatten(), cosigning, now);
        let witnesses = policy.iter().flat_map(|policy| policy.witnesses()).map(|witness| {
            let last = known.get(&witness.key);
            let stats = cosigning.iter().find(|stats| stats.key == witness.key);
            WitnessSummary {
                name: witness.name.clone(),
                key: witness.key.to_string(),
                cosigned_size: last.map(|(_, size)| *size),
                cosigned_at: last.map(|(at, _)| *at),
                replays: witness.replays,
                is_stopped: stats.is_some_and(|stats| stats.is_stopped.load(Ordering::Relaxed)),
            }
        });
        Self {
            origin: log.key().name().to_owned(),
            key: log.key().to_string(),
            mirror_of: mirror.map(|mirror| mirror.origin.to_string()),
            size: log.figures().size,
            newest_size,
            newest_at: made.and_then(|(_, at)| to_time(at.as_secs())),
            proven_size: proven.as_ref().map(|proven| proven.checkpoint().size),
            proven_as_of: as_of.and_then(to_time),
            quorum: policy.as_ref().and_then(|policy| policy.quorum_text()),
            witnesses: witnesses.collect(),
            last_hour: LastHour::of(&Vec::from(recent.minutes), log.age(), now),
            trouble: log.trouble().map(|trouble| trouble.to_string()),
        }
    }

    /// The summary as lines of text, for a terminal.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String| text.push_str(&format!("{name:<19} {value}\n"));
        line("log", self.origin.clone());
        line("key", self.key.clone());
        if let Some(origin) = &self.mirror_of {
            line("copied from", origin.clone());
        }
        line("commits", shown_size(self.size));
        line("newest checkpoint", self.newest_text());
        line("proofs", self.proven_text());
        for witness in &self.witnesses {
            let replays = if witness.replays { "; replays the rules" } else { "" };
            line(&format!("witness {}", witness.name), format!("{}{replays}", witness.text()));
        }
        line("last hour", self.hour_text());
        if let Some(trouble) = &self.trouble {
            line("trouble", trouble.clone());
        }
        text
    }

    /// The last hour in words, which also stand for its picture.
    pub fn hour_text(&self) -> String {
        let LastHour { minutes, since } = &self.last_hour;
        let count = |is: fn(&MinuteSummary) -> bool| minutes.iter().flatten().filter(|of| is(of)).count();
        let (all, new) = (minutes.iter().flatten().count(), count(|of| of.has_new_commits));
        let mut text = format!("{all} minute{} with a checkpoint, {new} with new commits", plural(all));
        if self.quorum.is_some() {
            text.push_str(&format!(", {} with enough cosignatures", count(|of| of.is_cosigned)));
        }
        if let Some(since) = since {
            text.push_str(&format!(", since the start at {}", minute_of(*since)));
        }
        text
    }

    pub fn newest_text(&self) -> String {
        match (self.newest_size, self.newest_at) {
            (None, _) => "none yet".to_owned(),
            (Some(size), Some(at)) => format!("{}, {}", commits(size), minute_of(at)),
            (Some(size), None) => format!("{}, from before this start", commits(size)),
        }
    }

    /// What proofs are made for, and by whose word.
    pub fn proven_text(&self) -> String {
        let Some(size) = self.proven_size else {
            return match &self.quorum {
                Some(quorum) => format!("none yet: {quorum} must cosign"),
                None => "none yet".to_owned(),
            };
        };
        match (self.proven_as_of, &self.quorum) {
            (Some(as_of), Some(quorum)) => {
                format!("{}, as of {}, by {quorum}", commits(size), minute_of(as_of))
            }
            (_, _) if self.mirror_of.is_some() => {
                format!("{}; the origin chose its witnesses", commits(size))
            }
            (_, _) => format!("{}, by the log's word alone: no witness is needed", commits(size)),
        }
    }
}

impl WitnessSummary {
    pub fn text(&self) -> String {
        let seen = match (self.cosigned_at, self.cosigned_size) {
            (Some(at), Some(size)) => format!("cosigned {} at {}", commits(size), minute_of(at)),
            (_, _) => "has cosigned nothing since this start".to_owned(),
        };
        if self.is_stopped { format!("{seen}; HAS STOPPED, ask its operator") } else { seen }
    }
}

impl LastHour {
    fn of(minutes: &[CheckpointMinute], age: Duration, now: Timestamp) -> Self {
        let now_seconds = u64::try_from(now.unix_seconds()).unwrap_or_default();
        let end = now_seconds / 60;
        let summary = |back: usize| {
            let wanted = end.checked_sub(back as u64)?;
            let found = minutes.iter().find(|minute| minute.minute == wanted)?;
            Some(MinuteSummary { has_new_commits: found.has_new, is_cosigned: found.is_cosigned })
        };
        let is_short = age < Duration::from_secs(60 * RECENT_MINUTES as u64);
        let since = now_seconds.checked_sub(age.as_secs()).filter(|_| is_short).and_then(to_time);
        Self { minutes: (0..RECENT_MINUTES).rev().map(summary).collect(), since }
    }
}

/// When each witness has cosigned last, and how many commits: by the checkpoints that are kept, which a restart leaves,
/// and by what was counted since the start.
fn last_cosigned<'a>(
    kept: impl Iterator<Item = &'a SignedCheckpoint>,
    cosigning: &[Arc<CosigningStats>],
    now: Timestamp,
) -> BTreeMap<VerifierKey, (Timestamp, u64)> {
    let kept = kept.flat_map(|signed| {
        let size = signed.checkpoint().size;
        signed.cosignatures().filter_map(move |by| Some((by.witness.clone(), (to_time(by.time)?, size))))
    });
    let counted = cosigning.iter().filter_map(|stats| {
        let ago = i64::try_from(stats.since()?.as_secs()).ok()?;
        let at = Timestamp::from_unix_seconds(now.unix_seconds().checked_sub(ago)?).ok()?;
        Some((stats.key.clone(), (at, stats.size())))
    });
    let mut last = BTreeMap::new();
    for (key, seen) in kept.chain(counted) {
        let known = last.entry(key).or_insert(seen);
        *known = (*known).max(seen);
    }
    last
}

fn to_time(seconds: u64) -> Option<Timestamp> {
    Timestamp::from_unix_seconds(i64::try_from(seconds).ok()?).ok()
}

fn commits(size: u64) -> String {
    format!("{} commit{}", shown_size(size), if size == 1 { "" } else { "s" })
}

fn shown_size(size: u64) -> String {
    shown_count(usize::try_from(size).unwrap_or(usize::MAX))
}

/// A time, as in `2026-01-31 14:02 UTC`.
fn minute_of(time: Timestamp) -> String {
    let exact = time.to_string();
    format!("{} UTC", exact.get(..16).unwrap_or(&exact).replace('T', " "))
}
