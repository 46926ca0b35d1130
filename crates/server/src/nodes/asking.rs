//! Asks witnesses to cosign the checkpoints of this server's log (D93): who can be asked, what is counted of each, and
//! a task for each witness, from the wait after a start to the cosignatures that the log takes.

use std::sync::{Arc, Mutex, atomic::AtomicBool, atomic::AtomicU64, atomic::Ordering};
use std::time::{Duration, Instant};
use std::{collections::BTreeSet, error::Error as StdError, future::pending};

use countersign_core::log::checkpoint::{Checkpoint, Cosignature, SignedCheckpoint, WitnessRequest};
use countersign_core::log::note::{Note, NoteSignature, parse_number};
use countersign_core::log::policy::Policy;
use countersign_core::values::wire::routes::ADD_CHECKPOINT;
use countersign_core::values::{bounds::NOTE_BYTES, digest::Sha256, shown::shown_text};
use countersign_core::values::{time::Timestamp, verifier_key::VerifierKey};
use countersign_forge::https::SetupError;
use countersign_log::{CheckpointRound, CosignError, TakeError, TransparencyLog};
use countersign_store::machine::clock::{Clock, lock};
use futures_util::future::join_all;
use tokio::{sync::watch, task::spawn_blocking};

use crate::follow::background::{
    Attempt, Background, Backoff, BoxedError, Retries, keep_trying, until_stopped,
};
use crate::follow::outgoing::{ExchangeFailure, OutgoingClient, parse_guarded_url};
use crate::{metrics::Counter, nodes::node::ServerRole};

#[derive(Debug, Clone)]
pub struct AskedWitness {
    /// The name of the witness in the policy.
    pub name: String,
    pub key: VerifierKey,
    /// The URL of `add-checkpoint`.
    pub url: String,
    /// The URL at which the witness may show the newest checkpoint of this log that it has cosigned.
    pub shown_url: String,
}

impl AskedWitness {
    /// Lists the witnesses of a policy that have a URL. The others post their cosignatures themselves. One with several
    /// keys signs with all of them when it is asked once.
    pub fn list(policy: &Policy, origin: &str) -> Result<Vec<Self>, BoxedError> {
        let shown = format!("/{}/checkpoint", Sha256::of(origin.as_bytes()));
        let with_url = policy.witnesses().iter().filter_map(|witness| Some((witness, witness.url.as_ref()?)));
        let mut known = BTreeSet::new();
        let with_url = with_url.filter(|(witness, url)| known.insert((witness.key.name(), *url)));
        let asked = with_url.map(|(witness, url)| {
            let (name, key) = (witness.name.clone(), witness.key.clone());
            let bad = || {
                let url = shown_text(url);
                format!("`{url}` is not the address of the witness `{name}`: write it as https://HOST/PATH; http is for this machine only")
            };
            let url = parse_guarded_url(url).ok_or_else(bad)?;
            let prefix = url.as_str().trim_end_matches('/');
            let (url, shown_url) = (format!("{prefix}{ADD_CHECKPOINT}"), format!("{prefix}{shown}"));
            Ok(Self { name, key, url, shown_url })
        });
        asked.collect()
    }

    /// Checks that the witness answers, whatever it answers, or says why not.
    pub async fn check_answers(&self) -> Result<(), BoxedError> {
        let answer = OutgoingClient::new(NOTE_BYTES)?.get(&self.shown_url).await;
        answer.map(drop).map_err(|failure| failure.reason.into())
    }
}

// Counters of what each witness has cosigned, for metrics.

#[derive(Debug)]
pub struct CosigningStats {
    /// The name of the witness in the policy.
    pub name: String,
    pub key: VerifierKey,
    size: AtomicU64,
    at: Mutex<Option<Instant>>,
    pub failures: Counter,
    /// Whether the witness last said that it cosigns nothing more until its operator decides.
    pub is_stopped: AtomicBool,
}

impl CosigningStats {
    /// Makes counters for all witnesses, also for those that post.
    pub fn of(policy: &Policy) -> Vec<Arc<Self>> {
        let witnesses = policy.witnesses().iter().map(|witness| {
            Arc::new(Self {
                name: witness.name.clone(),
                key: witness.key.clone(),
                size: AtomicU64::new(0),
                at: Mutex::new(None),
                failures: Counter::default(),
                is_stopped: AtomicBool::new(false),
            })
        });
        witnesses.collect()
    }

    pub fn note_cosigned(all: &[Arc<Self>], size: u64, added: &[Cosignature]) {
        for cosignature in added {
            if let Some(stats) = all.iter().find(|stats| stats.key == cosignature.witness) {
                stats.size.fetch_max(size, Ordering::Relaxed);
                *lock(&stats.at) = Some(Instant::now());
            }
        }
    }

    /// The size of the newest checkpoint that the witness has cosigned since this server started.
    pub fn size(&self) -> u64 {
        self.size.load(Ordering::Relaxed)
    }

    /// The time since the witness last cosigned.
    pub fn since(&self) -> Option<Duration> {
        lock(&self.at).map(|at| at.elapsed())
    }
}

// The tasks that ask.

/// A witness says its size once; a second time if someone else has asked it meanwhile.
const MAX_QUESTIONS: usize = 4;

/// Asks all of these witnesses until the server stops.
pub(crate) fn start_asking(
    log: &Arc<TransparencyLog>,
    asked: Vec<AskedWitness>,
    stats: Vec<Arc<CosigningStats>>,
    is_restored: bool,
    clock: Clock,
) -> Result<Background, SetupError> {
    let client = OutgoingClient::new(NOTE_BYTES)?;
    let first = log.policy().map(|policy| FirstAnswers::of(Arc::clone(log), policy, &asked, is_restored));
    let first = first.map(Arc::new);
    let asking = asked.into_iter().filter_map(|witness| {
        let (log, client, first) = (Arc::clone(log), client.clone(), Arc::clone(first.as_ref()?));
        let (rounds, stats, clock) = (log.rounds(), stats.clone(), clock.clone());
        let own = Arc::clone(stats.iter().find(|stats| stats.key == witness.key)?);
        let (known, has_stopped) = (None, false);
        Some(Asking { log, rounds, witness, client, first, stats, own, clock, known, has_stopped })
    });
    let asking: Vec<_> = asking.collect();
    Ok(Background::start(|stop| async move {
        let keep_asking = |asking| keep_trying(asking, Retries::default(), stop.clone());
        let asking = join_all(asking.into_iter().map(keep_asking));
        let first = async {
            if let Some(first) = first {
                until_stopped(stop.clone(), first.give_up()).await;
            }
        };
        tokio::join!(asking, first);
    }))
}

#[derive(Debug)]
struct Asking {
    log: Arc<TransparencyLog>,
    rounds: watch::Receiver<CheckpointRound>,
    witness: AskedWitness,
    client: OutgoingClient,
    first: Arc<FirstAnswers>,
    stats: Vec<Arc<CosigningStats>>,
    /// The counters of this witness.
    own: Arc<CosigningStats>,
    clock: Clock,
    /// The size that the witness has.
    known: Option<u64>,
    /// Whether it said in the newest try that it has stopped.
    has_stopped: bool,
}

enum WitnessAnswer {
    Cosigned(Vec<NoteSignature>),
    /// The witness has another size, which it may name.
    Conflict(Option<u64>),
}

impl Attempt for Asking {
    type Failure = ExchangeFailure;

    async fn attempt(&mut self) -> Result<(), ExchangeFailure> {
        self.rounds.mark_unchanged();
        self.has_stopped = false;
        self.ask().await?;
        self.own.is_stopped.store(false, Ordering::Relaxed);
        Ok(())
    }

    fn report(&mut self, failure: &ExchangeFailure, was_failing: bool) {
        self.own.failures.add(1);
        let witness = &self.witness.name;
        if self.has_stopped {
            if !self.own.is_stopped.swap(true, Ordering::Relaxed) {
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

    fn wait(&mut self, failure: &ExchangeFailure, backoff: &mut Backoff) -> Duration {
        backoff.wait(failure.asked_wait)
    }

    /// Waits until there is something new to ask for. A log that is gone has nothing new.
    async fn rest(&mut self) {
        if self.rounds.changed().await.is_err() {
            pending().await
        }
    }
}

impl Asking {
    /// Shows the witness the newest checkpoint. Every log continues the empty one, so that one serves before the first.
    async fn ask(&mut self) -> Result<(), ExchangeFailure> {
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
                WitnessAnswer::Conflict(_) => break,
            }
        }
        Err(ExchangeFailure::new("it does not say which size it has"))
    }

    async fn offer(&mut self, signed: &SignedCheckpoint, old: u64) -> Result<WitnessAnswer, ExchangeFailure> {
        let size = signed.checkpoint().size;
        let no_proof = || ExchangeFailure::new("the log has no proof for it at the moment");
        let proof = match old {
            0 => Vec::new(),
            _ if old == size => Vec::new(),
            _ => self.log.prove_consistency(old, size).ok_or_else(no_proof)?,
        };
        let request = WitnessRequest { old, proof, note: signed.log_note() };
        let answer = self.client.post(&self.witness.url, request.write()).await?;
        let message = answer.excerpt();
        match answer.status {
            200 => {
                let lines = NoteSignature::parse_lines(&answer.body);
                let malformed = |error| ExchangeFailure::caused("its answer is not a cosignature", &error);
                Ok(WitnessAnswer::Cosigned(lines.map_err(malformed)?))
            }
            409 => Ok(WitnessAnswer::Conflict(parse_size(&answer.body))),
            _ if answer.is_stopped => {
                self.note_answer(old).await?;
                self.has_stopped = true;
                Err(ExchangeFailure::new(format!("it has stopped: {message}")))
            }
            status @ (403 | 404) => {
                // One that has cosigned this log has seen something, whatever it says now (D209).
                if self.first.is_restored || self.log.has_cosigned(&self.witness.key) {
                    self.first.note_forgetful(&self.witness.key);
                    return Err(ExchangeFailure::new(format!(
                        "it says now that it does not know this log ({status}): {message}. It has cosigned the log, or this \
                         server was restored, so that is no answer: ask its operator"
                    )));
                }
                self.note_answer(0).await?;
                Err(ExchangeFailure::new(format!(
                    "it does not know this log, or knows another key for it ({status}): {message}"
                )))
            }
            422 => Err(ExchangeFailure::new(format!(
                "it says that this log contradicts what it has seen ({message}): if that is so, the log has forked"
            ))),
            _ => Err(answer.refused("it")),
        }
    }

    /// The witness says how many commits it has seen. Only when that is remembered can the log begin to sign.
    async fn note_answer(&self, size: u64) -> Result<(), ExchangeFailure> {
        let (log, key) = (Arc::clone(&self.log), self.witness.key.clone());
        let noted = spawn_blocking(move || log.note_answered(&key, size)).await;
        noted.map_err(|error| not_remembered(&error))?.map_err(|error| not_remembered(&error))?;
        self.first.note(&self.witness.key);
        Ok(())
    }

    /// The witness has seen more than the log remembers to have signed. What it has seen, it may show.
    async fn learn_more(&self, seen: u64, signed: u64) -> Result<(), ExchangeFailure> {
        let shown = match self.client.get(&self.witness.shown_url).await {
            Ok(answer) if answer.status == 200 => Note::parse(&answer.body).ok(),
            Ok(_) | Err(_) => None,
        };
        let mut shown_size = 0;
        if let Some(note) = shown {
            let (log, by) = (Arc::clone(&self.log), format!("the witness {}", self.witness.key.name()));
            let taken = spawn_blocking(move || log.take_checkpoint(&note, &by)).await;
            match taken.map_err(|error| not_remembered(&error))? {
                Ok(size) => shown_size = size,
                Err(TakeError::NotNewer { known, .. }) => shown_size = known,
                // Its word alone remains.
                Err(TakeError::NotOurs { .. }) => {}
                Err(TakeError::Log(error)) => return Err(not_remembered(&error)),
            }
        }
        self.note_answer(seen).await?;
        if shown_size >= seen {
            return Ok(());
        }
        Err(ExchangeFailure::new(format!(
            "it says that it has seen {seen} commits of this log, and the newest checkpoint here has {signed}"
        )))
    }

    async fn take(
        &self,
        signed: &SignedCheckpoint,
        lines: Vec<NoteSignature>,
    ) -> Result<(), ExchangeFailure> {
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

fn not_remembered(error: &dyn StdError) -> ExchangeFailure {
    ExchangeFailure::caused("what it has seen cannot be remembered", error)
}

fn parse_size(body: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(body).ok()?;
    parse_number(text.strip_suffix('\n').unwrap_or(text))
}

// The wait after a start. The log signs nothing before its witnesses have said what they have seen (D93).

/// The longest wait for the first answers: twice as long as one question can take.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The first start after a restore may not be the one that succeeds.
const RECENTLY: Duration = Duration::from_secs(24 * 60 * 60);

/// Whether the data directory is known to be a copy, or to have belonged to a mirror. If so, its log may have been
/// ahead of it. A copy without nonces knows when it was made (D31).
pub(crate) fn is_restored(role: &ServerRole, now: Timestamp) -> bool {
    let ServerRole::Single { nonces } = role else { return false };
    nonces.floor().is_some_and(|floor| now < floor.later(RECENTLY))
}

#[derive(Debug)]
pub(crate) struct FirstAnswers {
    log: Arc<TransparencyLog>,
    policy: Policy,
    silent: Mutex<BTreeSet<VerifierKey>>,
    /// The witnesses that have cosigned this log, and say that they do not know it.
    forgetful: Mutex<BTreeSet<VerifierKey>>,
    is_restored: bool,
}

impl FirstAnswers {
    pub(crate) fn of(
        log: Arc<TransparencyLog>,
        policy: Policy,
        asked: &[AskedWitness],
        is_restored: bool,
    ) -> Self {
        let silent = Mutex::new(asked.iter().map(|witness| witness.key.clone()).collect());
        Self { log, policy, silent, forgetful: Mutex::default(), is_restored }
    }

    /// A witness says that it does not know a log that it has cosigned. What it has seen is still to be learnt (D209).
    pub(crate) fn note_forgetful(&self, witness: &VerifierKey) {
        lock(&self.forgetful).insert(witness.clone());
    }

    /// A witness has said what it has seen, or that it does not know this log.
    pub(crate) fn note(&self, witness: &VerifierKey) {
        let mut silent = lock(&self.silent);
        // Those that are silent cannot have cosigned more without one of those that have answered.
        if silent.remove(witness) && !self.can_cosign(&silent) {
            self.log.allow_signing();
        }
    }

    /// Whether these witnesses alone can be enough, each with all its keys.
    fn can_cosign(&self, silent: &BTreeSet<VerifierKey>) -> bool {
        let keys = silent.iter().flat_map(|key| self.policy.keys_of(key.name())).cloned().collect();
        !silent.is_empty() && self.policy.is_met(&keys)
    }

    /// Witnesses that are down for long must not stop a log that was only restarted.
    pub(crate) async fn give_up(&self) {
        tokio::time::sleep(TIMEOUT).await;
        let silent = lock(&self.silent).clone();
        if !self.can_cosign(&silent) {
            return;
        }
        let names = self.policy.witnesses().iter().filter(|witness| silent.contains(&witness.key));
        let names = names.map(|witness| witness.name.as_str()).collect::<Vec<_>>().join(", ");
        let is_forgotten = !lock(&self.forgetful).is_disjoint(&silent);
        if self.is_restored {
            tracing::error!(
                witnesses = names,
                "witnesses do not answer, and this data directory was restored: the log signs nothing before they say what \
                 they have seen. Remove those that are gone for good from the witnesses file"
            );
        } else if is_forgotten {
            tracing::error!(
                witnesses = names,
                "witnesses that have cosigned this log do not know it any more, or do not answer: the log signs nothing before \
                 they say what they have seen. Remove those that are gone for good from the witnesses file"
            );
        } else {
            tracing::warn!(witnesses = names, "witnesses do not answer: the log signs without their word");
            self.log.allow_signing();
        }
    }
}

// Cosignatures on their way into the log.

/// Clients refuse a staple with a cosignature that is five minutes ahead of their clock (D86), which may be behind
/// ours.
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
