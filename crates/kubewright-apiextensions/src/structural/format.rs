//! `format` of strings and numbers, as the API server enforces it.
//!
//! Unknown formats are not enforced, as OpenAPI allows. Each format accepts what Go's parser accepts.

mod email;
mod uri;

use std::sync::LazyLock;

use regex_automata::meta::Regex;

use super::{Type, Types};
use kubewright_apimachinery::duration::parse_go_duration;
use kubewright_apimachinery::names::{dns1123_label, dns1123_subdomain, parse_cidr_sloppy, parse_ip_sloppy};
use kubewright_apimachinery::time::days_in_month;

/// A format.
#[derive(Debug, Clone)]
pub struct Format {
    /// The original name, such as `date-time`.
    pub name: String,
    /// The check; `None` if the server does not enforce the format.
    pub kind: Option<FormatKind>,
}

impl PartialEq for Format {
    /// Compares names. The check follows from the name and from the type of the schema.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// The check of a format.
#[derive(Debug, Clone, Copy)]
pub enum FormatKind {
    /// Strings that pass the function.
    String(fn(&str) -> bool),
    /// Integers of 32 bits.
    Int32,
    /// Integers of 64 bits.
    Int64,
    /// Numbers that fit an `f32`.
    Float,
    /// Numbers that fit an `f64`.
    Double,
}

impl Format {
    /// The format `name` for values of these types.
    pub fn of(name: &str, types: Types) -> Self {
        let kind = match (types.single(), name) {
            // Several types count like none.
            (None | Some(Type::String), name) => string_format(name).map(FormatKind::String),
            (Some(Type::Integer), "int32") => Some(FormatKind::Int32),
            (Some(Type::Integer), "int64") => Some(FormatKind::Int64),
            (Some(Type::Number), "float") => Some(FormatKind::Float),
            (Some(Type::Number), "double") => Some(FormatKind::Double),
            _ => None,
        };
        Self { name: name.to_owned(), kind }
    }
}

/// Looks up a string format. Ignores dashes in the name.
fn string_format(name: &str) -> Option<fn(&str) -> bool> {
    Some(match name.replace('-', "").as_str() {
        "bsonobjectid" => |text| text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
        "uri" => uri::is_request_uri,
        "email" => email::is_address,
        "hostname" => is_hostname,
        "ipv4" => |text| text.contains('.') && parse_ip_sloppy(text).is_some(),
        "ipv6" => |text| text.contains(':') && text.parse::<std::net::Ipv6Addr>().is_ok(),
        "cidr" => |text| parse_cidr_sloppy(text).is_some(),
        "mac" => is_mac,
        "uuid" => |text| is_uuid(text, None, false),
        "uuid3" => |text| is_uuid(text, Some(b'3'), false),
        "uuid4" => |text| is_uuid(text, Some(b'4'), true),
        "uuid5" => |text| is_uuid(text, Some(b'5'), true),
        "isbn" => |text| is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10,
        "isbn13" => is_isbn13,
        "creditcard" => is_credit_card,
        "ssn" => is_ssn,
        "hexcolor" => |text| {
            let digits = text.strip_prefix('#').unwrap_or(text);
            matches!(digits.len(), 3 | 6) && digits.bytes().all(|b| b.is_ascii_hexdigit())
        },
        "rgbcolor" => |text| RGB.is_match(text),
        "byte" => is_base64,
        "password" => |_| true,
        "date" => is_date,
        "duration" => is_duration,
        "datetime" => is_date_time,
        "k8sshortname" => |text| dns1123_label(text).is_empty(),
        "k8slongname" => |text| dns1123_subdomain(text).is_empty(),
        _ => return None,
    })
}

static HOSTNAME: LazyLock<Regex> = LazyLock::new(|| {
    let c = r"a-zA-Z0-9\p{S}\p{L}";
    let text = format!(
        r"^([{c}]((-?[{c}]{{0,62}})?)|([{c}](([\-{c}]{{0,61}}[{c}])?)(\.)){{1,}}([a-zA-Z\p{{L}}]){{2,63}})$"
    );
    Regex::new(&text).expect("the expression is valid")
});

static RGB: LazyLock<Regex> = LazyLock::new(|| {
    let byte = "(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])";
    let space = r"[\t\n\f\r ]*";
    let text = format!(r"^rgb\({space}{byte}{space},{space}{byte}{space},{space}{byte}{space}\)$");
    Regex::new(&text).expect("the expression is valid")
});

static CARD: LazyLock<Regex> = LazyLock::new(|| {
    let visa = "4[0-9]{12}(?:[0-9]{3})?";
    let others = "5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11}";
    Regex::new(&format!("^(?:{visa}|{others})$")).expect("the expression is valid")
});

fn is_hostname(text: &str) -> bool {
    text.len() <= 255 && text.split('.').all(|part| part.len() <= 63) && HOSTNAME.is_match(text)
}

/// A MAC address of 6, 8 or 20 bytes: `aa:bb:...`, `aa-bb-...` or `aabb.ccdd....`.
fn is_mac(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (separator, width) = match (bytes.get(2), bytes.get(4)) {
        (Some(b @ (b':' | b'-')), _) => (char::from(*b), 2),
        (_, Some(b'.')) => ('.', 4),
        _ => return false,
    };
    let mut groups = 0;
    for group in text.split(separator) {
        groups += 1;
        if group.len() != width || !group.bytes().all(|b| b.is_ascii_hexdigit()) {
            return false;
        }
    }
    matches!(groups * width / 2, 6 | 8 | 20)
}

fn is_uuid(text: &str, version: Option<u8>, variant: bool) -> bool {
    let mut digits = text.bytes();
    let mut rest = text;
    for (group, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if group > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some(part) = rest.as_bytes().get(..length) else { return false };
        if !part.iter().all(u8::is_ascii_hexdigit) {
            return false;
        }
        if group == 2 && version.is_some_and(|version| part[0] != version) {
            return false;
        }
        if group == 3 && variant && !matches!(part[0].to_ascii_lowercase(), b'8' | b'9' | b'a' | b'b') {
            return false;
        }
        rest = &rest[length..];
    }
    rest.is_empty() && digits.next().is_some()
}

fn without_spaces(text: &str) -> Vec<u8> {
    text.bytes().filter(|b| !matches!(b, b'\t' | b'\n' | 0x0c | b'\r' | b' ' | b'-')).collect()
}

fn is_isbn10(text: &str) -> bool {
    let text = without_spaces(text);
    let (Some(digits), Some(last), 10) = (text.get(..9), text.last(), text.len()) else { return false };
    let check = match last {
        b'X' => 10,
        b'0'..=b'9' => u32::from(last - b'0'),
        _ => return false,
    };
    let weighted = digits.iter().zip(1..).map(|(digit, weight)| u32::from(digit - b'0') * weight);
    digits.iter().all(u8::is_ascii_digit) && (weighted.sum::<u32>() + 10 * check).is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let text = without_spaces(text);
    if text.len() != 13 || !text.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let weighted = text.iter().zip([1, 3].into_iter().cycle()).map(|(digit, w)| u32::from(digit - b'0') * w);
    weighted.sum::<u32>().is_multiple_of(10)
}

fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    if !CARD.is_match(&digits) {
        return false;
    }
    let sum: u32 = digits
        .bytes()
        .rev()
        .zip([false, true].into_iter().cycle())
        .map(|(digit, double)| match (u32::from(digit - b'0'), double) {
            (digit, false) => digit,
            (digit, true) if digit >= 5 => digit * 2 - 9,
            (digit, true) => digit * 2,
        })
        .sum();
    sum.is_multiple_of(10)
}

fn is_ssn(text: &str) -> bool {
    text.len() == 11
        && text.bytes().enumerate().all(|(at, b)| match at {
            3 | 6 => matches!(b, b'-' | b' '),
            _ => b.is_ascii_digit(),
        })
}

/// Base64 with padding, not empty.
fn is_base64(text: &str) -> bool {
    let bytes = text.as_bytes();
    let padding = bytes.iter().rev().take_while(|b| **b == b'=').count();
    let body = &bytes[..bytes.len() - padding];
    !body.is_empty()
        && padding <= 2
        && bytes.len().is_multiple_of(4)
        && body.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/'))
}

fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = |range: std::ops::Range<usize>| {
        let part = bytes.get(range).filter(|part| part.iter().all(u8::is_ascii_digit))?;
        Some(part.iter().fold(0, |value, b| value * 10 + i64::from(b - b'0')))
    };
    let (Some(year), Some(month), Some(day)) = (digits(0..4), digits(5..7), digits(8..10)) else {
        return false;
    };
    bytes.len() == 10
        && bytes[4] == b'-'
        && bytes[7] == b'-'
        && (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day)
}

/// A date, `t`, and a time with a zone. Ignores text after another `t`.
fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    match (parts.next(), parts.next()) {
        (Some(date), Some(time)) => is_date(date) && is_time(time),
        _ => false,
    }
}

fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let two = |at: usize| bytes.get(at..at + 2).filter(|part| part.iter().all(u8::is_ascii_digit));
    let (Some(hours), Some(minutes), Some(seconds)) = (two(0), two(3), two(6)) else { return false };
    if hours > b"23" || minutes > b"59" || seconds > b"59" || bytes[2] != b':' || bytes[5] != b':' {
        return false;
    }
    let is_zone = |zone: &str| {
        let zone = zone.as_bytes();
        zone == b"z"
            || (zone.len() == 6
                && matches!(zone[0], b'+' | b'-')
                && zone[3] == b':'
                && [1, 2, 4, 5].iter().all(|at| zone[*at].is_ascii_digit()))
    };
    let rest = &text[8..];
    if is_zone(rest) {
        return true;
    }
    // Any character can separate the fraction.
    let mut chars = rest.chars();
    let Some(point) = chars.next() else { return false };
    let fraction = chars.as_str();
    let zone = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
    point != '\n' && zone.len() < fraction.len() && is_zone(zone)
}

/// A Go duration, or a Scala-style duration: numbers with units anywhere in the text.
fn is_duration(text: &str) -> bool {
    if parse_go_duration(text).is_ok() {
        return true;
    }
    let mut found = false;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        rest = &rest[start..];
        let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let number = &rest[..rest.len() - after.len()];
        let unit_on = after.trim_start_matches(['\t', '\n', '\u{c}', '\r', ' ']);
        let end = unit_on.trim_start_matches(|c: char| c.is_ascii_alphabetic() || c == 'µ');
        let unit = &unit_on[..unit_on.len() - end.len()];
        if unit.is_empty() {
            rest = after;
            continue;
        }
        if number.parse::<i64>().is_err() {
            return false;
        }
        found |= is_unit(&unit.to_lowercase());
        rest = end;
    }
    found
}

fn is_unit(unit: &str) -> bool {
    // The last spelling of each unit may have a suffix: `hours`.
    const UNITS: [(&[&str], &str); 8] = [
        (&["ns"], "nano"),
        (&["us", "µs"], "micro"),
        (&["ms"], "milli"),
        (&["s"], "sec"),
        (&["m"], "min"),
        (&["h", "hr"], "hour"),
        (&["d"], "day"),
        (&["w", "wk"], "week"),
    ];
    UNITS.iter().any(|(exact, prefix)| exact.contains(&unit) || unit.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(format: &str, good: &[&str], bad: &[&str]) {
        let passes = string_format(format).expect(format);
        for text in good {
            assert!(passes(text), "{format} accepts {text:?}");
        }
        for text in bad {
            assert!(!passes(text), "{format} refuses {text:?}");
        }
    }

    #[test]
    fn every_format_accepts_what_go_accepts() {
        check(
            "date",
            &["2024-02-29", "2023-12-31"],
            &["2023-02-29", "2024-13-01", "2024-1-01", "24-01-01", ""],
        );
        check(
            "date-time",
            &["2024-01-01T00:00:00Z", "2024-01-01t23:59:59.123+02:00", "2024-01-01T00:00:00x5Z"],
            &["2024-01-01", "2024-01-01T24:00:00Z", "2024-01-01T00:00:00", "2024-01-01T00:00:60Z", "x"],
        );
        check(
            "duration",
            &["1h30m", "1 day", "2 Hours", "x 3 weeks y", "5µs", "-1h", "0"],
            &["x", "1", "", "3 fortnights"],
        );
        check(
            "hostname",
            &["a.example.com", "localhost", "1a", "a-b.example.london", "ex-ample.com"],
            &["-bad-", "a_b", "", "a..b", "example.c", "1.2.3.4"],
        );
        check("ipv4", &["1.2.3.4", "01.2.3.4", "::ffff:1.2.3.4"], &["::1", "999.1.1.1", "1.2.3"]);
        check("ipv6", &["::1", "fe80::1", "::ffff:1.2.3.4"], &["1.2.3.4", "::1%eth0", ":"]);
        check("cidr", &["10.0.0.0/8", "::/0"], &["10.0.0.0", "10.0.0.0/33"]);
        check(
            "mac",
            &["00:00:5e:00:53:01", "00-00-5E-00-53-01", "0000.5e00.5301", "02:00:5e:10:00:00:00:01"],
            &["zz", "00:00:5e:00:53", "00:00-5e:00:53:01", "", "00005e005301"],
        );
        check(
            "uuid",
            &["3c1a7a4e-0000-4000-8000-000000000000", "3C1A7A4E000040008000000000000000"],
            &["x", "3c1a7a4e-0000-4000-8000-00000000000"],
        );
        check("uuid3", &["3c1a7a4e-0000-3000-8000-000000000000"], &["3c1a7a4e-0000-4000-8000-000000000000"]);
        check("uuid4", &["3c1a7a4e-0000-4000-8000-000000000000"], &["3c1a7a4e-0000-4000-7000-000000000000"]);
        check("byte", &["YQ==", "YWI=", "YWJj"], &["%%", "", "YQ=", "YQ===", "===="]);
        check("isbn10", &["0321751043", "0-321-75104-3"], &["1", "0321751044"]);
        check("isbn13", &["978 3401013190", "978-0321751041"], &["1", "978 3401013191"]);
        check("creditcard", &["4111 1111 1111 1111", "374953669708156"], &["1", "4220855426213389"]);
        check("ssn", &["111-11-1111", "111 11 1111"], &["x", "111111111", "111-111111"]);
        check("hexcolor", &["#fff", "ABCDEF"], &["zzz", "#ffff", ""]);
        check("rgbcolor", &["rgb(1,2,3)", "rgb( 0, 255, 10 )"], &["x", "rgb(1,2,256)", "rgb(01,2,3)"]);
        check("bsonobjectid", &["507f1f77bcf86cd799439011"], &["x"]);
        check("k8s-short-name", &["ok", "a-1"], &["Bad_", "-a", "a.b", ""]);
        check("k8s-long-name", &["a.b"], &["Bad_", "a..b"]);
    }

    #[test]
    fn a_format_applies_only_to_its_type() {
        assert!(Format::of("bogus", Types::default()).kind.is_none());
        assert!(Format::of("int32", Types::only(Type::String)).kind.is_none());
        assert!(Format::of("date", Types::only(Type::Integer)).kind.is_none());
        let int32 = Format::of("int32", Types::only(Type::Integer)).kind;
        assert!(matches!(int32, Some(FormatKind::Int32)));
        assert!(Format::of("date-time", Types::default()).kind.is_some());
    }
}
