//! The one mapping from refusals and failures to status codes (spec §7, D25, D30).

use axum::http::StatusCode;
use countersign_cluster::clock_check::WrongNodeClock;
use countersign_core::{
    rules::{
        auth::{AuthRefusal, Overtaken},
        chain::ChainRefusal,
        decide::{
            ProposalFault, assets::AssetsRefusal, object::ObjectRefusal, register::RegisterRefusal,
            revoke::RevokeRefusal, sign::SignRefusal, update::UpdateRefusal, veto::VetoRefusal,
            withdraw::WithdrawRefusal,
        },
        query::StatusRefusal,
        snapshot::ReadError,
    },
    values::{json::ParseError, path::PathError},
};
use countersign_forge::{
    checksums::file::{ChecksumsError, TooManyFiles},
    fetch::FetchError,
    url::UrlRefusal,
};
use countersign_log::{CosignError, CosignRefusal, NoStaple, NoTile};
use countersign_store::{StoreError, nonces::NonceError};

use super::ApiError;
use crate::{
    blocks::ChangeBlocked,
    gravity::{Gravity, UpstreamFault},
    health::NotReady,
    limits::{
        Limited,
        caps::CapRefusal,
        places::{GaveWay, NoPlace},
    },
    mirror::state::NotTheOrigin,
    upstream::{UpstreamError, releases::DownloadError},
};

/// For a disk that fails. Only the log names the file.
const NOTHING_STORED: &str = "the server cannot store anything at the moment, so nothing was changed: its disk may be full. Its log says why; \
     try again later";

/// The same status for every case.
macro_rules! refused_with {
    ($($status:ident: $($error:ty),+;)+) => {$($(
        impl From<$error> for ApiError {
            fn from(error: $error) -> Self {
                Self::refused(StatusCode::$status, &error)
            }
        }
    )+)+};
}

refused_with! {
    UNAUTHORIZED: AuthRefusal;
    FORBIDDEN: ChangeBlocked, NotTheOrigin;
    SERVICE_UNAVAILABLE: NotReady;
    BAD_REQUEST: ParseError, UrlRefusal;
}

/// Invalid content from a forge is the forge's fault, not the caller's: 500 (D25). The log gets the causes as well.
macro_rules! invalid_upstream {
    ($($error:ty),+) => {$(
        impl From<$error> for ApiError {
            fn from(error: $error) -> Self {
                Self::internal(error.to_string(), error).blaming(UpstreamFault::Invalid)
            }
        }
    )+};
}

invalid_upstream!(ChecksumsError, TooManyFiles);

impl From<ReadError> for ApiError {
    fn from(error: ReadError) -> Self {
        Self::internal(error.to_string(), error)
    }
}

impl From<NonceError> for ApiError {
    fn from(error: NonceError) -> Self {
        match error {
            NonceError::Used => Self::unauthorized("the nonce was used before"),
            NonceError::Forgotten => Self::unauthorized(
                "the server no longer knows whether this nonce was used before, because its clock was wrong for a while. \
                 Sign the request again. If that is refused as well, the operator can help (docs/operations.md, The clock)",
            ),
            NonceError::Busy => Self::busy(),
            error if error.is_disk_full() => Self::disk_full().because(error),
            error @ NonceError::Unavailable(_) => Self::internal(NOTHING_STORED, error),
        }
    }
}

impl From<Limited> for ApiError {
    fn from(limited: Limited) -> Self {
        let refused = Self::refused(StatusCode::TOO_MANY_REQUESTS, &limited).retry_after(limited.seconds);
        Self { gravity: Gravity::Flood, ..refused }
    }
}

impl From<NoPlace> for ApiError {
    fn from(_: NoPlace) -> Self {
        Self::busy()
    }
}

impl From<GaveWay> for ApiError {
    fn from(gave_way: GaveWay) -> Self {
        Self::refused(StatusCode::SERVICE_UNAVAILABLE, &gave_way).retry_after(1)
    }
}

impl From<WrongNodeClock> for ApiError {
    fn from(wrong: WrongNodeClock) -> Self {
        Self::refused(StatusCode::SERVICE_UNAVAILABLE, &wrong).retry_after(5)
    }
}

impl From<Overtaken> for ApiError {
    fn from(overtaken: Overtaken) -> Self {
        Self::refused(StatusCode::SERVICE_UNAVAILABLE, &overtaken).retry_after(1)
    }
}

impl From<PathError> for ApiError {
    fn from(error: PathError) -> Self {
        Self::bad_request(format!("Invalid path: {error}"))
    }
}

impl From<FetchError> for ApiError {
    fn from(error: FetchError) -> Self {
        if error.is_refused_as_given() {
            return Self::refused(StatusCode::BAD_REQUEST, &error);
        }
        let fault = UpstreamFault::from(&error);
        Self::internal(error.to_string(), error).blaming(fault)
    }
}

impl From<UpstreamError> for ApiError {
    fn from(error: UpstreamError) -> Self {
        match error {
            UpstreamError::Busy => Self::busy(),
            UpstreamError::GaveWay(gave_way) => gave_way.into(),
            UpstreamError::Fetch(error) => error.into(),
            UpstreamError::Download(error) => error.into(),
            UpstreamError::Missing(url) => Self::missing_upstream(&url),
        }
    }
}

impl From<DownloadError> for ApiError {
    fn from(error: DownloadError) -> Self {
        match &error {
            DownloadError::Release(release) if release.is_refused_as_given() => {
                Self::refused(StatusCode::BAD_REQUEST, &error)
            }
            DownloadError::Busy => Self::busy(),
            DownloadError::GaveWay => GaveWay.into(),
            DownloadError::Release(_) | DownloadError::TimedOut(_) | DownloadError::Ended => {
                let gravity = Gravity::from(&error);
                Self { gravity, ..Self::internal(error.to_string(), error) }
            }
        }
    }
}

impl From<NoStaple> for ApiError {
    fn from(error: NoStaple) -> Self {
        match &error {
            NoStaple::Unknown(_) | NoStaple::Collecting(_) => Self::refused(StatusCode::NOT_FOUND, &error),
            // The next checkpoint can have it.
            NoStaple::NotLogged { .. } => Self::refused(StatusCode::NOT_FOUND, &error).retry_after(5),
            NoStaple::CatchingUp => Self::no_log_yet(),
            NoStaple::NotCosigned => Self::refused(StatusCode::SERVICE_UNAVAILABLE, &error).retry_after(30),
            // The reason can name a file of this server.
            NoStaple::Stopped(_) => {
                let message =
                    "the log of this server has stopped; its operator finds the reason in the server's log";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, message).retry_after(60).because(error)
            }
            NoStaple::Unreadable(_) | NoStaple::OtherIndex(_) => {
                Self::internal("the staple cannot be made", error)
            }
        }
    }
}

/// As c2sp.org/tlog-witness says.
impl From<CosignRefusal> for ApiError {
    fn from(error: CosignRefusal) -> Self {
        match &error {
            CosignRefusal::Malformed(_) | CosignRefusal::OldIsLarger { .. } => {
                Self::refused(StatusCode::BAD_REQUEST, &error)
            }
            CosignRefusal::NotSigned(_) | CosignRefusal::Stopped(_) => {
                Self::refused(StatusCode::FORBIDDEN, &error)
            }
            CosignRefusal::UnknownLog(_) => Self::refused(StatusCode::NOT_FOUND, &error),
            CosignRefusal::OtherSize(_) => Self::refused(StatusCode::CONFLICT, &error),
            CosignRefusal::BadProof | CosignRefusal::OtherRoot(_) => {
                Self::refused(StatusCode::UNPROCESSABLE_ENTITY, &error)
            }
            CosignRefusal::NotReplayed { .. }
            | CosignRefusal::Withheld { .. }
            | CosignRefusal::NotKnownYet
            | CosignRefusal::ClockBehind { .. } => {
                Self::refused(StatusCode::SERVICE_UNAVAILABLE, &error).retry_after(5)
            }
            CosignRefusal::Memory(_) => Self::internal("this witness cannot record the checkpoint", error),
            CosignRefusal::Signer(_) => Self::internal("the key of this witness cannot sign", error),
        }
    }
}

impl From<CosignError> for ApiError {
    fn from(error: CosignError) -> Self {
        match &error {
            CosignError::NotWaiting(_) => Self::refused(StatusCode::CONFLICT, &error),
            CosignError::Note(_) | CosignError::UnknownWitness => {
                Self::refused(StatusCode::FORBIDDEN, &error)
            }
            CosignError::Ahead(_) => Self::refused(StatusCode::BAD_REQUEST, &error),
            CosignError::Keep(_) | CosignError::Memory(_) => {
                Self::internal("the cosignature cannot be kept", error)
            }
        }
    }
}

impl From<NoTile> for ApiError {
    fn from(error: NoTile) -> Self {
        match error {
            NoTile::NotCovered => Self::refused(StatusCode::NOT_FOUND, &error),
            NoTile::CatchingUp => Self::no_log_yet(),
            NoTile::Unreadable(_) => Self::internal("the tile cannot be read", error),
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let message = match &error {
            StoreError::Busy => return Self::busy(),
            StoreError::Conflict { path } => {
                let message = format!("{path} is a file where a directory is needed, or the reverse");
                return Self::new(StatusCode::CONFLICT, message);
            }
            StoreError::TooLargeToShare { .. } => return Self::refused(StatusCode::CONFLICT, &error),
            StoreError::OverBudget(over) => {
                return Self::refused(StatusCode::TOO_MANY_REQUESTS, over).retry_after(over.seconds);
            }
            StoreError::Unconfirmed(_) => return Self::unknown_outcome(error),
            StoreError::Unordered(_) => return Self::no_database(error),
            StoreError::Halted(_) => {
                return Self::refused(StatusCode::SERVICE_UNAVAILABLE, &error).retry_after(60);
            }
            StoreError::ClockBehind { .. } => {
                return Self::refused(StatusCode::SERVICE_UNAVAILABLE, &error).retry_after(60);
            }
            StoreError::WrongClock { .. } => {
                return Self::refused(StatusCode::SERVICE_UNAVAILABLE, &error).retry_after(5);
            }
            StoreError::Illegal(_) => return Self::internal(error.to_string(), error),
            StoreError::Io(disk) if disk.is_full() => return Self::disk_full().because(error),
            StoreError::Io(_) => NOTHING_STORED,
            // A rule should have refused this earlier.
            StoreError::TooLarge { .. } => return Self::internal(error.to_string(), error),
            StoreError::Corrupt { .. } | StoreError::Panicked | StoreError::Closed => {
                "the change could not be committed to the repository"
            }
        };
        Self::internal(message, error)
    }
}

impl From<ProposalFault> for ApiError {
    fn from(fault: ProposalFault) -> Self {
        match fault {
            ProposalFault::NotTheCaller | ProposalFault::TimestampAhead(_) => {
                Self::refused(StatusCode::BAD_REQUEST, &fault)
            }
            // Invalid content from a forge is the forge's fault, not the caller's (D25).
            ProposalFault::InvalidSigners { .. } => {
                Self::internal(fault.to_string(), fault).blaming(UpstreamFault::Invalid)
            }
        }
    }
}

impl From<CapRefusal> for ApiError {
    fn from(refusal: CapRefusal) -> Self {
        match refusal {
            CapRefusal::Registrations { .. }
            | CapRefusal::Superseded { .. }
            | CapRefusal::SupersededBytes { .. } => Self::refused(StatusCode::CONFLICT, &refusal),
            CapRefusal::Rotations { wait_seconds, .. } => {
                Self::refused(StatusCode::TOO_MANY_REQUESTS, &refusal).retry_after(wait_seconds)
            }
            CapRefusal::Stored(error) => error.into(),
        }
    }
}

/// The status of each case. A case that holds a failure becomes what the failure becomes.
macro_rules! refusals {
    ($($refusal:ident { $($status:ident: $cases:pat,)+ => $($failed:ident)|+ })+) => {$(
        impl From<$refusal> for ApiError {
            fn from(refusal: $refusal) -> Self {
                use $refusal as R;
                let status = match refusal {
                    $($cases => StatusCode::$status,)+
                    $(R::$failed(error) => return error.into(),)+
                };
                Self::refused(status, &refusal)
            }
        }
    )+};
}

refusals! {
    RegisterRefusal {
        CONFLICT: R::AlreadyRegistered(_) | R::InProgress(_) | R::Overlaps { .. },
        BAD_REQUEST: R::NotListed(_),
        => Fault | Stored
    }
    UpdateRefusal {
        BAD_REQUEST: R::NotRegistered(_) | R::NotActive(_) | R::NotListed { .. } | R::TimestampNotLater { .. },
        CONFLICT: R::OtherPending(_) | R::MastersPending(_) | R::Vetoed { .. } | R::HistoryFull { .. },
        => Fault | Stored
    }
    SignRefusal {
        BAD_REQUEST: R::MissingPrimary(_) | R::MissingMetadata(_) | R::UnexpectedPath(_) | R::NotFound(_)
            | R::NotSignable(_) | R::BadSignature(_) | R::FormatsOfSigners(_) | R::NoSums { .. }
            | R::BadFormat { .. } | R::FormatsTooLarge(_),
        FORBIDDEN: R::NotAllowed { .. },
        CONFLICT: R::AlreadyComplete(_) | R::Revoked(_) | R::AlreadySigned(_),
        => Stored
    }
    AssetsRefusal {
        BAD_REQUEST: R::NoSigners(_),
        FORBIDDEN: R::NotASigner { .. } | R::RegistrarCannotCorrect { .. },
        CONFLICT: R::AlreadyRegistered(_) | R::TooManyCollecting { .. } | R::NoRoomToRotate { .. },
        => Stored
    }
    WithdrawRefusal {
        NOT_FOUND: R::NotFound(_),
        BAD_REQUEST: R::NotWithdrawable(_),
        FORBIDDEN: R::NotAllowed { .. } | R::RegistrarCannotWithdraw { .. },
        CONFLICT: R::AlreadyWithdrawn(_) | R::Complete(_) | R::Revoked(_) | R::OtherIndex(_),
        => Stored
    }
    ObjectRefusal {
        NOT_FOUND: R::NotFound(_),
        BAD_REQUEST: R::NotARelease(_) | R::InvalidDocument(_) | R::BadSignature | R::TimestampAhead(_),
        FORBIDDEN: R::NotASigner { .. },
        CONFLICT: R::Revoked(_) | R::OtherIndex(_) | R::NotLater { .. } | R::NothingToTakeBack(_) | R::Full(_),
        => Stored
    }
    RevokeRefusal {
        NOT_FOUND: R::NotFound(_),
        CONFLICT: R::NotComplete(_) | R::OtherPending { .. } | R::AlreadySigned(_),
        BAD_REQUEST: R::NotRevocable(_) | R::AlreadyRevoked(_) | R::InvalidDocument(_) | R::DigestMismatch(_)
            | R::BadSignature | R::NotAuthorised { .. } | R::NotCaller | R::SubjectDigestRequired
            | R::NotInitiator,
        => Stored
    }
    VetoRefusal {
        NOT_FOUND: R::NotFound(_),
        FORBIDDEN: R::NoMasters(_) | R::NotAuthorised { .. },
        CONFLICT: R::FirstRegistration(_) | R::OtherProposal(_) | R::TooLate { .. } | R::OtherPending { .. }
            | R::AlreadySigned(_),
        BAD_REQUEST: R::NotVetoable(_) | R::InvalidDocument(_) | R::BadSignature,
        => Stored
    }
    StatusRefusal {
        NOT_FOUND: R::NotFound(_) | R::NoSigners(_),
        FORBIDDEN: R::NotASigner { .. },
        => Stored
    }
    ChainRefusal {
        BAD_REQUEST: R::NotSigned(_),
        => Stored
    }
}
