//! What was accepted stays accepted, and the past may only grow.

use countersign_core::proof::trust::{AsOf, Pin, PinnedLink, Root, SeenRevocation, TrustError, TrustStore};
use countersign_core::proof::verify::{Evidence, RevokedArtifact, VerifiedArtifact, VerifyError, verify};
use countersign_core::rules::{chain, chain::VerifiedChain};
use countersign_core::values::{digest::Sha512, path::RepoPath, time::Timestamp};
use countersign_testing::evidence::{
    Past, evidence, founded, founders, good, index_path, noon, release_index, revocation_document,
    revocation_of, revocation_with, revoked, rotated, successors,
};
use countersign_testing::{
    INDEX, PROJECT, alice, assert_mentions, at, bob, carol, dave, key, mallory, path, shifted_seconds,
    signers,
};

const BOTH: [AsOf; 2] = [AsOf::Now, AsOf::Earlier];

fn proven(past: &Past) -> VerifiedChain {
    chain::verify(&past.history, &past.project).expect("a chain that holds")
}

fn origin() -> Root {
    Root::Origin("https://github.com/acme/app/blob/main/svc.signers.json".to_owned())
}

fn accepted(past: &Past) -> TrustStore {
    let mut store = TrustStore::default();
    store.accept(&proven(past), AsOf::Earlier, origin(), noon()).unwrap();
    store
}

fn pin(store: &TrustStore) -> &Pin {
    &store.projects[PROJECT]
}

fn withdrawn(evidence: &Evidence) -> RevokedArtifact {
    match verify(evidence) {
        Err(VerifyError::Revoked(revoked)) => *revoked,
        other => panic!("not revoked: {other:?}"),
    }
}

fn artifact(evidence: &Evidence) -> VerifiedArtifact {
    verify(evidence).expect("verified")
}

/// A history of the same project, of the same length, by other people.
fn replaced() -> Past {
    let theirs = signers("2026-01-01T00:00:00Z").artifact(1, [&mallory()]);
    let next = signers("2026-01-02T00:00:00Z").artifact(1, [&mallory(), &key(67)]);
    Past::of(PROJECT).then(&theirs, &[&mallory()]).then(&next, &[&mallory(), &key(67)])
}

fn seen<'p>(pin: &'p Pin, artifact: &VerifiedArtifact) -> Option<&'p SeenRevocation> {
    pin.revocation_of(&artifact.path, &artifact.index_digest)
}

#[test]
fn a_new_project_has_no_pin() {
    for shown in BOTH {
        assert_eq!(TrustStore::default().check(&proven(&rotated(PROJECT)), shown), Ok(None));
        let other = "https/github.com/443/acme/other";
        assert_eq!(accepted(&founded(PROJECT)).check(&proven(&founded(other)), shown), Ok(None));
    }
}

#[test]
fn the_same_history_passes_and_a_longer_one_too() {
    let store = accepted(&founded(PROJECT));
    // The time of an activation is the server's word, and other signatures on the same files are the same past.
    let later = founded(PROJECT).with(0, |entry| entry.timestamp = shifted_seconds(entry.timestamp, 60));
    let more = Past::of(PROJECT).then(&founders(), &[&alice(), &bob(), &carol(), &dave(), &mallory()]);
    for past in [founded(PROJECT), rotated(PROJECT), later, more] {
        for shown in BOTH {
            assert_eq!(store.check(&proven(&past), shown), Ok(Some(pin(&store))));
        }
    }
}

#[test]
fn a_pin_has_exactly_the_history_that_was_accepted() {
    let store = accepted(&rotated(PROJECT));
    assert!(pin(&store).has(&rotated(PROJECT).history));
    let remarked = rotated(PROJECT).with(1, |entry| entry.metadata.push(' '));
    for other in [founded(PROJECT), replaced(), remarked] {
        assert!(!pin(&store).has(&other.history));
    }
}

#[test]
fn what_is_accepted_is_remembered_link_by_link() {
    let mut store = TrustStore::default();
    store.accept(&proven(&rotated(PROJECT)), AsOf::Earlier, origin(), at("2026-03-01T00:00:00.75Z")).unwrap();
    let links = proven(&rotated(PROJECT)).links;
    let expected: Vec<PinnedLink> = links
        .iter()
        .map(|link| PinnedLink {
            signers_file_digest: link.digest,
            metadata_digest: link.metadata_digest,
            activated_at: link.activated_at,
        })
        .collect();
    assert_eq!(pin(&store).history, expected);
    assert_eq!(pin(&store).accepted_at, at("2026-03-01T00:00:00Z"));
    assert_eq!(pin(&store).root, origin());
    assert!(pin(&store).revocations.is_empty());
}

#[test]
fn accepting_again_extends_the_history_and_leaves_the_rest() {
    let mut store = accepted(&founded(PROJECT));
    let later = at("2027-01-01T00:00:00Z");
    let root = || Root::Digest(Sha512::of(b"another reason"));
    store.accept(&proven(&rotated(PROJECT)), AsOf::Earlier, root(), later).unwrap();
    let once = accepted(&rotated(PROJECT));
    assert_eq!(store, once);
    // Neither the same nor an older history takes anything away.
    store.accept(&proven(&rotated(PROJECT)), AsOf::Earlier, root(), later).unwrap();
    store.accept(&proven(&founded(PROJECT)), AsOf::Earlier, root(), later).unwrap();
    assert_eq!(store, once);
}

/// Remembers as two commands do that both found no pin, each shown another past: the second to write must find out.
#[test]
fn what_does_not_continue_the_pin_is_not_accepted_even_if_it_was_checked_before() {
    for (known, shown) in
        [(founded(PROJECT), replaced()), (replaced(), founded(PROJECT)), (rotated(PROJECT), replaced())]
    {
        assert_eq!(TrustStore::default().check(&proven(&shown), AsOf::Now), Ok(None));
        let mut store = accepted(&known);
        let before = store.clone();
        for as_of in BOTH {
            let refused = store.accept(&proven(&shown), as_of, origin(), noon()).expect_err("another past");
            assert!(matches!(refused, TrustError::ChangedPast { entry: 0, .. }), "{refused}");
        }
        assert_eq!(store, before);
    }
    let mut store = accepted(&rotated(PROJECT));
    let older =
        store.accept(&proven(&founded(PROJECT)), AsOf::Now, origin(), noon()).expect_err("an older one");
    assert!(matches!(older, TrustError::OlderHistory { .. }), "{older}");
    let inside = format!("{PROJECT}/inside");
    let inside = store.accept(&proven(&founded(&inside)), AsOf::Now, origin(), noon()).expect_err("inside");
    assert!(matches!(inside, TrustError::Overlaps { .. }), "{inside}");
}

#[test]
fn once_extended_the_longer_history_is_the_one_to_show() {
    let mut store = accepted(&founded(PROJECT));
    store.accept(&proven(&rotated(PROJECT)), AsOf::Earlier, origin(), noon()).unwrap();
    let error = store.check(&proven(&founded(PROJECT)), AsOf::Now).expect_err("an older history");
    assert!(matches!(error, TrustError::OlderHistory { accepted: 2, shown: 1, .. }), "{error}");
    let missing = rotated(PROJECT).last_digest().short();
    assert_mentions(&error.to_string(), &[PROJECT, "older", &missing]);
    // A bundle may be older than what was seen since.
    assert_eq!(store.check(&proven(&founded(PROJECT)), AsOf::Earlier), Ok(Some(pin(&store))));
}

#[test]
fn a_changed_past_is_a_loud_failure_that_names_both_versions() {
    let store = accepted(&rotated(PROJECT));
    let admins = |time| signers(time).artifact(1, [&alice()]).admin(1, [&alice()]);
    let fork = founded(PROJECT).then(&admins("2026-01-02T00:00:00Z"), &[&alice(), &bob()]);
    let longer_fork = fork.clone().then(&admins("2026-01-03T00:00:00Z"), &[&alice()]);
    let theirs = signers("2026-01-01T00:00:00Z").artifact(1, [&mallory()]);
    let shorter = Past::of(PROJECT).then(&theirs, &[&mallory()]);
    for (past, at) in [(replaced(), 0), (shorter, 0), (fork, 1), (longer_fork, 1)] {
        for shown in BOTH {
            let error = store.check(&proven(&past), shown).expect_err("a changed past");
            assert!(matches!(error, TrustError::ChangedPast { entry, .. } if entry == at), "{error}");
            let (before, after) = (rotated(PROJECT).digest(at).short(), past.digest(at).short());
            let entry = format!("entry {at}");
            assert_mentions(&error.to_string(), &[PROJECT, "changed", &entry, &before, &after]);
        }
    }
}

#[test]
fn other_metadata_of_the_same_signers_file_is_a_changed_past() {
    let everyone = [&alice(), &bob(), &carol(), &dave()];
    let moved = founded(PROJECT).remark(0, &everyone, |metadata| metadata.origin.url.push_str("?elsewhere"));
    assert_eq!(moved.digest(0), founded(PROJECT).digest(0));
    let error = accepted(&founded(PROJECT)).check(&proven(&moved), AsOf::Now).expect_err("other metadata");
    let TrustError::ChangedPast { accepted, shown, .. } = &error else { panic!("{error}") };
    assert_ne!(accepted, shown, "the two versions look the same");
}

#[test]
fn projects_do_not_lie_in_one_another_whatever_their_letter_case() {
    let store = accepted(&founded(PROJECT));
    for other in [
        "https/github.com/443/acme/app/sub", "https/github.com/443/acme/app/releases/tag/v1",
        "https/github.com/443/ACME/app/sub", "https/github.com/443/acme", "https/github.com/443/Acme",
        "https/github.com/443", "https/github.com/443/acme/App", "https/github.com/443/ACME/APP",
    ] {
        let past = Past::of(other).then(&founders(), &[&alice(), &bob(), &carol(), &dave()]);
        let expected = TrustError::Overlaps { accepted: path(PROJECT), shown: path(other) };
        for shown in BOTH {
            assert_eq!(store.check(&proven(&past), shown), Err(expected.clone()), "{other}");
        }
        assert_eq!(store.check_overlap(&path(other)), Err(expected.clone()));
        assert_mentions(&expected.to_string(), &[PROJECT, other]);
    }
    for other in [
        "https/github.com/443/acme/app2", "https/github.com/443/acme/ap", "http/github.com/80/acme/app",
        "https/github.com/8443/acme/app", "https/github.com/443/acme/ápp", PROJECT,
    ] {
        assert_eq!(store.check_overlap(&path(other)), Ok(()), "{other}");
    }
}

#[test]
fn an_index_inside_an_accepted_project_cannot_name_another() {
    // The server invents a project around or inside the accepted one, with keys of its own, for an index of ours.
    let store = accepted(&founded(PROJECT));
    for invented in ["https/github.com/443/acme", "https/github.com/443/acme/app/releases"] {
        let theirs = signers("2026-01-01T00:00:00Z").artifact(1, [&mallory()]);
        let past = Past::of(invented).then(&theirs, &[&mallory()]);
        let mut index = release_index("v1");
        index.project_id = path(invented);
        index.release_url = None;
        index.published_files[0].source = "https://github.com/acme/app/releases/tag/v1/app.tar.gz".to_owned();
        // By itself it holds: only the user knows which project there really is.
        let artifact = artifact(&evidence(&past, INDEX, &index, &[&mallory()]));
        let error = store.check(&artifact.chain, AsOf::Now).expect_err("it overlaps");
        assert!(matches!(error, TrustError::Overlaps { .. }), "{error}");
    }
}

#[test]
fn a_revocation_once_seen_is_remembered_when_the_server_hides_it() {
    let mut store = accepted(&founded(PROJECT));
    store.remember_revocation(&withdrawn(&revoked()));
    let hidden = artifact(&good());
    let pin = store.check(&hidden.chain, AsOf::Now).expect("the same past").expect("a pin");
    let expected = SeenRevocation {
        index_digest: hidden.index_digest,
        reason: "a bad build".to_owned(),
        revoked_at: noon(),
    };
    assert_eq!(seen(pin, &hidden), Some(&expected));
    assert_eq!(store.seen_revocation(&hidden), Some(&expected));
    // Another release of the project is not meant.
    let other = evidence(&founded(PROJECT), &index_path("v2"), &release_index("v2"), &[&alice(), &bob()]);
    assert_eq!(seen(pin, &artifact(&other)), None);
}

#[test]
fn a_remembered_revocation_holds_by_path_and_by_content() {
    let mut store = accepted(&founded(PROJECT));
    store.remember_revocation(&withdrawn(&revoked()));
    // Another index at the same path: newly made, as if nothing had been withdrawn.
    let mut again = release_index("v1");
    again.mirrored_on = shifted_seconds(again.mirrored_on, 60);
    let again = artifact(&evidence(&founded(PROJECT), INDEX, &again, &[&alice(), &bob()]));
    assert!(seen(pin(&store), &again).is_some());
    // The same index at another path, if there were a way to get it there.
    let mut moved = artifact(&good());
    moved.path = path(&index_path("v2"));
    assert!(seen(pin(&store), &moved).is_some());
}

#[test]
fn a_revocation_is_remembered_however_many_follow() {
    let mut store = accepted(&founded(PROJECT));
    store.remember_revocation(&withdrawn(&revoked()));
    for tag in ["v0", "v2"] {
        let mut shown =
            evidence(&founded(PROJECT), &index_path(tag), &release_index(tag), &[&alice(), &bob()]);
        shown.revocation = Some(revocation_of(&shown, &[&bob()]));
        store.remember_revocation(&withdrawn(&shown));
    }
    store.accept(&proven(&rotated(PROJECT)), AsOf::Earlier, origin(), noon()).unwrap();
    assert_eq!(pin(&store).revocations.len(), 3);
    assert!(seen(pin(&store), &artifact(&good())).is_some());
    assert_eq!(TrustStore::parse(&store.write()).expect("a store"), store);
}

/// A chain of the server's own making verifies by itself: its revocations must not get into the pin of the real one.
#[test]
fn a_revocation_under_another_past_or_without_a_pin_is_not_remembered() {
    let mut store = accepted(&founded(PROJECT));
    let mut forged = evidence(&replaced(), INDEX, &release_index("v1"), &[&mallory()]);
    store.remember_logged_revocation(&artifact(&forged), "by the log", noon());
    forged.revocation = Some(revocation_of(&forged, &[&mallory()]));
    let forged = withdrawn(&forged);
    assert!(store.check(&forged.artifact.chain, AsOf::Now).is_err());
    store.remember_revocation(&forged);
    assert_eq!(store, accepted(&founded(PROJECT)));
    assert_eq!(seen(pin(&store), &artifact(&good())), None);
    let mut empty = TrustStore::default();
    empty.remember_revocation(&withdrawn(&revoked()));
    assert_eq!(empty, TrustStore::default());
}

/// No document tells the reason and the time of a revocation that only a log shows.
#[test]
fn a_revocation_that_a_log_has_proven_is_remembered_until_the_document_is_seen() {
    let mut store = accepted(&founded(PROJECT));
    let hidden = artifact(&good());
    store.remember_logged_revocation(&hidden, "by the log", noon());
    let expected = SeenRevocation {
        index_digest: hidden.index_digest,
        reason: "by the log".to_owned(),
        revoked_at: noon(),
    };
    assert_eq!(seen(pin(&store), &hidden), Some(&expected));
    // The first time that it was seen stays.
    store.remember_logged_revocation(&hidden, "by another log", shifted_seconds(noon(), 60));
    assert_eq!(seen(pin(&store), &hidden), Some(&expected));
    store.remember_revocation(&withdrawn(&revoked()));
    assert_eq!(seen(pin(&store), &hidden).expect("a revocation").reason, "a bad build");
    store.remember_logged_revocation(&hidden, "by the log", noon());
    assert_eq!(seen(pin(&store), &hidden).expect("a revocation").reason, "a bad build");
    let mut without_pin = TrustStore::default();
    without_pin.remember_logged_revocation(&hidden, "by the log", noon());
    assert_eq!(without_pin, TrustStore::default());
}

pub(crate) fn full_store() -> TrustStore {
    let mut store = accepted(&rotated(PROJECT));
    let mut shown = good();
    let mut document = revocation_document(Some(Sha512::of(shown.index.as_bytes())));
    (document.reason, document.timestamp) = ("\"bad\"\n\u{202e}é".to_owned(), at("2026-02-01T12:00:00.5Z"));
    shown.revocation = Some(revocation_with(&shown, document, &[&alice()]));
    store.remember_revocation(&withdrawn(&shown));
    let other = Past::of("https/files.example/8443/ü p")
        .then(&successors(), &[&alice(), &carol(), &dave(), &key(5), &key(6)]);
    store
        .accept(
            &proven(&other),
            AsOf::Earlier,
            Root::Digest(other.digest(0)),
            Timestamp::from_unix_seconds(0).expect("1970"),
        )
        .unwrap();
    store
}

#[test]
fn a_store_reads_back_as_it_was_written() {
    for store in [TrustStore::default(), accepted(&founded(PROJECT)), full_store()] {
        let bytes = store.write();
        assert_eq!(TrustStore::parse(&bytes).expect("a store"), store);
        assert_eq!(TrustStore::parse(&bytes).expect("a store").write(), bytes);
        assert!(bytes.ends_with(b"}\n"));
    }
}

#[test]
fn a_store_is_read_strictly() {
    let text = String::from_utf8(full_store().write()).expect("text");
    let table = [
        ("\"version\": 1", "\"version\": 2"),
        ("\"signers_digest\"", "\"origin_url\": \"x\", \"signers_digest\""),
        ("\"metadata_digest\": \"sha512:", "\"metadata_digest\": \"sha256:"),
        ("\"https/github.com/443/acme/app\"", "\"https/github.com/acme/app\""),
        ("\"https/github.com/443/acme/app\"", "\"https/GitHub.com/443/acme/app\""),
        ("\"https/github.com/443/acme/app\"", "\"https/github.com/443/acme/app/\""),
        ("\"https/github.com/443/acme/app\"", "\"https/github.com/443/acme/../app\""),
        ("\"https/github.com/443/acme/app\"", "\"\""),
        ("\"https/github.com/443/acme/app/releases", "\"https/github.com/acme/app/releases"),
    ];
    for (from, to) in table {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        assert!(TrustStore::parse(changed.as_bytes()).is_err(), "{to}");
    }
    let mut empty = full_store();
    empty.projects.get_mut::<str>(PROJECT).expect("a pin").history.clear();
    assert!(TrustStore::parse(&empty.write()).is_err(), "a pin without history pins nothing");
    assert!(TrustStore::parse(b"{}").is_err());
}

/// D39: the paths in these messages come from a server.
#[test]
fn messages_about_paths_of_strangers_are_escaped() {
    let hostile: RepoPath = path("https/github.com/443/acme/app/\u{202e}x");
    let error = accepted(&founded(PROJECT)).check_overlap(&hostile).expect_err("it overlaps");
    assert!(!error.to_string().contains('\u{202e}'), "{:?}", error.to_string());
}
