//! The ids of requests.

use std::{collections::HashSet, thread};

use countersign_server::http::request::new_request_id;

#[test]
fn no_two_requests_have_the_same_id_whatever_thread_they_are_on() {
    let ids = || (0..3_000).map(|_| new_request_id()).collect::<Vec<_>>();
    let threads: Vec<_> = (0..4).map(|_| thread::spawn(ids)).collect();
    let ids: Vec<String> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 12_000);
    assert!(ids.iter().all(|id| id.len() == 25 && id[..16] == ids[0][..16]));
}
