//! Semantic versions.

use std::cmp::Ordering;
use std::sync::Arc;

use super::Function;
use crate::error::EvalError;
use crate::value::{Evaluated, Extension, Value};
use kubewright_apimachinery::field::quote;

/// A semantic version. Build metadata does not affect the order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Semver {
    numbers: [u64; 3],
    pre_release: Vec<Identifier>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    // Numeric identifiers sort before alphanumeric ones.
    Number(u64),
    Word(String),
}

impl Semver {
    /// Parses a strict semantic version.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(patch)) = (parts.next(), parts.next(), parts.next()) else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let end = patch.find(['-', '+']).unwrap_or(patch.len());
        let numbers = [number("major", major)?, number("minor", minor)?, number("patch", &patch[..end])?];
        let (before, build) = match patch[end..].split_once('+') {
            Some((before, build)) => (before, Some(build)),
            None => (&patch[end..], None),
        };
        let mut pre_release = Vec::new();
        if let Some(words) = before.strip_prefix('-') {
            for word in words.split('.') {
                pre_release.push(identifier(word)?);
            }
        }
        for word in build.into_iter().flat_map(|build| build.split('.')) {
            if word.is_empty() {
                return Err("Build meta data is empty".to_owned());
            }
            if !is_word(word) {
                return Err(format!("Invalid character(s) found in build meta data {}", quote(word)));
            }
        }
        Ok(Self { numbers, pre_release })
    }

    /// Parses a version with an optional `v` prefix, missing parts and leading zeros.
    fn parse_tolerant(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
        if parts.len() < 3 {
            if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
                return Err("short version cannot contain PreRelease/Build meta data".to_owned());
            }
            parts.resize(3, "0".to_owned());
        }
        Self::parse(&parts.join("."))
    }

    /// Compares two versions.
    pub(crate) fn cmp(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| match (&self.pre_release[..], &other.pre_release[..]) {
            ([], []) => Ordering::Equal,
            ([], _) => Ordering::Greater,
            (_, []) => Ordering::Less,
            (mine, theirs) => mine.cmp(theirs),
        })
    }
}

fn without_zeros(part: &str) -> String {
    if part.len() <= 1 {
        return part.to_owned();
    }
    let bare = part.trim_start_matches('0');
    if bare.starts_with(|c: char| c.is_ascii_digit()) { bare.to_owned() } else { format!("0{bare}") }
}

fn is_word(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn number(name: &str, text: &str) -> Result<u64, String> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("Invalid character(s) found in {name} number {}", quote(text)));
    }
    if text.len() > 1 && text.starts_with('0') {
        let name = name[..1].to_uppercase() + &name[1..];
        return Err(format!("{name} number must not contain leading zeroes {}", quote(text)));
    }
    text.parse().map_err(|_| {
        let problem = if text.is_empty() { "invalid syntax" } else { "value out of range" };
        format!("strconv.ParseUint: parsing {}: {problem}", quote(text))
    })
}

fn identifier(word: &str) -> Result<Identifier, String> {
    if word.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if word.bytes().all(|byte| byte.is_ascii_digit()) {
        if word.len() > 1 && word.starts_with('0') {
            return Err(format!(
                "Numeric PreRelease version must not contain leading zeroes {}",
                quote(word)
            ));
        }
        return word
            .parse()
            .map(Identifier::Number)
            .map_err(|_| format!("strconv.ParseUint: parsing {}: value out of range", quote(word)));
    }
    if is_word(word) {
        Ok(Identifier::Word(word.to_owned()))
    } else {
        Err(format!("Invalid character(s) found in prerelease {}", quote(word)))
    }
}

pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "semver" => |args| {
            let parsed = parse_args(args)?;
            let value = |version| Value::Extension(Extension::Semver(Arc::new(version)));
            Some(parsed.map(value).map_err(EvalError::new))
        },
        "isSemver" => |args| Some(Ok(Value::Bool(parse_args(args)?.is_ok()))),
        "major" => |args| number_of(args, 0),
        "minor" => |args| number_of(args, 1),
        "patch" => |args| number_of(args, 2),
        _ => return None,
    })
}

fn parse_args(args: &[Value<'_>]) -> Option<Result<Semver, String>> {
    match args {
        [Value::String(text)] | [Value::String(text), Value::Bool(false)] => Some(Semver::parse(text)),
        [Value::String(text), Value::Bool(true)] => Some(Semver::parse_tolerant(text)),
        _ => None,
    }
}

fn number_of<'a>(args: &[Value<'a>], place: usize) -> Option<Evaluated<'a>> {
    match args {
        [Value::Extension(Extension::Semver(version))] => {
            Some(Ok(Value::Int(version.numbers[place].cast_signed())))
        }
        _ => None,
    }
}

/// Compares two version arguments.
pub(super) fn order(args: &[Value<'_>]) -> Option<Ordering> {
    match args {
        [Value::Extension(Extension::Semver(a)), Value::Extension(Extension::Semver(b))] => Some(a.cmp(b)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_semver_precedence() {
        let ordered = [
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0",
            "1.2.0",
        ];
        for pair in ordered.windows(2) {
            assert_eq!(Semver::parse(pair[0]).unwrap().cmp(&Semver::parse(pair[1]).unwrap()), Ordering::Less);
        }
        assert_eq!(
            Semver::parse("1.0.0+a").unwrap().cmp(&Semver::parse("1.0.0+b").unwrap()),
            Ordering::Equal
        );
    }

    #[test]
    fn only_the_tolerant_parser_accepts_short_versions() {
        assert!(
            Semver::parse("v1.0.0").is_err()
                && Semver::parse("1.0").is_err()
                && Semver::parse("01.0.0").is_err()
        );
        assert_eq!(Semver::parse_tolerant("v01.0").unwrap(), Semver::parse("1.0.0").unwrap());
        assert!(Semver::parse_tolerant("1.0-a").is_err());
    }
}
