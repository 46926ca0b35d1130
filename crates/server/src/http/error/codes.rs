//! The one mapping from refusals and failures to their codes. Each code has its status (spec §7, D25, D30, D230).

use countersign_api::error_code::ErrorCode;
use countersign_cluster::node::WrongNodeClock;
use countersign_core::documents::statement::StatementKind;
use countersign_core::rules::auth::{AuthRefusal, Overtaken};
use countersign_core::rules::decide::{
    assets::AssetsRefusal, proposal::ProposalFault, register::RegisterRefusal, sign::SignRefusal,
    statement::StatementRefusal, update::UpdateRefusal, withdraw::WithdrawRefusal,
};
use countersign_core::rules::{chain::ChainRefusal, snapshot::ReadError, stored::StatusRefusal};
use countersign_core::values::{json::ParseError, path::PathError};
use countersign_forge::checksums::{ChecksumsError, TooManyFiles};
use countersign_forge::{fetch::FetchError, url::UrlRefusal};
use countersign_log::{AskedTooOften, CosignError, CosignRefusal, NoStaple, NoTile};
use countersign_store::{StoreError, nonces::NonceError};

use crate::follow::mirror::state::NotTheOrigin;
use crate::http::error::{ApiError, NotReady};
use crate::http::{blocks::ChangeBlocked, upstream::releases::DownloadError};
use crate::limits::{Limited, semaphore::GaveWay, semaphore::NoPermit};
use crate::metrics::{Severity, UpstreamFault};

/// The message if the disk fails. Only the log names the file.
const NOTHING_STORED: &str = "the server cannot store anything at the moment, so nothing was changed: its disk may be full. Its log says why; \
     try again later";

/// Gives each of these errors one code for all its cases.
macro_rules! refused_with {
    ($($code:ident: $($error:ty),+;)+) => {$($(
        impl From<$error> for ApiError {
            fn from(error: $error) -> Self {
                Self::refused(ErrorCode::$code, &error)
            }
        }
    )+)+};
}

refused_with! {
    Busy: GaveWay;
    ChangeBlocked: ChangeBlocked;
    ClockSet: Overtaken;
    ClockWrong: WrongNodeClock;
    InvalidBody: ParseError;
    NotReady: NotReady;
    ReadOnlyMirror: NotTheOrigin;
    UrlRefused: UrlRefusal;
}

/// Invalid content from a forge is the forge's fault, not the caller's: 500 (D25). The log gets the causes as well.
macro_rules! invalid_upstream {
    ($($error:ty),+) => {$(
        impl From<$error> for ApiError {
            fn from(error: $error) -> Self {
                Self::upstream(UpstreamFault::Invalid, error.to_string()).because(error)
            }
        }
    )+};
}

invalid_upstream!(ChecksumsError, TooManyFiles);

impl From<ReadError> for ApiError {
    fn from(error: ReadError) -> Self {
        Self::refused(ErrorCode::StorageFailed, &error).because(error)
    }
}

impl From<NonceError> for ApiError {
    fn from(error: NonceError) -> Self {
        match error {
            NonceError::Used => Self::new(ErrorCode::NonceUsed, "the nonce was used before"),
            NonceError::Forgotten => Self::new(
                ErrorCode::NonceForgotten,
                "the server no longer knows whether this nonce was used before, because its clock was wrong for a while. \
                 Sign the request again. If that is refused as well, the operator can help (docs/operations.md, The clock)",
            ),
            NonceError::Busy => Self::BUSY.into(),
            error if error.is_disk_full() => Self::from(Self::DISK_FULL).because(error),
            error @ NonceError::Unavailable(_) => {
                Self::new(ErrorCode::StorageFailed, NOTHING_STORED).because(error)
            }
        }
    }
}

/// One who asks too often is told when to come back, and fills no log.
macro_rules! too_often {
    ($($error:ty),+) => {$(
        impl From<$error> for ApiError {
            fn from(error: $error) -> Self {
                let refused = Self::refused(ErrorCode::RateLimited, &error).retry_after(error.seconds);
                Self { severity: Severity::Flood, ..refused }
            }
        }
    )+};
}

too_often!(Limited, AskedTooOften);

impl From<NoPermit> for ApiError {
    fn from(_: NoPermit) -> Self {
        Self::BUSY.into()
    }
}

impl From<PathError> for ApiError {
    fn from(error: PathError) -> Self {
        Self::new(ErrorCode::InvalidPath, format!("Invalid path: {error}"))
    }
}

impl From<FetchError> for ApiError {
    fn from(error: FetchError) -> Self {
        if error.is_refused_as_given() {
            return Self::refused(ErrorCode::UrlRefused, &error);
        }
        Self::upstream(UpstreamFault::from(&error), error.to_string()).because(error)
    }
}

impl From<DownloadError> for ApiError {
    fn from(error: DownloadError) -> Self {
        let told = match &error {
            DownloadError::Release(release) if release.is_refused_as_given() => {
                return Self::refused(ErrorCode::UrlRefused, &error);
            }
            DownloadError::Busy => return Self::BUSY.into(),
            DownloadError::GaveWay => return GaveWay.into(),
            DownloadError::Release(release) => {
                Self::upstream(UpstreamFault::from(release.as_ref()), error.to_string())
            }
            DownloadError::TimedOut(_) => Self::upstream(UpstreamFault::Unreachable, error.to_string()),
            DownloadError::Ended => Self::refused(ErrorCode::InternalError, &error),
        };
        told.because(error)
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        const NOT_COMMITTED: &str = "the change could not be committed to the repository";
        let told = match &error {
            StoreError::Busy => return Self::BUSY.into(),
            StoreError::Conflict { path } => {
                let message = format!("{path} is a file where a directory is needed, or the reverse");
                return Self::new(ErrorCode::PathTaken, message);
            }
            StoreError::TooLargeToShare { .. } => return Self::refused(ErrorCode::ChangeTooLarge, &error),
            StoreError::OverBudget(over) => {
                return Self::refused(ErrorCode::BudgetUsedUp, over).retry_after(over.seconds);
            }
            StoreError::Unconfirmed(_) => return Self::unknown_outcome(error),
            StoreError::Unordered(_) => return Self::no_database(error),
            StoreError::Halted(_) => return Self::refused(ErrorCode::NodeHalted, &error),
            StoreError::ClockBehind { .. } => {
                return Self::refused(ErrorCode::ClockWrong, &error).retry_after(60);
            }
            StoreError::WrongClock { .. } => return Self::refused(ErrorCode::ClockWrong, &error),
            full if full.is_disk_full() => Self::DISK_FULL.into(),
            StoreError::Io(_) => Self::new(ErrorCode::StorageFailed, NOTHING_STORED),
            // A rule should have refused both earlier.
            StoreError::Illegal(_) | StoreError::TooLarge { .. } => {
                Self::refused(ErrorCode::InternalError, &error)
            }
            StoreError::Corrupt { .. } => Self::new(ErrorCode::StorageFailed, NOT_COMMITTED),
            StoreError::Panicked | StoreError::Closed => Self::new(ErrorCode::InternalError, NOT_COMMITTED),
        };
        told.because(error)
    }
}

impl From<ProposalFault> for ApiError {
    fn from(fault: ProposalFault) -> Self {
        match fault {
            ProposalFault::NotTheCaller => Self::refused(ErrorCode::KeyNotCaller, &fault),
            ProposalFault::TimestampAhead(_) => Self::refused(ErrorCode::TimestampAhead, &fault),
            // Invalid content from a forge is the forge's fault, not the caller's (D25).
            ProposalFault::InvalidSigners { .. } => {
                Self::upstream(UpstreamFault::Invalid, fault.to_string()).because(fault)
            }
        }
    }
}

/// The code of each case. After `!` stand the words for the caller where only the log may say why. A case that holds a
/// failure becomes what the failure becomes.
macro_rules! refusals {
    ($($refusal:ident {
        $($code:ident: $cases:pat,)+
        $(! $hidden:ident $message:literal: $hiding:pat,)*
        => $($failed:ident)|*
    })+) => {$(
        impl From<$refusal> for ApiError {
            fn from(refusal: $refusal) -> Self {
                use $refusal as R;
                let code = match refusal {
                    $($cases => ErrorCode::$code,)+
                    $($hiding => return Self::new(ErrorCode::$hidden, $message).because(refusal),)*
                    $(R::$failed(error) => return error.into(),)*
                };
                Self::refused(code, &refusal)
            }
        }
    )+};
}

refusals! {
    AuthRefusal {
        AuthHeaderInvalid: R::TimestampFormat | R::TimestampNotCanonical(_) | R::NonceFormat | R::PublicKey(_) | R::SignatureFormat,
        RequestTooOld: R::TooOld,
        RequestAhead: R::TooFarAhead,
        RequestSignatureInvalid: R::BadSignature,
        =>
    }
    RegisterRefusal {
        ProjectRegistered: R::AlreadyRegistered(_),
        RegistrationPending: R::InProgress(_),
        ProjectOverlaps: R::Overlaps { .. },
        KeyNotListed: R::NotListed(_),
        => Fault | Stored
    }
    UpdateRefusal {
        ProjectNotRegistered: R::NotRegistered(_),
        ProjectNotActive: R::NotActive(_),
        KeyNotListed: R::NotListed { .. },
        TimestampNotLater: R::TimestampNotLater { .. },
        OtherUpdatePending: R::OtherPending(_),
        MastersUpdatePending: R::MastersPending(_),
        Vetoed: R::Vetoed { .. },
        HistoryFull: R::HistoryFull { .. },
        => Fault | Stored
    }
    SignRefusal {
        SignatureMissing: R::MissingPrimary(_) | R::MissingMetadata(_),
        UnexpectedSignature: R::UnexpectedPath(_),
        NothingToSign: R::NotFound(_),
        NotSignable: R::NotSignable(_),
        InvalidSignature: R::BadSignature(_),
        OtherFormatImpossible: R::FormatsOfSigners(_) | R::NoSums { .. },
        OtherFormatInvalid: R::BadFormat { .. },
        OtherFormatsTooLarge: R::FormatsTooLarge(_),
        MayNotSign: R::NotAllowed { .. },
        AlreadyComplete: R::AlreadyComplete(_),
        Revoked: R::Revoked(_),
        AlreadySigned: R::AlreadySigned(_),
        => Stored
    }
    AssetsRefusal {
        ProjectNotRegistered: R::NoSigners(_),
        NotASigner: R::NotASigner { .. },
        RegistrarCannotCorrect: R::RegistrarCannotCorrect { .. },
        ReleaseRegistered: R::AlreadyRegistered(_),
        TooManyReleases: R::TooManyCollecting { .. } | R::NoRoomToRotate { .. },
        => Stored
    }
    WithdrawRefusal {
        FileNotFound: R::NotFound(_),
        NotWithdrawable: R::NotWithdrawable(_),
        MayNotWithdraw: R::NotAllowed { .. },
        RegistrarCannotWithdraw: R::RegistrarCannotWithdraw { .. },
        AlreadyWithdrawn: R::AlreadyWithdrawn(_),
        AlreadyComplete: R::Complete(_),
        Revoked: R::Revoked(_),
        Corrected: R::OtherIndex(_),
        => Stored
    }
    StatementRefusal {
        FileNotFound: R::NotFound(_),
        NotRevocable: R::NotRevocable(_),
        NotVetoable: R::NotVetoable(_),
        NotARelease: R::NotARelease(_) | R::NotRebuildable(_),
        NotComplete: R::NotComplete(_),
        AlreadyRevoked: R::AlreadyRevoked(_),
        Revoked: R::Revoked(_) | R::NotRebuiltAnyMore(_),
        FirstRegistration: R::FirstRegistration(_),
        NoMasters: R::NoMasters(_),
        InvalidDocument: R::InvalidDocument { .. },
        DigestMismatch: R::DigestMismatch(_),
        OtherProposal: R::OtherProposal(_),
        Corrected: R::OtherIndex(_),
        InvalidSignature: R::BadSignature(_),
        MayNotRevoke: R::MayNotRevoke { .. },
        MayNotVeto: R::MayNotVeto { .. },
        NotASigner: R::NotASigner { .. },
        KeyNotCaller: R::NotCaller,
        SubjectDigestRequired: R::SubjectDigestRequired,
        NotInitiator: R::NotInitiator,
        TooLate: R::TooLate { .. },
        OtherRevocationPending: R::OtherPending { kind: StatementKind::Revocation, .. },
        // Objections and rebuilds do not wait for one another.
        OtherVetoPending: R::OtherPending {
            kind: StatementKind::Veto | StatementKind::Objection | StatementKind::Rebuild, ..
        },
        AlreadySigned: R::AlreadySigned(_),
        TimestampAhead: R::TimestampAhead { .. },
        NotLater: R::NotLater { .. },
        NoObjection: R::NothingToTakeBack(_),
        TooManyObjections: R::Full(_),
        OtherRelease: R::OtherRelease { .. },
        NotABuilder: R::NotABuilder { .. } | R::NotABuilderThen { .. },
        NotComparable: R::NotComparable { .. },
        AlreadyStated: R::AlreadyStated(_),
        => Stored
    }
    StatusRefusal {
        FileNotFound: R::NotFound(_),
        NoSignersFile: R::NoSigners(_),
        NotASigner: R::NotASigner { .. },
        => Stored
    }
    ChainRefusal {
        NotSigned: R::NotSigned(_),
        => Stored
    }
    NoStaple {
        NoSuchRelease: R::Unknown(_),
        StillCollecting: R::Collecting(_),
        // The next checkpoint can have it.
        NotLoggedYet: R::NotLogged { .. },
        LogCatchingUp: R::CatchingUp,
        LogNotCosigned: R::NotCosigned,
        // The reason can name a file of this server.
        ! LogStopped "the log of this server has stopped; its operator finds the reason in the server's log": R::Stopped(_),
        ! StorageFailed "the staple cannot be made": R::Unreadable(_) | R::OtherIndex(_),
        =>
    }
    NoTile {
        NoSuchTile: R::NotCovered,
        LogCatchingUp: R::CatchingUp,
        ! StorageFailed "the tile cannot be read": R::Unreadable(_),
        =>
    }
    // The codes follow c2sp.org/tlog-witness.
    CosignRefusal {
        InvalidCheckpoint: R::Malformed(_) | R::OldIsLarger { .. },
        CheckpointNotSigned: R::NotSigned(_),
        WitnessStopped: R::Stopped(_),
        UnknownLog: R::UnknownLog(_),
        OtherLogSize: R::OtherSize(_),
        InvalidConsistencyProof: R::BadProof,
        LogForked: R::OtherRoot(_),
        WitnessNotReady: R::NotReplayed { .. } | R::NotKnownYet,
        CheckpointWithheld: R::Withheld { .. },
        ClockWrong: R::ClockBehind { .. },
        ! StorageFailed "this witness cannot record the checkpoint": R::Memory(_),
        ! SignerFailed "the key of this witness cannot sign": R::Signer(_),
        => TooOften
    }
    CosignError {
        CheckpointNotWaiting: R::NotWaiting(_),
        InvalidCosignature: R::Note(_),
        UnknownWitness: R::UnknownWitness,
        WitnessClockAhead: R::Ahead(_),
        ! StorageFailed "the cosignature cannot be kept": R::Keep(_) | R::Memory(_),
        =>
    }
}
