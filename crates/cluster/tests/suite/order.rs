//! The order of batches.

use std::{sync::Arc, sync::Barrier, time::Duration, time::Instant};

use bytes::Bytes;
use countersign_cluster::order::{MAX_BODY_BYTES, TurnTimes};
use countersign_store::machine::clock::Clock;
use countersign_store::sequence::{
    Appended, BatchOffer, BatchTimes, SequenceError, Sequencer as _, SharedBatch,
};

use countersign_testing::await_until;

use crate::support::{World, at, batch, new_id, offer_at};

#[test]
fn batches_come_back_as_they_were_appended() {
    let Some(world) = World::start() else { return };
    let mut one = world.node("one");
    let first = batch(None, "first");
    let second = SharedBatch { commits: 3, ..batch(Some(first.head), "second") };
    assert_eq!(one.append(&first).unwrap(), Appended::Done);
    assert_eq!(one.append(&second).unwrap(), Appended::Done);

    let mut two = world.node("two");
    assert_eq!(two.batches_after(None).unwrap(), [first.clone(), second.clone()]);
    assert_eq!(two.batches_after(Some(first.head)).unwrap(), std::slice::from_ref(&second));
    assert_eq!(two.batches_after(Some(second.head)).unwrap(), []);
    let unknown = new_id();
    let error = two.batches_after(Some(unknown)).unwrap_err();
    assert!(matches!(error, SequenceError::Unknown(id) if id == unknown), "{error:?}");
}

#[test]
fn of_two_batches_after_the_same_one_the_first_counts() {
    let Some(world) = World::start() else { return };
    let (mut one, mut two) = (world.node("one"), world.node("two"));
    let (ours, theirs) = (batch(None, "ours"), batch(None, "theirs"));
    assert_eq!(one.append(&ours).unwrap(), Appended::Done);
    assert_eq!(two.append(&theirs).unwrap(), Appended::Behind);
    assert_eq!(two.state.races_lost.get(), 1);
    // As often as it is offered.
    assert_eq!(two.append(&theirs).unwrap(), Appended::Behind);
    assert_eq!(world.heads(), [ours.head.to_string()]);
    // The one that is there is there once.
    assert_eq!(one.append(&ours).unwrap(), Appended::Done);
    assert_eq!(world.heads(), [ours.head.to_string()]);
    // Nor does one count of a node that slept while others wrote, or after what no one has.
    let mut base = Some(ours.head);
    for body in ["2", "3", "4"] {
        one.write(&mut base, body);
    }
    for late in [ours.head, new_id()] {
        assert_eq!(two.append(&batch(Some(late), "late")).unwrap(), Appended::Behind);
    }
    assert_eq!(world.heads().len(), 4);
    two.catch_up(None);
    two.write(&mut base, "5");
    assert_eq!(world.heads().len(), 5);
}

#[test]
fn a_batch_is_added_only_at_its_time_by_the_clock_of_the_database() {
    let Some(world) = World::start() else { return };
    let mut node = world.node("one");
    let now = Clock::system().now().unix_seconds();
    for seconds in [-3_600, -60, 60, 900] {
        let refused = node.order.append(&batch(None, "untimely"), &offer_at(at(now + seconds))).unwrap();
        let Appended::Untimely { clock } = refused else { panic!("{seconds} s: {refused:?}") };
        assert!((clock.unix_seconds() - now).abs() < 60, "{clock}");
    }
    assert_eq!(world.heads().len(), 0);
    let first = batch(None, "now");
    assert_eq!(node.append(&first).unwrap(), Appended::Done);
    // Its answer may have been lost, and meanwhile it is late.
    let late = offer_at(at(now - 60));
    assert_eq!(node.order.append(&first, &late).unwrap(), Appended::Done);
    // A history that is ahead of the clock stands still.
    let ahead = at(now + 900);
    let still = BatchTimes { base: ahead, oldest: ahead, newest: ahead };
    let offer = BatchOffer { times: Some(still), passed: None };
    let second = batch(Some(first.head), "still");
    assert_eq!(node.order.append(&second, &offer).unwrap(), Appended::Done);
    let later = BatchTimes { newest: at(now + 901), ..still };
    let offer = BatchOffer { times: Some(later), passed: None };
    let third = batch(Some(second.head), "later");
    assert!(matches!(node.order.append(&third, &offer).unwrap(), Appended::Untimely { .. }));
    // What is given back is old.
    let offer = BatchOffer { times: None, passed: None };
    assert_eq!(node.order.append(&third, &offer).unwrap(), Appended::Done);
}

#[test]
fn a_batch_comes_after_what_its_node_has_passed_over() {
    let Some(world) = World::start() else { return };
    let (mut one, mut two) = (world.node("one"), world.node("two"));
    let (first, illegal) = (batch(None, "first"), batch(None, "illegal"));
    let illegal = SharedBatch { base: Some(first.head), ..illegal };
    assert_eq!(one.append(&first).unwrap(), Appended::Done);
    assert_eq!(two.append(&illegal).unwrap(), Appended::Done);
    let given = one.order.batches_after(Some(first.head), None).unwrap();
    assert_eq!(given.len(), 1);
    one.order.pass_over(&given[0], "it breaks the rules").unwrap();
    one.order.note_published(first.head, Some(given[0].position));
    assert_eq!((one.state.applied().seq, one.state.applied().head), (2, Some(first.head)));
    let votes = one.order.votes_on(given[0].position).unwrap();
    assert_eq!(votes.against, ["one"]);
    assert_eq!(one.order.batches_after(Some(first.head), Some(given[0].position)).unwrap(), []);
    // It continues what counts, and comes after what does not.
    let next = batch(Some(first.head), "next");
    assert_eq!(one.append(&next).unwrap(), Appended::Behind);
    let offer = BatchOffer { passed: Some(given[0].position), ..offer_at(Clock::system().now()) };
    assert_eq!(one.order.append(&next, &offer).unwrap(), Appended::Done);
    assert_eq!(world.heads(), [first.head, illegal.head, next.head].map(|head| head.to_string()));
}

#[test]
fn a_batch_that_is_missing_among_others_is_noticed() {
    let Some(world) = World::start() else { return };
    let mut node = world.node("one");
    let mut base = None;
    let heads: Vec<_> = (0..4).map(|n| node.write(&mut base, &n.to_string())).collect();
    world.postgres.sql("delete from svc_batch where seq = 3");
    let mut other = world.node("two");
    assert_eq!(other.batches_after(None).unwrap().len(), 2);
    let missing = other.batches_after(Some(heads[1])).unwrap_err();
    assert!(matches!(missing, SequenceError::Missing(3)), "{missing:?}");
}

#[test]
fn nodes_that_write_at_once_lose_nothing_and_none_starves() {
    const NODES: usize = 3;
    const EACH: usize = 60;
    let Some(world) = World::start() else { return };
    let start = Arc::new(Barrier::new(NODES));
    let writers: Vec<_> = (0..NODES)
        .map(|number| {
            let (mut node, start) = (world.node(&format!("node-{number}")), Arc::clone(&start));
            std::thread::spawn(move || {
                // All are connected before the first one writes: a new connection has to wait for its process.
                let mut base = node.read_all(None);
                start.wait();
                let written: Vec<_> = (0..EACH).map(|_| node.write(&mut base, "x")).collect();
                (written, Instant::now())
            })
        })
        .collect();
    let (mut all, mut ends) = (Vec::new(), Vec::new());
    for writer in writers {
        let (written, end) = writer.join().unwrap();
        all.extend(written.iter().map(ToString::to_string));
        ends.push(end);
    }
    let mut heads = world.heads();
    heads.sort();
    all.sort();
    assert_eq!(heads, all);
    // Each base is the head before: the order has no gap and no branch.
    let broken = "select count(*) from svc_batch b where seq > 1 and not exists
        (select from svc_batch a where a.seq = b.seq - 1 and a.head = b.base)";
    assert_eq!(world.postgres.sql(broken), "0");
    // No one was held up until all others were done.
    let per_node = "select max(first) from (select min(seq) as first from svc_batch group by node) as firsts";
    let latest_start: usize = world.postgres.sql(per_node).parse().unwrap();
    assert!(latest_start < EACH, "a node wrote for the first time as number {latest_start}");
}

#[test]
fn a_turn_keeps_the_others_waiting_and_ends_by_itself() {
    let Some(world) = World::start() else { return };
    let (mut one, mut two) = (world.node("one"), world.node("two"));
    // Longer than any machine takes for what follows.
    let long = Duration::from_secs(60);
    two.order = two.order.with_turn_times(TurnTimes { kept: long, idle: long });
    let mut base = None;
    one.write(&mut base, "1");
    assert_eq!(two.append(&batch(None, "late")).unwrap(), Appended::Behind);
    let ours = batch(two.read_all(None), "in turn");
    // The other one comes while it is not its turn, and waits.
    let mut other = base;
    let writer = std::thread::spawn(move || (one.write(&mut other, "waits"), one));
    let waiting = "select count(*) from pg_locks where locktype = 'advisory' and not granted";
    await_until("a lock", || world.postgres.sql(waiting) != "0");
    assert_eq!(two.append(&ours).unwrap(), Appended::Done);
    // Not before this one has nothing more to do.
    let next = batch(Some(ours.head), "still in turn");
    assert!(!two.order.wants_turn());
    assert_eq!(two.append(&next).unwrap(), Appended::Done);
    two.order.yield_turn();
    let (waited, mut one) = writer.join().unwrap();
    assert_eq!(world.heads()[1..], [ours.head, next.head, waited].map(|head| head.to_string()));

    // A node that finds nothing to do in its turn says so.
    assert_eq!(two.append(&batch(None, "late")).unwrap(), Appended::Behind);
    assert_eq!(two.read_all(Some(next.head)), Some(waited));
    two.order.yield_turn();
    assert_eq!(world.postgres.sql("select count(*) from pg_locks where locktype = 'advisory'"), "0");

    // A node that takes its turn and is never heard of again holds up no one for long.
    let mut three = world.node("three");
    let started = Instant::now();
    assert_eq!(three.append(&batch(None, "late")).unwrap(), Appended::Behind);
    assert_eq!(three.read_all(None), Some(waited));
    one.write(&mut Some(waited), "after the pause");
    assert!(started.elapsed() >= TurnTimes::default().idle);
    // And that node writes again, once it has read what is new.
    let mut base = Some(waited);
    three.write(&mut base, "back");
    assert_eq!(world.heads().len(), 6);
}

#[test]
fn the_newest_known_batch_is_found_among_many() {
    let Some(world) = World::start() else { return };
    let mut node = world.node("one");
    assert_eq!(node.order.newest_known(&mut |_| true).unwrap(), None);
    let mut base = None;
    let heads: Vec<_> = (0..37).map(|_| node.write(&mut base, "x")).collect();
    for known in [0, 1, 2, 17, 36, 37] {
        let mut other = world.node("other");
        let mut asked = 0;
        let newest = other.order.newest_known(&mut |id| {
            asked += 1;
            heads[..known].contains(id)
        });
        assert_eq!(newest.unwrap(), known.checked_sub(1).map(|at| heads[at]));
        assert_eq!(other.state.applied().seq, known as i64);
        assert_eq!(other.state.lag(), 37 - known as u64);
        assert!(asked <= 7, "{asked} questions");
    }
}

#[test]
fn many_large_batches_come_in_pieces() {
    let Some(world) = World::start() else { return };
    let mut node = world.node("one");
    let body = Bytes::from(vec![b'x'; 1 << 20]);
    let mut base = None;
    for _ in 0..9 {
        let batch = SharedBatch { body: body.clone(), ..batch(base, "") };
        assert_eq!(node.append(&batch).unwrap(), Appended::Done);
        base = Some(batch.head);
    }
    let mut other = world.node("other");
    let (mut after, mut pieces) = (None, Vec::new());
    loop {
        let given = other.batches_after(after).unwrap();
        let Some(last) = given.last() else { break };
        assert!(given.iter().all(|batch| batch.body == body));
        after = Some(last.head);
        pieces.push(given.len());
    }
    assert_eq!(pieces.iter().sum::<usize>(), 9);
    assert!(pieces.iter().all(|piece| *piece <= 4), "{pieces:?}");
}

#[test]
fn batches_that_the_database_lost_come_back_under_their_ids() {
    let Some(world) = World::start() else { return };
    let (mut one, mut two) = (world.node("one"), world.node("two"));
    let mut base = None;
    let first = one.write(&mut base, "1");
    let batches = [batch(Some(first), "2")];
    let third = batch(Some(batches[0].head), "3");
    for batch in batches.iter().chain([&third]) {
        assert_eq!(one.append(batch).unwrap(), Appended::Done);
    }
    two.catch_up(None);
    let ids = world.postgres.sql("select seq, id, node from svc_batch order by seq");
    // A standby that was behind has become the primary.
    world.postgres.sql("delete from svc_batch where seq > 1");
    let error = two.batches_after(Some(third.head)).unwrap_err();
    assert!(matches!(error, SequenceError::Unknown(_)), "{error:?}");
    assert_eq!(two.order.newest_known(&mut |_| true).unwrap(), Some(first));
    // Both nodes bring them back, and do not get in each other's way.
    for node in [&mut two, &mut one] {
        assert_eq!(node.append(&batches[0]).unwrap(), Appended::Done);
        assert_eq!(node.append(&third).unwrap(), Appended::Done);
    }
    assert_eq!(world.postgres.sql("select seq, id, node from svc_batch order by seq"), ids);
    two.order.forget_nonces().unwrap();
    let floor = "select nonce_floor > now() - interval '1 minute' from svc_repository";
    assert_eq!(world.postgres.sql(floor), "t");
}

#[test]
fn a_batch_beyond_its_bound_is_neither_added_nor_read() {
    let Some(world) = World::start() else { return };
    let mut node = world.node("one");
    let body = Bytes::from(vec![b'x'; MAX_BODY_BYTES + 1]);
    let at_bound = SharedBatch { body: body.slice(..MAX_BODY_BYTES), ..batch(None, "") };
    assert_eq!(node.append(&at_bound).unwrap(), Appended::Done);
    let beyond = SharedBatch { body, ..batch(Some(at_bound.head), "") };
    let error = node.append(&beyond).unwrap_err();
    assert!(matches!(error, SequenceError::Unavailable(_)), "{error:?}");
    assert_eq!(world.heads().len(), 1);
    assert_eq!(node.batches_after(None).unwrap()[0].body.len(), MAX_BODY_BYTES);
    // A database that was given one by another program.
    world.postgres.sql("update svc_batch set body = body || '\\x00'");
    let error = node.batches_after(None).unwrap_err();
    assert!(matches!(error, SequenceError::Unavailable(_)), "{error:?}");
}
