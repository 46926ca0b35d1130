//! The tasks that ask, one for each witness, from the wait after a start to the cosignatures that the log takes.

use std::sync::{Arc, Mutex, PoisonError, atomic::Ordering};
use std::{collections::BTreeSet, future::pending, time::Duration};

use countersign_core::log::checkpoint::{Checkpoint, Cosignature, SignedCheckpoint, WitnessRequest};
use countersign_core::log::note::{Note, NoteError, NoteSignature, parse_number};
use countersign_core::log::policy::Policy;
use countersign_core::values::{bounds::NOTE_BYTES, key::PublicKey, time::Timestamp};
use countersign_forge::https::SetupError;
use countersign_log::{CheckpointRound, CosignError, LogError, TakeError, TransparencyLog};
use countersign_store::machine::clock::Clock;
use futures_util::future::join_all;
use thiserror::Error;
use tokio::{sync::watch, task::spawn_blocking};

use crate::follow::background::{Attempt, Backoff, Retries, keep_trying, until_stopped};
use crate::follow::outgoing::{BriefAnswer, BriefError, OutgoingClient};
use crate::nodes::{asking::settings::AskedWitness, asking::settings::CosigningStats, node::ServerRole};

/// A witness says its size once; a second time if someone else has asked it meanwhile.
const MAX_QUESTIONS: usize = 4;

/// The witnesses that this server asks.
#[derive(Debug)]
pub(crate) struct AskedWitnesses {
    asking: Vec<Asking>,
    first: Option<Arc<FirstAnswers>>,
}

impl AskedWitnesses {
    pub(crate) fn new(
        log: &Arc<TransparencyLog>,
        asked: Vec<AskedWitness>,
        stats: Vec<Arc<CosigningStats>>,
        restored: Restored,
        clock: Clock,
    ) -> Result<Self, SetupError> {
        let client = OutgoingClient::new(NOTE_BYTES)?;
        let first = log.policy().map(|policy| FirstAnswers::of(Arc::clone(log), policy, &asked, restored));
        let first = first.map(Arc::new);
        let asking = asked.into_iter().filter_map(|witness| {
            let (log, client, first) = (Arc::clone(log), client.clone(), Arc::clone(first.as_ref()?));
            let (rounds, stats, clock) = (log.rounds(), stats.clone(), clock.clone());
            Some(Asking { log, rounds, witness, client, first, stats, clock, known: None })
        });
        Ok(Self { asking: asking.collect(), first })
    }

    /// Asks all of them until the server stops.
    pub(crate) async fn run(self, stop: watch::Receiver<bool>) {
        let keep_asking = |asking| keep_trying(asking, Retries::default(), stop.clone());
        let asking = join_all(self.asking.into_iter().map(keep_asking));
        let first = async {
            if let Some(first) = self.first {
                until_stopped(stop.clone(), first.give_up()).await;
            }
        };
        tokio::join!(asking, first);
    }
}

#[derive(Debug)]
struct Asking {
    log: Arc<TransparencyLog>,
    rounds: watch::Receiver<CheckpointRound>,
    witness: AskedWitness,
    client: OutgoingClient,
    first: Arc<FirstAnswers>,
    stats: Vec<Arc<CosigningStats>>,
    clock: Clock,
    /// The size that the witness has.
    known: Option<u64>,
}

/// Why there is no cosignature.
#[derive(Debug, Error)]
enum AskFailure {
    #[error(transparent)]
    Exchange(#[from] BriefError),
    #[error("it does not know this log, or knows another key for it ({status}): {message}")]
    UnknownLog { status: u16, message: String },
    #[error("it answered with {status}: {message}")]
    Status { status: u16, message: String, wait: Option<Duration> },
    #[error("it says that this log contradicts what it has seen ({0}): if that is so, the log has forked")]
    Contradicted(String),
    #[error("it does not say which size it has")]
    NoSize,
    #[error("its answer is not a cosignature: {0}")]
    Malformed(#[from] NoteError),
    #[error(transparent)]
    Cosignature(#[from] CosignError),
    #[error("the log has no proof for it at the moment")]
    NoProof,
    #[error(
        "it says that it has seen {seen} commits of this log, and the newest checkpoint here has {signed}"
    )]
    HasSeenMore { seen: u64, signed: u64 },
    #[error(
        "it says now that it does not know this log ({status}): {message}. It has cosigned the log, or this server was \
         restored, so that is no answer: ask its operator"
    )]
    Forgetful { status: u16, message: String },
    #[error("it has stopped: {0}")]
    Stopped(String),
    #[error("what it has seen cannot be remembered: {0}")]
    Memory(String),
    #[error("what it has seen cannot be remembered")]
    Log(#[from] LogError),
}

enum WitnessAnswer {
    Cosigned(Vec<NoteSignature>),
    /// The witness has another size, which it may name.
    Conflict(Option<u64>),
    /// The witness has stopped for this log, with this reason.
    Stopped(String),
}

impl Attempt for Asking {
    type Failure = AskFailure;

    async fn attempt(&mut self) -> Result<(), AskFailure> {
        self.rounds.mark_unchanged();
        self.ask().await?;
        self.note_stopped(false);
        Ok(())
    }

    fn report(&mut self, failure: &AskFailure, was_failing: bool) {
        self.note_failure();
        let witness = &self.witness.name;
        if matches!(failure, AskFailure::Stopped(_)) {
            if !self.note_stopped(true) {
                tracing::error!(witness, %failure, "the witness has stopped: ask its operator");
            }
        } else if was_failing {
            tracing::debug!(witness, %failure, "the witness still does not cosign");
        } else {
            tracing::warn!(witness, %failure, "the witness does not cosign; it is asked again");
        }
    }

    fn recover(&mut self) {
        tracing::info!(witness = self.witness.name, "the witness answers again");
    }

    fn wait(&mut self, failure: &AskFailure, backoff: &mut Backoff) -> Duration {
        backoff.wait(failure.asked_wait())
    }

    /// Waits until there is something new to ask for. A log that is gone has nothing new.
    async fn rest(&mut self) {
        if self.rounds.changed().await.is_err() {
            pending().await
        }
    }
}

impl Asking {
    /// Notes whether the witness has stopped, and returns whether it had stopped before.
    fn note_stopped(&self, is_stopped: bool) -> bool {
        let key = self.witness.key.key();
        let stats = self.stats.iter().find(|stats| stats.key == key);
        stats.is_some_and(|stats| stats.is_stopped.swap(is_stopped, Ordering::Relaxed))
    }

    fn note_failure(&self) {
        let key = self.witness.key.key();
        if let Some(stats) = self.stats.iter().find(|stats| stats.key == key) {
            stats.failures.add(1);
        }
    }

    /// Shows the witness the newest checkpoint. Every log continues the empty one, so that one serves before the first.
    async fn ask(&mut self) -> Result<(), AskFailure> {
        // Before that it is not known what the log has signed.
        if self.log.loaded().wait_for(|is_loaded| *is_loaded).await.is_err() {
            return Ok(());
        }
        let Some(signed) = self.log.newest_checkpoint().or_else(|| self.log.empty_checkpoint()) else {
            return Ok(());
        };
        let size = signed.checkpoint().size;
        for _ in 0..MAX_QUESTIONS {
            let old = self.known.unwrap_or(0);
            if old > size {
                // It is asked anew the next time.
                self.known = None;
                return self.learn_more(old, size).await;
            }
            match self.offer(&signed, old).await? {
                WitnessAnswer::Cosigned(lines) => {
                    self.known = Some(size);
                    self.note_answer(size).await?;
                    return self.take(&signed, lines).await;
                }
                WitnessAnswer::Conflict(Some(seen)) if self.known != Some(seen) => {
                    self.known = Some(seen);
                    // What it has seen is known from now on, also if the next question fails.
                    if seen <= size {
                        self.note_answer(seen).await?;
                    }
                }
                // Some tell their size only to those that do not claim to know it.
                WitnessAnswer::Conflict(_) if self.known.is_some_and(|known| known > 0) => self.known = None,
                WitnessAnswer::Conflict(_) => return Err(AskFailure::NoSize),
                WitnessAnswer::Stopped(reason) => {
                    self.note_answer(old).await?;
                    return Err(AskFailure::Stopped(reason));
                }
            }
        }
        Err(AskFailure::NoSize)
    }

    async fn offer(&self, signed: &SignedCheckpoint, old: u64) -> Result<WitnessAnswer, AskFailure> {
        let size = signed.checkpoint().size;
        let proof = match old {
            0 => Vec::new(),
            _ if old == size => Vec::new(),
            _ => self.log.prove_consistency(old, size).ok_or(AskFailure::NoProof)?,
        };
        let request = WitnessRequest { old, proof, note: signed.log_note() };
        let answer = self.client.post(&self.witness.url, request.write()).await?;
        let message = answer.excerpt();
        match answer.status {
            200 => Ok(WitnessAnswer::Cosigned(NoteSignature::parse_lines(&answer.body)?)),
            409 => Ok(WitnessAnswer::Conflict(parse_size(&answer))),
            _ if answer.is_stopped => Ok(WitnessAnswer::Stopped(message)),
            status @ (403 | 404) => {
                // One that has cosigned this log has seen something, whatever it says now (D209).
                if self.first.is_restored() || self.log.has_cosigned(&self.witness.key) {
                    self.first.note_forgetful(&self.witness.key.key());
                    return Err(AskFailure::Forgetful { status, message });
                }
                self.note_answer(0).await?;
                Err(AskFailure::UnknownLog { status, message })
            }
            422 => Err(AskFailure::Contradicted(message)),
            status => Err(AskFailure::Status { status, message, wait: answer.retry_after }),
        }
    }

    /// The witness says how many commits it has seen. Only when that is remembered can the log begin to sign.
    async fn note_answer(&self, size: u64) -> Result<(), AskFailure> {
        let (log, key) = (Arc::clone(&self.log), self.witness.key.clone());
        let noted = spawn_blocking(move || log.note_answered(&key, size)).await;
        noted.map_err(|error| AskFailure::Memory(error.to_string()))??;
        self.first.note(&self.witness.key.key());
        Ok(())
    }

    /// The witness has seen more than the log remembers to have signed. What it has seen, it may show.
    async fn learn_more(&self, seen: u64, signed: u64) -> Result<(), AskFailure> {
        let shown = match self.client.get(&self.witness.shown_url).await {
            Ok(answer) if answer.status == 200 => Note::parse(&answer.body).ok(),
            Ok(_) | Err(_) => None,
        };
        let mut shown_size = 0;
        if let Some(note) = shown {
            let (log, by) = (Arc::clone(&self.log), format!("the witness {}", self.witness.key.name()));
            let taken = spawn_blocking(move || log.take_checkpoint(&note, &by)).await;
            match taken.map_err(|error| AskFailure::Memory(error.to_string()))? {
                Ok(size) => shown_size = size,
                Err(TakeError::NotNewer { known, .. }) => shown_size = known,
                // Its word alone remains.
                Err(TakeError::NotOurs { .. }) => {}
                Err(TakeError::Log(error)) => return Err(error.into()),
            }
        }
        self.note_answer(seen).await?;
        if shown_size >= seen { Ok(()) } else { Err(AskFailure::HasSeenMore { seen, signed }) }
    }

    async fn take(&self, signed: &SignedCheckpoint, lines: Vec<NoteSignature>) -> Result<(), AskFailure> {
        let (checkpoint, mut note) = (signed.checkpoint().clone(), Note::new(signed.text().to_owned()));
        let size = checkpoint.size;
        if size == 0 {
            return Ok(());
        }
        lines.into_iter().for_each(|line| note.add(line));
        let (log, now) = (Arc::clone(&self.log), self.clock.now());
        let added = spawn_blocking(move || take_cosignatures(&log, &checkpoint, &note, now)).await;
        match added {
            Ok(Ok(added)) => {
                CosigningStats::note_cosigned(&self.stats, size, &added);
                Ok(())
            }
            // It came too late to matter.
            Ok(Err(CosignError::NotWaiting(_))) | Err(_) => Ok(()),
            Ok(Err(error)) => Err(error.into()),
        }
    }
}

impl AskFailure {
    fn asked_wait(&self) -> Option<Duration> {
        match self {
            Self::Status { wait, .. } => *wait,
            Self::Exchange(_)
            | Self::UnknownLog { .. }
            | Self::Contradicted(_)
            | Self::NoSize
            | Self::Malformed(_)
            | Self::Cosignature(_)
            | Self::NoProof
            | Self::HasSeenMore { .. }
            | Self::Forgetful { .. }
            | Self::Stopped(_)
            | Self::Memory(_)
            | Self::Log(_) => None,
        }
    }
}

fn parse_size(answer: &BriefAnswer) -> Option<u64> {
    let text = std::str::from_utf8(&answer.body).ok()?;
    parse_number(text.strip_suffix('\n').unwrap_or(text))
}

// The wait after a start. The log signs nothing before its witnesses have said what they have seen (D93).

/// The longest wait for the first answers: twice as long as one question can take.
const PATIENCE: Duration = Duration::from_secs(20);
/// The first start after a restore may not be the one that succeeds.
const RECENTLY: Duration = Duration::from_secs(24 * 60 * 60);

/// The answer to whether the data directory is a copy, or belonged to a mirror. If so, its log may have been ahead of
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Restored {
    Yes,
    NotKnown,
}

impl Restored {
    /// A copy without nonces knows when it was made (D31).
    pub(crate) fn of(role: &ServerRole, now: Timestamp) -> Self {
        let ServerRole::Single { nonces } = role else { return Self::NotKnown };
        match nonces.floor() {
            Some(floor) if now < floor.later(RECENTLY) => Self::Yes,
            Some(_) | None => Self::NotKnown,
        }
    }
}

#[derive(Debug)]
pub(crate) struct FirstAnswers {
    log: Arc<TransparencyLog>,
    policy: Policy,
    silent: Mutex<BTreeSet<PublicKey>>,
    /// The witnesses that have cosigned this log, and say that they do not know it.
    forgetful: Mutex<BTreeSet<PublicKey>>,
    restored: Restored,
}

impl FirstAnswers {
    pub(crate) fn of(
        log: Arc<TransparencyLog>,
        policy: Policy,
        asked: &[AskedWitness],
        restored: Restored,
    ) -> Self {
        let silent = Mutex::new(asked.iter().map(|witness| witness.key.key()).collect());
        Self { log, policy, silent, forgetful: Mutex::default(), restored }
    }

    pub(crate) fn is_restored(&self) -> bool {
        self.restored == Restored::Yes
    }

    /// A witness says that it does not know a log that it has cosigned. What it has seen is still to be learnt (D209).
    pub(crate) fn note_forgetful(&self, witness: &PublicKey) {
        self.forgetful.lock().unwrap_or_else(PoisonError::into_inner).insert(*witness);
    }

    /// A witness has said what it has seen, or that it does not know this log.
    pub(crate) fn note(&self, witness: &PublicKey) {
        let mut silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that are silent cannot have cosigned more without one of those that have answered.
        if silent.remove(witness) && (silent.is_empty() || !self.policy.is_met(&silent)) {
            self.log.allow_signing();
        }
    }

    /// Witnesses that are down for long must not stop a log that was only restarted.
    pub(crate) async fn give_up(&self) {
        tokio::time::sleep(PATIENCE).await;
        let silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if silent.is_empty() || !self.policy.is_met(&silent) {
            return;
        }
        let names = self.policy.witnesses().iter().filter(|witness| silent.contains(&witness.key.key()));
        let names = names.map(|witness| witness.name.as_str()).collect::<Vec<_>>().join(", ");
        let is_forgotten =
            !self.forgetful.lock().unwrap_or_else(PoisonError::into_inner).is_disjoint(&silent);
        match self.restored {
            Restored::NotKnown if is_forgotten => tracing::error!(
                witnesses = names,
                "witnesses that have cosigned this log do not know it any more, or do not answer: the log signs nothing before \
                 they say what they have seen. Remove those that are gone for good from the witnesses file"
            ),
            Restored::NotKnown => {
                tracing::warn!(
                    witnesses = names,
                    "witnesses do not answer: the log signs without their word"
                );
                self.log.allow_signing();
            }
            Restored::Yes => tracing::error!(
                witnesses = names,
                "witnesses do not answer, and this data directory was restored: the log signs nothing before they say what \
                 they have seen. Remove those that are gone for good from the witnesses file"
            ),
        }
    }
}

// Cosignatures on their way into the log.

/// Clients refuse a staple with a cosignature that is five minutes ahead of their clock (D86), which may be behind ours.
const MAX_AHEAD: Duration = Duration::from_secs(2 * 60);

/// What witnesses have signed, asked or not. Cosignatures of more commits than there are can stop the log (D93, D190).
pub(crate) fn take_cosignatures(
    log: &TransparencyLog,
    checkpoint: &Checkpoint,
    note: &Note,
    now: Timestamp,
) -> Result<Vec<Cosignature>, CosignError> {
    let witnesses = log.policy().map(|policy| policy.witness_keys()).unwrap_or_default();
    let signers = note.signers(&witnesses)?;
    if signers.is_empty() || checkpoint.origin != log.key().name() {
        return Err(CosignError::UnknownWitness);
    }
    let latest = u64::try_from(now.later(MAX_AHEAD).unix_seconds()).unwrap_or_default();
    if let Some(signer) = signers.iter().find(|signer| signer.time.is_some_and(|time| time > latest)) {
        return Err(CosignError::Ahead(signer.key.name().to_owned()));
    }
    let began = u64::try_from(now.unix_seconds()).unwrap_or_default().saturating_sub(log.age().as_secs());
    for signer in &signers {
        log.note_witnessed(&signer.key, checkpoint.size, Some(checkpoint.root))?;
        // Anyone can post again what a witness said before the start.
        if signer.time.is_some_and(|time| time >= began) {
            log.note_answered(&signer.key, checkpoint.size)?;
        }
    }
    match log.take_checkpoint(note, "a witness") {
        // Most notes have no signature of the log, or no more commits than are known.
        Ok(_) | Err(TakeError::NotOurs { .. } | TakeError::NotNewer { .. }) => {}
        Err(TakeError::Log(error)) => return Err(error.into()),
    }
    log.add_cosignatures(checkpoint.size, note.signatures())
}
