//! Every stored document is written in one form (D4, D5) and with the fields that the decisions give it (D8–D14, D20).

use countersign_core::documents::index::{AssetName, Digests, PublishedFile, ReleaseIndex};
use countersign_core::documents::signatures::{Collected, SignatureSet};
use countersign_core::documents::signers::{Metadata, SignersFile, SourceKind};
use countersign_core::documents::{
    history::History, layout::RepositoryMarker, signed_request::SignedRequest, statement::Revocation,
};
use countersign_core::values::{digest::Sha512, path::RepoPath, time::Timestamp};
use countersign_testing::documents::KINDS;
use countersign_testing::{NONCE, PROJECT, alice, at, bob, key, path, signed_request, signers, steady};
use proptest::prelude::*;
use serde_json::json;

#[test]
fn writing_what_was_read_gives_the_same_bytes() {
    for kind in KINDS {
        let example = (kind.example)();
        assert_eq!((kind.rewrite)(&example).as_ref(), Ok(&example), "{}", kind.name);
    }
}

#[test]
fn a_document_has_two_spaces_of_indentation_and_one_trailing_newline() {
    for kind in KINDS {
        let text = kind.example_text();
        assert!(text.starts_with("{\n  \""), "{}", kind.name);
        assert!(text.ends_with("\n}\n"), "{}", kind.name);
        assert!(!text.contains('\t') && !text.contains('\r'), "{}", kind.name);
    }
}

/// Compares the whole text, and so the order of the keys.
#[track_caller]
fn assert_text(document: &[u8], expected: &str) {
    assert_eq!(String::from_utf8_lossy(document), expected);
}

#[test]
fn a_signers_file_is_written_as_decided() {
    let given = signers("2026-01-31T10:00:00Z").artifact(1, [&alice()]).revocation(1, [&bob()]).text();
    let named = given.replacen("}}", "}, \"name\": \"alice\"}", 1);
    let file = SignersFile::parse(named.as_bytes()).unwrap();
    let (alice, bob) = (alice().public_key(), bob().public_key());
    assert_text(
        &file.write(),
        &format!(
            r#"{{
  "version": 1,
  "timestamp": "2026-01-31T10:00:00Z",
  "artifact_signers": [
    {{
      "threshold": 1,
      "signers": [
        {{
          "kind": "key",
          "data": {{
            "pubkey": "{alice}"
          }},
          "name": "alice"
        }}
      ]
    }}
  ],
  "revocation_keys": [
    {{
      "threshold": 1,
      "signers": [
        {{
          "kind": "key",
          "data": {{
            "pubkey": "{bob}"
          }}
        }}
      ]
    }}
  ]
}}
"#
        ),
    );
}

#[test]
fn a_registration_is_written_as_decided() {
    let request = signed_request(&alice(), at("2026-02-01T12:00:00.5Z"), "{}");
    let (key, signature) = (alice().public_key(), request.signature.to_base64());
    assert_text(
        &request.write(),
        &format!(
            "{{\n  \"timestamp\": \"2026-02-01T12:00:00.5+00:00\",\n  \"nonce\": \"{NONCE}\",\n  \
             \"payload\": \"{{}}\",\n  \"public_key\": \"{key}\",\n  \"signature\": \"{signature}\"\n}}\n"
        ),
    );
}

#[test]
fn the_format_marker_is_written_as_decided() {
    let marker = RepositoryMarker { format: 1, created_at: at("2026-02-01T12:00:00Z") };
    assert_text(&marker.write(), "{\n  \"format\": 1,\n  \"created_at\": \"2026-02-01T12:00:00Z\"\n}\n");
    assert_eq!(RepositoryMarker::path().as_str(), "svc.repository.json");
}

#[test]
fn a_newer_format_is_told_apart_from_nonsense() {
    let error = RepositoryMarker::parse(br#"{"format": 2, "created_at": 0, "sharding": true}"#).unwrap_err();
    countersign_testing::assert_mentions(&error.to_string(), &["format 2"]);
}

#[test]
fn a_revocation_may_give_its_time_in_seconds() {
    let document = Revocation::parse(br#"{"reason": "x", "timestamp": 1769947200}"#).unwrap();
    assert_eq!(document.timestamp, at("2026-02-01T12:00:00Z"));
}

#[test]
fn a_reason_has_1_to_1000_characters() {
    let parse =
        |reason: &str| Revocation::parse(json!({ "reason": reason, "timestamp": 0 }).to_string().as_bytes());
    assert!(parse("x").is_ok());
    assert!(parse(&"é".repeat(1_000)).is_ok());
    assert_eq!(parse("").unwrap_err().field, "reason");
    assert_eq!(parse(&"é".repeat(1_001)).unwrap_err().field, "reason");
}

#[test]
fn the_longest_reason_fits_into_a_revocation_however_it_is_spelled() {
    let reason = r"\ud83d\ude00".repeat(1_000);
    let (digest, key) = (Sha512::of(b"content").to_prefixed(), countersign_testing::alice().public_key());
    let text = format!(
        r#"{{"reason": "{reason}", "timestamp": 0, "subject_digest": "{digest}", "initiator": "{key}"}}"#
    );
    assert_eq!(Revocation::parse(text.as_bytes()).unwrap().reason.chars().count(), 1_000);
}

fn any_time() -> impl Strategy<Value = Timestamp> {
    (0_i64..4_000_000_000).prop_map(|seconds| Timestamp::from_unix_seconds(seconds).expect("before 9999"))
}

fn any_digests() -> impl Strategy<Value = Digests> {
    let (sha256, sha512) = (any::<[u8; 32]>(), any::<Vec<u8>>());
    (sha256, sha512, 0..3).prop_map(|(sha256, content, which)| Digests {
        sha256: (which != 1).then(|| countersign_core::values::digest::HexDigest::from_bytes(sha256)),
        sha512: (which != 0).then(|| Sha512::of(&content)),
    })
}

fn any_index() -> impl Strategy<Value = ReleaseIndex> {
    let file = (prop::option::of(any::<u64>()), "\\PC{0,20}", any_digests());
    let files = prop::collection::btree_map("[a-zA-Z0-9é._ -]{1,12}[a-z]", file, 0..5);
    (prop::option::of("\\PC{0,30}"), any_time(), prop::option::of(any_time()), files).prop_map(
        |(release_url, mirrored_on, published_on, files)| {
            let published = |(name, (size, source, digests)): (String, (Option<u64>, String, Digests))| {
                let file_name = AssetName::parse(&name).expect("a plain name");
                PublishedFile { file_name, size, source, digests }
            };
            let published_files = files.into_iter().map(published).collect();
            ReleaseIndex {
                project_id: path(PROJECT),
                release_url,
                mirrored_on,
                published_on,
                published_files,
            }
        },
    )
}

fn any_set() -> impl Strategy<Value = SignatureSet> {
    prop::collection::vec((1_u8..250, any_time()), 0..5).prop_map(|entries| {
        let mut set = SignatureSet::default();
        for (n, collected_at) in entries {
            set.add(
                key(n).public_key(),
                Collected { signature: key(n).sign(&Sha512::of(&[n])), collected_at },
            );
        }
        set
    })
}

proptest! {
    #![proptest_config(steady())]

    #[test]
    fn any_index_survives_being_written(index in any_index()) {
        let bytes = index.write();
        prop_assert_eq!(ReleaseIndex::parse(&bytes).map(|read| (read.write(), read)), Ok((bytes, index)));
    }

    #[test]
    fn any_metadata_survives_being_written(
        url in "\\PC{0,40}", retrieval_url in any::<String>(), retrieved_at in any_time(),
        project in "[a-z]{1,9}(/[a-z]{1,9}){1,5}", previous in prop::option::of(any::<Vec<u8>>()), which in 0_usize..4,
    ) {
        let kind = SourceKind::ALL[which];
        let origin = countersign_core::documents::signers::SignersOrigin { kind, url, retrieval_url, retrieved_at };
        let project_id = RepoPath::parse(&project).expect("plain segments");
        let previous = previous.map(|bytes| Sha512::of(&bytes));
        let metadata = Metadata { origin, project_id, signers_file_digest: Sha512::of(b"x"), previous };
        let bytes = metadata.write();
        prop_assert_eq!(Metadata::parse(&bytes).map(|read| (read.write(), read)), Ok((bytes, metadata)));
    }

    #[test]
    fn any_revocation_survives_being_written(
        reason in any::<String>().prop_filter("1 to 1,000", |text| (1..=1_000).contains(&text.chars().count())),
        timestamp in any_time(), content in prop::option::of(any::<Vec<u8>>()), initiator in prop::option::of(1_u8..9),
    ) {
        let subject_digest = content.map(|bytes| Sha512::of(&bytes));
        let initiator = initiator.map(|n| key(n).public_key());
        let document = Revocation { reason, timestamp, subject_digest, initiator };
        let bytes = document.write();
        prop_assert_eq!(Revocation::parse(&bytes).map(|read| (read.write(), read)), Ok((bytes, document)));
    }

    #[test]
    fn any_signatures_and_history_survive_being_written(
        sets in prop::collection::vec((any_set(), any_set(), any_time(), any::<String>(), any::<String>()), 0..3),
        agreed_at in prop::option::of(any_time()),
    ) {
        let entry = |(signatures, metadata_signatures, timestamp, signers_config, metadata)| {
            countersign_core::documents::history::HistoryEntry { signers_config, signatures, metadata, metadata_signatures, timestamp, agreed_at }
        };
        for (set, ..) in &sets {
            prop_assert_eq!(SignatureSet::parse(&set.write()), Ok(set.clone()));
        }
        let history = History { entries: sets.into_iter().map(entry).collect() };
        let bytes = history.write();
        prop_assert_eq!(History::parse(&bytes).map(|read| (read.write(), read)), Ok((bytes, history)));
    }

    #[test]
    fn any_registration_survives_being_written(payload in any::<String>(), time in any_time(), n in 1_u8..9) {
        let request = signed_request(&key(n), time, &payload);
        let bytes = request.write();
        let read = SignedRequest::parse(&bytes);
        prop_assert!(read.as_ref().is_ok_and(|read| read.verify().is_ok()));
        prop_assert_eq!(read.map(|read| (read.write(), read)), Ok((bytes, request)));
    }
}
