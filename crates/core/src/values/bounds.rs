//! The maximum of everything that can be stored or answered (D41): one table, for server, client and `fsck`.
//!
//! A test holds docs/bounds.md, which gives the reason of each, to these constants. The operator sets how much may *wait*
//! or happen in some time; these bounds are part of the formats, and cannot be set.

/// The most bytes of a path in the repository (D6).
pub const PATH_BYTES: usize = 1_024;
/// The most segments of a path in the repository.
pub const PATH_SEGMENTS: usize = 64;
/// The most bytes of one segment of a path that is stored.
pub const SEGMENT_BYTES: usize = 200;
/// The most bytes of a directory that files are stored under. Leaves room for the longest name that we ever append, so
/// that every stored file can be asked for.
pub const DIR_BYTES: usize = PATH_BYTES - 160;
/// The most segments of a directory that files are stored under.
pub const DIR_SEGMENTS: usize = PATH_SEGMENTS - 3;
/// The most bytes of any stored file. The store commits no larger one, the client asks for no larger one, and `fsck`
/// reports one.
pub const FILE_BYTES: usize = 2 << 20;
/// The most bytes of an index, as it is written. It is the largest file that someone else's content makes us store.
pub const INDEX_BYTES: usize = FILE_BYTES;
/// The most bytes of the name of one published file.
pub const ASSET_NAME_BYTES: usize = 1_024;
/// The most bytes of all names in one index together.
pub const INDEX_NAMES_BYTES: usize = 512 << 10;
/// Files of one release: with the shortest names, about as many fit into an index.
pub const INDEX_FILES: usize = 10_000;
/// The most bytes of a signers file.
pub const SIGNERS_FILE_BYTES: usize = 256 << 10;
/// Entries of a signers file, in all its groups together.
pub const SIGNERS_FILE_ENTRIES: usize = 1_000;
/// Registrars that a signers file names: keys of machines that build, of which a project has a few.
pub const SIGNERS_FILE_REGISTRARS: usize = 16;
/// The most characters of the name of a signer.
pub const SIGNER_NAME_CHARS: usize = 64;
/// Servers that a signers file names.
pub const SIGNERS_FILE_SERVERS: usize = 8;
/// The most bytes of the address of a server in a signers file.
pub const SERVER_URL_BYTES: usize = 255;
/// Formats besides our own that a signers file names, also those of later versions.
pub const SIGNERS_FILE_FORMATS: usize = 16;
/// The most bytes of the name of a format.
pub const FORMAT_NAME_BYTES: usize = 32;
/// Witnesses that a signers file names, in all groups together.
pub const SIGNERS_FILE_WITNESSES: usize = 32;
/// The age of a proof that a signers file allows, in seconds: 10 years of 365 days.
pub const PROOF_AGE_SECONDS: usize = 10 * 365 * 86_400;
/// Signatures on one file: a rotation may have those of the signers before and after it.
pub const SIGNATURES: usize = 2 * SIGNERS_FILE_ENTRIES;
/// The most bytes of the signatures on one release in other formats: of every artifact signer, in every format.
pub const OTHER_FORMATS_BYTES: usize = FILE_BYTES;
/// Contents of a release that are signed by themselves for OpenPGP programs. In a release with more, none is.
pub const OPENPGP_FILES: usize = 64;
/// The most bytes of the metadata of a signers file: two URLs of 2 KiB, percent-encoded, and a path.
pub const METADATA_BYTES: usize = 16 << 10;
/// The most bytes of the history of a project's signers, assembled from its entries.
pub const HISTORY_BYTES: usize = 32 << 20;
/// The most bytes of the body of a request that is kept in the repository as a proof.
pub const KEPT_REQUEST_BYTES: usize = 64 << 10;
/// The most characters of the reason of a revocation, a veto, an objection or a withdrawal.
pub const REASON_CHARS: usize = 1_000;
/// The most bytes of a revocation document.
pub const REVOCATION_BYTES: usize = 16 << 10;
/// The most bytes of an objection: 1,000 characters in any script, not escaped twice.
pub const OBJECTION_BYTES: usize = 8 << 10;
/// Objections to one release, also those that were taken back. Their texts are escaped in one stored file, which doubles
/// them at most.
pub const OBJECTIONS: usize = 100;
/// Objections to earlier contents of one release that are kept. Beyond it, the oldest of the key that has most goes.
pub const EARLIER_OBJECTIONS: usize = 100;
/// The most bytes of what one builder states of a release: about 340 files with one digest each.
pub const REBUILD_BYTES: usize = 60 << 10;
/// Statements of builders about one release, and builders that a signers file names. Their texts are escaped in one stored
/// file, which doubles them at most.
pub const REBUILDS: usize = 16;
/// Patterns of the files that builders make.
pub const REBUILD_PATTERNS: usize = 16;
/// The most bytes of a pattern of files.
pub const REBUILD_PATTERN_BYTES: usize = 255;
/// The most bytes of a veto.
pub const VETO_BYTES: usize = 16 << 10;
/// The most vetoed proposals of a project that are remembered until the next rotation; then the oldest is forgotten.
pub const VETO_RECORDS: usize = 16;
/// How long a signers file can let rotations wait, in hours.
pub const ROTATION_DELAY_HOURS: usize = 720;
/// The most bytes of the list of what waits for a key.
pub const PENDING_LIST_BYTES: usize = 4 << 20;
/// Releases, projects, or things that wait for a key, in one answer of the catalogue.
pub const LIST_ENTRIES: usize = 100;
/// Releases that the answer about a key names as signed by it, and, beside them, revocations that it began.
pub const KEY_ENTRIES: usize = 25;
/// The most bytes of stored files that the server reads for one such answer; it then ends early, with at least one
/// entry.
pub const LIST_READ_BYTES: usize = 8 << 20;
/// The most bytes of any answer of the API: a whole history with what stands around it.
pub const ANSWER_BYTES: usize = HISTORY_BYTES + 1_024;
/// The most bytes of an offline bundle: a history, one level deeper in JSON, which adds less than an eighth; an index,
/// whose quotation marks and line ends are escaped, so that it grows twofold at most; two sets of signatures, a
/// revocation and what builders state, which are stored files as well; and a staple, one level deeper, for which a mebibyte is plenty.
pub const BUNDLE_BYTES: usize =
    HISTORY_BYTES + HISTORY_BYTES / 8 + 2 * INDEX_BYTES + 3 * FILE_BYTES + (1 << 20);
const _: () = assert!(STAPLE_BYTES < 1 << 19, "a mebibyte is plenty for a staple");
/// A state (D232): a bundle, and what else is stored of a release, whose line breaks and quotes take two bytes each.
pub const STATE_BYTES: usize = BUNDLE_BYTES + 16 * FILE_BYTES;
/// Projects or releases on one page.
pub const PAGE_ROWS: usize = 25;
/// Files of a release on one page.
pub const PAGE_FILES: usize = 100;
/// Events on a page of activity, and entries of a feed.
pub const PAGE_EVENTS: usize = 50;
/// Signers files on a page of a project's history.
pub const PAGE_STEPS: usize = 20;
/// Releases on the first page.
pub const FIRST_PAGE_RELEASES: usize = 10;
/// The most characters of what a visitor searches for. A longer search never finds anything.
pub const SEARCH_CHARS: usize = 200;
/// The most bytes of one event in the stream of events: several times what the longest path takes in JSON.
pub const EVENT_BYTES: usize = 64 << 10;
/// The most bytes of a line of the journal: a path, quoted, or the author of a commit.
pub const JOURNAL_LINE_BYTES: usize = 4 << 10;
/// The most bytes of the message of a commit in the journal.
pub const JOURNAL_MESSAGE_BYTES: usize = 64 << 10;
/// Files that one commit in the journal changes. New signers change up to three files of each release that collects
/// signatures.
pub const JOURNAL_ENTRY_FILES: usize = 100_000;
/// The most bytes of one commit in the journal. Content that it stores in several places counts once.
pub const JOURNAL_ENTRY_BYTES: usize = 64 << 20;
/// Directories that one commit adds. It stores one release or one signers file: the directories of one path, and a few
/// of the server's own.
pub const NEW_DIRECTORIES: usize = 4 * PATH_SEGMENTS;
/// Files that the commits of a batch in the database change, all together. In the journal, the shortest line of a file has
/// about 42 bytes.
pub const SHARED_BATCH_FILES: usize = 400_000;
/// How long a follower can let the server wait for the next commit, in seconds.
pub const JOURNAL_WAIT_SECONDS: usize = 60;
/// The most bytes that new signers change for all releases of a project that collect signatures: of its files as the
/// journal writes them, and of its directories as Git stores them.
pub const COLLECTING_BYTES: usize = 8 << 20;
/// The most bytes that new signers remove of replaced proposals, as the journal writes it.
pub const SUPERSEDED_BYTES: usize = 3 << 20;
/// The most bytes of one change in the order that nodes share: the two above, and at most 4 MiB for the signers file,
/// its signatures and the entry of the history. It fits a batch that has [`SHARED_BATCH_ENOUGH_BYTES`] already.
pub const SHARED_CHANGE_BYTES: usize = SHARED_BATCH_BYTES - SHARED_BATCH_ENOUGH_BYTES;
/// A batch in the order that nodes share gets no more changes once it is larger than this.
pub const SHARED_BATCH_ENOUGH_BYTES: usize = 1 << 20;
/// The most bytes of a batch of commits in the database that nodes share.
pub const SHARED_BATCH_BYTES: usize = 16 << 20;
/// Releases that a project's record in the log names.
pub const NEWEST_RELEASES: usize = 8;
/// Replaced records that a log keeps on disk beside as many as its map has.
pub const REPLACED_RECORDS: usize = 4_096;
/// The most bytes of a signed note, such as a checkpoint. An ML-DSA-44 cosignature of each witness of a policy fits, with
/// the longest names.
pub const NOTE_BYTES: usize = 256 << 10;
/// Signatures of one note.
pub const NOTE_SIGNATURES: usize = 100;
/// The most bytes of the name of a log or witness.
pub const KEY_NAME_BYTES: usize = 255;
/// Checkpoints whose commits an operator has given up, as a log remembers them.
pub const LOST_HEADS: usize = 64;
/// Hashes of a proof in a log: more than a tree of 2^63 leaves needs.
pub const PROOF_HASHES: usize = 63;
/// The most bytes of what a log asks a witness to cosign: a note, and a proof before it.
pub const WITNESS_REQUEST_BYTES: usize = NOTE_BYTES + (4 << 10);
/// The most bytes of compressed bundles of a log's entries in memory: those of about 60,000 commits (D266).
pub const PACKED_BUNDLES_BYTES: usize = 8 << 20;
/// The most bytes of a policy file.
pub const POLICY_BYTES: usize = 256 << 10;
/// The most logs, witnesses, or groups in a policy file.
pub const POLICY_ENTRIES: usize = 64;
/// The most bytes of a list of logs that a witness network publishes. One of 40,000 logs has some 10 MiB.
pub const LOG_LIST_BYTES: usize = 16 << 20;
/// Logs of a list, and logs that a witness knows from lists, all together.
pub const LISTED_LOGS: usize = 50_000;
/// The most bytes of what a list says about whom to ask about a log.
pub const LOG_CONTACT_BYTES: usize = 255;
/// Lists that a witness reads.
pub const LOG_LISTS: usize = 8;
/// The most bytes of a staple: a checkpoint, and records that name nine paths, with their proofs.
pub const STAPLE_BYTES: usize = NOTE_BYTES + (64 << 10);
/// The most bytes of the proof that a log lied about the state: a commit of the journal and the indexes that it
/// completes, in base64.
pub const STATE_LIE_BYTES: usize = 2 * JOURNAL_ENTRY_BYTES;
/// The most bytes of a URL of a signers file, a release or an asset.
pub const URL_BYTES: usize = 2_048;
/// Redirects that one fetch follows.
pub const REDIRECTS: usize = 5;
/// The most bytes of what a forge says about one release: a thousand assets take less than half of it on every forge.
pub const RELEASE_DESCRIPTION_BYTES: usize = 4 << 20;
