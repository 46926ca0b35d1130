//! What every answer has, and how large ones and pages get their turn.

mod panics;
mod reads;
mod routes;
mod sending;

use std::{collections::HashSet, thread};

use countersign_server::{http::request::new_request_id, serve::answer::write_date};
use countersign_store::machine::clock::LAST_SECOND;

#[test]
fn a_date_is_written_as_far_as_its_calendar_goes() {
    assert_eq!(write_date(784_887_151).unwrap(), "Tue, 15 Nov 1994 08:12:31 GMT");
    assert_eq!(write_date(0).unwrap(), "Thu, 01 Jan 1970 00:00:00 GMT");
    let last = u64::try_from(LAST_SECOND).unwrap();
    assert_eq!(write_date(last).unwrap(), "Fri, 31 Dec 9999 23:59:59 GMT");
    assert_eq!(write_date(last + 1), None);
}

#[test]
fn no_two_requests_have_the_same_id_whatever_thread_they_are_on() {
    let ids = || (0..3_000).map(|_| new_request_id()).collect::<Vec<_>>();
    let threads: Vec<_> = (0..4).map(|_| thread::spawn(ids)).collect();
    let ids: Vec<String> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 12_000);
    assert!(ids.iter().all(|id| id.len() == 25 && id[..16] == ids[0][..16]));
}
