//! Timestamps in RFC 3339 and UTC, with seconds or microseconds.
//!
//! Implements the calendar (proleptic Gregorian, years 0 to 9999 when parsing) and does not read the clock.
//! Accepts what Go's `time.Parse(time.RFC3339, ...)` accepts, including a fraction after a comma, a one-digit
//! hour and an offset of up to `24:60`; rejects leap seconds. No crate is used, because none accepts the same texts with
//! Go's errors.

use crate::duration::human_duration;
use crate::field::quote;

/// Parses RFC 3339 to seconds since the Unix epoch. Truncates fractions.
pub fn parse_rfc3339(text: &str) -> Option<i64> {
    parse(text, Layout::Rfc3339).ok().map(|micros| micros.div_euclid(MICROS))
}

/// Parses RFC 3339 to microseconds since the Unix epoch. Truncates smaller fractions.
pub fn parse_rfc3339_micros(text: &str) -> Option<i64> {
    parse(text, Layout::Rfc3339).ok()
}

/// The age of a timestamp as `kubectl get` prints it: `5m`, `3d2h`; `<unknown>` if it is missing. `now` is in
/// seconds since the Unix epoch.
pub fn age(timestamp: &str, now: i64) -> String {
    instant(timestamp).map_or_else(|| "<unknown>".to_owned(), |then| human_duration(now - then))
}

/// Like [`parse_rfc3339`], but `None` for Go's zero time, which upstream treats as unset.
pub fn instant(timestamp: &str) -> Option<i64> {
    const ZERO_TIME: i64 = -62_135_596_800;
    parse_rfc3339(timestamp).filter(|seconds| *seconds != ZERO_TIME)
}

/// A time format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Seconds with an optional fraction.
    Rfc3339,
    /// Seconds with exactly six fractional digits.
    Rfc3339Micro,
}

impl Layout {
    fn text(self) -> &'static str {
        match self {
            Self::Rfc3339 => "2006-01-02T15:04:05Z07:00",
            Self::Rfc3339Micro => "2006-01-02T15:04:05.000000Z07:00",
        }
    }
}

/// A parse error, with Go's text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("parsing time {}{problem}", quote(.text))]
pub struct ParseError {
    text: String,
    problem: String,
}

/// Parses to microseconds since the Unix epoch. Truncates smaller fractions.
pub fn parse(text: &str, layout: Layout) -> Result<i64, ParseError> {
    let mut rest = Rest(text.as_bytes());
    read(&mut rest, layout).map_err(|problem| {
        let left = quote(&String::from_utf8_lossy(rest.0));
        let problem = match problem {
            Problem::NotA(element) => {
                format!(" as {}: cannot parse {left} as {}", quote(layout.text()), quote(element))
            }
            Problem::OutOfRange(what) => format!(": {what} out of range"),
            Problem::Extra => format!(": extra text: {left}"),
        };
        ParseError { text: text.to_owned(), problem }
    })
}

/// Formats seconds since the Unix epoch as `2006-01-02T15:04:05Z`.
pub fn format_rfc3339(seconds: i64) -> String {
    format!("{}Z", date_and_time(seconds))
}

/// Formats microseconds since the Unix epoch as `2006-01-02T15:04:05.000000Z`.
pub fn format_rfc3339_micro(micros: i64) -> String {
    format!("{}.{:06}Z", date_and_time(micros.div_euclid(MICROS)), micros.rem_euclid(MICROS))
}

const MICROS: i64 = 1_000_000;
const DAY: i64 = 86_400;
/// Days in the 400-year cycle of the calendar.
const CYCLE: i64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01.
const EPOCH: i64 = 719_468;

/// Why a time is invalid.
enum Problem {
    /// A part of the layout is missing.
    NotA(&'static str),
    /// A number is out of range.
    OutOfRange(&'static str),
    /// Text follows the time.
    Extra,
}

fn read(rest: &mut Rest<'_>, layout: Layout) -> Result<i64, Problem> {
    let year = rest.digits(4).ok_or(Problem::NotA("2006"))?;
    rest.skip(b'-').ok_or(Problem::NotA("-"))?;
    let month = rest.digits(2).ok_or(Problem::NotA("01"))?;
    if !(1..=12).contains(&month) {
        return Err(Problem::OutOfRange("month"));
    }
    rest.skip(b'-').ok_or(Problem::NotA("-"))?;
    let day = rest.digits(2).ok_or(Problem::NotA("02"))?;
    rest.skip(b'T').ok_or(Problem::NotA("T"))?;
    let hour = rest.digits(2).or_else(|| rest.digits(1)).ok_or(Problem::NotA("15"))?;
    if hour >= 24 {
        return Err(Problem::OutOfRange("hour"));
    }
    rest.skip(b':').ok_or(Problem::NotA(":"))?;
    let minute = rest.digits(2).ok_or(Problem::NotA("04"))?;
    if minute >= 60 {
        return Err(Problem::OutOfRange("minute"));
    }
    rest.skip(b':').ok_or(Problem::NotA(":"))?;
    let second = rest.digits(2).ok_or(Problem::NotA("05"))?;
    if second >= 60 {
        return Err(Problem::OutOfRange("second"));
    }
    let micros = match layout {
        Layout::Rfc3339 => rest.fraction(),
        Layout::Rfc3339Micro => rest.exact_fraction().ok_or(Problem::NotA(".000000"))?,
    };
    let offset = rest.offset().ok_or(Problem::NotA("Z07:00"))?;
    if !rest.0.is_empty() {
        return Err(Problem::Extra);
    }
    if !(1..=days_in_month(year, month)).contains(&day) {
        return Err(Problem::OutOfRange("day"));
    }
    let seconds = days_since_epoch(year, month, day) * DAY + hour * 3_600 + minute * 60 + second - offset;
    Ok(seconds * MICROS + micros)
}

/// The remaining input.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    /// Parses exactly `count` digits; consumes nothing on failure.
    fn digits(&mut self, count: usize) -> Option<i64> {
        let digits = self.0.get(..count).filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
        self.0 = &self.0[count..];
        Some(digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
    }

    fn skip(&mut self, byte: u8) -> Option<()> {
        self.0 = self.0.strip_prefix(&[byte])?;
        Some(())
    }

    /// Parses an optional fraction to microseconds.
    fn fraction(&mut self) -> i64 {
        let [b'.' | b',', digits @ ..] = self.0 else { return 0 };
        let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return 0;
        }
        let digit = |at: usize| if at < count { i64::from(digits[at] - b'0') } else { 0 };
        self.0 = &digits[count..];
        (0..6).fold(0, |micros, at| micros * 10 + digit(at))
    }

    /// Parses a point and exactly six digits.
    fn exact_fraction(&mut self) -> Option<i64> {
        let before = self.0;
        let micros = self.skip(b'.').and_then(|()| self.digits(6));
        if micros.is_none() || self.0.first().is_some_and(u8::is_ascii_digit) {
            self.0 = before;
            return None;
        }
        micros
    }

    /// Parses `Z`, `+01:00` or `-01:00` to seconds east of UTC; consumes nothing on failure.
    fn offset(&mut self) -> Option<i64> {
        let before = self.0;
        let offset = self.read_offset();
        if offset.is_none() {
            self.0 = before;
        }
        offset
    }

    fn read_offset(&mut self) -> Option<i64> {
        let sign = match self.0.first()? {
            b'Z' => {
                self.skip(b'Z')?;
                return Some(0);
            }
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        self.0 = &self.0[1..];
        let hours = self.digits(2).filter(|hours| *hours <= 24)?;
        self.skip(b':')?;
        let minutes = self.digits(2).filter(|minutes| *minutes <= 60)?;
        Some(sign * (hours * 3_600 + minutes * 60))
    }
}

fn date_and_time(seconds: i64) -> String {
    let (year, month, day) = date(seconds.div_euclid(DAY));
    let of_day = seconds.rem_euclid(DAY);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

/// The days from 1970-01-01 to a date of the Gregorian calendar.
pub fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    // Years start in March, so that the leap day is the last day of its year.
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - EPOCH
}

/// Year, month and day: the inverse of [`days_since_epoch`].
pub fn date(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH;
    let cycle = days.div_euclid(CYCLE);
    let of_cycle = days.rem_euclid(CYCLE);
    let year_of_cycle = (of_cycle - of_cycle / 1_460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let day_of_year = of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = cycle * 400 + year_of_cycle;
    (if month <= 2 { year + 1 } else { year }, month, day)
}

/// The number of days in a month.
pub fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_times_are_parsed_and_formatted() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T12:34:56Z", 951_827_696),
            ("2038-01-19T03:14:08Z", 2_147_483_648),
            ("1969-12-31T23:59:59Z", -1),
            ("0001-01-01T00:00:00Z", -62_135_596_800),
            ("0000-01-01T00:00:00Z", -62_167_219_200),
            ("9999-12-31T23:59:59Z", 253_402_300_799),
        ] {
            assert_eq!(parse_rfc3339(text), Some(seconds), "{text}");
            assert_eq!(format_rfc3339(seconds), text);
        }
    }

    #[test]
    fn offsets_and_fractions_are_parsed_like_in_go() {
        assert_eq!(parse_rfc3339("1970-01-01T01:00:00+01:00"), Some(0));
        assert_eq!(parse_rfc3339("1969-12-31T23:30:00-00:30"), Some(0));
        assert_eq!(parse_rfc3339("1970-01-01T0:00:01.999999999999Z"), Some(1));
        assert_eq!(parse_rfc3339_micros("1970-01-01T00:00:01.5Z"), Some(1_500_000));
        assert_eq!(parse_rfc3339_micros("1970-01-01T00:00:01,0000019+00:00"), Some(1_000_001));
        assert_eq!(parse_rfc3339_micros("1969-12-31T23:59:59.999999Z"), Some(-1));
        assert_eq!(format_rfc3339_micro(-1), "1969-12-31T23:59:59.999999Z");
    }

    #[test]
    fn times_that_go_rejects_are_rejected() {
        for text in [
            "",
            "now",
            "2020-01-01",
            "2020-01-01 00:00:00Z",
            "2020-01-01t00:00:00z",
            "2020-01-01T00:00:00",
            "2020-13-01T00:00:00Z",
            "2020-00-01T00:00:00Z",
            "2021-02-29T00:00:00Z",
            "1900-02-29T00:00:00Z",
            "2020-04-31T00:00:00Z",
            "2020-01-01T24:00:00Z",
            "2020-01-01T00:60:00Z",
            "2020-01-01T00:00:60Z",
            "2020-01-01T00:00:00.Z",
            "2020-01-01T00:00:00+1:00",
            "2020-01-01T00:00:00+25:00",
            "2020-01-01T00:00:00+0100",
            "2020-01-01T00:00:00Z ",
            "12020-01-01T00:00:00Z",
        ] {
            assert_eq!(parse_rfc3339(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_time_round_trips(micros in -62_167_219_200_000_000_i64..253_402_300_800_000_000) {
            prop_assert_eq!(parse_rfc3339_micros(&format_rfc3339_micro(micros)), Some(micros));
            let seconds = micros.div_euclid(MICROS);
            prop_assert_eq!(parse_rfc3339(&format_rfc3339(seconds)), Some(seconds));
        }

        #[test]
        fn parsing_never_panics(text in "[-0-9TZ:.,+é]{0,30}") {
            parse_rfc3339_micros(&text);
        }
    }
}
