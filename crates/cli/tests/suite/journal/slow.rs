//! Followers that take nearly nothing do not keep others from the journal.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::{sync::atomic::AtomicBool, sync::atomic::Ordering, thread, time::Duration};

use super::{LARGE, read_journal, start_with_much};
use crate::support::{Request, http, metrics};

/// The number of followers, as many as there are places.
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
        let replies = [(); 3].map(|()| http::send(address, &Request::get("/v1/journal")));
        // Before anything can fail: the others would go on.
        is_over.store(true, Ordering::Relaxed);
        for whole in replies {
            assert_eq!(whole.status, 200, "{}", whole.text());
            assert_eq!(read_journal(&whole.body).len(), LARGE + 1);
        }
    });
    let lost = "countersign_places_given_up_total{of=\"journal_followers\"}";
    assert!(metrics::Page::read(metrics_address).value(lost) >= 1.0);
}
