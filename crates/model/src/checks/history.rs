//! The history of signers files (D12), and whether a chain of them holds.

use countersign_api::{answers::ChainResponse, assembly::Assembly};
use countersign_core::{
    documents::{
        history::{EntryFacts, History, HistoryEntry},
        metadata::Metadata,
    },
    rules::chain::{self, ChainFault},
    values::path::RepoPath,
};

use super::promises::{assert_shown, check_document};

pub fn check(data: &[u8]) {
    check_document(data, HistoryEntry::parse, HistoryEntry::write);
    if let Some(history) = check_document(data, History::parse, History::write) {
        check_assembly(&history);
        check_chain(&history);
    }
}

/// Checks that assembling the stored entries gives the original document.
fn check_assembly(history: &History) {
    let count = history.entries.len();
    let stored: Vec<Vec<u8>> = history.entries.iter().map(HistoryEntry::write).collect();
    let facts: Vec<EntryFacts> =
        stored.iter().map(|entry| EntryFacts::parse(entry).expect("a stored entry parses")).collect();
    let (document, chain) = (Assembly::document(count), Assembly::chain(count));
    let (mut file, mut answered) = (Vec::new(), Vec::new());
    for (number, entry) in (1..).zip(&stored) {
        document.append(number, entry, &mut file);
        chain.append(number, entry, &mut answered);
    }
    if count > 0 {
        assert_eq!((file.len(), &file), (document.len(facts.clone()), &history.write()));
        assert_eq!(answered.len(), chain.len(facts));
        assert_eq!(ChainResponse::parse(&answered).map(|chain| chain.history).as_ref(), Ok(history));
    }
}

/// A chain that holds no longer holds in another order, with another root or with gaps.
pub fn check_chain(history: &History) {
    let Some(first) = history.entries.first() else {
        let project = RepoPath::parse("https/github.com/443/acme/app").expect("a path");
        assert_eq!(chain::verify(history, &project).expect_err("it is empty").fault, ChainFault::Empty);
        return;
    };
    let Ok(metadata) = Metadata::parse(first.metadata.as_bytes()) else { return };
    let project = metadata.project_id;
    let verified = match chain::verify(history, &project) {
        Ok(verified) => verified,
        Err(error) => {
            assert_shown(&error);
            return;
        }
    };
    assert_eq!(verified.links.len(), history.entries.len());
    assert!(verified.links.windows(2).all(|pair| {
        let is_later = pair[0].signers.timestamp() < pair[1].signers.timestamp();
        is_later && pair[1].metadata.previous == Some(pair[0].digest)
    }));
    assert_eq!(verified.links[0].metadata.previous, None);
    let elsewhere = RepoPath::parse(&format!("{project}/elsewhere")).expect("a path below a project");
    assert!(chain::verify(history, &elsewhere).is_err());
    for (at, link) in verified.links.iter().enumerate() {
        assert_eq!(verified.position(&link.digest), Some(at));
        let (mut before, mut without, mut unsigned) = (history.clone(), history.clone(), history.clone());
        before.entries.truncate(at + 1);
        assert!(chain::verify(&before, &project).is_ok(), "what was there before held as well");
        without.entries.remove(at);
        let is_last = at + 1 == verified.links.len();
        assert_eq!(chain::verify(&without, &project).is_ok(), is_last && at > 0, "a gap at {at}");
        unsigned.entries[at].metadata_signatures = Default::default();
        assert!(chain::verify(&unsigned, &project).is_err(), "no one agreed at {at}");
    }
}
