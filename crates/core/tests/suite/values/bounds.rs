//! The maximum of everything that is stored (D41), each at the last size that is accepted and the first that is
//! refused.

use countersign_core::documents::index::{
    AssetName, AssetNameError, Digests, IndexTooLarge, PublishedFile, ReleaseIndex,
};
use countersign_core::documents::signatures::{Collected, SignatureSet};
use countersign_core::documents::statement::{Objection, Revocation};
use countersign_core::documents::{signed_request::SignedRequest, signers::Metadata};
use countersign_core::proof::bundle::{Bundle, Staple};
use countersign_core::values::bounds::*;
use countersign_core::values::digest::{Sha256, Sha512};
use countersign_core::values::json::ParseError;
use countersign_testing::{alice, assert_mentions, at, evidence::good, evidence::noon, path};
use countersign_testing::{documents::objection, signing::full_set};

use crate::proof::freshness::staple;

use self::Most::{Bytes, Count};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Every bound and why it is there, in the order of docs/bounds.md.
#[rustfmt::skip]
const TABLE: &[(&str, Most, &str)] = &[
    ("a path", Bytes(PATH_BYTES), "every stored file has one, and requests name it"),
    ("segments of a path", Count(PATH_SEGMENTS), "each is a directory of the repository"),
    ("a segment of a stored path", Bytes(SEGMENT_BYTES), "file systems allow 255, and clones are checked out"),
    ("a directory that files are stored under", Bytes(DIR_BYTES), "the longest name that the server appends makes a path of at most 1,024 bytes"),
    ("segments of such a directory", Count(DIR_SEGMENTS), "the server appends up to three"),
    ("a stored file", Bytes(FILE_BYTES), "server, client and `fsck` read every stored file whole"),
    ("an index, as it is written", Bytes(INDEX_BYTES), "some 3,000 files with both digests; each signer reads all of it"),
    ("the name of a published file", Bytes(ASSET_NAME_BYTES), "the longest path that the server accepts"),
    ("all names in one index", Bytes(INDEX_NAMES_BYTES), "a name also stands in the file's URL, percent-encoded"),
    ("files of one release", Count(INDEX_FILES), "with the shortest names, about as many fit into an index"),
    ("a signers file", Bytes(SIGNERS_FILE_BYTES), "a copy governs each release, and each rotation keeps one for ever"),
    ("entries of a signers file", Count(SIGNERS_FILE_ENTRIES), "each key is checked to be a point of the curve"),
    ("registrars that a signers file names", Count(SIGNERS_FILE_REGISTRARS), "a project has few machines that build its releases"),
    ("characters of the name of a signer", Count(SIGNER_NAME_CHARS), "a person reads it"),
    ("servers that a signers file names", Count(SIGNERS_FILE_SERVERS), "a client asks one after the other"),
    ("the address of such a server", Bytes(SERVER_URL_BYTES), "a person reads it"),
    ("formats that a signers file names", Count(SIGNERS_FILE_FORMATS), "there are three, and later versions can have more"),
    ("the name of such a format", Bytes(FORMAT_NAME_BYTES), "it is one word"),
    ("witnesses that a signers file names", Count(SIGNERS_FILE_WITNESSES), "each needs a cosignature in a checkpoint, of which a note has at most 100"),
    ("seconds that a signers file lets a proof be old", Count(PROOF_AGE_SECONDS), "10 years: more is no limit"),
    ("signatures on one file", Count(SIGNATURES), "a rotation takes those of the signers before and after it"),
    ("signatures of one release in other formats", Bytes(OTHER_FORMATS_BYTES), "1,000 signers in every format, or 130 of whom each also signs 64 files by themselves; if a long path is full of quotation marks fewer, and the last sign without"),
    ("files of a release that are signed by themselves for OpenPGP", Count(OPENPGP_FILES), "each is a signature of the key, and an agent can ask for each; of a release with more, none is"),
    ("the metadata of a signers file", Bytes(METADATA_BYTES), "two URLs of 2 KiB, percent-encoded, and a path"),
    ("the history of a project's signers", Bytes(HISTORY_BYTES), "a client verifies all of it at a first download"),
    ("a request that is kept as a proof", Bytes(KEPT_REQUEST_BYTES), "it is stored for ever, beside what it asked for"),
    ("characters of a reason", Count(REASON_CHARS), "of a revocation, a veto, an objection or a withdrawal; people read it"),
    ("a veto", Bytes(VETO_BYTES), "a reason of 1,000 characters in any script"),
    ("vetoed proposals of a project that are remembered", Count(VETO_RECORDS), "thieves can propose as often as the masters veto"),
    ("hours that a signers file lets rotations wait", Count(ROTATION_DELAY_HOURS), "a month: longer is a lock-out"),
    ("a revocation document", Bytes(REVOCATION_BYTES), "a reason of 1,000 characters in any script"),
    ("an objection", Bytes(OBJECTION_BYTES), "a text of 1,000 characters in any script, not escaped twice"),
    ("objections to one release", Count(OBJECTIONS), "all of them fit into a stored file, and people read them"),
    ("objections to earlier contents of one release", Count(EARLIER_OBJECTIONS), "all of them fit into a stored file; the oldest of the key that has most goes first"),
    ("what one builder states of a release", Bytes(REBUILD_BYTES), "about 340 files with one digest each"),
    ("builders that a signers file names, and their statements about one release", Count(REBUILDS), "all of them fit into a stored file"),
    ("patterns of the files that builders make", Count(REBUILD_PATTERNS), "a release has few kinds of files"),
    ("such a pattern", Bytes(REBUILD_PATTERN_BYTES), "a person reads it"),
    ("the list of what waits for a key", Bytes(PENDING_LIST_BYTES), "strangers can register projects that name a key"),
    ("entries of a list of the catalogue", Count(LIST_ENTRIES), "releases, projects, what waits for a key, what it signed; a longer list of releases is asked for in parts"),
    ("releases in the answer about a key, and revocations that it began", Count(KEY_ENTRIES), "the last that it signed, with the number of all; few revocations wait at a time"),
    ("stored files read for a list of the catalogue", Bytes(LIST_READ_BYTES), "strangers choose how large their indexes and signatures are"),
    ("an answer of the API", Bytes(ANSWER_BYTES), "a whole history with what stands around it"),
    ("an offline bundle", Bytes(BUNDLE_BYTES), "a history, an index, the signatures, the revocation and the rebuilds of a release, and a staple"),
    ("the state of a release or a project", Bytes(STATE_BYTES), "a bundle, and the other files about a release, in JSON"),
    ("projects or releases on one page", Count(PAGE_ROWS), "the server reads a few files for each"),
    ("files of a release on one page", Count(PAGE_FILES), "a release can have thousands"),
    ("changes on a page of activity or in a feed", Count(PAGE_EVENTS), "each names its signer from a signers file"),
    ("signers files on a page of a history", Count(PAGE_STEPS), "each is compared with the one before"),
    ("releases on the first page", Count(FIRST_PAGE_RELEASES), "every visitor begins there"),
    ("characters of a search", Count(SEARCH_CHARS), "a longer one never finds anything"),
    ("an event in the stream of events", Bytes(EVENT_BYTES), "several times what the longest path takes in JSON"),
    ("a line of the journal", Bytes(JOURNAL_LINE_BYTES), "a path of 1,024 bytes with every byte quoted, or the author of a commit"),
    ("the message of a commit in the journal", Bytes(JOURNAL_MESSAGE_BYTES), "it names a file, a key and an address"),
    ("files that a commit in the journal changes", Count(JOURNAL_ENTRY_FILES), "new signers change up to three files of each release that collects signatures"),
    ("directories that a commit in the journal adds", Count(NEW_DIRECTORIES), "it stores one release or one signers file; in memory a directory is far larger than its name"),
    ("a commit in the journal", Bytes(JOURNAL_ENTRY_BYTES), "a follower checks a commit as a whole; repeated content counts once"),
    ("seconds that a follower waits for a commit", Count(JOURNAL_WAIT_SECONDS), "proxies close a connection that is silent for longer"),
    ("what new signers change for the releases of a project that collect signatures", Bytes(COLLECTING_BYTES), "their files in the journal, and their directories: a rotation is one change; 10,000 fit with paths of 200 bytes"),
    ("what new signers remove of replaced proposals, in the journal", Bytes(SUPERSEDED_BYTES), "it is a part of the same change"),
    ("a change in the order that nodes share", Bytes(SHARED_CHANGE_BYTES), "the two above, and 4 MiB for the signers file, its signatures and the entry of the history"),
    ("a batch of commits that nodes share", Bytes(SHARED_BATCH_BYTES), "a node reads each one whole"),
    ("files that the commits of such a batch change", Count(SHARED_BATCH_FILES), "in memory a file takes more than its line"),
    ("releases that a project's record in the log names", Count(NEWEST_RELEASES), "those that were completed last; a staple carries the record"),
    ("a signed note", Bytes(NOTE_BYTES), "an ML-DSA-44 cosignature of each of 64 witnesses, with the longest names"),
    ("signatures of a note", Count(NOTE_SIGNATURES), "each signature of a known key is verified"),
    ("the name of a log or witness", Bytes(KEY_NAME_BYTES), "it stands in every checkpoint and staple"),
    ("checkpoints of lost commits that a log remembers", Count(LOST_HEADS), "an operator gave each of them up; the oldest go"),
    ("replaced records that a log or `monitor` keeps on disk, beside as many as its map has", Count(REPLACED_RECORDS), "each completed release replaces its project's record"),
    ("hashes of a proof in a log", Count(PROOF_HASHES), "more than a tree of 2^63 leaves needs"),
    ("what a log asks a witness to cosign", Bytes(WITNESS_REQUEST_BYTES), "a note and a proof"),
    ("compressed bundles of a log's entries in memory", Bytes(PACKED_BUNDLES_BYTES), "those of about 60,000 commits; a partial bundle is compressed for each request"),
    ("a policy file", Bytes(POLICY_BYTES), "64 witnesses with ML-DSA-44 keys, each of 1,760 characters"),
    ("logs, witnesses, or groups of a policy", Count(POLICY_ENTRIES), "C2SP asks for 32; a server asks every witness"),
    ("a list of logs of a witness network", Bytes(LOG_LIST_BYTES), "one of 40,000 logs, as the largest that is published can be, has some 10 MiB"),
    ("logs of such lists that a witness knows", Count(LISTED_LOGS), "the lists are for 4,000 and for 40,000 logs; none is ever forgotten"),
    ("the contact of such a log", Bytes(LOG_CONTACT_BYTES), "an address of mail or of a page"),
    ("lists that a witness reads", Count(LOG_LISTS), "a network has three"),
    ("a staple", Bytes(STAPLE_BYTES), "a signed note, nine paths and two proofs"),
    ("evidence that a log lied about the state", Bytes(STATE_LIE_BYTES), "a commit of the journal and the indexes that it completes, in base64"),
    ("a URL of a signers file, a release or an asset", Bytes(URL_BYTES), "it is stored with what it led to"),
    ("redirects of one fetch", Count(REDIRECTS), "forges need one or two"),
    ("what a forge says about one release", Bytes(RELEASE_DESCRIPTION_BYTES), "a thousand assets take less than half of it on every forge"),
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
    let rows = TABLE.iter().map(|(what, most, why)| format!("| {what} | {} | {why} |", most.figure()));
    let page = include_str!("../../../../../docs/bounds.md");
    let found = page.lines().filter(|line| line.starts_with("| ")).skip(1);
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

/// An index with names of this piece, which has exactly this many bytes as it is written; what the names do not fill,
/// one source does.
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
        assert_mentions(&error.to_string(), &["at most 2 MiB"]);
    }
}

#[test]
fn a_set_has_a_largest_number_of_signatures() {
    let collected = Collected { signature: alice().sign(&Sha512::of(b"")), collected_at: noon() };
    let one = set(&[alice().public_key()], collected);
    assert_eq!(SignatureSet::parse(full_set(&one, SIGNATURES).as_bytes()).unwrap().entries.len(), SIGNATURES);
    let error = SignatureSet::parse(full_set(&one, SIGNATURES + 1).as_bytes()).unwrap_err();
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
fn documents_have_a_largest_size_and_kept_requests_too() {
    type Parse = fn(&[u8]) -> Result<(), ParseError>;
    let bundle = Bundle { bundled_at: noon(), evidence: good(), staple: None }.write();
    let metadata = good().history.entries[0].metadata.clone().into_bytes();
    let revocation = br#"{"reason": "x", "timestamp": 0}"#.to_vec();
    let table: [(Vec<u8>, Parse, usize, &str); 5] = [
        (metadata, |b| Metadata::parse(b).map(drop), METADATA_BYTES, "16 KiB"),
        (bundle, |b| Bundle::parse(b).map(drop), BUNDLE_BYTES, "47 MiB"),
        (staple().write(), |b| Staple::parse(b).map(drop), STAPLE_BYTES, "320 KiB"),
        (revocation, |b| Revocation::parse(b).map(drop), REVOCATION_BYTES, "16 KiB"),
        (objection().write(), |b| Objection::parse(b).map(drop), OBJECTION_BYTES, "8 KiB"),
    ];
    for (document, parse, bound, size) in table {
        assert_eq!(parse(&padded(&document, bound)), Ok(()), "{size}");
        assert_mentions(&parse(&padded(&document, bound + 1)).unwrap_err().to_string(), &[size]);
    }

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
