//! Two nodes with the same commits, which share one place for checkpoints.

use std::sync::{Arc, Mutex};

use countersign_core::log::{checkpoint::Checkpoint, note::Note};
use countersign_log::{CheckpointFiles, CheckpointKeeper, KeepError, KeptNotes, LogOptions, TransparencyLog};

use crate::support::{Fixture, index, policy, register, wait_for, witness};

/// One row for all.
type Row = Arc<Mutex<Option<(u64, String)>>>;

#[derive(Debug)]
struct SharedRow {
    row: Row,
    own: CheckpointFiles,
}

impl CheckpointKeeper for SharedRow {
    fn load(&mut self) -> Result<KeptNotes, KeepError> {
        let KeptNotes { newest: cached, cosigned, .. } = self.own.load()?;
        let newest = self.row.lock().unwrap().clone().map(|(_, note)| note.into_bytes());
        Ok(KeptNotes { newest, cosigned, cached })
    }

    fn location(&self) -> String {
        "the row".to_owned()
    }

    fn keep_newest(&mut self, before: u64, note: &str) -> Result<(), KeepError> {
        let size = Checkpoint::parse(Note::parse(note.as_bytes()).unwrap().text()).unwrap().size;
        let mut row = self.row.lock().unwrap();
        if row.as_ref().map_or(0, |(size, _)| *size) != before {
            return Err(KeepError::Overtaken);
        }
        *row = Some((size, note.to_owned()));
        Ok(())
    }

    fn keep_cosigned(&mut self, note: &str) -> Result<(), KeepError> {
        self.own.keep_cosigned(note)
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn note_cached(&mut self, note: &str) -> Result<(), KeepError> {
        self.own.keep_newest(0, note)
    }
}

fn start(fixture: &Fixture, row: &Row, options: LogOptions) -> TransparencyLog {
    let keeper = SharedRow { row: Arc::clone(row), own: CheckpointFiles::new(&fixture.log_dir()) };
    let options = LogOptions { keeper: Box::new(keeper), ..options };
    TransparencyLog::start(fixture.store(), options).unwrap()
}

fn both(change: impl Fn(&Fixture), nodes: &[Fixture; 2]) {
    nodes.iter().for_each(change);
    let [one, two] = nodes;
    assert_eq!(one.store().head().commit, two.store().head().commit, "the same commits");
}

#[test]
fn nodes_take_over_what_the_other_has_signed_and_make_proofs_for_it() {
    let nodes = [Fixture::new(), Fixture::new()];
    let row = Row::default();
    let logs = nodes.each_ref().map(|node| start(node, &row, node.options()));
    both(Fixture::fill, &nodes);
    let newest = [0, 1].map(|node: usize| nodes[node].wait_for_all(&logs[node]));
    assert_eq!(newest[0].checkpoint(), newest[1].checkpoint());
    let release = index("https/a.example/443/one/releases/v4");
    for (node, log) in nodes.iter().zip(&logs) {
        wait_for(log, |log| log.staple(|| node.store().head(), &release).1.ok());
    }
    // The database loses what it had, and gets it back.
    let kept = row.lock().unwrap().clone();
    *row.lock().unwrap() = None;
    wait_for(&logs[0], |_| row.lock().unwrap().clone().filter(|row| Some(row) == kept.as_ref()));
    assert!(logs.iter().all(|log| log.trouble().is_none()));
}

#[test]
fn a_node_that_lags_waits_and_one_that_was_away_goes_on_from_its_caches() {
    let nodes = [Fixture::new(), Fixture::new()];
    let row = Row::default();
    let one = start(&nodes[0], &row, nodes[0].options());
    let two = start(&nodes[1], &row, nodes[1].options());
    both(Fixture::fill, &nodes);
    nodes[1].wait_for_all(&two);
    drop(two);
    nodes[0].commit(register("https/b.example/443/three"));
    let newest = nodes[0].wait_for_all(&one);
    // It does not have the commit yet that the other one has signed.
    let two = start(&nodes[1], &row, nodes[1].options());
    wait_for(&two, |log| (log.figures().size == 25).then_some(()));
    assert_eq!(two.newest_checkpoint().unwrap().checkpoint(), newest.checkpoint());
    nodes[1].commit(register("https/b.example/443/three"));
    nodes[1].wait_for_all(&two);
    assert!(two.trouble().is_none());
}

#[test]
fn what_a_witness_said_to_one_node_the_other_learns() {
    let nodes = [Fixture::new(), Fixture::new()];
    let (row, one, two) = (Row::default(), witness(1), witness(2));
    let logs = nodes.each_ref().map(|node| {
        start(node, &row, LogOptions { policy: Some(policy(2, &[&one, &two])), ..node.options() })
    });
    both(Fixture::fill, &nodes);
    let [newest, _] = [0, 1].map(|node: usize| nodes[node].wait_for_all(&logs[node]));
    for (log, who) in logs.iter().zip([&one, &two]) {
        let line = newest.cosign(&who.public, &who.secret, 1_700_000_000).line;
        log.add_cosignatures(newest.checkpoint().size, &[line]).unwrap();
    }
    for log in &logs {
        let cosigned = wait_for(log, TransparencyLog::cosigned_checkpoint);
        assert_eq!(cosigned.cosignatures().count(), 2);
    }
}
