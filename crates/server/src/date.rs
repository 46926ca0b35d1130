//! The `Date` header.

use std::{
    cell::RefCell,
    time::{Duration, UNIX_EPOCH},
};

use axum::http::HeaderValue;
use countersign_store::clock::{LAST_SECOND, since_1970};

thread_local! {
    /// The last one of this thread: all answers of a second have the same.
    static WRITTEN: RefCell<Option<(u64, HeaderValue)>> = const { RefCell::new(None) };
}

/// The `Date` of an answer; `None` if the clock is outside the range of that header.
pub fn http_date() -> Option<HeaderValue> {
    let now = since_1970()?.as_secs();
    WRITTEN.with_borrow_mut(|written| {
        if written.as_ref().is_none_or(|(second, _)| *second != now) {
            *written = write_date(now).map(|date| (now, date));
        }
        written.as_ref().map(|(_, date)| date.clone())
    })
}

pub fn write_date(seconds: u64) -> Option<HeaderValue> {
    i64::try_from(seconds).ok().filter(|seconds| *seconds <= LAST_SECOND)?;
    let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds));
    HeaderValue::from_str(&date).ok()
}
