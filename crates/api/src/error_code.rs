//! The codes of errors. A program reads the code, and a person the sentence beside it (D230).

use serde::Serialize;

/// The longest code that a reader takes for one.
const MAX_CHARS: usize = 64;

macro_rules! error_codes {
    ($($case:ident = $name:literal, $status:literal, $meaning:literal;)+) => {
        /// What is wrong, for programs. A code keeps its meaning and its status, and is never used for anything else. A
        /// newer server can have more codes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, utoipa::ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum ErrorCode {
            $(
                #[doc = $meaning]
                $case,
            )+
        }

        impl ErrorCode {
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$case),+];

            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$case => $name,)+
                }
            }

            /// The status of every answer with this code.
            pub fn status(self) -> u16 {
                match self {
                    $(Self::$case => $status,)+
                }
            }

            /// The meaning of the code, for the table in docs/api.md.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Self::$case => $meaning,)+
                }
            }
        }
    };
}

error_codes! {
    // What is wrong as it stands.
    MalformedRequest = "malformed_request", 400, "it is not HTTP/1.1, it has not exactly one valid `Host` header, or its body broke off or is not UTF-8";
    InvalidBody = "invalid_body", 400, "the body is not the JSON that the route needs, or a field of it is invalid";
    InvalidParameter = "invalid_parameter", 400, "a parameter, a key in the path or `Last-Event-ID` is unknown, invalid or repeated";
    InvalidPath = "invalid_path", 400, "the path is not one that this server could store";
    IsADirectory = "is_a_directory", 400, "the path is that of a directory, and a file is needed";
    UrlRefused = "url_refused", 400, "the server does not fetch this URL: its form, its host or its address is refused, or it names no signers file";
    KeyNotCaller = "key_not_caller", 400, "the key in the body must be the one that signed the request";
    KeyNotListed = "key_not_listed", 400, "the key is no signer of the signers file that it proposes, or that is in force";
    ProjectNotRegistered = "project_not_registered", 400, "no signers are in force or proposed for this place: register the project first";
    ProjectNotActive = "project_not_active", 400, "the first registration of the project still waits for signatures";
    TimestampAhead = "timestamp_ahead", 400, "the time in the document is ahead of the server's clock";
    TimestampNotLater = "timestamp_not_later", 400, "the signers file must have a later time than the one in force";
    InvalidDocument = "invalid_document", 400, "the revocation, the objection, the veto or the rebuild is not a valid document";
    InvalidSignature = "invalid_signature", 400, "the signature does not verify for what it is submitted for";
    SignatureMissing = "signature_missing", 400, "a file of the submission has no signature";
    UnexpectedSignature = "unexpected_signature", 400, "a signature is for a file that is not part of the submission";
    NothingToSign = "nothing_to_sign", 400, "no file is at the path that was signed";
    NotSignable = "not_signable", 400, "the file collects no signatures";
    OtherFormatImpossible = "other_format_impossible", 400, "this file cannot be signed in other formats";
    OtherFormatInvalid = "other_format_invalid", 400, "the signature in another format is refused";
    OtherFormatsTooLarge = "other_formats_too_large", 400, "the signatures in other formats have too many bytes together";
    NotSigned = "not_signed", 400, "no complete release and no signers file in force is at the path";
    NotARelease = "not_a_release", 400, "only releases can be objected to and rebuilt";
    NotComparable = "not_comparable", 400, "the release lists no such file, or no digest of that kind";
    NotWithdrawable = "not_withdrawable", 400, "only releases can be withdrawn";
    NotRevocable = "not_revocable", 400, "only releases can be revoked";
    NotVetoable = "not_vetoable", 400, "only pending signers files can be vetoed";
    AlreadyRevoked = "already_revoked", 400, "the release to revoke is revoked already";
    DigestMismatch = "digest_mismatch", 400, "the revocation is about another content than the one at the path";
    SubjectDigestRequired = "subject_digest_required", 400, "the revocation needs `subject_digest`, because one signature is not enough";
    MayNotRevoke = "may_not_revoke", 400, "the key cannot revoke releases of the project";
    NotInitiator = "not_initiator", 400, "the first revoker must be the `initiator` of the document";

    // Who calls.
    AuthHeaderMissing = "auth_header_missing", 401, "a header of the authentication is missing";
    AuthHeaderInvalid = "auth_header_invalid", 401, "a header of the authentication is malformed or repeated";
    RequestTooOld = "request_too_old", 401, "the timestamp is too far behind the server's clock";
    RequestAhead = "request_ahead", 401, "the timestamp is ahead of the server's clock";
    RequestBeforeRestore = "request_before_restore", 401, "the timestamp is from before the server was restored";
    RequestSignatureInvalid = "request_signature_invalid", 401, "the signature on the request does not verify";
    NonceUsed = "nonce_used", 401, "the nonce was used before";
    NonceForgotten = "nonce_forgotten", 401, "the server no longer knows whether the nonce was used";

    // Who can do it.
    NotASigner = "not_a_signer", 403, "the key is no signer of the signers file in force";
    MayNotSign = "may_not_sign", 403, "the key cannot sign this file";
    MayNotWithdraw = "may_not_withdraw", 403, "the key neither registered the release nor is an admin";
    NotABuilder = "not_a_builder", 403, "the key is not a builder of the release";
    MayNotVeto = "may_not_veto", 403, "the key is not a master key in force";
    NoMasters = "no_masters", 403, "the project has no master keys, and only masters can veto";
    RegistrarCannotCorrect = "registrar_cannot_correct", 403, "a registrar registers new releases only";
    RegistrarCannotWithdraw = "registrar_cannot_withdraw", 403, "a registrar withdraws only what no one has signed, rebuilt or objected to";
    ChangeBlocked = "change_blocked", 403, "the operator has blocked changes of the key, the host or the project";
    ReadOnlyMirror = "read_only_mirror", 403, "this is a mirror; the message names the server to ask";

    // What is not there.
    NoSuchRoute = "no_such_route", 404, "the server has no such route";
    NoSuchPage = "no_such_page", 404, "the server has no such page, or nothing to show on it";
    FileNotFound = "file_not_found", 404, "no file is at the path";
    NoSignersFile = "no_signers_file", 404, "no signers file is at the path or above it";
    UnknownCommit = "unknown_commit", 404, "the commit to go on from is not in the history of this server";
    CommitNotKept = "commit_not_kept", 404, "the event to go on from is not among the newest";
    NoLog = "no_log", 404, "this server keeps no log";
    NoSuchTile = "no_such_tile", 404, "the log has no such tile, or does not cover it yet";
    NoSuchRelease = "no_such_release", 404, "the path is not that of a release of this server";
    StillCollecting = "still_collecting", 404, "the release still collects signatures, so it is not in the log";
    NotLoggedYet = "not_logged_yet", 404, "the release is complete, and not in the log yet";

    // How it is asked.
    WrongMethod = "wrong_method", 405, "the route does not have this method";
    BodyTooSlow = "body_too_slow", 408, "the body did not arrive in time";

    // What is in the way.
    ProjectRegistered = "project_registered", 409, "the project is registered already";
    RegistrationPending = "registration_pending", 409, "the registration of the project waits for signatures";
    ProjectOverlaps = "project_overlaps", 409, "the project would lie inside or around another one";
    OtherUpdatePending = "other_update_pending", 409, "another proposal is pending, and the caller is neither admin nor master";
    MastersUpdatePending = "masters_update_pending", 409, "a master has a part in the pending proposal, and the caller is no master";
    Vetoed = "vetoed", 409, "the masters have vetoed this signers file";
    HistoryFull = "history_full", 409, "the signers history would be too large with this signers file";
    TooManyRegistrations = "too_many_registrations", 409, "too many registrations of the host or owner wait for signatures";
    TooManyProposals = "too_many_proposals", 409, "too many proposals of the project were replaced";
    AlreadySigned = "already_signed", 409, "the key has signed this already";
    AlreadyComplete = "already_complete", 409, "the file has all signatures: it can be neither signed nor withdrawn";
    ReleaseRegistered = "release_registered", 409, "a release is there already: complete, revoked or with the same content";
    TooManyReleases = "too_many_releases", 409, "too many releases of the project wait for signatures";
    AlreadyWithdrawn = "already_withdrawn", 409, "the release was withdrawn already";
    Corrected = "corrected", 409, "the release was corrected: it no longer has the digest in `subject_digest`";
    Revoked = "revoked", 409, "the release is revoked";
    NotLater = "not_later", 409, "the key said something later about the release";
    NoObjection = "no_objection", 409, "the key has no objection that it could take back";
    OtherRelease = "other_release", 409, "the rebuild is of another release";
    AlreadyStated = "already_stated", 409, "the release is complete, so the builder can only add files to what it has stated";
    TooManyObjections = "too_many_objections", 409, "the release has as many objections as it can have";
    NotComplete = "not_complete", 409, "the release to revoke is not fully signed";
    OtherRevocationPending = "other_revocation_pending", 409, "another revocation is pending: join that one";
    FirstRegistration = "first_registration", 409, "a first registration cannot be vetoed";
    OtherProposal = "other_proposal", 409, "the veto is about another proposal";
    TooLate = "too_late", 409, "the proposed signers are due already";
    OtherVetoPending = "other_veto_pending", 409, "another veto is pending: join that one";
    PathTaken = "path_taken", 409, "a file would lie where a directory is, or the reverse";
    ChangeTooLarge = "change_too_large", 409, "the change has more bytes than nodes can share: fewer releases must wait for signatures";

    // How much it is.
    BodyTooLarge = "body_too_large", 413, "the body is too large";
    RateLimited = "rate_limited", 429, "too many requests from this address or of this key";
    BudgetUsedUp = "budget_used_up", 429, "the project, its owner, its host or the server has stored too much";
    TooManyRotations = "too_many_rotations", 429, "the signers of the project were changed too often within a day";
    HeadTooLarge = "head_too_large", 431, "the head of the request is too large";

    // What the server could not do.
    InternalError = "internal_error", 500, "the server failed: a fault of the program";
    StorageFailed = "storage_failed", 500, "the server cannot read or write what it stores";
    UpstreamMissing = "upstream_missing", 500, "a file or release that the server had to fetch is not there";
    UpstreamUnreachable = "upstream_unreachable", 500, "what the server had to fetch did not come";
    UpstreamInvalid = "upstream_invalid", 500, "what the server fetched is invalid";
    Busy = "busy", 503, "too many requests wait, or this one had to make room for others";
    TooManyListeners = "too_many_listeners", 503, "too many others listen to events";
    TooManyFollowers = "too_many_followers", 503, "too many others follow the journal";
    Starting = "starting", 503, "the server has just started and still reads what is stored";
    NotReady = "not_ready", 503, "the server accepts no changes; the message says why";
    ClockWrong = "clock_wrong", 503, "the clock of the server or witness is wrong, and nothing is changed meanwhile";
    ClockSet = "clock_set", 503, "the server's clock was set while the request waited: sign it again";
    DatabaseUnreachable = "database_unreachable", 503, "the node cannot reach its database, and nothing was changed";
    OutcomeUnknown = "outcome_unknown", 503, "the node lost its database, and the change can have been made: look before you try again";
    NodeHalted = "node_halted", 503, "the node has stopped following the others";
    LogCatchingUp = "log_catching_up", 503, "the log still catches up with what is stored";
    LogNotCosigned = "log_not_cosigned", 503, "no checkpoint of the log has enough cosignatures yet";
    LogStopped = "log_stopped", 503, "the log has stopped, until the operator helps";
    DiskFull = "disk_full", 507, "the server's disk is full, and nothing was changed";

    // Of logs and their witnesses.
    InvalidCheckpoint = "invalid_checkpoint", 400, "what the log sent to the witness is malformed or contradicts itself";
    WitnessClockAhead = "witness_clock_ahead", 400, "the clock of the witness is ahead, so its cosignature is refused";
    CheckpointNotSigned = "checkpoint_not_signed", 403, "the checkpoint is not signed by its log";
    WitnessStopped = "witness_stopped", 403, "the witness cosigns nothing more of the log until its operator decides";
    InvalidCosignature = "invalid_cosignature", 403, "the cosignature does not verify";
    UnknownWitness = "unknown_witness", 403, "no cosignature is by a witness that the log knows";
    NoWitness = "no_witness", 404, "this server is not a witness";
    NothingCosigned = "nothing_cosigned", 404, "the witness has cosigned no checkpoint of such a log";
    UnknownLog = "unknown_log", 404, "the witness does not know the log";
    OtherLogSize = "other_log_size", 409, "the newest checkpoint that the witness has seen has another size";
    CheckpointNotWaiting = "checkpoint_not_waiting", 409, "no checkpoint of this size waits for witnesses";
    InvalidConsistencyProof = "invalid_consistency_proof", 422, "the proof does not lead from the checkpoint that the witness has seen to this one";
    LogForked = "log_forked", 422, "the witness knows another root for the same commits";
    SignerFailed = "signer_failed", 500, "the key of the witness cannot sign";
    WitnessNotReady = "witness_not_ready", 503, "the witness has not replayed as much, or does not know its log yet";
    CheckpointWithheld = "checkpoint_withheld", 503, "the journal of the log has more commits than its checkpoint";
}

impl ErrorCode {
    /// Parses a code; `None` for one of another version.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.name() == name)
    }

    /// Whether a text could be a code, of this version or of another one.
    pub(crate) fn is_well_formed(text: &str) -> bool {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        (1..=MAX_CHARS).contains(&text.len()) && text.bytes().all(is_plain)
    }
}
