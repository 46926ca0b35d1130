//! A witness that is killed at any time never goes back, and never cosigns two roots of one size.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::{collections::BTreeMap, time::Duration};

use crate::support::{Request, http, witnesses::OwnLog, witnesses::TestWitness};

/// Kills under requests without a pause. crates/log tests each step on its own.
#[test]
fn a_witness_killed_while_it_cosigns_remembers_what_it_has_cosigned() {
    let mut log = OwnLog::named("log.example/one", 7);
    log.grow("leaf", 3_000);
    let mut witness = TestWitness::start_ordinary(&[&log]);
    let cosigned = AtomicU64::new(0);
    for round in 0..8_u64 {
        let (address, is_over) = (witness.server.address(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let (log, cosigned, is_over) = (&log, &cosigned, &is_over);
            let asking = scope.spawn(move || {
                let mut roots = BTreeMap::new();
                let mut old = cosigned.load(Ordering::Relaxed);
                while !is_over.load(Ordering::Relaxed) && old + 3 < 3_000 {
                    let size = old + 1 + old % 3;
                    let request =
                        Request::new("POST", "/add-checkpoint").with_body(log.request(old, size).write());
                    let Ok(reply) = std::panic::catch_unwind(|| http::send(address, &request)) else { break };
                    match reply.status {
                        200 => {
                            cosigned.store(size, Ordering::Relaxed);
                            roots.insert(size, log.tree.root(size));
                            old = size;
                        }
                        409 => old = reply.text().trim().parse().expect("a size"),
                        status => panic!("{status}: {}", reply.text()),
                    }
                }
            });
            std::thread::sleep(Duration::from_millis(30 + 17 * round));
            witness.server.signal("KILL");
            is_over.store(true, Ordering::Relaxed);
            asking.join().expect("no wrong answer");
        });
        witness.server.wait();
        witness.server.start_again();
        // A size that it does not have tells the one that it has.
        let told = witness.add_checkpoint(&log.request(2_999, 3_000));
        let record: u64 = told.text().trim().parse().expect("a size");
        let before = cosigned.load(Ordering::Relaxed);
        assert!(record >= before, "it has cosigned {before}, and remembers {record}");
        assert!(record <= before + 3, "nothing was recorded that was not asked for");
        cosigned.store(record, Ordering::Relaxed);
    }
    assert!(cosigned.load(Ordering::Relaxed) > 8, "it was at work");
}
