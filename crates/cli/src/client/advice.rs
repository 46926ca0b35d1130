//! The next step after an error of a server. It depends on the code, and never on the words of a message (D230).

#[cfg(test)]
mod tests;

use countersign_api::error_code::ErrorCode;

use crate::words::error::ErrorKind;

const CORRECT: &str = "correct what the message names";
const CHECK_KEY: &str = "check --key: only keys that the project's signers file lists for this can do it";
const CHECK_CLOCK_AND_KEY: &str = "check this computer's clock, and that --key names the right key";
const CHECK_NAME: &str = "check the name, and --server: `countersign pending` lists what waits for you";
const LOOK: &str = "`countersign status NAME` shows what is there";
const WAIT: &str = "wait as long as the message says, then run it again";
const LATER: &str = "run it again in a few minutes";
const CORRECT_FILE: &str = "correct the file that the message names, and check that the server can read it there; then run this again";
const FAILED: &str =
    "check that the server can read what the message names; if it can, give its operator the request id";
const GIVE_REQUEST_ID: &str = "give the server's operator the request id: its log says more";

/// What kind of error it is, and what to do. Without a code of this version, the status says it.
pub(super) fn advise(code: Option<ErrorCode>, status: u16) -> (ErrorKind, &'static str) {
    match code {
        Some(code) => (kind_of(code.status()), hint_of(code)),
        None => (kind_of(status), hint_of_status(status)),
    }
}

/// Whether the server failed at something that it was told to fetch.
pub(super) fn is_fetched(code: Option<ErrorCode>) -> bool {
    use ErrorCode as C;
    matches!(code, Some(C::UpstreamMissing | C::UpstreamUnreachable | C::UpstreamInvalid))
}

fn kind_of(status: u16) -> ErrorKind {
    match status {
        429 | 502..=504 => ErrorKind::Unreachable,
        _ => ErrorKind::Other,
    }
}

fn hint_of_status(status: u16) -> &'static str {
    match status {
        400 => CORRECT,
        401 => CHECK_CLOCK_AND_KEY,
        403 => CHECK_KEY,
        404 => CHECK_NAME,
        409 => LOOK,
        429 => WAIT,
        500 => FAILED,
        502..=504 => LATER,
        _ => GIVE_REQUEST_ID,
    }
}

fn hint_of(code: ErrorCode) -> &'static str {
    use ErrorCode as C;
    match code {
        C::MalformedRequest
        | C::InvalidBody
        | C::InvalidParameter
        | C::InvalidPath
        | C::IsADirectory
        | C::UrlRefused
        | C::KeyNotCaller
        | C::ProjectNotRegistered
        | C::ProjectNotActive
        | C::TimestampAhead
        | C::TimestampNotLater
        | C::InvalidDocument
        | C::InvalidSignature
        | C::SignatureMissing
        | C::UnexpectedSignature
        | C::NothingToSign
        | C::NotSignable
        | C::OtherFormatImpossible
        | C::OtherFormatInvalid
        | C::OtherFormatsTooLarge
        | C::NotSigned
        | C::NotARelease
        | C::NotWithdrawable
        | C::NotRevocable
        | C::NotVetoable
        | C::AlreadyRevoked
        | C::DigestMismatch
        | C::SubjectDigestRequired
        | C::NotInitiator
        | C::InvalidCheckpoint
        | C::WitnessClockAhead => CORRECT,
        C::AuthHeaderMissing
        | C::AuthHeaderInvalid
        | C::RequestTooOld
        | C::RequestAhead
        | C::RequestBeforeRestore
        | C::RequestSignatureInvalid
        | C::NonceUsed
        | C::NonceForgotten => CHECK_CLOCK_AND_KEY,
        C::KeyNotListed
        | C::MayNotRevoke
        | C::NotASigner
        | C::MayNotSign
        | C::MayNotWithdraw
        | C::MayNotVeto
        | C::NoMasters
        | C::RegistrarCannotCorrect
        | C::RegistrarCannotWithdraw
        | C::CheckpointNotSigned
        | C::InvalidCosignature
        | C::UnknownWitness => CHECK_KEY,
        C::ChangeBlocked | C::WitnessStopped => "ask the server's operator",
        C::ReadOnlyMirror => "a mirror is read-only: name the other server with --server URL",
        C::NoSuchRoute
        | C::NoSuchPage
        | C::FileNotFound
        | C::NoSignersFile
        | C::UnknownCommit
        | C::NoLog
        | C::NoSuchTile
        | C::NoSuchRelease
        | C::StillCollecting
        | C::NotLoggedYet
        | C::NoWitness
        | C::NothingCosigned
        | C::UnknownLog => CHECK_NAME,
        C::CommitNotKept => {
            "the server no longer keeps the events since then: look at the state, and watch without --since"
        }
        C::ProjectRegistered => {
            "nothing is left to do; `countersign update SIGNERS_URL` proposes new signers"
        }
        C::RegistrationPending => "`countersign status PROJECT` shows who has yet to sign it",
        C::ProjectOverlaps => {
            "register the project at a directory that is neither inside nor around the other one"
        }
        C::OtherUpdatePending => {
            "`countersign status PROJECT` shows the pending one: sign it, or let an admin propose yours"
        }
        C::MastersUpdatePending => {
            "`countersign status PROJECT` shows the pending one: sign it, or let a master propose yours"
        }
        C::Vetoed => "ask the masters; you can propose another file, even if only its timestamp is new",
        C::HistoryFull => "propose a signers file with fewer keys",
        C::TooManyRegistrations => "complete one of them, or ask the server's operator to drop one",
        C::TooManyProposals => {
            "complete the pending proposal (`countersign status PROJECT` shows who is missing), or let the masters stop \
             it: `countersign veto PROJECT`"
        }
        C::AlreadySigned => "nothing is left for you to do; `countersign status NAME` shows who is missing",
        C::AlreadyComplete => "nothing is left to sign; `countersign status NAME` shows who has signed",
        C::ReleaseRegistered => {
            "`countersign status NAME` shows how far it is; another version needs a tag or directory of its own"
        }
        C::TooManyReleases => "`countersign pending` lists them: sign some first",
        C::AlreadyWithdrawn => {
            "nothing is left to do; `countersign status NAME` shows who withdrew it and why"
        }
        C::Corrected => {
            "`countersign status NAME` shows the corrected release: look at it, then run this again"
        }
        C::Revoked => "do not use it; `countersign status NAME` shows the reason",
        C::NotLater => "check this computer's clock, and run it again",
        C::NoObjection => "nothing is left to do; `countersign status NAME` shows all objections",
        C::TooManyObjections => {
            "keys that have objected can still change what they said; `countersign status NAME` shows all objections"
        }
        C::NotComplete => {
            "only complete releases are revoked; correct this one with `countersign release`, or leave it unsigned"
        }
        C::OtherRevocationPending | C::OtherVetoPending => "leave --reason out to join the pending one",
        C::FirstRegistration => "leave it unsigned: it takes effect only when all keys in it have signed",
        C::OtherProposal => {
            "`countersign status PROJECT` shows what is proposed now: look at it, then run this again"
        }
        C::TooLate => {
            "the proposed signers are due, and take effect as soon as the server can put them into force; until then \
             only its operator can remove them, with `countersign admin drop PROJECT`"
        }
        C::PathTaken => "publish it in a directory of its own",
        C::ChangeTooLarge => "`countersign pending` lists what waits: sign or withdraw some first",
        C::OtherLogSize | C::CheckpointNotWaiting => LOOK,
        C::RateLimited | C::BudgetUsedUp | C::TooManyRotations => WAIT,
        C::UpstreamMissing | C::UpstreamUnreachable | C::UpstreamInvalid => CORRECT_FILE,
        C::InternalError | C::StorageFailed | C::SignerFailed => FAILED,
        C::Busy
        | C::TooManyListeners
        | C::TooManyFollowers
        | C::Starting
        | C::NotReady
        | C::ClockWrong
        | C::ClockSet
        | C::DatabaseUnreachable
        | C::NodeHalted
        | C::LogCatchingUp
        | C::LogNotCosigned
        | C::LogStopped
        | C::WitnessNotReady
        | C::CheckpointWithheld => LATER,
        C::OutcomeUnknown => {
            "look first whether it was done (`countersign status NAME`), and run it again only if it was not"
        }
        C::WrongMethod
        | C::BodyTooSlow
        | C::BodyTooLarge
        | C::HeadTooLarge
        | C::InvalidConsistencyProof
        | C::LogForked
        | C::DiskFull => GIVE_REQUEST_ID,
    }
}
