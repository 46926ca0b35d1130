//! The `Date` header.

use std::time::{Duration, UNIX_EPOCH};

use axum::http::HeaderValue;
use countersign_store::clock::{LAST_SECOND, since_1970};

/// The `Date` of an answer; `None` if the clock is outside the range of that header.
pub fn http_date() -> Option<HeaderValue> {
    write_date(since_1970()?.as_secs())
}

pub fn write_date(seconds: u64) -> Option<HeaderValue> {
    i64::try_from(seconds).ok().filter(|seconds| *seconds <= LAST_SECOND)?;
    let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds));
    HeaderValue::from_str(&date).ok()
}
