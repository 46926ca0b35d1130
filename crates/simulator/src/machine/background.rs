//! The threads that work beside the writer, step by step.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use countersign_log::LogError;

use super::Machine;
use crate::{
    disk_state::DiskUser,
    log_book::LogBook,
    script::{Breach, Guarantee},
    sim_disk::Paused,
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

    /// What `git gc --prune=now` takes away beside the server: every pack in which the branch reaches nothing. One that is
    /// marked is left alone.
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
