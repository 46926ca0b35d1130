//! A node among others: its batches count once they are in the order that all share, and it repeats those of the
//! others.

use std::{collections::HashSet, iter, mem};

use countersign_core::values::{bounds::SHARED_BATCH_FILES, time::Timestamp};
use gix::ObjectId;

use crate::journal::export::{JournalBatches, JournalExport};
use crate::journal::{JournalEntry, follow::FollowError, read::JournalError, read::JournalReader};
use crate::sequence::{
    Appended, BatchOffer, BatchTimes, MAX_CLOCK_ERROR, OrderGap, OrderPosition, OrderedBatch, SequenceError,
    SharedBatch,
};
use crate::{error::StoreError, journal::recent_commits::RecentCommits, writer::Draft, writer::Writer};

/// A database whose content changes this often while a node compares itself with it is left alone for a while.
const MAX_COMPARISONS: usize = 4;
/// A batch whose times the order refuses is decided anew so often.
const MAX_TRIES: usize = 4;
/// What the operator does with a node that went another way than the others.
const WAY_OUT: &str = "To follow the others again, stop this server, empty its data directory and start it: it fills itself \
                       from the database (docs/cluster.md, A wrong node)";

impl Writer {
    /// Puts a draft into the shared order. A server on its own needs no one's leave.
    pub(crate) fn share(&mut self, draft: &mut Draft) -> Result<Appended, StoreError> {
        let Some(sharing) = &mut self.sharing else { return Ok(Appended::Done) };
        if let Some(reason) = self.shared.halted.load_full() {
            return Err(StoreError::Halted(reason));
        }
        let (Some(first), Some(last)) = (draft.entries.first(), draft.entries.last()) else {
            return Err(StoreError::Illegal("a batch without commits".to_owned()));
        };
        // What the others could not read is never shared.
        if draft.entries.len() != draft.commits.len() || last.id != draft.head.commit {
            return Err(StoreError::Illegal("a batch with other commits than it says".to_owned()));
        }
        let base = self.shared.newest.load().to_whole_seconds();
        let times = BatchTimes { base, oldest: first.time, newest: last.time };
        let offer = BatchOffer { times: Some(times), passed: sharing.passed.last().copied() };
        let batch = SharedBatch {
            base: self.repository.tip,
            head: draft.head.commit,
            commits: draft.commits.len(),
            body: mem::take(&mut draft.body).into(),
        };
        sharing.sequencer.append(&batch, &offer).map_err(StoreError::Unconfirmed)
    }

    /// Says whether to decide anew after the order refused the times of a batch. A clock that jumped may be right
    /// again, and a batch may have waited for long.
    pub(crate) fn check_order_clock(&self, order: Timestamp, tries: usize) -> Result<(), StoreError> {
        let clock = self.clock.now();
        let apart = clock.ahead_of(order).or_else(|| order.ahead_of(clock)).unwrap_or_default();
        if apart <= MAX_CLOCK_ERROR && tries < MAX_TRIES {
            return Ok(());
        }
        Err(StoreError::WrongClock { clock: clock.to_whole_seconds(), order: order.to_whole_seconds() })
    }

    /// A node that would lose the next race, or has nothing yet, asks for what is new before it decides.
    pub(crate) fn must_look_first(&mut self) -> bool {
        let is_unborn = self.repository.is_unborn();
        self.sharing.as_mut().is_some_and(|sharing| is_unborn || sharing.sequencer.wants_turn())
    }

    /// Whether other nodes write as well. Then this one leaves its disk alone for as long as it can.
    pub(crate) fn is_contended(&self) -> bool {
        self.sharing.as_ref().is_some_and(|sharing| sharing.sequencer.is_contended())
    }

    pub(crate) fn yield_turn(&mut self) {
        if let Some(sharing) = &mut self.sharing {
            sharing.sequencer.yield_turn();
        }
    }

    pub(crate) fn note_published(&mut self) {
        if let (Some(sharing), Some(tip)) = (&mut self.sharing, self.repository.tip) {
            sharing.passed.clear();
            sharing.sequencer.note_published(tip, None);
        }
    }

    /// Notes that this node has judged everything up to what it has passed over.
    fn note_judged(&mut self) {
        if let (Some(sharing), Some(tip)) = (&mut self.sharing, self.repository.tip) {
            sharing.sequencer.note_published(tip, sharing.passed.last().copied());
        }
    }

    /// Repeats what other nodes have put into the order. A batch that the rules do not give is passed over (D195). What
    /// no node writes stops this node, until the database gives something else.
    pub(crate) fn catch_up(&mut self) -> Result<(), StoreError> {
        let caught_up = self.try_catch_up();
        let halted = self.shared.halted.load_full();
        match &caught_up {
            Ok(()) if halted.is_some() => {
                tracing::info!("this node follows the others again");
                self.shared.halted.store(None);
            }
            Err(StoreError::Halted(reason)) if halted.as_ref() != Some(reason) => {
                self.write_held_if(true);
                tracing::error!(%reason, "this node no longer follows the others, and accepts no changes");
                self.shared.halted.store(Some(reason.clone()));
            }
            Ok(()) | Err(_) => {}
        }
        caught_up
    }

    fn try_catch_up(&mut self) -> Result<(), StoreError> {
        let mut comparisons = 0;
        loop {
            let tip = self.repository.tip;
            let Some(sharing) = &mut self.sharing else { return Ok(()) };
            let batches = match sharing.sequencer.batches_after(tip, sharing.passed.last().copied()) {
                Err(SequenceError::Unknown(_)) if comparisons < MAX_COMPARISONS => {
                    comparisons += 1;
                    // What was passed over may be gone.
                    if sharing.passed.is_empty() {
                        self.compare()?;
                    }
                    self.sharing.iter_mut().for_each(|sharing| sharing.passed.clear());
                    continue;
                }
                Err(error @ SequenceError::Missing(_)) => {
                    let tip = name(tip);
                    return Err(StoreError::halted(format!(
                        "this node has everything up to {tip}, and {error}"
                    )));
                }
                batches => batches?,
            };
            if batches.is_empty() && (tip.is_some() || self.begin()? == Appended::Done) {
                self.note_judged();
                self.fill_gap()?;
                return self.check_agreement();
            }
            for batch in batches {
                self.judge(&batch)?;
            }
        }
    }

    /// Publishes a batch that continues this node's newest commit, if the rules give it. A batch that they do not give
    /// is passed over as a whole, and so is what continues it: every node that is right does the same, because the
    /// rules depend on nothing but the commits before. Everything else is nothing that a node writes.
    fn judge(&mut self, ordered: &OrderedBatch) -> Result<(), StoreError> {
        let (entries, tip) = (read_entries(&ordered.batch)?, self.repository.tip);
        let base = ordered.batch.base;
        let Some(sharing) = &self.sharing else { return Ok(()) };
        let reason = if base == tip {
            match self.follow_all(&entries) {
                Ok(()) => {
                    self.note_published();
                    return Ok(());
                }
                Err(error) if error.breaks_rules() => error.to_string(),
                Err(error) => return Err(halt(error)),
            }
        } else if let Some(passed) = sharing.passed.iter().find(|passed| base == Some(passed.head)) {
            format!("it continues the batch {}, which is passed over", passed.seq)
        } else {
            return Err(self.refuse_elsewhere(ordered));
        };
        self.pass_over(ordered, &reason)
    }

    fn pass_over(&mut self, ordered: &OrderedBatch, reason: &str) -> Result<(), StoreError> {
        let OrderedBatch { position, node, .. } = ordered;
        let Some(sharing) = &mut self.sharing else { return Ok(()) };
        sharing.sequencer.pass_over(ordered, reason)?;
        sharing.passed.push(*position);
        tracing::error!(
            batch = position.seq, commit = %position.head, node, reason,
            "a batch breaks the rules: this node passes over it. Stop the node that made it (docs/cluster.md, A wrong node)"
        );
        self.note_judged();
        Ok(())
    }

    /// A batch that continues neither this node's newest commit nor what it passed over.
    fn refuse_elsewhere(&self, ordered: &OrderedBatch) -> StoreError {
        let OrderedBatch { position, node, batch } = ordered;
        let (base, tip) = (name(batch.base), name(self.repository.tip));
        StoreError::halted(format!(
            "the batch {} of the node {node}, which ends with the commit {}, continues {base}, and this node's newest commit \
             is {tip}: {WAY_OUT}",
            position.seq, position.head
        ))
    }

    /// Whether this node and the others pass over the same batches.
    fn check_agreement(&mut self) -> Result<(), StoreError> {
        let Some(sharing) = &mut self.sharing else { return Ok(()) };
        if let Some(first) = sharing.passed.first().copied() {
            let votes = sharing.sequencer.votes_on(first)?;
            if !votes.is_passed_over() {
                return Err(StoreError::halted(format!(
                    "this node passes over the batch {}, which ends with the commit {}, and these nodes do not: {}. If they do \
                     in a moment, it goes on; else {WAY_OUT}",
                    first.seq,
                    first.head,
                    votes.others.join(", ")
                )));
            }
        }
        let batches = sharing.sequencer.passed_batches();
        for batch in batches.iter().filter(|batch| batch.votes.is_passed_over()) {
            let head = batch.position.head;
            if sharing.rightly_passed.contains(&head) {
                continue;
            }
            if is_in_history(&self.shared.recent_commits, self.repository.tip, head)? {
                return Err(StoreError::halted(format!(
                    "the batch {} of the node {}, which ends with the commit {head}, is in this data directory, and these nodes \
                     pass over it: {}. They say: {}. {WAY_OUT}",
                    batch.position.seq,
                    batch.node,
                    batch.votes.against.join(", "),
                    batch.reason
                )));
            }
            sharing.rightly_passed.insert(head);
        }
        Ok(())
    }

    /// The very first commit of all nodes.
    fn begin(&mut self) -> Result<Appended, StoreError> {
        let Some(initial) = self.sharing.as_ref().map(|sharing| sharing.initial) else {
            return Ok(Appended::Done);
        };
        let mut draft = self.draft();
        self.extend_at_once(&mut draft, initial)?;
        match self.share(&mut draft)? {
            Appended::Done => {
                self.publish(&mut draft)?;
                self.note_published();
                Ok(Appended::Done)
            }
            Appended::Behind => {
                self.discard(draft);
                Ok(Appended::Behind)
            }
            Appended::Untimely { clock } => {
                self.discard(draft);
                // It is tried again soon.
                Err(StoreError::WrongClock {
                    clock: self.clock.now().to_whole_seconds(),
                    order: clock.to_whole_seconds(),
                })
            }
        }
    }

    /// Finds out what happened if no batch ends with our newest commit. Either the database has lost batches that we
    /// still have, and gets them back, or the batch that holds it goes on behind it, or the two went different ways.
    fn compare(&mut self) -> Result<(), StoreError> {
        let own = self.own_commits()?;
        let (Some(sharing), Some(tip)) = (&mut self.sharing, self.repository.tip) else { return Ok(()) };
        let Some(common) = sharing.sequencer.newest_known(&mut |id| own.contains(id))? else {
            return match sharing.sequencer.batches_after(None, None)?.first() {
                None => Err(StoreError::halted(
                    "the database is empty, and this data directory has commits. To put them there, stop this server and run \
                     `countersign admin cluster init`",
                )),
                Some(first) => self.follow_rest(first, &own, tip),
            };
        };
        let batches = match sharing.sequencer.batches_after(Some(common), None) {
            Err(SequenceError::Missing(_)) => Vec::new(),
            batches => batches?,
        };
        let mut passed: Option<OrderPosition> = None;
        for ordered in &batches {
            let entries = read_entries(&ordered.batch)?;
            let is_own = entries.first().is_some_and(|entry| own.contains(&entry.id));
            let continues = [Some(common), passed.map(|passed| passed.head)].contains(&ordered.batch.base);
            // What came after it in the order is lost, and it is passed over now as it was then.
            if is_own || !continues || !self.is_illegal(common, passed, &entries)? {
                return self.follow_rest(ordered, &own, tip);
            }
            passed = Some(ordered.position);
        }
        self.give_back(common, passed, &own)
    }

    fn own_commits(&self) -> Result<HashSet<ObjectId>, StoreError> {
        let Some(tip) = self.repository.tip else { return Ok(HashSet::new()) };
        self.shared.recent_commits.read_back(tip).map(|commit| Ok(commit?.id)).collect()
    }

    /// Whether a batch is passed over that comes after `common`, or continues what is passed over.
    fn is_illegal(
        &mut self,
        common: ObjectId,
        passed: Option<OrderPosition>,
        entries: &[JournalEntry],
    ) -> Result<bool, StoreError> {
        if passed.is_some_and(|passed| entries.first().is_some_and(|entry| entry.parent == Some(passed.head)))
        {
            return Ok(true);
        }
        let illegal = self.find_illegal(common, entries.iter().cloned().map(Ok))?;
        Ok(illegal.is_some_and(|error| error.breaks_rules()))
    }

    /// Publishes the rest of a batch of which this node has the first commits, as a clone can have them.
    fn follow_rest(
        &mut self,
        ordered: &OrderedBatch,
        own: &HashSet<ObjectId>,
        tip: ObjectId,
    ) -> Result<(), StoreError> {
        let mut entries = read_entries(&ordered.batch)?;
        let known = entries.iter().take_while(|entry| own.contains(&entry.id)).count();
        if known == 0 || entries[known - 1].id != tip {
            let other = entries.get(known).map_or(ordered.position.head, |entry| entry.id);
            let reason = format!(
                "the database holds another commit, {other}, where this data directory went on to {tip}: one of the two \
                 has to be thrown away (docs/cluster.md, What can get lost). {WAY_OUT}"
            );
            return Err(StoreError::halted(reason));
        }
        self.follow_all(&entries.split_off(known)).map_err(halt)?;
        self.note_published();
        Ok(())
    }

    /// Appends again what the database has lost, as after a failover to a standby that lagged behind. Used nonces are
    /// lost with it.
    fn give_back(
        &mut self,
        common: ObjectId,
        passed: Option<OrderPosition>,
        own: &HashSet<ObjectId>,
    ) -> Result<(), StoreError> {
        let (Some(sharing), Some(tip)) = (&self.sharing, self.repository.tip) else { return Ok(()) };
        // With the same ends as before, so that a node that waits for an answer recognises its batch.
        let ends: HashSet<ObjectId> =
            own.iter().filter(|commit| sharing.sequencer.ends_with(commit)).copied().collect();
        tracing::warn!(%common, "the database ends with a commit of the past: this node appends again what came after it");
        self.give_range(common, tip, passed, &ends)
    }

    /// Gives back batches that are missing among others. A database that is set back while nodes write to it can keep a
    /// batch that continues what it has lost.
    fn fill_gap(&mut self) -> Result<(), StoreError> {
        let Some(sharing) = &mut self.sharing else { return Ok(()) };
        let Some(OrderGap { before, end, missing }) = sharing.sequencer.find_gap()? else { return Ok(()) };
        let (mut between, mut is_found) = (Vec::new(), false);
        for read in self.shared.recent_commits.read_back(end) {
            // This node may not have them.
            let Ok(commit) = read else { break };
            is_found = commit.id == before;
            if is_found {
                break;
            }
            between.push(commit.id);
        }
        if !is_found || between.len() < missing {
            return Ok(());
        }
        between.reverse();
        // With the same ends as before if this node knows them, and else with others: what counts is that there are as
        // many as are missing, and that the last one ends where the next batch begins.
        let known = between.iter().filter(|commit| sharing.sequencer.ends_with(commit)).copied();
        let known: HashSet<ObjectId> = known.chain([end]).collect();
        let even = (1..=missing).map(|number| between[between.len() * number / missing - 1]).collect();
        let mut ends = None;
        for tried in [known, even] {
            let batches =
                JournalBatches::new(self.export(before, end)?, Some(before), |commit| tried.contains(commit));
            if batches.count() == missing {
                ends = Some(tried);
                break;
            }
        }
        let Some(ends) = ends else { return Ok(()) };
        tracing::warn!(%before, missing, "the database lacks batches between others: this node puts them back");
        self.give_range(before, end, None, &ends)
    }

    /// The commits after `common`, up to `end`.
    fn export(&self, common: ObjectId, end: ObjectId) -> Result<JournalExport, StoreError> {
        let (objects, milestones) = (&self.repository.objects, &self.shared.milestones);
        let export = JournalExport::begin(objects, milestones, Some(common), end)?;
        export.ok_or_else(|| StoreError::corrupt(common, "it is not in the history"))
    }

    /// Appends the commits after `common` up to `end` in batches with these ends. What the rules do not give is never
    /// given back: a forged commit would spread.
    fn give_range(
        &mut self,
        common: ObjectId,
        end: ObjectId,
        mut passed: Option<OrderPosition>,
        ends: &HashSet<ObjectId>,
    ) -> Result<(), StoreError> {
        let mut entries = self.export(common, end)?;
        if let Some(illegal) =
            self.find_illegal(common, iter::from_fn(|| entries.next_entry().transpose()))?
        {
            return Err(StoreError::halted(format!(
                "this data directory has a commit of its own: {illegal}. {WAY_OUT}"
            )));
        }
        let export = self.export(common, end)?;
        let Some(sharing) = &mut self.sharing else { return Ok(()) };
        sharing.sequencer.forget_nonces()?;
        for batch in JournalBatches::new(export, Some(common), |commit| ends.contains(commit)) {
            let offer = BatchOffer { times: None, passed: passed.take() };
            match sharing.sequencer.append(&batch?, &offer)? {
                Appended::Done => {}
                // Another node gives them back. The clock was not asked.
                Appended::Behind | Appended::Untimely { .. } => return Ok(()),
            }
        }
        Ok(())
    }
}

fn is_in_history(
    commits: &RecentCommits,
    tip: Option<ObjectId>,
    commit: ObjectId,
) -> Result<bool, StoreError> {
    for read in tip.into_iter().flat_map(|tip| commits.read_back(tip)) {
        if read?.id == commit {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The commits of a batch, if they are what it says.
fn read_entries(batch: &SharedBatch) -> Result<Vec<JournalEntry>, StoreError> {
    let unreadable = |reason: String| {
        StoreError::halted(format!(
            "the batch in the database that ends with the commit {}: {reason}",
            batch.head
        ))
    };
    let entries = parse_entries(&batch.body).map_err(unreadable)?;
    let fits = entries.last().map(|entry| entry.id) == Some(batch.head) && entries.len() == batch.commits;
    if fits { Ok(entries) } else { Err(unreadable("it holds other commits than it says".to_owned())) }
}

fn parse_entries(body: &[u8]) -> Result<Vec<JournalEntry>, String> {
    let (mut reader, mut entries, mut files) = (JournalReader::default(), Vec::new(), 0);
    let unreadable = |error: JournalError| error.to_string();
    reader.push(body);
    while let Some(entry) = reader.next().map_err(unreadable)? {
        files += entry.change.files.len();
        if files > SHARED_BATCH_FILES {
            return Err(format!("its commits change more than {SHARED_BATCH_FILES} files"));
        }
        entries.push(entry);
    }
    reader.finish().map(|()| entries).map_err(unreadable)
}

fn halt(error: FollowError) -> StoreError {
    match error {
        FollowError::Store(error) => error,
        FollowError::Elsewhere { .. } | FollowError::OtherId { .. } | FollowError::Illegal { .. } => {
            StoreError::halted(error.to_string())
        }
    }
}

fn name(commit: Option<ObjectId>) -> String {
    commit.map_or_else(|| "no commit".to_owned(), |commit| format!("the commit {commit}"))
}
