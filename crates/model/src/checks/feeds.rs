//! The journal (D67), in one piece and byte by byte.

use std::collections::BTreeSet;

use axum::http::{HeaderMap, HeaderValue, StatusCode};
use countersign_api::event::{
    Claim, EventBlock, EventBody, EventKind, EventStreamReader, TooLong, events_of, is_commit_id,
};
use countersign_core::documents::layout;
use countersign_core::log::checkpoint::{InclusionProof, WitnessRequest};
use countersign_core::log::record::{Leaf, Record, parse_bundle, write_bundle};
use countersign_core::log::{status::LoggedRelease, status::Statuses, trie::TrieSibling};
use countersign_core::proof::bundle::Staple;
use countersign_core::proof::freshness::{LogTrust, StapleSubject, verify};
use countersign_core::values::bounds::{EVENT_BYTES, FILE_BYTES, JOURNAL_ENTRY_FILES, NEWEST_RELEASES};
use countersign_core::values::{digest::Sha256, digest::Sha512, time::Timestamp, wire};
use countersign_server::events::ListenRequest;
use countersign_store::journal::read::{JournalError, JournalReader};
use countersign_store::journal::{JournalEntry, write_entries};
use countersign_store::objects::commit::Commit;

use crate::checks::promises::{assert_no_duplicates, assert_path, assert_shown, check_document};

pub fn check_journal(data: &[u8]) {
    let (entries, error) = read(data, data.len().max(1));
    assert_eq!(read(data, 1), (entries.clone(), error.clone()), "the pieces do not matter");
    if let Some(error) = &error {
        assert_shown(error);
        assert_eq!(error.after, entries.last().map(|entry| entry.id));
    } else {
        assert_eq!(write_entries(&entries), data, "each entry has one spelling");
    }
    for pair in entries.windows(2) {
        assert_eq!(pair[1].parent, Some(pair[0].id));
    }
    for JournalEntry { change, .. } in &entries {
        assert_eq!(change.recorded_message(), change.message);
        assert!(change.files.len() <= JOURNAL_ENTRY_FILES);
        assert!(change.files.values().flatten().all(|content| content.len() <= FILE_BYTES));
    }
}

/// Reads what is whole, and what ended it.
fn read(data: &[u8], piece: usize) -> (Vec<JournalEntry>, Option<JournalError>) {
    let (mut reader, mut entries) = (JournalReader::default(), Vec::new());
    for bytes in data.chunks(piece) {
        reader.push(bytes);
        loop {
            match reader.next() {
                Ok(Some(entry)) => entries.push(entry),
                Ok(None) => break,
                Err(error) => return (entries, Some(error)),
            }
        }
    }
    (entries, reader.finish().err())
}

// Commits of a repository that came from elsewhere, as `fsck` and the log read them.

pub fn check_commit(data: &[u8]) {
    let commit = match Commit::parse(data) {
        Ok(commit) => commit,
        Err(reason) => return assert!(!reason.is_empty()),
    };
    let text = String::from_utf8_lossy(data);
    let (head, message) = text.split_once("\n\n").expect("a commit has a message");
    assert_eq!(commit.message, message);
    let parents: Vec<String> = commit.parents.iter().map(ToString::to_string).collect();
    let named = head.split('\n').filter_map(|line| line.strip_prefix("parent "));
    assert!(named.map(|id| id.trim_end_matches('\r').to_ascii_lowercase()).eq(parents.iter().cloned()));
    assert!(head.contains(&format!("{}", commit.time.unix_seconds())) || head.contains('+'));
    // Only bytes that the store writes have an author, so reading them again tells nothing new.
    if commit.author.is_some() {
        assert_eq!(commit.odd_headers, None);
        assert!(parents.len() <= 1, "the store merges nothing");
        let line = |name| head.lines().find_map(|line| line.strip_prefix(name)).expect("it has both");
        assert_eq!(line("author "), line("committer "));
        assert_eq!(text.as_bytes(), data, "the store writes text");
        let more = [data, b"x"].concat();
        assert_eq!(Commit::parse(&more).map(|more| more.author), Ok(commit.author));
    }
}

// Events: the stream that a client reads, the event in it, the message of a commit that it comes from, and what a
// listener asks for.

pub fn check_events(data: &[u8]) {
    let stream = read_events(data, data.len().max(1));
    assert_eq!(read_events(data, 1), stream, "the pieces do not matter");
    for block in stream.iter().flatten() {
        assert!(block.data.as_ref().is_none_or(|data| data.len() <= 3 * EVENT_BYTES));
        check_event(block.data.as_deref().unwrap_or_default().as_bytes());
    }
    check_event(data);
    let Ok(text) = std::str::from_utf8(data) else { return };
    check_message(text);
    check_listener(text);
}

fn read_events(data: &[u8], piece: usize) -> Result<Vec<EventBlock>, TooLong> {
    let mut reader = EventStreamReader::default();
    let mut blocks = Vec::new();
    for bytes in data.chunks(piece) {
        blocks.extend(reader.push(bytes)?);
    }
    Ok(blocks)
}

fn check_event(data: &[u8]) {
    let event = match EventBody::parse(data) {
        Ok(Some(event)) => event,
        Ok(None) => return assert_no_duplicates(data),
        Err(error) => return assert_shown(&error),
    };
    assert_no_duplicates(data);
    assert_path(&event.path);
    assert!(is_commit_id(&event.commit));
    let written = event.to_json();
    assert!(!written.contains(['\n', '\r']), "an event is one line of the stream");
    assert_eq!(EventBody::parse(written.as_bytes()).as_ref(), Ok(&Some(event.clone())));
    let sent = format!("event: {}\ndata: {written}\nid: {}\n\n", event.kind.name(), event.commit);
    let block = EventBlock { data: Some(written), id: Some(event.commit) };
    assert_eq!(read_events(sent.as_bytes(), 7), Ok(vec![block]), "the client reads what the server sends");
}

/// A follower reads messages of commits from its origin.
fn check_message(message: &str) {
    let events = events_of(message);
    let claim = Claim::parse(message);
    let tells_nothing = matches!(claim, None | Some(Claim::Create));
    assert_eq!(events.is_empty(), tells_nothing, "{claim:?}");
    assert!(events.len() <= 2);
    for event in &events {
        assert_path(&event.path);
        assert_eq!(event.due.is_some(), event.kind == EventKind::Agreed);
        // A path that a person, and not the message, has put in the place of the project.
        let first = message.lines().next().unwrap_or_default();
        let named = layout::project_with_signers_at(&event.path).unwrap_or_else(|| event.path.clone());
        assert!(first.contains(named.as_str()), "{named} is not in {first:?}");
        let time = Timestamp::from_unix_seconds(0).expect("in the range of timestamps");
        check_event(EventBody::new(event, time, "0".repeat(40)).to_json().as_bytes());
    }
}

/// The first line is the query, and each further one a header.
fn check_listener(text: &str) {
    let mut lines = text.split('\n');
    let query = lines.next().unwrap_or_default();
    let mut headers = HeaderMap::new();
    for value in lines.take(2).filter_map(|line| HeaderValue::from_str(line).ok()) {
        headers.append(wire::HEADER_LAST_EVENT_ID, value);
    }
    match ListenRequest::parse(query, &headers) {
        Ok(request) => {
            request.filter.prefix.iter().for_each(assert_path);
            assert!(request.filter.kinds.is_none_or(|kinds| !kinds.is_empty()));
        }
        Err(error) => assert_eq!(error.status(), StatusCode::BAD_REQUEST),
    }
}

// Leaves, bundles of them, and records of the status map (D82, D83).

pub fn check_log_records(data: &[u8]) {
    if let Ok(leaves) = parse_bundle(data) {
        assert_eq!(write_bundle(&leaves), data, "a bundle has one spelling");
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(leaf) = Leaf::parse(text) {
        assert_eq!(leaf.text(), text, "a leaf has one spelling");
        let leaves = vec![leaf; 2];
        assert_eq!(parse_bundle(&write_bundle(&leaves)), Ok(leaves));
    }
    let Ok(record) = Record::parse(text) else { return };
    assert_eq!(record.text(), text, "a record has one spelling");
    let statuses = Statuses::of_records([record.clone()]);
    assert_eq!(statuses.root(), record.leaf().1, "the only leaf is the root");
    assert_eq!(Statuses::default().insert_record(&record).root(), statuses.root());
    match &record {
        Record::Release(release) => {
            assert_path(&release.path);
            assert_eq!(
                statuses.release(&release.path),
                Some(LoggedRelease { number: release.number, state: release.state })
            );
        }
        Record::Project(project) => {
            project.newest.iter().for_each(assert_path);
            assert!(project.newest.len() <= NEWEST_RELEASES);
            assert_eq!(statuses.project(&project.path), Some(project));
        }
    }
}

// Staples, and what they prove (D86).

pub fn check_staple(data: &[u8]) {
    let Some(staple) = check_document(data, Staple::parse, Staple::write) else { return };
    let (release, project) = (&staple.statuses.release, &staple.statuses.project);
    assert_path(&release.path);
    assert_path(&project.path);
    let subject = StapleSubject {
        index_path: release.path.clone(),
        index_digest: release.index,
        project: project.path.clone(),
        signers: vec![project.signers],
        signer_keys: BTreeSet::new(),
    };
    let now = Timestamp::from_unix_seconds(1_770_000_000).expect("in the range of timestamps");
    let freshness = match verify(&staple, &subject, LogTrust::Unknown, now) {
        Ok(freshness) => freshness,
        Err(error) => return assert_shown(&error),
    };
    // Without a known key nothing is attested, but what is shown fits together.
    assert_eq!((freshness.as_of, &freshness.log_key, freshness.cosignatures.len()), (None, &None, 0));
    assert_eq!(freshness.checkpoint.size, staple.proof.index + 1);
    let refused = |change: &dyn Fn(&mut Staple)| {
        let mut changed = staple.clone();
        change(&mut changed);
        assert!(verify(&changed, &subject, LogTrust::Unknown, now).is_err());
    };
    refused(&|staple| staple.leaf.state = Sha256::of(staple.leaf.state.as_bytes()));
    refused(&|staple| staple.leaf.changes = Sha256::of(staple.leaf.changes.as_bytes()));
    refused(&|staple| staple.proof.index += 1);
    refused(&|staple| staple.proof.hashes.push(staple.leaf.object));
    refused(&|staple| staple.statuses.release.number = staple.statuses.release.number.wrapping_add(1));
    refused(&|staple| {
        staple.statuses.project.signers = Sha512::of(staple.statuses.project.signers.as_bytes());
    });
    refused(&|staple| {
        staple.statuses.release_path.siblings.insert(0, TrieSibling { bit: 0, hash: staple.leaf.object })
    });
}

// What a log asks a witness, and proofs with their checkpoint.

pub fn check_witness_request(data: &[u8]) {
    match WitnessRequest::parse(data) {
        Ok(request) => assert_eq!(request.write().as_bytes(), data, "a request has one spelling"),
        Err(error) => assert_shown(&error),
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    match InclusionProof::parse(text) {
        Ok(proof) => assert_eq!(proof.write(), text, "a proof has one spelling"),
        Err(error) => assert_shown(&error),
    }
}
