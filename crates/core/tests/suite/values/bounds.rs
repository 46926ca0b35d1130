//! The maximum of everything that is stored (D41), each at the last size that is accepted and the first that is refused.

use countersign_core::documents::index::{
    AssetName, AssetNameError, Digests, IndexTooLarge, PublishedFile, ReleaseIndex,
};
use countersign_core::documents::signatures::{Collected, SignatureSet};
use countersign_core::documents::{signed_request::SignedRequest, signers::Metadata};
use countersign_core::proof::bundle::Bundle;
use countersign_core::values::bounds::*;
use countersign_core::values::digest::{Sha256, Sha512};
use countersign_testing::{alice, assert_mentions, at, evidence::good, evidence::noon, path};

use self::Most::{Bytes, Count};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Every bound, in the order of docs/bounds.md.
const TABLE: &[(&str, Most)] = &[
    ("a path", Bytes(PATH_BYTES)),
    ("segments of a path", Count(PATH_SEGMENTS)),
    ("a segment of a stored path", Bytes(SEGMENT_BYTES)),
    ("a directory that files are stored under", Bytes(DIR_BYTES)),
    ("segments of such a directory", Count(DIR_SEGMENTS)),
    ("a stored file", Bytes(FILE_BYTES)),
    ("an index, as it is written", Bytes(INDEX_BYTES)),
    ("the name of a published file", Bytes(ASSET_NAME_BYTES)),
    ("all names in one index", Bytes(INDEX_NAMES_BYTES)),
    ("files of one release", Count(INDEX_FILES)),
    ("a signers file", Bytes(SIGNERS_FILE_BYTES)),
    ("entries of a signers file", Count(SIGNERS_FILE_ENTRIES)),
    ("registrars that a signers file names", Count(SIGNERS_FILE_REGISTRARS)),
    ("characters of the name of a signer", Count(SIGNER_NAME_CHARS)),
    ("servers that a signers file names", Count(SIGNERS_FILE_SERVERS)),
    ("the address of such a server", Bytes(SERVER_URL_BYTES)),
    ("witnesses that a signers file names", Count(SIGNERS_FILE_WITNESSES)),
    ("seconds that a signers file lets a proof be old", Count(PROOF_AGE_SECONDS)),
    ("signatures on one file", Count(SIGNATURES)),
    ("signatures of one release in other formats", Bytes(OTHER_FORMATS_BYTES)),
    ("the metadata of a signers file", Bytes(METADATA_BYTES)),
    ("the history of a project's signers", Bytes(HISTORY_BYTES)),
    ("a request that is kept as a proof", Bytes(KEPT_REQUEST_BYTES)),
    ("characters of a reason", Count(REASON_CHARS)),
    ("a veto", Bytes(VETO_BYTES)),
    ("vetoed proposals of a project that are remembered", Count(VETO_RECORDS)),
    ("hours that a signers file lets rotations wait", Count(ROTATION_DELAY_HOURS)),
    ("a revocation document", Bytes(REVOCATION_BYTES)),
    ("an objection", Bytes(OBJECTION_BYTES)),
    ("objections to one release", Count(OBJECTIONS)),
    ("objections to earlier contents of one release", Count(EARLIER_OBJECTIONS)),
    ("the list of what waits for a key", Bytes(PENDING_LIST_BYTES)),
    ("entries of a list of the catalogue", Count(LIST_ENTRIES)),
    ("releases in the answer about a key, and revocations that it began", Count(KEY_ENTRIES)),
    ("stored files read for a list of the catalogue", Bytes(LIST_READ_BYTES)),
    ("an answer of the API", Bytes(ANSWER_BYTES)),
    ("an offline bundle", Bytes(BUNDLE_BYTES)),
    ("the state of a release or a project", Bytes(STATE_BYTES)),
    ("projects or releases on one page", Count(PAGE_ROWS)),
    ("files of a release on one page", Count(PAGE_FILES)),
    ("changes on a page of activity or in a feed", Count(PAGE_EVENTS)),
    ("signers files on a page of a history", Count(PAGE_STEPS)),
    ("releases on the first page", Count(FIRST_PAGE_RELEASES)),
    ("characters of a search", Count(SEARCH_CHARS)),
    ("an event in the stream of events", Bytes(EVENT_BYTES)),
    ("a line of the journal", Bytes(JOURNAL_LINE_BYTES)),
    ("the message of a commit in the journal", Bytes(JOURNAL_MESSAGE_BYTES)),
    ("files that a commit in the journal changes", Count(JOURNAL_ENTRY_FILES)),
    ("directories that a commit in the journal adds", Count(NEW_DIRECTORIES)),
    ("a commit in the journal", Bytes(JOURNAL_ENTRY_BYTES)),
    ("seconds that a follower waits for a commit", Count(JOURNAL_WAIT_SECONDS)),
    (
        "what new signers change for the releases of a project that collect signatures",
        Bytes(COLLECTING_BYTES),
    ),
    ("what new signers remove of replaced proposals, in the journal", Bytes(SUPERSEDED_BYTES)),
    ("a change in the order that nodes share", Bytes(SHARED_CHANGE_BYTES)),
    ("a batch of commits that nodes share", Bytes(SHARED_BATCH_BYTES)),
    ("files that the commits of such a batch change", Count(SHARED_BATCH_FILES)),
    ("releases that a project's record in the log names", Count(NEWEST_RELEASES)),
    ("a signed note", Bytes(NOTE_BYTES)),
    ("signatures of a note", Count(NOTE_SIGNATURES)),
    ("the name of a log or witness", Bytes(KEY_NAME_BYTES)),
    ("checkpoints of lost commits that a log remembers", Count(LOST_HEADS)),
    ("hashes of a proof in a log", Count(PROOF_HASHES)),
    ("what a log asks a witness to cosign", Bytes(WITNESS_REQUEST_BYTES)),
    ("a policy file", Bytes(POLICY_BYTES)),
    ("logs, witnesses, or groups of a policy", Count(POLICY_ENTRIES)),
    ("a staple", Bytes(STAPLE_BYTES)),
    ("evidence that a log lied about the state", Bytes(STATE_LIE_BYTES)),
    ("a URL of a signers file, a release or an asset", Bytes(URL_BYTES)),
    ("redirects of one fetch", Count(REDIRECTS)),
    ("what a forge says about one release", Bytes(RELEASE_DESCRIPTION_BYTES)),
];

enum Most {
    Bytes(usize),
    Count(usize),
}

impl Most {
    /// `2 MiB`, `1,000`: as the documentation writes it.
    fn figure(&self) -> String {
        let grouped = |number: usize| {
            let digits = number.to_string();
            let groups = digits.as_bytes().rchunks(3).rev().map(|group| String::from_utf8_lossy(group));
            groups.collect::<Vec<_>>().join(",")
        };
        match *self {
            Count(most) => grouped(most),
            Bytes(most) if most.is_multiple_of(MIB) => format!("{} MiB", grouped(most / MIB)),
            Bytes(most) if most.is_multiple_of(KIB) && most > KIB => format!("{} KiB", grouped(most / KIB)),
            Bytes(most) => format!("{} bytes", grouped(most)),
        }
    }
}

#[test]
fn the_documentation_has_every_bound_and_no_other() {
    let rows = TABLE.iter().map(|(what, most)| format!("| {what} | {} |", most.figure()));
    let page = include_str!("../../../../../docs/bounds.md");
    let found = page.lines().filter(|line| line.starts_with("| ")).skip(1);
    // The last column says why, to people.
    let found = found.map(|line| line.splitn(4, " | ").take(2).collect::<Vec<_>>().join(" | ") + " |");
    assert_eq!(
        found.collect::<Vec<_>>(),
        rows.collect::<Vec<_>>(),
        "docs/bounds.md is not the table of core::bounds"
    );
}

/// A name of this many bytes, in segments that are short enough.
fn name(length: usize, number: usize) -> String {
    let mut name = format!("{number:06}/");
    while length - name.len() > 201 {
        name.push_str(&format!("{}/", "a".repeat(199)));
    }
    let rest = length - name.len();
    name + &"b".repeat(rest)
}

fn file(name: &str, source: String) -> PublishedFile {
    let digests = Digests { sha256: Some(Sha256::of(b"")), sha512: Some(Sha512::of(b"")) };
    PublishedFile { file_name: AssetName::parse(name).expect(name), size: None, source, digests }
}

fn index(published_files: Vec<PublishedFile>) -> ReleaseIndex {
    let project_id = path("https/files.example/443/acme/app");
    ReleaseIndex { project_id, release_url: None, mirrored_on: noon(), published_on: None, published_files }
}

#[test]
fn a_name_has_a_longest_length() {
    assert!(AssetName::parse(&name(ASSET_NAME_BYTES, 0)).is_ok());
    assert_eq!(AssetName::parse(&name(ASSET_NAME_BYTES + 1, 0)), Err(AssetNameError::TooLong));
    // Bytes count, not characters.
    let wide = format!("{}/", "ü".repeat(99)).repeat(5);
    assert!(AssetName::parse(&format!("{wide}{}", "a".repeat(ASSET_NAME_BYTES - wide.len()))).is_ok());
    let longer = format!("{wide}{}", "ü".repeat((ASSET_NAME_BYTES - wide.len()) / 2 + 1));
    assert_eq!(AssetName::parse(&longer), Err(AssetNameError::TooLong));
}

#[test]
fn all_names_of_an_index_have_a_largest_sum() {
    let files = |last: usize| -> Vec<PublishedFile> {
        let lengths = (0..511).map(|_| ASSET_NAME_BYTES).chain([ASSET_NAME_BYTES - 10, last]);
        lengths.enumerate().map(|(i, length)| file(&name(length, i), "https://h/".to_owned())).collect()
    };
    assert_eq!(INDEX_NAMES_BYTES, 512 * ASSET_NAME_BYTES);
    let bytes = index(files(10)).write_bounded().unwrap();
    assert_eq!(ReleaseIndex::parse(&bytes).unwrap().published_files.len(), 513);
    let larger = index(files(11));
    assert_eq!(larger.write_bounded(), Err(IndexTooLarge::Names(INDEX_NAMES_BYTES + 1)));
    let error = ReleaseIndex::parse(&larger.write()).unwrap_err();
    assert_mentions(&error.to_string(), &["published_files", &INDEX_NAMES_BYTES.to_string()]);
}

/// An index with names of this piece, which has exactly this many bytes as it is written; what the names do not fill, one
/// source does.
fn index_of(bytes: usize, piece: &str, encoded: &str) -> ReleaseIndex {
    let entry = |i: usize| {
        file(&format!("{i:06}/{}", piece.repeat(60)), format!("https://h/{i:06}/{}", encoded.repeat(60)))
    };
    let lengths = [0, 1, 2].map(|count| index((0..count).map(entry).collect()).write().len());
    // The first entry also brings its line break; every other one costs the same.
    let count = 1 + (bytes - lengths[1]) / (lengths[2] - lengths[1]);
    let mut files: Vec<PublishedFile> = (0..count).map(entry).collect();
    let missing = bytes - index(files.clone()).write().len();
    files[0].source.push_str(&"x".repeat(missing));
    index(files)
}

#[test]
fn an_index_is_measured_as_it_is_written() {
    // A quotation mark takes two bytes in JSON and three in a URL; a letter of two bytes takes six there.
    for (piece, encoded) in [("a", "a"), ("\"", "%22"), ("ü", "%C3%BC"), ("好", "%E5%A5%BD")] {
        let fitting = index_of(INDEX_BYTES, piece, encoded);
        let bytes = fitting.write_bounded().unwrap();
        assert_eq!(bytes.len(), INDEX_BYTES, "{piece}");
        assert_eq!(ReleaseIndex::parse(&bytes).unwrap(), fitting, "{piece}");
        let larger = index_of(INDEX_BYTES + 1, piece, encoded);
        assert_eq!(larger.write_bounded(), Err(IndexTooLarge::Bytes(INDEX_BYTES + 1)), "{piece}");
        let error = ReleaseIndex::parse(&larger.write()).unwrap_err();
        assert_mentions(&error.to_string(), &[&INDEX_BYTES.to_string()]);
    }
}

#[test]
fn a_set_has_a_largest_number_of_signatures() {
    let collected = Collected { signature: alice().sign(&Sha512::of(b"")), collected_at: noon() };
    let text = String::from_utf8(set(&[alice().public_key()], collected).write()).unwrap();
    let written_key = alice().public_key().to_base64();
    let entry = text.lines().skip(2).take(4).collect::<Vec<_>>().join("\n");
    let of = |count: u16| {
        let keys = (0..count).map(|i| {
            let bytes: Vec<u8> = i.to_be_bytes().into_iter().chain([0; 30]).collect();
            let key = countersign_core::values::key::encode_base64(&bytes);
            entry.replace(written_key.trim_end_matches('='), key.trim_end_matches('='))
        });
        format!("{{\"entries\": {{{}}}}}", keys.collect::<Vec<_>>().join(","))
    };
    let most = u16::try_from(SIGNATURES).unwrap();
    assert_eq!(SignatureSet::parse(of(most).as_bytes()).unwrap().entries.len(), SIGNATURES);
    let error = SignatureSet::parse(of(most + 1).as_bytes()).unwrap_err();
    assert_mentions(&error.to_string(), &["entries", &SIGNATURES.to_string()]);
}

fn set(keys: &[countersign_core::values::key::PublicKey], collected: Collected) -> SignatureSet {
    let mut set = SignatureSet::default();
    keys.iter().for_each(|key| set.add(*key, collected));
    set
}

/// A document that is padded to this length: between values, JSON may have any number of spaces.
fn padded(bytes: &[u8], length: usize) -> Vec<u8> {
    [bytes, &vec![b' '; length - bytes.len()]].concat()
}

#[test]
fn metadata_bundles_and_kept_requests_have_a_largest_size() {
    let evidence = good();
    let bytes = evidence.history.entries[0].metadata.as_bytes();
    assert!(Metadata::parse(&padded(bytes, METADATA_BYTES)).is_ok());
    let error = Metadata::parse(&padded(bytes, METADATA_BYTES + 1)).unwrap_err();
    assert_mentions(&error.to_string(), &[&METADATA_BYTES.to_string()]);

    let bundle = Bundle { bundled_at: noon(), evidence: evidence.clone(), staple: None }.write();
    assert!(Bundle::parse(&padded(&bundle, BUNDLE_BYTES)).is_ok());
    let error = Bundle::parse(&padded(&bundle, BUNDLE_BYTES + 1)).unwrap_err();
    assert_mentions(&error.to_string(), &[&BUNDLE_BYTES.to_string()]);

    let request = |length: usize| SignedRequest {
        timestamp: at("2026-01-31T10:00:00Z").to_header(),
        nonce: "6b6c9a3e-9f5f-4d43-8a3e-6f1c3c1f7a10".to_owned(),
        payload: "\"".repeat(length),
        public_key: alice().public_key(),
        signature: alice().sign(&Sha512::of(b"")),
    };
    let largest = request(KEPT_REQUEST_BYTES).write();
    assert!(SignedRequest::parse(&largest).is_ok() && largest.len() < 3 * KEPT_REQUEST_BYTES);
    let error = SignedRequest::parse(&request(KEPT_REQUEST_BYTES + 1).write()).unwrap_err();
    assert_mentions(&error.to_string(), &["payload", &KEPT_REQUEST_BYTES.to_string()]);
}
