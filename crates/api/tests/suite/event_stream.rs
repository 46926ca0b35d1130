//! Server-Sent Events as a client reads them.

use countersign_api::event::{EventBlock, EventStreamReader, TooLong};
use countersign_core::values::bounds::EVENT_BYTES;

fn block(data: Option<&str>, id: Option<&str>) -> EventBlock {
    EventBlock { data: data.map(str::to_owned), id: id.map(str::to_owned) }
}

/// All blocks of a text, however it is cut.
fn parse(text: &str) -> Vec<EventBlock> {
    let mut reader = EventStreamReader::default();
    let whole = reader.push(text.as_bytes()).expect("short");
    for size in 1..text.len().min(7) {
        let mut reader = EventStreamReader::default();
        let pieces = text.as_bytes().chunks(size).flat_map(|piece| reader.push(piece).expect("short"));
        assert_eq!(pieces.collect::<Vec<_>>(), whole, "{text:?} in pieces of {size}");
    }
    whole
}

#[test]
fn lines_end_in_any_of_three_ways() {
    for end in ["\n", "\r\n", "\r"] {
        let text = ": hello\nretry: 2000\nid: 1\n\nevent: x\ndata: {\"a\": 1}\nid: 2\n\ndata: cut off"
            .replace('\n', end);
        assert_eq!(parse(&text), [block(None, Some("1")), block(Some("{\"a\": 1}"), Some("2"))]);
    }
}

#[test]
fn fields_are_read_as_the_format_says() {
    for (text, expected) in [
        ("data: a\ndata: b\n\n", vec![block(Some("a\nb"), None)]),
        ("data:a\n\n", vec![block(Some("a"), None)]),
        ("data:  a \n\n", vec![block(Some(" a "), None)]),
        ("data\n\n", vec![block(Some(""), None)]),
        ("data: a:b\n\n", vec![block(Some("a:b"), None)]),
        ("\u{feff}data: a\n\ndata: b\n\n", vec![block(Some("a"), None), block(Some("b"), None)]),
        ("id\n\n", vec![block(None, Some(""))]),
        ("id: a\0b\n\n", vec![]),
        (": a comment\n\n\n\n:\n\n", vec![]),
        (" data: a\nDATA: b\nother: c\n\n", vec![]),
        ("data: a\n", vec![]),
    ] {
        assert_eq!(parse(text), expected, "{text:?}");
    }
}

#[test]
fn what_is_too_long_is_no_honest_event() {
    let mut reader = EventStreamReader::default();
    assert_eq!(reader.push(&[b'x'; EVENT_BYTES]), Ok(vec![]));
    assert_eq!(reader.push(b"x"), Err(TooLong));
    // Many short lines are as bad as a long one; an empty line begins anew.
    let mut reader = EventStreamReader::default();
    for _ in 0..EVENT_BYTES / 8 {
        assert_eq!(reader.push(b"data:xyz\n"), Ok(vec![]));
    }
    assert_eq!(reader.push(b"y"), Err(TooLong));
    let mut reader = EventStreamReader::default();
    for _ in 0..EVENT_BYTES {
        assert_eq!(reader.push(b": alive\n\n"), Ok(vec![]));
    }
}
