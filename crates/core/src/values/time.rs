//! Points in time and their spellings (spec §5, D4). Nothing here reads a clock.

use std::{fmt, time::Duration};

use serde::{Serialize, Serializer};
use thiserror::Error;
use time::{OffsetDateTime, UtcOffset, format_description::well_known::Rfc3339};

/// A point in time, to the nanosecond, between the years 0 and 9999.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime, description = "A time as RFC 3339 writes it."))]
pub struct Timestamp(OffsetDateTime);

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("not an RFC 3339 time")]
pub struct TimeError;

impl Timestamp {
    /// Parses any RFC 3339 spelling, with capital `T` and `Z`.
    pub fn parse(text: &str) -> Result<Self, TimeError> {
        let shaped = text.as_bytes().get(10) == Some(&b'T') && !text.contains(['z', 't', ' ']);
        // A leap second has no place on our time line, and would make two spellings of one instant.
        if !shaped || text.get(17..19) == Some("60") {
            return Err(TimeError);
        }
        let parsed = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| TimeError)?;
        Self::within_years(parsed.checked_to_offset(UtcOffset::UTC).ok_or(TimeError)?)
    }

    pub fn from_unix_seconds(seconds: i64) -> Result<Self, TimeError> {
        Self::within_years(OffsetDateTime::from_unix_timestamp(seconds).map_err(|_| TimeError)?)
    }

    pub fn from_unix_nanos(nanos: i128) -> Result<Self, TimeError> {
        Self::within_years(OffsetDateTime::from_unix_timestamp_nanos(nanos).map_err(|_| TimeError)?)
    }

    fn within_years(time: OffsetDateTime) -> Result<Self, TimeError> {
        if (0..=9999).contains(&time.year()) { Ok(Self(time)) } else { Err(TimeError) }
    }

    pub fn unix_seconds(self) -> i64 {
        self.0.unix_timestamp()
    }

    /// The time without the fraction: the form in which we write our own times (D4).
    pub fn to_whole_seconds(self) -> Self {
        Self(self.0.replace_nanosecond(0).unwrap_or(self.0))
    }

    /// The time to the millisecond: so that two files made by hand, one soon after the other, have different times.
    pub fn to_whole_milliseconds(self) -> Self {
        let nanos = self.0.nanosecond();
        Self(self.0.replace_nanosecond(nanos - nanos % 1_000_000).unwrap_or(self.0))
    }

    /// Nanoseconds from `earlier` to this time; negative where it is later.
    pub fn nanos_since(self, earlier: Timestamp) -> i128 {
        self.0.unix_timestamp_nanos() - earlier.0.unix_timestamp_nanos()
    }

    /// How much later than `other` this time is; `None` where it is not.
    pub fn ahead_of(self, other: Timestamp) -> Option<Duration> {
        Duration::try_from(self.0 - other.0).ok()
    }

    /// A time that leaves the calendar stays where it was.
    pub fn later(self, by: Duration) -> Self {
        let later = time::Duration::try_from(by).ok().and_then(|by| self.0.checked_add(by));
        later.and_then(|later| Self::within_years(later).ok()).unwrap_or(self)
    }

    /// The form of the timestamp header: offset `+00:00`, no trailing zeros in the fraction (spec §5).
    pub fn to_header(self) -> String {
        self.to_string().replace('Z', "+00:00")
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.format(&Rfc3339).expect("the year has four digits, the offset no seconds"))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Timestamp({self})")
    }
}

/// A span of time as people write it: a number and a unit, as in `90s`, `30m`, `2h` or `1d`.
pub fn parse_span(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return None,
    };
    let number: u32 = number.parse().ok()?;
    Some(Duration::from_secs(seconds * u64::from(number)))
}
