//! The tasks that ask: one for each witness.

use std::{pin::Pin, sync::Arc, time::Duration};

use countersign_core::{
    log::{
        checkpoint::SignedCheckpoint,
        note::{Note, NoteError, NoteSignature, parse_number},
        proofs::WitnessRequest,
    },
    values::bounds::NOTE_BYTES,
};
use countersign_forge::https::SetupError;
use countersign_log::{CosignError, TransparencyLog};
use countersign_store::clock::Clock;
use futures_util::future::join_all;
use thiserror::Error;
use tokio::{sync::watch, task::spawn_blocking, time::sleep};

use super::{
    first_answers::{FirstAnswers, Restored},
    settings::AskedWitness,
    stats::CosigningStats,
    taking::take_cosignatures,
};
use crate::{
    backoff::{Backoff, Retries, chance},
    brief_client::{BriefAnswer, BriefClient, BriefError},
};

/// A witness says its size once; a second time if someone else has asked it meanwhile.
const MAX_QUESTIONS: usize = 4;

pub(crate) type AskWork = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Asks all of them until it is told to stop.
pub(crate) fn ask_all(
    log: &Arc<TransparencyLog>,
    asked: Vec<AskedWitness>,
    stats: Vec<Arc<CosigningStats>>,
    restored: Restored,
    clock: Clock,
) -> Result<impl FnOnce(watch::Receiver<bool>) -> AskWork, SetupError> {
    let client = BriefClient::new(NOTE_BYTES)?;
    let first = log.policy().map(|policy| FirstAnswers::of(Arc::clone(log), policy, &asked, restored));
    let first = first.map(Arc::new);
    let tasks: Vec<_> = asked
        .into_iter()
        .filter_map(|witness| {
            let (log, client, first) = (Arc::clone(log), client.clone(), Arc::clone(first.as_ref()?));
            let (stats, clock) = (stats.clone(), clock.clone());
            Some(Asking { log, witness, client, first, stats, clock, known: None })
        })
        .collect();
    Ok(|mut stop: watch::Receiver<bool>| {
        Box::pin(async move {
            let asking = join_all(tasks.into_iter().map(Asking::run));
            let waiting = async {
                if let Some(first) = first {
                    first.give_up().await;
                }
            };
            tokio::select! {
                _ = async { tokio::join!(asking, waiting) } => {}
                _ = stop.wait_for(|stop| *stop) => {}
            }
        }) as AskWork
    })
}

#[derive(Debug)]
struct Asking {
    log: Arc<TransparencyLog>,
    witness: AskedWitness,
    client: BriefClient,
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
    #[error("it says that it has seen {seen} commits of this log, and there are {size}")]
    HasSeenMore { seen: u64, size: u64 },
}

enum Told {
    Cosigned(Vec<NoteSignature>),
    /// With the size that it has, if it says so.
    Conflict(Option<u64>),
}

impl Asking {
    async fn run(mut self) {
        let mut rounds = self.log.rounds();
        let (mut backoff, mut is_failing) = (Backoff::new(Retries::default()), false);
        loop {
            rounds.borrow_and_update();
            let asked = self.ask().await;
            let name = &self.witness.name;
            match asked {
                Ok(()) => {
                    backoff = Backoff::new(Retries::default());
                    if std::mem::take(&mut is_failing) {
                        tracing::info!(witness = name, "the witness answers again");
                    }
                    if rounds.changed().await.is_err() {
                        return;
                    }
                }
                Err(failure) => {
                    self.note_failure();
                    if !std::mem::replace(&mut is_failing, true) {
                        tracing::warn!(witness = name, %failure, "the witness does not cosign; it is asked again");
                    } else {
                        tracing::debug!(witness = name, %failure, "the witness still does not cosign");
                    }
                    sleep(backoff.next_wait(chance(), failure.asked_wait())).await;
                }
            }
        }
    }

    fn note_failure(&self) {
        let key = self.witness.key.key();
        if let Some(stats) = self.stats.iter().find(|stats| stats.key == key) {
            stats.failures.add(1);
        }
    }

    /// Shows the witness the newest checkpoint. Every log continues the empty one, so that one serves before the first.
    async fn ask(&mut self) -> Result<(), AskFailure> {
        let Some(signed) = self.log.newest_checkpoint().or_else(|| self.log.empty_checkpoint()) else {
            return Ok(());
        };
        let size = signed.checkpoint().size;
        for _ in 0..MAX_QUESTIONS {
            let old = self.known.unwrap_or(0);
            if old > size {
                // The log compares it with what there is, which can be more than was signed.
                self.log.note_answered(&self.witness.key, old);
                self.first.note(&self.witness.key.key());
                // It may take it back.
                self.known = None;
                return self.compare(old, size);
            }
            match self.tell(&signed, old).await? {
                Told::Cosigned(lines) => {
                    self.known = Some(size);
                    self.log.note_answered(&self.witness.key, size);
                    self.first.note(&self.witness.key.key());
                    return self.take(&signed, lines).await;
                }
                Told::Conflict(Some(seen)) if self.known != Some(seen) => {
                    self.known = Some(seen);
                    // What it has seen is known from now on, also if the next question fails.
                    if seen <= size {
                        self.log.note_answered(&self.witness.key, seen);
                        self.first.note(&self.witness.key.key());
                    }
                }
                // Some tell their size only to those that do not claim to know it.
                Told::Conflict(_) if self.known.is_some_and(|known| known > 0) => self.known = None,
                Told::Conflict(_) => return Err(AskFailure::NoSize),
            }
        }
        Err(AskFailure::NoSize)
    }

    async fn tell(&self, signed: &SignedCheckpoint, old: u64) -> Result<Told, AskFailure> {
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
            200 => Ok(Told::Cosigned(NoteSignature::parse_lines(&answer.body)?)),
            409 => Ok(Told::Conflict(parse_size(&answer))),
            status @ (403 | 404) => {
                self.log.note_answered(&self.witness.key, 0);
                self.first.note(&self.witness.key.key());
                Err(AskFailure::UnknownLog { status, message })
            }
            422 => Err(AskFailure::Contradicted(message)),
            status => Err(AskFailure::Status { status, message, wait: answer.retry_after }),
        }
    }

    /// A log that has signed nothing yet may not have read what it has.
    fn compare(&self, seen: u64, signed: u64) -> Result<(), AskFailure> {
        let size = *self.log.sizes().borrow();
        if signed > 0 && seen > size { Err(AskFailure::HasSeenMore { seen, size }) } else { Ok(()) }
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
            | Self::HasSeenMore { .. } => None,
        }
    }
}

fn parse_size(answer: &BriefAnswer) -> Option<u64> {
    let text = std::str::from_utf8(&answer.body).ok()?;
    parse_number(text.strip_suffix('\n').unwrap_or(text))
}
