//! What the log and the witnesses of a signers file withstand (D92).

use std::{collections::BTreeSet, fmt, time::Duration};

use countersign_core::values::{shown::quoted, verifier_key::VerifierKey};
use countersign_core::{documents::transparency::Transparency, log::policy::Tolerance};
use thiserror::Error;

use crate::words::{
    any_text, shown_age, shown_replaying_count, shown_verifier_key, shown_witness_count, shown_witness_group,
};

/// A log says at least so often that it is still there; more often is hard on its witnesses.
const PLAUSIBLE_HEARTBEAT: Duration = Duration::from_secs(10 * 60);
const LONG_AGE: Duration = Duration::from_secs(30 * 86_400);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogStrength {
    pub transparency: Transparency,
    /// How many witnesses can be down or collude; `None` without witnesses.
    pub tolerance: Option<Tolerance>,
}

/// What the log and its witnesses do not withstand; `Display` says it in a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LogWarning {
    #[error(
        "the log has no witnesses: it alone can show different people different states, and no proof has a time"
    )]
    NoWitnesses,
    #[error(
        "the log has one witness: while it is down, no one gets a fresh proof, and it can deceive together with the log"
    )]
    OneWitness,
    /// Two sets of witnesses that have none in common are both enough.
    #[error(
        "{} of {} are enough: the log alone can show different people different states, each to other witnesses; \
         require more than half of a group", .0.needed, shown_witness_count(.0.witnesses)
    )]
    LogAloneSplits(Tolerance),
    /// The log can sign without a cosignature of a witness that replays the rules. `has_replaying`: the signers file names one
    /// that does.
    #[error(
        "{}: the log alone can sign a state that its commits do not give, and witnesses that only check that the log \
         grows cosign it; `signers edit --replaying` names witnesses that replay the rules, as `countersign witness` does",
        if *has_replaying {
            "witnesses that do not replay the rules are enough"
        } else {
            "no witness is said to replay the rules"
        }
    )]
    LogAloneLies { has_replaying: bool },
    /// There is more than one witness, and each is needed at some place.
    #[error("if one witness is down, no one gets a fresh proof")]
    NoneMayBeDown,
    /// A witness whose name has the host of the log's name.
    #[error(
        "the witness {} has the host of the log's name: if the same people run both, it adds nothing",
        quoted(.0.name())
    )]
    OwnWitness(VerifierKey),
    #[error(
        "a proof can be only {} old: a log that is silent for longer, or witnesses that lag, stop all downloads",
        shown_age(*.0)
    )]
    ShortAge(Duration),
    #[error("a proof can be {} old: a revocation can be hidden from someone for that long", shown_age(*.0))]
    LongAge(Duration),
}

impl LogStrength {
    pub fn of(transparency: &Transparency) -> Self {
        Self { transparency: transparency.clone(), tolerance: transparency.policy().tolerance() }
    }

    pub fn list_warnings(&self) -> Vec<LogWarning> {
        let mut warnings = Vec::new();
        match self.tolerance {
            None => warnings.push(LogWarning::NoWitnesses),
            Some(Tolerance { witnesses: 1, .. }) => warnings.push(LogWarning::OneWitness),
            Some(tolerance) => {
                if tolerance.must_collude == 0 {
                    warnings.push(LogWarning::LogAloneSplits(tolerance));
                }
                if tolerance.may_be_down == 0 {
                    warnings.push(LogWarning::NoneMayBeDown);
                }
            }
        }
        if self.tolerance.is_some_and(|tolerance| tolerance.must_lie == 0) {
            let mut groups = self.transparency.witnesses().iter();
            let has_replaying = groups.any(|group| !group.replaying.is_empty());
            warnings.push(LogWarning::LogAloneLies { has_replaying });
        }
        let host = host_of(self.transparency.log());
        let witnesses = self.transparency.witnesses().iter().flat_map(|group| &group.keys);
        let mut named = BTreeSet::new();
        let own = witnesses.filter(|key| host_of(key) == host && named.insert(key.name()));
        warnings.extend(own.cloned().map(LogWarning::OwnWitness));
        match self.transparency.max_age() {
            Some(age) if age < PLAUSIBLE_HEARTBEAT => warnings.push(LogWarning::ShortAge(age)),
            Some(age) if age > LONG_AGE => warnings.push(LogWarning::LongAge(age)),
            Some(_) | None => {}
        }
        warnings
    }

    /// How many witnesses have to deceive together with the log.
    pub fn collusion_text(&self) -> String {
        log_with(self.tolerance.map_or(0, |tolerance| tolerance.must_collude), shown_witness_count)
    }

    /// How many witnesses have to deceive together with the log, so that a state counts which its commits do not give.
    pub fn lie_text(&self) -> String {
        log_with(self.tolerance.map_or(0, |tolerance| tolerance.must_lie), shown_replaying_count)
    }

    /// How many witnesses can be down, whichever they are.
    pub fn outage_text(&self) -> String {
        any_text(self.tolerance.map_or(0, |tolerance| tolerance.may_be_down))
    }
}

fn log_with(count: usize, shown: fn(usize) -> String) -> String {
    match count {
        0 => "the log alone".to_owned(),
        count => format!("the log and at least {}", shown(count)),
    }
}

/// The names of logs and witnesses are addresses without a scheme.
fn host_of(key: &VerifierKey) -> &str {
    key.name().split(['/', ':']).next().unwrap_or_default()
}

/// Says the strength in several lines, without a newline at the end.
impl fmt::Display for LogStrength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "log: {}", shown_verifier_key(self.transparency.log()))?;
        for group in self.transparency.witnesses() {
            writeln!(f, "{}", shown_witness_group(group))?;
        }
        if let Some(age) = self.transparency.max_age() {
            writeln!(f, "a proof can be at most {} old", shown_age(age))?;
            writeln!(f, "witnesses that can be down: {}", self.outage_text())?;
        }
        writeln!(f, "who can show different people different states: {}", self.collusion_text())?;
        write!(f, "who can show everyone a false state, as one without a revocation: {}", self.lie_text())
    }
}
