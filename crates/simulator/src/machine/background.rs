//! The threads that work beside the writer, step by step.

use std::sync::{Arc, Mutex, atomic::AtomicI64, atomic::Ordering, mpsc};
use std::{collections::HashSet, fs, path::Path, path::PathBuf, process::Command, time::Duration};

use countersign_core::rules::snapshot::Change;
use countersign_log::LogError;
use countersign_store::{Head, ObjectId, Store, StoreError};
use futures_util::{future::join_all, task::noop_waker_ref};

use crate::script::{Breach, Guarantee};
use crate::{
    disk_state::DiskUser, expected::AskedChange, log_book::LogBook, machine::Machine, sim_disk::Paused,
    wish::ChangeWish,
};

/// How many packs are folded into one.
const FOLD_AT: usize = 16;
impl Machine {
    /// Waits for the writer, which tidies up after a failure when it has answered. A job that is never in a batch waits
    /// for that.
    pub fn await_writer(&self) {
        let _ = self.wait(self.store().follow(Vec::new()));
    }

    /// Waits for the folder, if there is something to fold: the thread is about to begin.
    pub fn await_folder(&self) {
        self.let_fold(0);
    }

    /// Lets the thread that folds take so many steps. After a failure it rests until the next commit.
    pub fn let_fold(&self, steps: usize) {
        let Some(head) = self.try_store().map(|store| store.glance().commit) else { return };
        if self.must_fold() && self.folder_rests.get() != Some(head) {
            let paused = self.disk.let_run(DiskUser::Folder, steps, || !self.must_fold());
            self.folder_rests.set((paused == Paused::Rests).then_some(head));
        }
    }

    /// Packs that are kept aside do not count. A power cut can leave such a mark, with nothing in it (D200).
    pub fn must_fold(&self) -> bool {
        self.process.as_ref().is_some_and(|process| process.store.packs() >= FOLD_AT + self.count_kept())
    }

    fn count_kept(&self) -> usize {
        let packs = fs::read_dir(self.dir.path().join("repo.git/objects/pack"));
        let names = packs.into_iter().flatten().flatten().map(|entry| entry.path());
        let is_kept = |path: &PathBuf| {
            path.extension().is_some_and(|end| end == "keep") && path.with_extension("idx").exists()
        };
        names.filter(is_kept).count()
    }

    /// Whether the newest checkpoint covers all commits.
    pub fn is_log_done(&self) -> bool {
        let Some(log) = self.log() else { return true };
        let commits = self.count_commits();
        let round = *log.rounds().borrow();
        round.size == commits
    }

    fn count_commits(&self) -> u64 {
        let (mut newest, mut count) = self.counted.get();
        let store = self.store();
        let head = store.glance().commit;
        if newest == Some(head) || head.is_null() {
            return count;
        }
        if let Ok(Some(mut export)) = store.journal(newest) {
            while let Ok(Some(entry)) = export.next_entry() {
                (newest, count) = (Some(entry.id), count + 1);
            }
        }
        self.counted.set((newest, count));
        count
    }

    /// Waits for the log, if there is something new: it is about to write it.
    pub fn await_log(&self) {
        if self.log().is_some_and(|log| log.trouble().is_none()) {
            self.let_log_run(0);
        }
    }

    /// Lets the log take so many steps. After a failure it rests until it is woken.
    pub fn let_log_run(&self, steps: usize) {
        let Some((log, book)) = self.log().zip(self.log_book.as_ref()) else { return };
        if log.trouble().is_some() {
            log.allow_signing();
        }
        let failures = || self.disk.failures() + book.refusals();
        let before = failures();
        let has_failed = || match log.trouble().as_deref() {
            // It never goes on by itself.
            Some(LogError::Refused(_)) => true,
            Some(_) => failures() > before,
            None => false,
        };
        if !self.is_log_done() {
            self.disk.let_run(DiskUser::Log, steps, || self.is_log_done() || has_failed());
        }
    }

    /// A log that refuses to sign has lost something, or has contradicted itself.
    pub fn check_log(&self) -> Result<(), Breach> {
        if let Some(LogError::Refused(refusal)) = self.log().and_then(|log| log.trouble()).as_deref() {
            return Err(Breach::new(Guarantee::SignedIsProvable, refusal.to_string()));
        }
        self.log_book.as_ref().map_or(Ok(()), LogBook::check)
    }

    /// What `git gc --prune=now` takes away beside the server: every pack in which the branch reaches nothing. One that
    /// is marked is left alone.
    pub fn collect_garbage(&self) {
        let repository = self.dir.path().join("repo.git");
        let listed = Command::new("git")
            .arg("-C")
            .arg(&repository)
            .args(["rev-list", "--objects", "--no-object-names", "refs/heads/main"])
            .output()
            .expect("`git` is on the path");
        // Before the first commit there is no branch.
        if !listed.status.success() {
            return;
        }
        let text = String::from_utf8(listed.stdout).expect("ids");
        let reached: HashSet<&str> = text.lines().collect();
        let mut indexes: Vec<PathBuf> = fs::read_dir(repository.join("objects/pack"))
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "idx"))
            .collect();
        indexes.sort();
        for index in indexes {
            let is_reached = ids_in(&index).iter().any(|id| reached.contains(id.as_str()));
            if !is_reached && !index.with_extension("keep").exists() {
                for ending in ["idx", "pack"] {
                    self.disk.remove_beside(&index.with_extension(ending)).expect("it is there");
                }
            }
        }
    }

    /// Ages the folded packs, as if they were folded long ago.
    pub fn age_folded(&self) {
        let packs = self.dir.path().join("repo.git/objects/pack");
        for entry in fs::read_dir(packs).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|ending| ending == "folded")
                && let Ok(file) = fs::File::options().write(true).open(path)
                && let Ok(since) = file.metadata().and_then(|found| found.modified())
            {
                let _ = file.set_modified(since - Duration::from_secs(3_600));
            }
        }
    }
}

/// The ids in the index of a pack, version 2: behind a header of 8 bytes and 256 running totals.
fn ids_in(index: &Path) -> Vec<String> {
    let bytes = fs::read(index).expect("an index");
    let table = 8 + 256 * 4;
    let total = u32::from_be_bytes(bytes[table - 4..table].try_into().expect("four bytes")) as usize;
    let ids = bytes[table..table + total * 20].chunks_exact(20);
    ids.map(|id| id.iter().map(|byte| format!("{byte:02x}")).collect()).collect()
}

// Asks a server for changes.

/// The answer that a caller got.
#[derive(Debug)]
pub struct ChangeAnswer {
    /// The commit on top of which it was decided.
    pub seen: ObjectId,
    /// The reason why nothing changes.
    pub refusal: Option<String>,
}

impl ChangeAnswer {
    /// Tells the answer in one line.
    pub fn tell(attempt: &AskedChange, answer: &Result<Self, StoreError>) -> String {
        let told = match answer {
            Ok(answer) => answer.refusal.clone().unwrap_or_else(|| "done".to_owned()),
            Err(StoreError::Io(_)) => "the disk has failed".to_owned(),
            Err(error) => error.to_string(),
        };
        let asked = attempt.change.as_ref().map_or("", |change| change.message.as_str());
        format!("  {}: {told}", asked.lines().next().unwrap_or_default())
    }
}

impl Machine {
    /// Offers all wishes at once if the writer can be held until they are there, else one after the other.
    pub fn change(&self, wishes: &[ChangeWish]) -> Vec<(AskedChange, Result<ChangeAnswer, StoreError>)> {
        let store = self.store();
        let decided: Vec<Arc<Mutex<Option<Change>>>> = wishes.iter().map(|_| Arc::default()).collect();
        let jobs: Vec<_> = wishes
            .iter()
            .zip(&decided)
            .map(|(wish, decided)| {
                let (wish, decided) = (wish.clone(), Arc::clone(decided));
                let (clock, jump) = (self.clock.clone(), AtomicI64::new(wish.jump));
                let decide = move |head: &Head, now| {
                    let change = wish.decide(head, now);
                    clock.set_by(jump.swap(0, Ordering::Relaxed));
                    *decided.lock().expect("no one panics with it") = change.clone().ok();
                    let seen = head.commit;
                    match change {
                        Ok(change) => Ok((change, ChangeAnswer { seen, refusal: None })),
                        Err(refusal) => Err(ChangeAnswer { seen, refusal: Some(refusal) }),
                    }
                };
                store.transact(decide)
            })
            .collect();
        let answers = self.runtime.block_on(async {
            let release = if wishes.len() > 1 { hold_writer(store).await } else { None };
            match release {
                Some(release) => {
                    let release = async { drop(release) };
                    futures_util::future::join(join_all(jobs), release).await.0
                }
                None => {
                    let mut answers = Vec::new();
                    for job in jobs {
                        answers.push(job.await);
                    }
                    answers
                }
            }
        });
        self.await_writer();
        self.await_folder();
        self.await_log();
        let attempts = answers.into_iter().zip(decided).map(|(answer, decided)| {
            let change = decided.lock().expect("no one panics with it").take();
            let answer = answer.map(|outcome| outcome.unwrap_or_else(|refused| refused));
            let is_change = change.as_ref().is_some_and(|change| !change.is_empty());
            let is_answered = answer.is_ok() && is_change;
            (AskedChange { change: change.filter(|_| is_change), is_answered }, answer)
        });
        attempts.collect()
    }
}

/// Keeps the writer from taking the next job until the sender is dropped. `None` if the writer does nothing at present.
async fn hold_writer(store: &Store) -> Option<mpsc::Sender<()>> {
    let (arrived, has_arrived) = mpsc::channel();
    let (release, is_released) = mpsc::channel::<()>();
    let is_released = Mutex::new(is_released);
    let decide = move |_: &Head, _| {
        let _ = arrived.send(());
        let _ = is_released.lock().expect("no one panics with it").recv();
        Err::<(Change, ()), ()>(())
    };
    let mut held = Box::pin(store.transact(decide));
    let mut context = std::task::Context::from_waker(noop_waker_ref());
    loop {
        if held.as_mut().poll(&mut context).is_ready() {
            return None;
        }
        if has_arrived.recv_timeout(Duration::from_micros(500)).is_ok() {
            return Some(release);
        }
    }
}
