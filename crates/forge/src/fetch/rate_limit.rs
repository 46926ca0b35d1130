//! Answers of a server that was asked too often, and when it may be asked again.

use std::time::{Duration, UNIX_EPOCH};

use countersign_core::values::time::Timestamp;
use reqwest::{
    Response, StatusCode,
    header::{HeaderMap, RETRY_AFTER},
};

use super::{
    error::{FetchError, TryAgain},
    route::FetchRoute,
};

/// The error for a status other than 200. A refused token is only at fault where one was sent.
pub(super) fn bad_status(route: &FetchRoute, had_token: bool, response: &Response) -> FetchError {
    let (url, status) = (route.shown(), response.status());
    let is_denial = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let again = try_again(status, response.headers());
    let status = status.as_u16();
    match again {
        Some(again) => FetchError::RateLimited { url, status, again },
        None if is_denial && had_token => FetchError::TokenRefused { url, status },
        None => FetchError::Status { url, status },
    }
}

/// Reads when to try again. GitHub says `x-ratelimit-…`, GitLab `RateLimit-…`; both give the reset as seconds since
/// 1970.
fn try_again(status: StatusCode, headers: &HeaderMap) -> Option<TryAgain> {
    let is_certain = match status {
        StatusCode::TOO_MANY_REQUESTS => true,
        // GitHub's spelling of it; without these headers it means what it says.
        StatusCode::FORBIDDEN => false,
        _ => return None,
    };
    if let Some(again) = retry_after(headers) {
        return Some(again);
    }
    for (remaining, reset) in
        [("x-ratelimit-remaining", "x-ratelimit-reset"), ("ratelimit-remaining", "ratelimit-reset")]
    {
        let reset = header_text(headers, reset).and_then(|text| text.parse::<i64>().ok());
        // The reset is sent with every answer, whatever remains.
        if header_text(headers, remaining) == Some("0") || (is_certain && reset.is_some()) {
            return Some(reset.map_or(TryAgain::Later, reset_time));
        }
    }
    (is_certain || headers.contains_key(RETRY_AFTER)).then_some(TryAgain::Later)
}

/// Seconds, or a date.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<TryAgain> {
    let text = header_text(headers, RETRY_AFTER.as_str())?;
    if let Ok(seconds) = text.parse() {
        return Some(TryAgain::In(Duration::from_secs(seconds)));
    }
    let date = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    let seconds = i64::try_from(date.as_secs()).ok()?;
    Timestamp::from_unix_seconds(seconds).ok().map(TryAgain::At)
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim)
}

/// The IETF draft's `RateLimit-Reset` counts seconds from now; no server's clock stands before 2001.
fn reset_time(reset: i64) -> TryAgain {
    const YEAR_2001: i64 = 1_000_000_000;
    match u64::try_from(reset) {
        Ok(seconds) if reset < YEAR_2001 => TryAgain::In(Duration::from_secs(seconds)),
        _ => Timestamp::from_unix_seconds(reset).map_or(TryAgain::Later, TryAgain::At),
    }
}
