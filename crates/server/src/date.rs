//! The `Date` header.

use std::time::{Duration, UNIX_EPOCH};

use axum::http::HeaderValue;
use countersign_store::clock::{LAST_SECOND, since_1970};

/// The `Date` of an answer; `None` if the clock is outside the range of that header.
pub(crate) fn http_date() -> Option<HeaderValue> {
    write_date(since_1970()?.as_secs())
}

fn write_date(seconds: u64) -> Option<HeaderValue> {
    i64::try_from(seconds).ok().filter(|seconds| *seconds <= LAST_SECOND)?;
    let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds));
    HeaderValue::from_str(&date).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_written_as_far_as_its_calendar_goes() {
        assert_eq!(write_date(784_887_151).unwrap(), "Tue, 15 Nov 1994 08:12:31 GMT");
        assert_eq!(write_date(0).unwrap(), "Thu, 01 Jan 1970 00:00:00 GMT");
        let last = u64::try_from(LAST_SECOND).unwrap();
        assert_eq!(write_date(last).unwrap(), "Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(write_date(last + 1), None);
    }
}
