//! Answers of a server that was asked too often, and when it may be asked again.

use std::time::Duration;

use countersign_core::time::Timestamp;
use reqwest::{
    Response, StatusCode,
    header::{HeaderMap, RETRY_AFTER},
};

use super::{Ask, FetchError, Route, TryAgain};

/// What a status other than 200 means.
pub(super) fn bad_status(route: &Route<'_>, ask: Ask<'_>, response: &Response) -> FetchError {
    let (url, status) = (route.shown(), response.status());
    let again = try_again(response.headers());
    let again = match status {
        StatusCode::TOO_MANY_REQUESTS => Some(again.unwrap_or(TryAgain::Later)),
        // GitHub's spelling of it; without these headers it means what it says.
        StatusCode::FORBIDDEN => again,
        _ => None,
    };
    let is_denial = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let had_token = ask.credential.is_some_and(|credential| credential.is_for(&route.current));
    let status = status.as_u16();
    match again {
        Some(again) => FetchError::RateLimited { url, status, again },
        None if is_denial && had_token => FetchError::TokenRefused { url, status },
        None => FetchError::Status { url, status },
    }
}

/// GitHub says `x-ratelimit-…`, GitLab `RateLimit-…`; both give the reset as seconds since 1970.
fn try_again(headers: &HeaderMap) -> Option<TryAgain> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if headers.contains_key(RETRY_AFTER) {
        let seconds = text(RETRY_AFTER.as_str()).and_then(|text| text.parse().ok());
        return Some(seconds.map_or(TryAgain::Later, |seconds| TryAgain::In(Duration::from_secs(seconds))));
    }
    for (remaining, reset) in
        [("x-ratelimit-remaining", "x-ratelimit-reset"), ("ratelimit-remaining", "ratelimit-reset")]
    {
        if text(remaining) == Some("0") {
            let reset = text(reset).and_then(|text| text.parse::<i64>().ok());
            return Some(reset.map_or(TryAgain::Later, reset_time));
        }
    }
    // A reset time alone says nothing on an answer without a count: it is sent with every answer.
    None
}

/// The IETF draft's `RateLimit-Reset` counts seconds from now; no server's clock stands before 2001.
fn reset_time(reset: i64) -> TryAgain {
    const YEAR_2001: i64 = 1_000_000_000;
    match u64::try_from(reset) {
        Ok(seconds) if reset < YEAR_2001 => TryAgain::In(Duration::from_secs(seconds)),
        _ => Timestamp::from_unix_seconds(reset).map_or(TryAgain::Later, TryAgain::At),
    }
}
