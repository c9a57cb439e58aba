//! Parsers of flag values, in Go's syntax.

use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use jiff::SignedDuration;
use kubewright_runtime::internal::names::dns1123_label;
use kubewright_runtime::logs;

/// A timeout; `None` waits forever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Patience(pub(super) Option<Duration>);

impl FromStr for Patience {
    type Err = String;

    /// Negative values wait forever, as in controller-runtime.
    fn from_str(text: &str) -> Result<Self, String> {
        let time = signed(text)?;
        Ok(Self(if time.is_negative() { None } else { Some(time.unsigned_abs()) }))
    }
}

/// A non-negative duration.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    Duration::try_from(signed(text)?).map_err(|_| "must not be negative".to_owned())
}

/// A Go duration: `15s`, `1m30s`, `500ms`, `1.5h`, or 0.
fn signed(text: &str) -> Result<SignedDuration, String> {
    // Go accepts only 0 without a unit, and no ISO 8601 durations.
    if text == "0" {
        return Ok(SignedDuration::ZERO);
    }
    let go = |text: &str| text.chars().all(|c| c.is_ascii_digit() || "+-.hmsnuµμ".contains(c));
    let parsed = if go(text) { text.parse().ok() } else { None };
    parsed.ok_or_else(|| "must be a number with a unit, such as 15s, 1m30s, 500ms or 2h".to_owned())
}

/// A Go bool.
pub(super) fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("must be true or false".to_owned()),
    }
}

/// A DNS name, which may begin with a wildcard label.
pub(super) fn dns_name(text: &str) -> Result<String, String> {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let name = text.strip_prefix("*.").unwrap_or(text);
    if text.len() <= 253 && name.split('.').all(label) {
        return Ok(text.to_owned());
    }
    Err("must be a DNS name, such as hooks.example.com".to_owned())
}

/// Namespace names; empty means all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Namespaces(pub(super) Vec<String>);

/// An invalid namespace name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NamespacesError {
    #[error(
        "invalid namespace {0:?}; use comma-separated names of at most 63 lowercase letters, digits and \
         hyphens"
    )]
    Name(String),
    #[error("invalid WATCH_NAMESPACE")]
    Environment(#[source] Box<Self>),
}

impl Namespaces {
    pub(super) fn of_environment(text: &str) -> Result<Self, NamespacesError> {
        text.parse().map_err(|error| NamespacesError::Environment(Box::new(error)))
    }
}

impl FromStr for Namespaces {
    type Err = NamespacesError;

    fn from_str(text: &str) -> Result<Self, NamespacesError> {
        let mut names: Vec<String> = Vec::new();
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            if !dns1123_label(name).is_empty() {
                return Err(NamespacesError::Name(name.to_owned()));
            }
            // A duplicate would be watched twice.
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        Ok(Self(names))
    }
}

/// Validates log level directives. [`logs::init`] parses them again.
pub(super) fn log_level(text: &str) -> Result<String, logs::LogsError> {
    let options = logs::Options { level: Some(text.to_owned()), ..logs::Options::default() };
    logs::subscriber(&options, std::io::sink).map(|_| text.to_owned())
}

pub(super) fn log_format() -> impl TypedValueParser<Value = logs::Format> {
    PossibleValuesParser::new(["auto", "text", "json"]).try_map(|format| format.parse::<logs::Format>())
}

/// zap's levels: names, or a verbosity above `info`.
pub(super) fn zap_log_level(text: &str) -> Result<String, String> {
    let level = match text.to_ascii_lowercase().as_str() {
        "debug" => "debug",
        "info" => "info",
        "warn" => "warn",
        // `error` is the highest level here.
        "error" | "panic" => "error",
        number => match number.parse::<u8>() {
            Ok(1) => "debug",
            Ok(2..) => "trace",
            _ => return Err("must be debug, info, error, panic, or a number above 0".to_owned()),
        },
    };
    Ok(level.to_owned())
}

pub(super) fn zap_encoder() -> impl TypedValueParser<Value = logs::Format> {
    PossibleValuesParser::new(["console", "json"]).map(|encoder| match encoder.as_str() {
        "console" => logs::Format::Text,
        _ => logs::Format::Json,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_gos_syntax() {
        let ms = |text: &str| duration(text).map(|time| time.as_millis());
        for (text, wanted) in [
            ("15s", 15_000),
            ("1m30s", 90_000),
            ("500ms", 500),
            ("1.5h", 5_400_000),
            ("0", 0),
            ("1h0m0s", 3_600_000),
        ] {
            assert_eq!(ms(text), Ok(wanted), "{text}");
        }
        for text in ["15", "", "s", "PT15S", "1 m", "fifteen", "15 seconds", "-1s", "1d"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_negative_timeout_waits_forever() {
        assert_eq!("-1s".parse(), Ok(Patience(None)));
        assert_eq!("0".parse(), Ok(Patience(Some(Duration::ZERO))));
        assert_eq!("2m".parse(), Ok(Patience(Some(Duration::from_mins(2)))));
        assert!("long".parse::<Patience>().is_err());
    }

    #[test]
    fn bools_have_gos_syntax() {
        assert!(["1", "t", "T", "true", "TRUE", "True"].iter().all(|text| boolean(text) == Ok(true)));
        assert!(["0", "f", "F", "false", "FALSE", "False"].iter().all(|text| boolean(text) == Ok(false)));
        assert!(["", "yes", "tRUE", "2"].iter().all(|text| boolean(text).is_err()));
    }

    #[test]
    fn namespaces_are_comma_separated_and_deduplicated() {
        let names = |text: &str| text.parse::<Namespaces>().map(|names| names.0.join(" "));
        assert_eq!(names("a,b-2, c ,,a").as_deref(), Ok("a b-2 c"));
        assert_eq!(names("").as_deref(), Ok(""), "all");
        for wrong in ["A", "a/b", "a.b", "-a", "a-", "a b", &"a".repeat(64)] {
            assert!(names(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn zap_levels_are_mapped_to_ours() {
        let level = |text: &str| zap_log_level(text).ok();
        for (zap, ours) in [
            ("debug", "debug"),
            ("INFO", "info"),
            ("error", "error"),
            ("panic", "error"),
            ("1", "debug"),
            ("5", "trace"),
        ] {
            assert_eq!(level(zap).as_deref(), Some(ours), "{zap}");
            assert!(log_level(ours).is_ok());
        }
        assert!(["0", "-1", "loud", ""].iter().all(|text| level(text).is_none()));
    }
}
