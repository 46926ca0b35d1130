//! Every literal name of the protocol: headers, prefixes, file names, routes. Only texts for people repeat them.

pub const HEADER_TIMESTAMP: &str = "x-svc-timestamp";
pub const HEADER_NONCE: &str = "x-svc-nonce";
pub const HEADER_SIGNATURE: &str = "x-svc-sig";
pub const HEADER_PUBLIC_KEY: &str = "x-svc-pk";
/// The newest commit of the server when it began to answer.
pub const HEADER_COMMIT: &str = "x-svc-commit";
/// The id of a request, which log lines repeat.
pub const HEADER_REQUEST_ID: &str = "x-request-id";
/// The header of what a webhook sends: the kind of event; below, the delivery's own name, and `sha256=` with the HMAC
/// of the body.
pub const HEADER_EVENT: &str = "x-svc-event";
pub const HEADER_DELIVERY: &str = "x-svc-delivery";
pub const HEADER_WEBHOOK_SIGNATURE: &str = "x-svc-signature-256";

/// The header that says from which commit a listener to events goes on.
pub const HEADER_LAST_EVENT_ID: &str = "last-event-id";

/// The journal, as `git fast-import` reads it.
pub const JOURNAL_TYPE: &str = "application/x-git-fast-import";
/// The size of a log that a witness has seen (c2sp.org/tlog-witness).
pub const LOG_SIZE_TYPE: &str = "text/x.tlog.size";
/// A header in the answer of a witness that cosigns nothing more of a log until its operator decides.
pub const WITNESS_STOPPED: &str = "countersign-witness-stopped";

pub const PUBLIC_KEY_PREFIX: &str = "svc-pub:";

/// Stands between timestamp, nonce and payload in the signed string of a request.
pub const REQUEST_SEPARATOR: &str = "##";

/// Names that begin like this are ours. No one else can store files under them (D6).
pub const RESERVED_PREFIX: &str = "svc.";

pub const REPOSITORY_FILE: &str = "svc.repository.json";
pub const SIGNERS_FILE: &str = "svc.signers.json";
pub const INDEX_FILE: &str = "svc.index.json";
/// What is served as one document, and the directory of the entries that it is assembled from (D42).
pub const HISTORY_FILE: &str = "svc.signers.history.json";
/// The directory below a project in which each release of a forge has the directory of its tag.
pub const RELEASES_DIR: &str = "releases/tag";
pub const HISTORY_DIR: &str = "svc.signers.history";

pub const ACTIVE_DIR: &str = "svc.signers";
pub const PENDING_DIR: &str = "svc.signers.pending";
pub const SUPERSEDED_DIR: &str = "svc.signers.superseded";
/// Vetoes of proposals, until the next rotation (D136).
pub const VETOED_DIR: &str = "svc.signers.vetoed";
pub const VETO_FILE: &str = "svc.veto.json";

/// Directories that may hold the signers file where it is published, besides the project's root.
pub const PUBLISHED_SIGNERS_DIRS: [&str; 3] = ["svc.signers", ".svc.signers", ".svc_signers"];

pub const METADATA_SUFFIX: &str = ".metadata.json";
pub const REGISTRATION_SUFFIX: &str = ".registration.json";
pub const SIGNERS_COPY_SUFFIX: &str = ".signers.json";
pub const SIGNATURES_SUFFIX: &str = ".signatures.json";
/// Signatures in other formats (D102).
pub const OTHER_FORMATS_SUFFIX: &str = ".formats.json";
/// Who registered a release that still collects signatures (D121).
pub const REGISTRANT_SUFFIX: &str = ".registrant.json";
/// The signed request that withdrew a release (D122).
pub const WITHDRAWAL_SUFFIX: &str = ".withdrawn.json";
/// The suffix of what signers object to (D123).
pub const OBJECTIONS_SUFFIX: &str = ".objections.json";
/// What signers objected to in contents that were here before (D224).
pub const EARLIER_OBJECTIONS_SUFFIX: &str = ".earlier-objections.json";
/// The suffix of what builders got from the source (D260).
pub const REBUILDS_SUFFIX: &str = ".rebuilds.json";
pub const REVOCATION_SUFFIX: &str = ".revocation.json";
/// The suffix of the agreement: that a pending signers file has all consent, and until when it waits (D131).
pub const AGREEMENT_SUFFIX: &str = ".agreed.json";
pub const VETO_SUFFIX: &str = ".veto.json";
pub const REQUEST_SUFFIX: &str = ".request.json";
pub const PENDING_SUFFIX: &str = ".pending";
pub const REVOKED_SUFFIX: &str = ".revoked";

/// The addresses at which a server answers, as far as more than one program knows them. The route table, the links on
/// pages, mirrors, witnesses and clients take them from here.
pub mod routes {
    /// The beginning of the API's paths.
    pub const API: &str = "/v1";

    pub const REGISTER_REPO: &str = "/v1/register_repo";
    pub const UPDATE_SIGNERS: &str = "/v1/update_signers";
    pub const SIGNATURES: &str = "/v1/signatures";
    pub const REVOKE: &str = "/v1/revoke";
    pub const VETO: &str = "/v1/veto";
    pub const ASSETS: &str = "/v1/assets";
    pub const WITHDRAW: &str = "/v1/withdraw";
    pub const OBJECT: &str = "/v1/object";
    pub const REBUILD: &str = "/v1/rebuild";
    pub const PENDING_SIGNATURES: &str = "/v1/pending_signatures";
    pub const FILES_TO_SIGN: &str = "/v1/files-to-sign";
    pub const FILES: &str = "/v1/files";
    pub const GET_SIGNERS: &str = "/v1/get_signers";
    pub const GET_SIGNERS_CHAIN: &str = "/v1/get_signers_chain";
    pub const GET_ARTIFACT_SIGNERS_CHAIN: &str = "/v1/get_artifact_signers_chain";
    pub const RELEASES: &str = "/v1/releases";
    pub const PROJECTS: &str = "/v1/projects";
    pub const KEYS: &str = "/v1/keys";
    pub const EVENTS: &str = "/v1/events";
    pub const JOURNAL: &str = "/v1/journal";
    pub const STATE: &str = "/v1/state";
    pub const PROOF: &str = "/v1/proof";
    pub const PING: &str = "/v1/ping";

    pub const LOG_CHECKPOINT: &str = "/log/checkpoint";
    pub const LOG_COSIGNED: &str = "/log/cosigned";
    pub const LOG_KEY: &str = "/log/key";
    pub const LOG_COSIGNATURE: &str = "/log/cosignature";
    pub const LOG_TILE: &str = "/log/tile";
    /// The route of a witness (c2sp.org/tlog-witness).
    pub const ADD_CHECKPOINT: &str = "/add-checkpoint";

    /// The reference of the API, for programs.
    pub const OPENAPI: &str = "/openapi.json";
    pub const ROBOTS: &str = "/robots.txt";
    pub const SECURITY: &str = "/.well-known/security.txt";
    /// The route that says whether the server can accept changes.
    pub const READY: &str = "/readyz";

    /// The path below which pages about what is stored lie, and badges.
    pub const PAGES: &str = "/p";
    pub const BADGES: &str = "/badge";
    pub const KEY_PAGES: &str = "/keys";
}
