//! A follower whose connection breaks goes on from its last whole commit.

use std::{io::Read as _, io::Write as _, net::TcpStream};

use countersign_store::journal::read::{JournalFault, JournalReader};

use super::{LARGE, head_of, read_journal, start_with_much};

#[test]
fn a_server_that_is_killed_or_stopped_leaves_whole_commits_to_go_on_from() {
    let mut server = start_with_much();
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(b"GET /v1/journal HTTP/1.0\r\nhost: localhost\r\n\r\n").unwrap();
    let mut received = vec![0; 3 << 20];
    stream.read_exact(&mut received).unwrap();
    server.kill9();
    let _ = stream.read_to_end(&mut received);
    // HTTP/1.0 does not show a break between two commits. Without its last byte, what arrived ends inside of one.
    received.pop();
    let begin = received.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;

    let mut reader = JournalReader::default();
    reader.push(&received[begin..]);
    let mut entries: Vec<_> = std::iter::from_fn(|| reader.next().unwrap()).collect();
    assert!((1..LARGE).contains(&entries.len()), "{}", entries.len());
    let last = entries.last().unwrap().id;
    let cut = reader.finish().unwrap_err();
    assert_eq!((cut.after, cut.fault), (Some(last), JournalFault::Cut));

    server.start_again();
    entries.extend(read_journal(&server.get(&format!("/v1/journal?after={last}")).body));
    assert_eq!(entries.len(), LARGE + 1);
    assert_eq!(entries.last().unwrap().id.to_string(), head_of(&server));
    assert!(entries.windows(2).all(|pair| pair[1].parent == Some(pair[0].id)));

    // A stop breaks off a follower that reads.
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(b"GET /v1/journal HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut received = vec![0; 64];
    stream.read_exact(&mut received).unwrap();
    assert!(received.starts_with(b"HTTP/1.1 200 "));
    server.signal("TERM");
    let _ = stream.read_to_end(&mut received);
    assert!(!received.ends_with(b"\r\n0\r\n\r\n"), "it must not look whole");
    assert_eq!(server.wait().code(), Some(0));
}
