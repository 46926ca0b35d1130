//! What the writer does all day: it takes what waits, decides, publishes and answers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{sync::mpsc::Receiver, sync::mpsc::RecvTimeoutError, time::Duration};

use crate::writer::{Draft, MAX_BATCH_BYTES, MAX_CHANGES, Writer, jobs::Decision, jobs::Job};
use crate::{error::StoreError, sequence::Appended, sequence::BATCH_BYTES};

/// The wait after a failure before what is held is written again, unless a job comes first.
const RETRY: Duration = Duration::from_secs(1);

/// The callers that wait for the fate of a draft, each with what was wrong with its own change.
type Unanswered = Vec<(Box<dyn Decision>, Result<(), StoreError>)>;

impl Writer {
    /// Works until every sender of `jobs` is gone and the queue is empty.
    pub(crate) fn run(mut self, jobs: &Receiver<Job>) {
        let mut put_off = None;
        while let Some(job) = put_off.take().or_else(|| self.wait(jobs)) {
            if let Err(error) = self.prepare() {
                refuse(job, &error);
                continue;
            }
            match job {
                Job::Decide(decision) => put_off = self.run_batch(decision, jobs),
                // A caller that has gone away does not matter.
                Job::Follow { entries, reply } => {
                    let followed = self.survive(|writer| writer.follow(&entries));
                    drop(reply.send(followed.unwrap_or_else(|panicked| Err(panicked.into()))));
                }
                Job::CatchUp { reply } => {
                    let caught_up = self.look();
                    self.write_held_if(self.is_idle());
                    drop(reply.send(caught_up));
                }
            }
        }
        // If that fails, the next start gets it from the database.
        let _ = self.write_held();
    }

    /// Waits for the next job. Meanwhile what is held comes to disk when its time has come.
    fn wait(&mut self, jobs: &Receiver<Job>) -> Option<Job> {
        if let Some(job) = self.next_job(|| jobs.try_recv().ok()) {
            return Some(job);
        }
        self.yield_turn();
        let mut next_try = self.clock.steady();
        while let Some(at) = self.repository.write_held_at() {
            match jobs.recv_timeout(at.max(next_try).saturating_duration_since(self.clock.steady())) {
                Ok(job) => return self.next_job(|| Some(job)),
                Err(RecvTimeoutError::Disconnected) => return None,
                // Only time that the clock has measured counts, not what the thread slept.
                Err(RecvTimeoutError::Timeout) if self.clock.steady() < next_try => {}
                Err(RecvTimeoutError::Timeout) => {
                    self.write_held_if(self.is_write_due());
                    next_try = self.clock.steady() + RETRY;
                }
            }
        }
        self.next_job(|| jobs.recv().ok())
    }

    /// Writes what came before, because nothing new is begun while the disk does not take it.
    fn prepare(&mut self) -> Result<(), StoreError> {
        let prepared = if self.is_write_due() { self.write_held() } else { self.recover() };
        prepared.inspect_err(|error| self.shared.stats.note_failed(error))
    }

    /// Survives a panic, to which what other machines sent may lead. It must not stop all writing.
    fn survive<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> Result<T, StoreError> {
        catch_unwind(AssertUnwindSafe(|| work(self))).map_err(|_| {
            self.repeating.replay = None;
            self.repository.objects.unstage();
            StoreError::Panicked
        })
    }

    fn look(&mut self) -> Result<(), StoreError> {
        self.survive(Self::catch_up).unwrap_or_else(Err)
    }

    fn next_job(&self, receive: impl FnOnce() -> Option<Job>) -> Option<Job> {
        receive().inspect(|_| self.shared.stats.waiting.subtract(1))
    }

    /// Returns a job that has to wait for the end of this batch.
    fn run_batch(&mut self, first: Box<dyn Decision>, jobs: &Receiver<Job>) -> Option<Job> {
        if self.must_look_first()
            && let Err(error) = self.look()
        {
            first.answer(Err(error));
            return None;
        }
        let mut draft = self.draft();
        let (mut unanswered, mut put_off, mut catching_up) = (Unanswered::new(), None, Vec::new());
        let mut next = Some(first);
        let mut taken = 0;
        while let Some(decision) = next.take() {
            self.take(decision, &mut draft, &mut unanswered);
            taken += 1;
            if taken == MAX_CHANGES || self.is_full(&draft) {
                break;
            }
            while next.is_none() && put_off.is_none() {
                match self.next_job(|| jobs.try_recv().ok()) {
                    Some(Job::Decide(decision)) => next = Some(decision),
                    Some(Job::CatchUp { reply }) => catching_up.push(reply),
                    Some(job @ Job::Follow { .. }) => put_off = Some(job),
                    None => break,
                }
            }
        }
        let is_shared = !draft.commits.is_empty();
        let published = self.share_and_publish(&mut draft, &mut unanswered);
        // Answers that were decided on top of unpublished changes share the fate of those, refusals too.
        for (decision, own) in unanswered {
            decision.answer(published.clone().and(own));
        }
        let is_published = published.is_ok();
        if !is_published {
            self.discard(draft);
            // So that readers see where the branch is. If it fails, the next batch tries again.
            let _ = self.recover();
        }
        if !catching_up.is_empty() {
            // A batch is the next one only if its node has all before it.
            let caught_up = if is_shared && is_published { Ok(()) } else { self.look() };
            catching_up.into_iter().for_each(|reply| drop(reply.send(caught_up.clone())));
        }
        put_off
    }

    fn is_full(&self, draft: &Draft) -> bool {
        draft.batch.bytes > MAX_BATCH_BYTES || draft.body.len() > BATCH_BYTES
    }

    /// Shares a batch and publishes it. With other nodes, a batch counts once it is in the shared order. If another
    /// node was first, everything is decided again on top of what that one did.
    fn share_and_publish(
        &mut self,
        draft: &mut Draft,
        unanswered: &mut Unanswered,
    ) -> Result<(), StoreError> {
        let mut untimely = 0;
        while !draft.commits.is_empty() {
            match self.share(draft)? {
                Appended::Done => {
                    self.publish(draft)?;
                    // With nothing else to do, the disk has it before the caller hears of it.
                    self.write_held_if(self.is_idle());
                    self.repeating.keep_tried();
                    self.note_published();
                    return Ok(());
                }
                Appended::Behind => {}
                Appended::Untimely { clock } => {
                    untimely += 1;
                    self.check_order_clock(clock, untimely)?;
                }
            }
            let lost = std::mem::replace(draft, self.draft());
            self.discard(lost);
            self.look()?;
            *draft = self.draft();
            for (decision, _) in std::mem::take(unanswered) {
                self.take(decision, draft, unanswered);
            }
        }
        Ok(())
    }

    fn is_idle(&self) -> bool {
        self.shared.stats.waiting.get() == 0 && !self.is_contended()
    }

    fn take(&mut self, mut decision: Box<dyn Decision>, draft: &mut Draft, unanswered: &mut Unanswered) {
        let decided = self
            .now(draft)
            .and_then(|now| Ok(decision.decide(&draft.head, now)?.map(|change| (change, now))));
        let change = match decided {
            Ok(change) => change,
            Err(error) => return decision.answer(Err(error)),
        };
        let Some((change, now)) = change else {
            if draft.commits.is_empty() {
                // It saw nothing but what is published.
                decision.answer(Ok(()));
            } else {
                unanswered.push((decision, Ok(())));
            }
            return;
        };
        // A panic here would be ours and not the decision's; it must not stop all writing either. What it leaves in
        // the batch are objects that nothing refers to.
        let extended = catch_unwind(AssertUnwindSafe(|| self.extend(draft, &change, now)));
        let extended = extended.unwrap_or_else(|_| {
            (self.repeating.replay, self.repeating.is_unsure) = (None, true);
            Err(StoreError::Panicked)
        });
        unanswered.push((decision, extended));
    }
}

fn refuse(job: Job, error: &StoreError) {
    // Callers that have gone away do not matter.
    match job {
        Job::Decide(decision) => decision.answer(Err(error.clone())),
        Job::Follow { reply, .. } => drop(reply.send(Err(error.clone().into()))),
        Job::CatchUp { reply } => drop(reply.send(Err(error.clone()))),
    }
}
