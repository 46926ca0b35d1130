//! What commits tell those who watch, from the messages that the decisions themselves write.

use countersign_api::event::{Event, EventBody, EventFilter, EventKind, events_of};
use countersign_core::{rules::snapshot, values::time::Timestamp};
use countersign_testing::{ACTIVE, INDEX, PENDING, PROJECT, alice, at, path};

fn event(kind: EventKind, file: &str, is_alices: bool) -> Event {
    Event { kind, path: path(file), key: is_alices.then(|| alice().public_key()), due: None }
}

#[test]
fn each_kind_of_commit_tells_what_happened() {
    use EventKind::{
        Activated, Agreed, Complete, Dropped, Objection, ObjectionWithdrawn, Proposal, Rebuild,
        RebuildDiffers, Registration, Release, Revocation, Revoked, Signature, Veto, Vetoed, Withdrawn,
    };
    let by = format!("\n\nBy: {}\nFrom: https://example.org/x\n", alice().public_key());
    for (title, expected) in [
        (format!("Register {PROJECT}"), vec![event(Registration, PENDING, true)]),
        (format!("Propose signers for {PROJECT}"), vec![event(Proposal, PENDING, true)]),
        (format!("Replace the proposed signers of {PROJECT}"), vec![event(Proposal, PENDING, true)]),
        (format!("Sign {PENDING}"), vec![event(Signature, PENDING, true)]),
        (
            format!("Activate the signers of {PROJECT}"),
            vec![event(Signature, PENDING, true), event(Activated, ACTIVE, true)],
        ),
        (format!("Record a veto of the pending signers of {PROJECT}"), vec![event(Veto, PENDING, true)]),
        (format!("Veto the pending signers of {PROJECT}"), vec![event(Vetoed, PENDING, true)]),
        (format!("Add {INDEX}"), vec![event(Release, INDEX, true)]),
        (format!("Correct {INDEX}"), vec![event(Release, INDEX, true)]),
        (format!("Sign {INDEX}"), vec![event(Signature, INDEX, true)]),
        (
            format!("Sign and complete {INDEX}"),
            vec![event(Signature, INDEX, true), event(Complete, INDEX, true)],
        ),
        (format!("Withdraw {INDEX}"), vec![event(Withdrawn, INDEX, true)]),
        (format!("Object to {INDEX}"), vec![event(Objection, INDEX, true)]),
        (format!("Take back the objection to {INDEX}"), vec![event(ObjectionWithdrawn, INDEX, true)]),
        (format!("{} {INDEX}", snapshot::REBUILD), vec![event(Rebuild, INDEX, true)]),
        (format!("{} {INDEX}", snapshot::REBUILD_OTHERWISE), vec![event(RebuildDiffers, INDEX, true)]),
        (format!("Record a revocation signature on {INDEX}"), vec![event(Revocation, INDEX, true)]),
        (format!("Revoke {INDEX}"), vec![event(Revoked, INDEX, true)]),
        ("Create the repository".to_owned(), Vec::new()),
        ("Someone's own commit".to_owned(), Vec::new()),
    ] {
        assert_eq!(events_of(&format!("{title}{by}")), expected, "{title}");
    }
    let due = at("2026-02-03T12:00:00Z");
    let agreed = Event { due: Some(due), ..event(Agreed, PENDING, true) };
    let agree = format!("Agree to the signers of {PROJECT}{by}Due: {due}\n");
    assert_eq!(events_of(&agree), [event(Signature, PENDING, true), agreed.clone()]);
    let back = format!("Replace the proposed signers of {PROJECT}{by}Due: {due}\n");
    assert_eq!(events_of(&back), [event(Proposal, PENDING, true), agreed]);
    let activated = format!("Activate the signers of {PROJECT}\n\nAgreed: {due}\n");
    assert_eq!(events_of(&activated), [event(Activated, ACTIVE, false)]);
    let dropped = format!("Drop the pending signers of {PROJECT}\n\nBy: the operator\n");
    assert_eq!(events_of(&dropped), [event(Dropped, PENDING, false)]);
}

#[test]
fn an_event_is_read_as_it_was_written() {
    let time = Timestamp::from_unix_seconds(1_700_000_000).expect("a time");
    for (kind, is_alices) in EventKind::ALL.into_iter().zip([true, false].into_iter().cycle()) {
        assert_eq!(EventKind::parse(kind.name()), Ok(kind));
        let due = is_alices.then_some(time);
        let event = Event { due, ..event(kind, INDEX, is_alices) };
        let body = EventBody::new(&event, time, "0123456789abcdef".repeat(3)[..40].to_owned());
        let json = serde_json::to_vec(&body).expect("JSON");
        assert_eq!(EventBody::parse(&json).expect("an event"), Some(body));
    }
}

#[test]
fn what_a_newer_server_tells_is_no_error_and_nonsense_is_one() {
    let text = r#"{"type":"moved","path":"a/b","time":"2026-01-31T10:00:00Z","commit":"00"}"#;
    assert_eq!(EventBody::parse(text.as_bytes()), Ok(None));
    for (from, to) in [("moved", "signature"), ("{", "["), (r#""type""#, r#""kind""#)] {
        assert!(EventBody::parse(text.replace(from, to).as_bytes()).is_err(), "{to}");
    }
}

#[test]
fn a_filter_passes_whole_segments_and_the_kinds_that_are_asked_for() {
    let release = event(EventKind::Release, INDEX, true);
    let filter = |prefix: Option<&str>, kinds: &[EventKind]| EventFilter {
        prefix: prefix.map(path),
        kinds: (!kinds.is_empty()).then(|| kinds.iter().copied().collect()),
        key: None,
    };
    let (parent, cut) = (path(INDEX).parent().expect("a directory"), &INDEX[..INDEX.len() - 1]);
    for (prefix, kinds, passes) in [
        (None, &[][..], true),
        (Some(INDEX), &[], true),
        (Some(parent.as_str()), &[], true),
        (Some(PROJECT), &[EventKind::Complete, EventKind::Release], true),
        (Some(PROJECT), &[EventKind::Complete], false),
        (Some(cut), &[], false),
        (Some(PENDING), &[], false),
    ] {
        assert_eq!(filter(prefix, kinds).matches(&release), passes, "{prefix:?} {kinds:?}");
    }
}

#[test]
fn an_event_concerns_those_for_whose_signatures_its_file_waits() {
    let waiting = [path(INDEX)];
    for (kind, at, concerns) in [
        (EventKind::Release, INDEX, true),
        (EventKind::Signature, INDEX, true),
        (EventKind::Registration, PENDING, false),
        // New signers: what collects under them waits for them anew.
        (EventKind::Activated, ACTIVE, true),
    ] {
        assert_eq!(event(kind, at, true).concerns(&waiting), concerns, "{at}");
        assert!(!event(kind, at, true).concerns(&[]));
    }
    assert!(!event(EventKind::Activated, ACTIVE, true).concerns(&[path("https/elsewhere.example.org/x")]));
}
