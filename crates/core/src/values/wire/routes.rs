//! The addresses at which a server answers, as far as more than one program knows them. The route table, the links on
//! pages, mirrors, witnesses and clients take them from here.

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
/// The route that says whether the server can accept changes.
pub const READY: &str = "/readyz";

/// The path below which pages about what is stored lie, and badges.
pub const PAGES: &str = "/p";
pub const BADGES: &str = "/badge";
pub const KEY_PAGES: &str = "/keys";
