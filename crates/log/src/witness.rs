//! A witness of logs (D94, D95): it remembers the newest checkpoint of each, cosigns those that continue it, and never
//! goes back. The log that it replays it knows better: it cosigns only the root that it has counted itself.

mod memory;
mod network;
mod record;

use std::sync::{Arc, Mutex, OnceLock, RwLock, atomic::AtomicBool, atomic::Ordering};
use std::{collections::BTreeMap, collections::btree_map::Entry as BTreeEntry, path::Path, time::Instant};

use countersign_core::log::checkpoint::{CheckpointError, Cosignature, SignedCheckpoint, WitnessRequest};
use countersign_core::log::network::{KnownLogs, ListedLog, LogList, NotTaken};
use countersign_core::log::note::{Note, NoteError};
use countersign_core::values::{digest::Sha256, shown::shown_text, verifier_key::VerifierKey};
use countersign_store::{Disk, machine::clock::lock, machine::clock::read, machine::clock::write};

use crate::settings::CheckpointSigner;
use crate::witness::memory::{Contradiction, WitnessMemory, hash_of};
pub use crate::witness::memory::{WitnessMemoryError, WitnessStop, forget_stops};
use crate::witness::network::AskingRate;
pub use crate::witness::network::{AskedTooOften, TakenList, UntakenLog};
pub use crate::witness::record::{CosignRefusal, LogReplay, WitnessedLog};
use crate::witness::record::{LogRecord, examine, has_wrong_empty_root};

/// How far the clock can be behind the last cosignature, in seconds. The witness then says that time again.
const MAX_BEHIND: u64 = 120;

#[derive(Debug)]
pub struct LogWitness {
    /// One for each key. All of them have the witness's name.
    signers: Vec<CheckpointSigner>,
    memory: WitnessMemory,
    /// The logs by the SHA-256 of their origins.
    logs: RwLock<BTreeMap<Sha256, Arc<WitnessedLog>>>,
    /// The logs of lists, as they are on disk.
    known: Mutex<KnownLogs>,
    started: Instant,
    /// Whether it will learn of a log that it does not know yet.
    is_learning: AtomicBool,
}

/// How one log is doing.
#[derive(Debug, Clone)]
pub struct WitnessedFigures {
    pub origin: String,
    /// The size of the newest checkpoint on record.
    pub size: u64,
    /// The time of the last cosignature, in Unix seconds.
    pub time: Option<u64>,
    pub is_stopped: bool,
}

impl LogWitness {
    /// Opens the records of a witness in `dir`. Only one process has it open.
    pub fn open(dir: &Path, signers: Vec<CheckpointSigner>) -> Result<Self, WitnessMemoryError> {
        Self::open_on(Disk::default(), dir, signers)
    }

    /// Opens the records as [`LogWitness::open`] does, on a disk that a test can make fail.
    pub fn open_on(
        disk: Disk,
        dir: &Path,
        signers: Vec<CheckpointSigner>,
    ) -> Result<Self, WitnessMemoryError> {
        let (memory, is_learning) = (WitnessMemory::open(disk, dir)?, AtomicBool::new(false));
        let (logs, known, started) = (RwLock::default(), Mutex::default(), Instant::now());
        Ok(Self { signers, memory, logs, known, started, is_learning })
    }

    pub fn keys(&self) -> Vec<VerifierKey> {
        self.signers.iter().map(|signer| signer.key().clone()).collect()
    }

    /// Whether a log has a key of this witness. Each needs a key of its own.
    pub fn has_key_of(&self, log: &VerifierKey) -> bool {
        self.signers.iter().any(|signer| signer.key().bytes() == log.bytes())
    }

    /// A log to serve as an ordinary witness. All keys have the origin as their name.
    pub fn add_log(&self, keys: Vec<VerifierKey>) -> Result<(), WitnessMemoryError> {
        let Some(origin) = keys.first().map(|key| key.name().to_owned()) else { return Ok(()) };
        let mut logs = write(&self.logs);
        let log = self.load_log(&origin, keys, None)?;
        logs.entry(hash_of(&origin)).or_insert(log);
        Ok(())
    }

    /// Serves the logs that lists have had before, whatever they have now. To be called when the operator's own logs
    /// were added, which are served as the operator says.
    pub fn add_known(&self) -> Result<usize, WitnessMemoryError> {
        let known = self.memory.load_known()?;
        let mut logs = write(&self.logs);
        for listed in known.logs() {
            if let BTreeEntry::Vacant(place) = logs.entry(hash_of(listed.key.name())) {
                place.insert(self.load_listed(listed)?);
            }
        }
        let count = known.logs().len();
        *lock(&self.known) = known;
        Ok(count)
    }

    /// Takes the logs of a list that it does not know yet. They are on disk before it serves them, and it never forgets
    /// one (D272).
    pub fn take_list(&self, list: &LogList) -> Result<TakenList, WitnessMemoryError> {
        let mut known = lock(&self.known);
        let (mut next, mut taken, mut new) = (known.clone(), TakenList::default(), Vec::new());
        for listed in &list.logs {
            match self.take_listed(listed, &mut next)? {
                Ok(log) => new.extend(log),
                Err(reason) => taken.refuse(listed, reason),
            }
        }
        taken.new = new.len();
        if !new.is_empty() {
            self.memory.keep_known(&next)?;
            *known = next;
            let mut logs = write(&self.logs);
            for log in new {
                logs.entry(hash_of(log.origin())).or_insert(log);
            }
        }
        Ok(taken)
    }

    /// The log, if it is new; or why it is not taken.
    fn take_listed(
        &self,
        listed: &ListedLog,
        known: &mut KnownLogs,
    ) -> Result<Result<Option<Arc<WitnessedLog>>, NotTaken>, WitnessMemoryError> {
        let origin = listed.key.name();
        let own = read(&self.logs).get(&hash_of(origin)).cloned().filter(|log| log.rate.is_none());
        if let Some(own) = own {
            let is_same = own.keys.contains(&listed.key);
            let other = own.keys.first().filter(|_| !is_same).map(|own| listed.instead_of(own));
            return Ok(other.map_or(Ok(None), Err));
        }
        let is_new = match known.take(listed) {
            Ok(is_new) => is_new,
            Err(reason) => return Ok(Err(reason)),
        };
        if !is_new {
            return Ok(Ok(None));
        }
        match self.load_listed(listed) {
            Ok(log) => Ok(Ok(Some(log))),
            // Of a log that the operator served once under this name.
            Err(WitnessMemoryError::Unusable { .. }) => {
                known.forget_new(listed);
                Ok(Err(NotTaken::OtherRecord))
            }
            Err(error @ (WitnessMemoryError::File { .. } | WitnessMemoryError::Known { .. })) => Err(error),
        }
    }

    fn load_listed(&self, listed: &ListedLog) -> Result<Arc<WitnessedLog>, WitnessMemoryError> {
        let rate = AskingRate::of(listed.per_day);
        self.load_log(listed.key.name(), vec![listed.key.clone()], Some(rate))
    }

    /// Whether the log is known that this witness replays. Before that, a list could take its name.
    pub fn has_own_log(&self) -> bool {
        read(&self.logs).values().any(|log| log.is_replayed.load(Ordering::Acquire))
    }

    /// How many logs it knows from lists.
    pub fn count_known(&self) -> usize {
        lock(&self.known).logs().len()
    }

    /// Adds the log that is derived here. The policy can name it as well, with the same key.
    pub fn add_replay(&self, replay: LogReplay) -> Result<(), WitnessMemoryError> {
        let (key, origin) = (replay.log().key().clone(), replay.log().key().name().to_owned());
        let mut logs = write(&self.logs);
        let log = match logs.get(&hash_of(&origin)) {
            Some(log) if log.keys.contains(&key) => Arc::clone(log),
            Some(_) => return Err(self.memory.refuse_key(&key)),
            None => self.load_log(&origin, vec![key], None)?,
        };
        log.is_replayed.store(true, Ordering::Release);
        let _ = log.replay.set(replay);
        logs.insert(hash_of(&origin), log);
        self.is_learning.store(false, Ordering::Release);
        Ok(())
    }

    /// The log of this key will be replayed. Until then the witness says what it has seen of it, and cosigns nothing. A
    /// record that cannot be read is an error: a witness must not begin without it.
    pub fn expect_replay(&self, key: &VerifierKey) -> Result<(), WitnessMemoryError> {
        let mut logs = write(&self.logs);
        let log = match logs.get(&hash_of(key.name())) {
            Some(log) => Arc::clone(log),
            None => self.load_log(key.name(), vec![key.clone()], None)?,
        };
        log.is_replayed.store(log.keys.contains(key), Ordering::Release);
        logs.insert(hash_of(key.name()), log);
        Ok(())
    }

    /// The witness will learn the key of a log, and serves no others. Until then a log that it does not know may be
    /// that one.
    pub fn expect_key(&self) {
        self.is_learning.store(true, Ordering::Release);
    }

    fn load_log(
        &self,
        origin: &str,
        keys: Vec<VerifierKey>,
        rate: Option<AskingRate>,
    ) -> Result<Arc<WitnessedLog>, WitnessMemoryError> {
        let newest = self.memory.load(origin, &keys, &self.keys())?;
        let stop = self.memory.load_stop(origin)?;
        let doubtful = self.memory.load_doubtful(origin, &keys);
        let record = Mutex::new(LogRecord { newest, stop, doubtful });
        let is_replayed = AtomicBool::new(false);
        Ok(Arc::new(WitnessedLog { keys, rate, replay: OnceLock::new(), is_replayed, record }))
    }

    /// The key that the origin's log was first seen with.
    pub fn pinned_key(&self) -> Result<Option<VerifierKey>, WitnessMemoryError> {
        self.memory.pinned_key()
    }

    pub fn pin_key(&self, key: &VerifierKey) -> Result<(), WitnessMemoryError> {
        self.memory.pin_key(key)
    }

    /// Which log a checkpoint is of, if one of its keys has signed it.
    pub fn identify(&self, note: &Note) -> Result<(Arc<WitnessedLog>, SignedCheckpoint), CosignRefusal> {
        let origin = note.text().split('\n').next().unwrap_or_default();
        let logs = read(&self.logs);
        let log = logs.get(&hash_of(origin)).cloned();
        drop(logs);
        let Some(log) = log else {
            let opened = SignedCheckpoint::open(note, &[], &[]);
            return Err(match opened {
                Err(error @ (CheckpointError::Form(_) | CheckpointError::Note(_))) => {
                    CosignRefusal::Malformed(error)
                }
                Ok(_) | Err(CheckpointError::UnknownOrigin(_) | CheckpointError::NotSigned(_)) => {
                    self.miss(origin)
                }
            });
        };
        match SignedCheckpoint::open(note, &log.keys, &[]) {
            Ok(signed) => Ok((log, signed)),
            Err(error @ CheckpointError::Form(_)) if has_wrong_empty_root(note.text()) => {
                match note.signers(&log.keys).as_deref() {
                    Ok([_, ..]) => Err(CosignRefusal::BadProof),
                    Ok([]) | Err(_) => Err(CosignRefusal::NotSigned(error)),
                }
            }
            Err(
                error @ (CheckpointError::NotSigned(_) | CheckpointError::Note(NoteError::BadSignature(_))),
            ) => Err(CosignRefusal::NotSigned(error)),
            Err(
                error @ (CheckpointError::Form(_)
                | CheckpointError::UnknownOrigin(_)
                | CheckpointError::Note(_)),
            ) => Err(CosignRefusal::Malformed(error)),
        }
    }

    fn miss(&self, origin: &str) -> CosignRefusal {
        if self.is_learning.load(Ordering::Acquire) {
            CosignRefusal::NotKnownYet
        } else {
            CosignRefusal::UnknownLog(shown_text(origin))
        }
    }

    /// Cosigns a checkpoint with each key, as `add-checkpoint` asks. Waits for the disk. Requests of a log are looked
    /// at one after the other, so none can go back behind another one.
    pub fn add_checkpoint(
        &self,
        request: &WitnessRequest,
        now: u64,
    ) -> Result<Vec<Cosignature>, CosignRefusal> {
        let (log, signed) = self.identify(&request.note)?;
        let mut record = log.lock();
        let is_forked = self.look_for_fork(&log, &mut record, &signed)?;
        let known = record.newest.as_ref().map(SignedCheckpoint::checkpoint);
        if let Err(refusal) = examine(known, request, signed.checkpoint()) {
            if matches!(refusal, CosignRefusal::BadProof) {
                return Err(self.doubt(&log, &mut record, request, signed)?.unwrap_or(refusal));
            }
            return Err(refusal);
        }
        if is_forked {
            return Err(CosignRefusal::OtherRoot(signed.checkpoint().size));
        }
        self.cosign(&log, &mut record, signed, now)
    }

    /// A checkpoint that the witness has fetched itself. Only a log that is replayed needs no proof.
    pub fn cosign_replayed(&self, note: &Note, now: u64) -> Result<SignedCheckpoint, CosignRefusal> {
        let (log, signed) = self.identify(note)?;
        let mut record = log.lock();
        if self.look_for_fork(&log, &mut record, &signed)? {
            return Err(CosignRefusal::OtherRoot(signed.checkpoint().size));
        }
        let known = record.size();
        if log.replay().is_none() || signed.checkpoint().size < known {
            return Err(CosignRefusal::OtherSize(known));
        }
        self.cosign(&log, &mut record, signed, now)?;
        Ok(record.newest.clone().expect("it was just put there"))
    }

    /// Checks a checkpoint for a fork, and cosigns nothing.
    pub fn check(&self, note: &Note) -> Result<(), CosignRefusal> {
        let (log, signed) = self.identify(note)?;
        if self.look_for_fork(&log, &mut log.lock(), &signed)? {
            return Err(CosignRefusal::OtherRoot(signed.checkpoint().size));
        }
        if let Some(replay) = log.replay() {
            replay.keep_up_to(&signed);
        }
        Ok(())
    }

    /// The newest checkpoint that it has cosigned, by the SHA-256 of the origin. `None` if it has cosigned nothing.
    pub fn checkpoint_of(&self, origin: &Sha256) -> Result<Option<String>, CosignRefusal> {
        let logs = read(&self.logs);
        let Some(log) = logs.get(origin) else {
            let is_learning = self.is_learning.load(Ordering::Acquire);
            return if is_learning { Err(CosignRefusal::NotKnownYet) } else { Ok(None) };
        };
        let record = log.lock();
        let newest = record.newest.as_ref().filter(|newest| newest.cosignatures().next().is_some());
        Ok(newest.map(|newest| newest.note().to_string()))
    }

    /// The figures of the operator's own logs, and of those logs of lists of which it cosigns nothing more. There can
    /// be many others.
    pub fn figures(&self) -> Vec<WitnessedFigures> {
        let logs = read(&self.logs);
        let figures = logs.values().filter_map(|log| {
            let record = log.lock();
            let time = record.last_time();
            let (origin, size, is_stopped) = (log.origin().to_owned(), record.size(), record.stop.is_some());
            let is_shown = log.rate.is_none() || is_stopped;
            is_shown.then_some(WitnessedFigures { origin, size, time, is_stopped })
        });
        let mut figures: Vec<_> = figures.collect();
        figures.sort_by(|a, b| a.origin.cmp(&b.origin));
        figures
    }

    /// Why the witness cosigns nothing more of some logs.
    pub fn stops(&self) -> Vec<WitnessStop> {
        let logs = read(&self.logs);
        logs.values().filter_map(|log| log.lock().stop.clone()).collect()
    }

    /// The operator's decision to cosign again. Whether there was a log of which it did not.
    pub fn resume(&self) -> Result<bool, WitnessMemoryError> {
        let logs = read(&self.logs);
        let had_stops = forget_stops(&self.memory.dir)?;
        logs.values().for_each(|log| log.lock().stop = None);
        Ok(had_stops)
    }

    /// Records the checkpoint with its cosignature before anyone sees that. A crash before leaves the older record, and
    /// the log asks again. The time never goes back (D211).
    fn cosign(
        &self,
        log: &WitnessedLog,
        record: &mut LogRecord,
        signed: SignedCheckpoint,
        now: u64,
    ) -> Result<Vec<Cosignature>, CosignRefusal> {
        if let Some(stop) = &record.stop {
            return Err(CosignRefusal::Stopped(stop.reason.clone()));
        }
        let (size, root) = (signed.checkpoint().size, signed.checkpoint().root);
        if log.replay().is_none() && log.is_replayed.load(Ordering::Acquire) {
            return Err(CosignRefusal::NotReplayed { size, replayed: 0 });
        }
        if let Some(replay) = log.replay() {
            match replay.root_at(size) {
                None => return Err(CosignRefusal::NotReplayed { size, replayed: replay.size() }),
                Some(own) if own != root => return Err(CosignRefusal::OtherRoot(size)),
                Some(_) if replay.has_withheld(size, Instant::now()) => {
                    return Err(CosignRefusal::Withheld { size });
                }
                Some(_) => {}
            }
        }
        let last = record.last_time().unwrap_or(0);
        if now.saturating_add(MAX_BEHIND) < last {
            return Err(CosignRefusal::ClockBehind { now, last });
        }
        if let Some(rate) = log.rate.as_ref().filter(|_| log.replay().is_none()) {
            rate.take(size > record.size(), self.started.elapsed())?;
        }
        let lines = self.signers.iter().map(|signer| signer.cosign(signed.text(), now.max(last)));
        let lines = lines.collect::<Result<Vec<_>, _>>().map_err(CosignRefusal::Signer)?;
        let mut cosigned = signed;
        let added = cosigned.add_cosignatures(&lines, &self.keys());
        let added = added.map_err(|error| CosignRefusal::Signer(error.to_string()))?;
        if added.len() < self.signers.len() {
            return Err(CosignRefusal::Signer("it signs with another key".to_owned()));
        }
        self.memory.keep(&cosigned)?;
        if let Some(replay) = log.replay() {
            replay.keep_up_to(&cosigned);
        }
        record.newest = Some(cosigned);
        Ok(added)
    }

    /// Whether the log contradicts itself, or what was replayed. If that is new, the evidence is on disk afterwards,
    /// and the witness has stopped.
    fn look_for_fork(
        &self,
        log: &WitnessedLog,
        record: &mut LogRecord,
        signed: &SignedCheckpoint,
    ) -> Result<bool, CosignRefusal> {
        let Some(contradiction) = log.find_contradiction(record, signed) else { return Ok(false) };
        self.stop(record, signed, contradiction)?;
        Ok(true)
    }

    /// The log has signed a checkpoint, and not proved that it continues the record. A stranger can send a wrong proof,
    /// but neither the log's signature nor a proof that leads to another root. What is not proved is kept on disk.
    fn doubt(
        &self,
        log: &WitnessedLog,
        record: &mut LogRecord,
        request: &WitnessRequest,
        signed: SignedCheckpoint,
    ) -> Result<Option<CosignRefusal>, CosignRefusal> {
        if let Some(contradiction) = WitnessedLog::find_proven_fork(record, request, &signed) {
            let size = contradiction.size;
            self.stop(record, &signed, contradiction)?;
            return Ok(Some(CosignRefusal::OtherRoot(size)));
        }
        if record.is_worth_doubt(&signed, log.replay().map_or(0, LogReplay::size)) {
            self.memory.keep_doubtful(&signed)?;
            record.doubtful = Some(signed);
        }
        Ok(None)
    }

    fn stop(
        &self,
        record: &mut LogRecord,
        signed: &SignedCheckpoint,
        contradiction: Contradiction,
    ) -> Result<(), CosignRefusal> {
        if record.stop.is_some() {
            return Ok(());
        }
        let doubtful = record.doubtful.take();
        let shown = [Some(signed), record.newest.as_ref(), doubtful.as_ref()];
        let shown: Vec<&SignedCheckpoint> = shown.into_iter().flatten().collect();
        let stop = self.memory.stop(&shown, &contradiction);
        // Also if it cannot be written down: then for this process at least.
        let Contradiction { origin, reason, .. } = contradiction;
        let evidence = stop.as_ref().ok().map(|stop| stop.evidence.clone());
        tracing::error!(
            log = origin,
            reason,
            evidence,
            "the log has forked: this witness cosigns nothing more of it. `countersign admin witness resume` lets it cosign \
             again"
        );
        record.stop = Some(stop.as_ref().map_or_else(
            |_| WitnessStop { origin, reason, evidence: "not written".to_owned() },
            Clone::clone,
        ));
        stop.map(drop).map_err(CosignRefusal::from)
    }
}
