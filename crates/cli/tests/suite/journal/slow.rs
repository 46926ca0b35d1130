//! Followers that take nearly nothing do not keep others from the journal.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::{sync::atomic::AtomicBool, sync::atomic::Ordering, thread, time::Duration};

use countersign_store::journal::read::JournalReader;

use super::{LARGE, start_with_much};
use crate::support::{Request, http, metrics};

/// As many as there are places.
const SLOW: usize = 32;

/// Takes some bytes now and then: enough not to look dead.
fn dribble(address: SocketAddr, is_over: &AtomicBool) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /v1/journal HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut taken = [0; 4 << 10];
    while !is_over.load(Ordering::Relaxed) && stream.read(&mut taken).is_ok_and(|count| count > 0) {
        thread::sleep(Duration::from_millis(250));
    }
}

/// Reads the journal as a follower does: one that is broken off asks again. On a busy machine it can seem slow as well.
fn follow(address: SocketAddr) -> usize {
    let mut most = 0;
    for _ in 0..5 {
        let reply = http::send(address, &Request::get("/v1/journal"));
        assert_eq!(reply.status, 200, "{}", reply.text());
        let mut reader = JournalReader::default();
        reader.push(&reply.body);
        most = std::iter::from_fn(|| reader.next().expect("a journal")).count().max(most);
        if most == LARGE + 1 {
            break;
        }
    }
    most
}

#[test]
fn slow_followers_lose_their_places_to_others() {
    let server = start_with_much();
    let (address, metrics_address) = (server.address(), server.metrics_address());
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..SLOW {
            scope.spawn(|| dribble(address, &is_over));
        }
        let held = "countersign_places_held{of=\"journal_followers\"}";
        metrics::await_value(metrics_address, held, SLOW as f64);
        let read = [(); 3].map(|()| scope.spawn(|| follow(address)).join());
        // Before anything can fail: the others would go on.
        is_over.store(true, Ordering::Relaxed);
        for commits in read {
            assert_eq!(commits.expect("a follower is let in"), LARGE + 1);
        }
    });
    let lost = "countersign_places_given_up_total{of=\"journal_followers\"}";
    assert!(metrics::Page::read(metrics_address).value(lost) >= 1.0);
}
