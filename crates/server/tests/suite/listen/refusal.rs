//! Hyper's own refusals.

use countersign_server::listen::refusal::Refusal;

#[test]
fn the_head_stays_as_it_was_but_for_the_body() {
    let head = "HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\
                \r\n";
    let refusal = Refusal::instead_of(head.as_bytes()).unwrap();
    let answer = String::from_utf8(refusal.unsent.to_vec()).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n"));
    assert!(head.contains("\r\ndate: ") && head.ends_with(" GMT"), "{head}");
    assert!(head.contains(&format!("\r\ncontent-length: {}\r\n", body.len())), "{head}");
    assert!(body.contains("32768 bytes"), "{body}");
}

#[test]
fn other_bytes_stay_what_they_are() {
    for bytes in [&b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n"[..], b"", b"\xff\xff", b"x"] {
        assert!(Refusal::instead_of(bytes).is_none());
    }
}
