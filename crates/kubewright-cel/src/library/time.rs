//! Timestamps: parsing, formatting and their components.
//!
//! The range is years 1 to 9999, as in protobuf, with nanosecond precision. Time zones are UTC or an offset
//! such as `+01:00`; named zones are not supported.

use std::cmp::Ordering;
use std::fmt;

use super::Function;
use crate::error::EvalError;
use crate::value::{Evaluated, Value};
use kubewright_apimachinery::time::{date, days_since_epoch};

const MIN_SECONDS: i64 = -62_135_596_800;
const MAX_SECONDS: i64 = 253_402_300_799;
const NANOS: i64 = 1_000_000_000;
const DAY: i64 = 86_400;

/// A timestamp. The original offset is kept for formatting only.
#[derive(Debug, Clone, Copy)]
pub struct Timestamp {
    seconds: i64,
    nanos: u32,
    /// Offset in minutes east of UTC.
    offset: i32,
}

impl PartialEq for Timestamp {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Timestamp {}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.seconds, self.nanos).cmp(&(other.seconds, other.nanos))
    }
}

impl Timestamp {
    /// Creates a timestamp from seconds and nanoseconds since the Unix epoch; `None` outside years 1 to 9999.
    pub fn new(seconds: i64, nanos: u32) -> Option<Self> {
        ((MIN_SECONDS..=MAX_SECONDS).contains(&seconds) && i64::from(nanos) < NANOS).then_some(Self {
            seconds,
            nanos,
            offset: 0,
        })
    }

    /// Seconds since the Unix epoch.
    pub fn seconds(self) -> i64 {
        self.seconds
    }

    /// Whether this is Go's zero time, the first second of year 1.
    pub(crate) fn is_zero(self) -> bool {
        self.seconds == MIN_SECONDS && self.nanos == 0
    }

    pub(crate) fn plus(self, nanos: i64) -> Option<Self> {
        let total = i64::from(self.nanos) + nanos.rem_euclid(NANOS);
        let seconds = self.seconds.checked_add(nanos.div_euclid(NANOS))?.checked_add(total / NANOS)?;
        let moved = Self::new(seconds, u32::try_from(total % NANOS).ok()?)?;
        Some(Self { offset: self.offset, ..moved })
    }

    /// The nanoseconds from `b` to `a`; `None` on overflow.
    pub(crate) fn since(a: Self, b: Self) -> Option<i64> {
        let seconds = a.seconds.checked_sub(b.seconds)?;
        seconds.checked_mul(NANOS)?.checked_add(i64::from(a.nanos) - i64::from(b.nanos))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let local = kubewright_apimachinery::time::format_rfc3339(self.seconds + i64::from(self.offset) * 60);
        f.write_str(local.trim_end_matches('Z'))?;
        if self.nanos != 0 {
            write!(f, ".{}", format!("{:09}", self.nanos).trim_end_matches('0'))?;
        }
        if self.offset == 0 {
            return f.write_str("Z");
        }
        let sign = if self.offset < 0 { '-' } else { '+' };
        write!(f, "{sign}{:02}:{:02}", self.offset.abs() / 60, self.offset.abs() % 60)
    }
}

/// Parses an RFC 3339 timestamp.
pub(crate) fn parse_rfc3339(text: &str) -> Option<Timestamp> {
    let seconds = kubewright_apimachinery::time::parse_rfc3339(text)?;
    let fraction = text.split_once(['.', ',']).map_or("", |(_, rest)| rest);
    let digits: String =
        fraction.chars().take_while(char::is_ascii_digit).chain("000000000".chars()).take(9).collect();
    let time = Timestamp::new(seconds, digits.parse().ok()?)?;
    let zone = text.get(text.len().checked_sub(6)?..).filter(|zone| zone.starts_with(['+', '-']));
    let offset = zone.and_then(offset).and_then(|seconds| i32::try_from(seconds / 60).ok()).unwrap_or(0);
    Some(Timestamp { offset, ..time })
}

/// Parses a value of the OpenAPI format `date`.
pub(crate) fn parse_date(text: &str) -> Option<Timestamp> {
    (text.len() == 10).then(|| parse_rfc3339(&format!("{text}T00:00:00Z")))?
}

/// Parses a value of the OpenAPI format `date-time`: RFC 3339, with or without a zone.
pub(crate) fn parse_date_time(text: &str) -> Option<Timestamp> {
    parse_rfc3339(text).or_else(|| parse_rfc3339(&format!("{text}Z")))
}

pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "getFullYear" => |args| of_time(args, |parts| parts.year),
        "getMonth" => |args| of_time(args, |parts| parts.month - 1),
        "getDayOfYear" => |args| of_time(args, |parts| parts.day_of_year),
        "getDayOfMonth" => |args| of_time(args, |parts| parts.day - 1),
        "getDate" => |args| of_time(args, |parts| parts.day),
        "getDayOfWeek" => |args| of_time(args, |parts| parts.weekday),
        "getHours" => {
            |args| of_duration(args, 3600 * NANOS).or_else(|| of_time(args, |parts| parts.second / 3600))
        }
        "getMinutes" => {
            |args| of_duration(args, 60 * NANOS).or_else(|| of_time(args, |parts| parts.second / 60 % 60))
        }
        "getSeconds" => |args| of_duration(args, NANOS).or_else(|| of_time(args, |parts| parts.second % 60)),
        "getMilliseconds" => |args| {
            of_duration(args, NANOS / 1000).or_else(|| of_time(args, |parts| parts.nanos / (NANOS / 1000)))
        },
        _ => return None,
    })
}

fn of_duration<'a>(args: &[Value<'a>], unit: i64) -> Option<Evaluated<'a>> {
    match args {
        [Value::Duration(nanos)] => Some(Ok(Value::Int(nanos / unit))),
        _ => None,
    }
}

struct Parts {
    year: i64,
    month: i64,
    day: i64,
    /// Zero-based.
    day_of_year: i64,
    /// 0 is Sunday.
    weekday: i64,
    /// Second of the day.
    second: i64,
    nanos: i64,
}

fn of_time<'a>(args: &[Value<'a>], part: fn(&Parts) -> i64) -> Option<Evaluated<'a>> {
    let (time, zone) = match args {
        [Value::Timestamp(time)] => (time, "UTC"),
        [Value::Timestamp(time), Value::String(zone)] => (time, &**zone),
        _ => return None,
    };
    Some(match offset(zone) {
        Some(offset) => Ok(Value::Int(part(&parts(*time, offset)))),
        None => Err(EvalError::new(format!("unknown time zone {zone}"))),
    })
}

/// Offset of `zone` in seconds east of UTC.
fn offset(zone: &str) -> Option<i64> {
    if zone.is_empty() || zone == "UTC" {
        return Some(0);
    }
    let (hours, minutes) = zone.split_once(':')?;
    let sign = if hours.starts_with('-') { -1 } else { 1 };
    let hours: i64 = hours.trim_start_matches(['+', '-']).parse().ok()?;
    let minutes: i64 = minutes.parse().ok()?;
    Some(sign * (hours * 3600 + minutes * 60))
}

fn parts(time: Timestamp, offset: i64) -> Parts {
    let local = time.seconds + offset;
    let days = local.div_euclid(DAY);
    let (year, month, day) = date(days);
    Parts {
        year,
        month,
        day,
        day_of_year: days - days_since_epoch(year, 1, 1),
        weekday: (days + 4).rem_euclid(7),
        second: local.rem_euclid(DAY),
        nanos: i64::from(time.nanos),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamp_accessors_respect_the_zone() {
        let time = parse_rfc3339("2024-12-31T23:30:15.25Z").unwrap();
        let at = |zone| parts(time, offset(zone).unwrap());
        assert_eq!((at("UTC").year, at("UTC").day_of_year, at("UTC").weekday), (2024, 365, 2));
        let next = at("+01:00");
        assert_eq!((next.year, next.month, next.day, next.day_of_year), (2025, 1, 1, 0));
        assert_eq!(time.to_string(), "2024-12-31T23:30:15.25Z");
        let elsewhere = parse_rfc3339("2025-01-01T00:30:15.25+01:00").unwrap();
        assert_eq!(elsewhere.to_string(), "2025-01-01T00:30:15.25+01:00");
        assert_eq!(elsewhere, time);
        assert!(offset("Europe/Berlin").is_none());
    }

    #[test]
    fn timestamps_out_of_range_are_rejected() {
        let last = Timestamp::new(MAX_SECONDS, 0).unwrap();
        assert_eq!(last.plus(NANOS), None);
        let first = parse_rfc3339("0001-01-01T00:00:00Z").unwrap();
        assert_eq!(Timestamp::since(last, first), None);
        assert_eq!(first.plus(1).unwrap().to_string(), "0001-01-01T00:00:00.000000001Z");
    }
}
