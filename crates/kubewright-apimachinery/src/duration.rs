//! Durations as text: ages in tables, and Go's notation.
//!
//! Ages are rounded and cannot be parsed back; Go's notation can. This module does not read the clock. No crate is used,
//! because users see kubectl's rounding and the errors of Go's `time.ParseDuration`.

use std::fmt::Write as _;

/// An age as kubectl shows it, with two or three significant digits: `5s`, `2m3s`, `3h`, `5d`, `2y30d`.
/// Tolerates one second of clock skew; ages further in the future are `<invalid>`.
pub fn human_duration(seconds: i64) -> String {
    let minutes = seconds / 60;
    let hours = minutes / 60;
    let days = hours / 24;
    let years = days / 365;
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => two_units(minutes, 'm', seconds % 60, 's'),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two_units(hours, 'h', minutes % 60, 'm'),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => two_units(days, 'd', hours % 24, 'h'),
        _ if years < 2 => format!("{days}d"),
        _ if years < 8 => two_units(years, 'y', days % 365, 'd'),
        _ => format!("{years}y"),
    }
}

/// An age in its largest unit only: 90 seconds are `1m`.
pub fn short_human_duration(seconds: i64) -> String {
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        86_400..31_536_000 => format!("{}d", seconds / 86_400),
        _ => format!("{}y", seconds / 31_536_000),
    }
}

fn two_units(large: i64, large_unit: char, small: i64, small_unit: char) -> String {
    if small == 0 {
        format!("{large}{large_unit}")
    } else {
        format!("{large}{large_unit}{small}{small_unit}")
    }
}

/// Why a text is not a Go duration. The message quotes the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Not a sequence of numbers and units, or out of range.
    #[error("time: invalid duration {0}")]
    Invalid(String),
    /// A number without a unit.
    #[error("time: missing unit in duration {0}")]
    MissingUnit(String),
    /// An unknown unit.
    #[error("time: unknown unit {unit} in duration {duration}")]
    UnknownUnit {
        /// The unit, quoted.
        unit: String,
        /// The whole text, quoted.
        duration: String,
    },
}

const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Parses Go's notation, such as `1h2m3.5s`, to nanoseconds.
pub fn parse_go_duration(text: &str) -> Result<i64, DurationError> {
    let quoted = quote(text);
    let invalid = || DurationError::Invalid(quoted.clone());
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if unsigned == "0" {
        return Ok(0);
    }
    let mut rest = unsigned;
    let mut total: u64 = 0;
    loop {
        let (whole, after_whole) = split_at_first(rest, |c| !c.is_ascii_digit());
        let (fraction, after_number) = match after_whole.strip_prefix('.') {
            Some(after_point) => split_at_first(after_point, |c| !c.is_ascii_digit()),
            None => ("", after_whole),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let (unit, after_unit) = split_at_first(after_number, |c| c == '.' || c.is_ascii_digit());
        if unit.is_empty() {
            return Err(DurationError::MissingUnit(quoted));
        }
        let Some((_, nanoseconds)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(DurationError::UnknownUnit { unit: quote(unit), duration: quoted });
        };
        total = add_term(total, whole, fraction, *nanoseconds).ok_or_else(invalid)?;
        if after_unit.is_empty() {
            break;
        }
        rest = after_unit;
    }
    if negative {
        return 0_i64.checked_sub_unsigned(total).ok_or_else(invalid);
    }
    i64::try_from(total).map_err(|_| invalid())
}

/// The largest absolute value; only negative durations can have it.
const MOST: u64 = 1 << 63;

/// `None` beyond [`MOST`].
fn add_term(total: u64, whole: &str, fraction: &str, unit: u64) -> Option<u64> {
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let nanoseconds = whole.checked_mul(unit)?.checked_add(fraction_of(unit, fraction))?;
    total.checked_add(nanoseconds).filter(|&total| total <= MOST)
}

/// Go computes this with floats, so `0.3333333333333333333h` is exactly twenty minutes.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "Go uses floats here, and a fraction of an hour fits"
)]
fn fraction_of(unit: u64, fraction: &str) -> u64 {
    let mut numerator: u64 = 0;
    let mut scale = 1.0;
    for digit in fraction.bytes() {
        // Ignore digits beyond the range.
        if numerator > (MOST - 9) / 10 {
            break;
        }
        numerator = numerator * 10 + u64::from(digit - b'0');
        scale *= 10.0;
    }
    (numerator as f64 * (unit as f64 / scale)) as u64
}

/// Formats nanoseconds in Go's notation: `1h0m0s`, `1.5s`, `100ms`.
pub fn format_go_duration(nanoseconds: i64) -> String {
    let magnitude = nanoseconds.unsigned_abs();
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let mut out = sign.to_owned();
    let (whole, fraction, digits, unit) = match magnitude {
        0 => return "0s".to_owned(),
        1..1_000 => (magnitude, 0, 0, "ns"),
        1_000..1_000_000 => (magnitude / 1_000, magnitude % 1_000, 3, "\u{b5}s"),
        1_000_000..1_000_000_000 => (magnitude / 1_000_000, magnitude % 1_000_000, 6, "ms"),
        _ => {
            let minutes = magnitude / 60_000_000_000;
            let written = match (minutes / 60, minutes % 60) {
                (0, 0) => Ok(()),
                (0, minutes) => write!(out, "{minutes}m"),
                (hours, minutes) => write!(out, "{hours}h{minutes}m"),
            };
            written.expect("writing to a string cannot fail");
            let rest = magnitude % 60_000_000_000;
            (rest / 1_000_000_000, rest % 1_000_000_000, 9, "s")
        }
    };
    write!(out, "{whole}").expect("writing to a string cannot fail");
    if fraction > 0 {
        let fraction = format!("{fraction:0digits$}");
        out.push('.');
        out.push_str(fraction.trim_end_matches('0'));
    }
    out.push_str(unit);
    out
}

fn split_at_first(text: &str, is_end: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(is_end).unwrap_or(text.len()))
}

/// Go's package `time` quotes differently from `strconv`: non-ASCII text is escaped byte by byte.
fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        let mut buffer = [0; 4];
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            ' '..='~' => out.push(c),
            _ => {
                for byte in c.encode_utf8(&mut buffer).bytes() {
                    write!(out, "\\x{byte:02x}").expect("writing to a string cannot fail");
                }
            }
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;

    #[test]
    fn ages_have_two_or_three_significant_digits() {
        for (seconds, text) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (70, "70s"),
            (119, "119s"),
            (120, "2m"),
            (123, "2m3s"),
            (10 * MINUTE - 1, "9m59s"),
            (10 * MINUTE + 5, "10m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + 5 * MINUTE, "3h5m"),
            (8 * HOUR - 1, "7h59m"),
            (8 * HOUR + 59 * MINUTE, "8h"),
            (48 * HOUR - 1, "47h"),
            (2 * DAY, "2d"),
            (2 * DAY + 3 * HOUR, "2d3h"),
            (8 * DAY - 1, "7d23h"),
            (8 * DAY + HOUR, "8d"),
            (2 * YEAR - 1, "729d"),
            (2 * YEAR, "2y"),
            (2 * YEAR + 30 * DAY, "2y30d"),
            (8 * YEAR - 1, "7y364d"),
            (8 * YEAR + DAY, "8y"),
        ] {
            assert_eq!(human_duration(seconds), text, "{seconds}");
        }
    }

    #[test]
    fn short_ages_have_one_unit() {
        for (seconds, text) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (59, "59s"),
            (90, "1m"),
            (HOUR, "1h"),
            (DAY - 1, "23h"),
            (DAY, "1d"),
            (YEAR - 1, "364d"),
            (3 * YEAR, "3y"),
        ] {
            assert_eq!(short_human_duration(seconds), text, "{seconds}");
        }
    }

    #[test]
    fn go_durations_are_parsed() {
        let second = 1_000_000_000;
        for (text, nanoseconds) in [
            ("0", 0),
            ("0s", 0),
            ("5s", 5 * second),
            ("+5s", 5 * second),
            ("-5s", -5 * second),
            ("1h2m3s", 3723 * second),
            ("1.5h", 5400 * second),
            (".5s", second / 2),
            ("1.s", second),
            ("100ms", second / 10),
            ("1us1\u{b5}s1\u{3bc}s1ns", 3001),
            ("0.3333333333333333333h", 1200 * second),
            ("0.830103483285477580700h", 2_988_372_539_827),
            ("-9223372036854775808ns", i64::MIN),
        ] {
            assert_eq!(parse_go_duration(text), Ok(nanoseconds), "{text}");
        }
    }

    #[test]
    fn errors_have_gos_text() {
        for (text, message) in [
            ("", "time: invalid duration \"\""),
            ("x", "time: invalid duration \"x\""),
            (".s", "time: invalid duration \".s\""),
            ("-", "time: invalid duration \"-\""),
            ("3", "time: missing unit in duration \"3\""),
            ("1h3", "time: missing unit in duration \"1h3\""),
            ("5d", "time: unknown unit \"d\" in duration \"5d\""),
            ("1 h", "time: unknown unit \" h\" in duration \"1 h\""),
            ("1\u{e9}", "time: unknown unit \"\\xc3\\xa9\" in duration \"1\\xc3\\xa9\""),
            ("9223372036854775808ns", "time: invalid duration \"9223372036854775808ns\""),
            ("3000000h", "time: invalid duration \"3000000h\""),
        ] {
            assert_eq!(parse_go_duration(text).expect_err(text).to_string(), message);
        }
    }

    #[test]
    fn go_durations_are_formatted() {
        let second = 1_000_000_000;
        for (nanoseconds, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1_100, "1.1\u{b5}s"),
            (100_000_000, "100ms"),
            (second, "1s"),
            (3 * second / 2, "1.5s"),
            (60 * second, "1m0s"),
            (3600 * second, "1h0m0s"),
            (-3723 * second, "-1h2m3s"),
            (i64::MIN, "-2562047h47m16.854775808s"),
        ] {
            assert_eq!(format_go_duration(nanoseconds), text);
        }
    }

    proptest! {
        #[test]
        fn output_round_trips(nanoseconds in any::<i64>()) {
            prop_assert_eq!(parse_go_duration(&format_go_duration(nanoseconds)), Ok(nanoseconds));
        }

        #[test]
        fn no_input_panics(text in "[-+0-9.hmsnu\u{b5}]{0,24}|.*") {
            let _ = parse_go_duration(&text);
        }
    }
}
