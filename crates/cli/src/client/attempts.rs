//! When a request is sent again (D63).

use std::time::Duration;

use countersign_api::{answers::ToldError, error_code::ErrorCode};
use countersign_forge::{guard::find_refusal, https::find_tls_problem};
use reqwest::StatusCode;

use super::exchange::{Answer, ExchangeError};

/// Before the second and the third try.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(800)];
/// A server that asks for a longer pause is left to the user.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(5);

/// What a second request could do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repetition {
    /// The same as the first. Reading, and signatures: the server takes each of them once.
    Harmless,
    /// Another change. Sent again only if the server did nothing with the first.
    Harmful,
}

/// The tries of one request.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    repeated: usize,
}

impl Attempts {
    /// How long to wait before the next one. `None` if there should be none.
    pub(super) fn next_pause(
        &mut self,
        outcome: &Result<Answer, ExchangeError>,
        repetition: Repetition,
    ) -> Option<Duration> {
        let pause = *PAUSES.get(self.repeated)?;
        let asked = match outcome {
            Ok(answer) => answer.retry_after,
            Err(_) => None,
        };
        let can_help = match outcome {
            Ok(answer) => is_passing(answer, repetition),
            Err(ExchangeError::Transport(error)) => is_transient(error, repetition),
            Err(ExchangeError::TooLong { .. }) => false,
        };
        if !can_help || asked.is_some_and(|asked| asked > MAX_RETRY_AFTER) {
            return None;
        }
        self.repeated += 1;
        Some(asked.unwrap_or(pause).max(pause))
    }
}

/// A proxy's 502 or 504 leaves open what the server did. A 503 of the server says that it did nothing, unless its code
/// says that it does not know.
fn is_passing(answer: &Answer, repetition: Repetition) -> bool {
    match repetition {
        Repetition::Harmless => matches!(
            answer.status,
            StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
        ),
        Repetition::Harmful => {
            let did_nothing = |told: ToldError| told.known_code() != Some(ErrorCode::OutcomeUnknown);
            answer.status == StatusCode::SERVICE_UNAVAILABLE && answer.told().is_some_and(did_nothing)
        }
    }
}

fn is_transient(error: &reqwest::Error, repetition: Repetition) -> bool {
    if find_tls_problem(error).is_some() || find_refusal(error).is_some() || error.is_builder() {
        return false;
    }
    match repetition {
        // An answer that does not come in time would not come in three times that time.
        Repetition::Harmless => error.is_connect() || !error.is_timeout(),
        Repetition::Harmful => error.is_connect(),
    }
}
