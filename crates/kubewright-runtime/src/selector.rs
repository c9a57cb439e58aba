//! Label selectors in their text form: `app=web,tier in (a, b),!legacy`.
//!
//! A selector is parsed once and matched against many objects. Selectors for the server are sent as text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A selector that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid selector {selector:?}: {why}")]
pub struct ParseError {
    selector: String,
    why: &'static str,
}

/// One requirement on the labels of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Requirement {
    /// The label has one of these values. No value is there twice.
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

/// A label selector. The empty selector matches all objects.
///
/// ```
/// use std::collections::BTreeMap;
/// use kubewright_runtime::LabelSelector;
///
/// let selector: LabelSelector = "app=web,tier in (front, back),!legacy".parse()?;
/// let labels = BTreeMap::from([("app".to_owned(), "web".to_owned()), ("tier".to_owned(), "back".to_owned())]);
/// assert!(selector.matches(&labels));
/// assert!(!selector.matches(&BTreeMap::new()));
/// # Ok::<(), kubewright_runtime::selector::ParseError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelSelector(Vec<Requirement>);

impl LabelSelector {
    /// Requires all these labels with these values.
    pub fn equal<L: Into<String>, V: Into<String>>(labels: impl IntoIterator<Item = (L, V)>) -> Self {
        Self(
            labels
                .into_iter()
                .map(|(label, value)| Requirement::In(label.into(), vec![value.into()]))
                .collect(),
        )
    }

    /// Whether the selector matches all objects.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn requirements(&self) -> &[Requirement] {
        &self.0
    }

    /// Whether an object with these labels matches.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.iter().all(|requirement| match requirement {
            Requirement::In(label, values) => labels.get(label).is_some_and(|value| values.contains(value)),
            Requirement::NotIn(label, values) => {
                labels.get(label).is_none_or(|value| !values.contains(value))
            }
            Requirement::Exists(label) => labels.contains_key(label),
            Requirement::Absent(label) => !labels.contains_key(label),
        })
    }
}

impl std::str::FromStr for LabelSelector {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = |why| ParseError { selector: text.to_owned(), why };
        let mut requirements = Vec::new();
        for part in split(text).ok_or_else(|| wrong("unclosed parenthesis"))? {
            let part = part.trim();
            if part.is_empty() {
                if text.trim().is_empty() {
                    continue;
                }
                return Err(wrong("empty requirement between two commas"));
            }
            requirements.push(requirement(part).map_err(wrong)?);
        }
        requirements.sort();
        Ok(Self(requirements))
    }
}

/// Splits at the commas outside parentheses.
fn split(text: &str) -> Option<Vec<&str>> {
    let (mut parts, mut from, mut inside) = (Vec::new(), 0, false);
    for (at, character) in text.char_indices() {
        match character {
            '(' if !inside => inside = true,
            ')' if inside => inside = false,
            '(' | ')' => return None,
            ',' if !inside => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    (!inside).then_some(parts)
}

fn requirement(part: &str) -> Result<Requirement, &'static str> {
    if let Some(label) = part.strip_prefix('!') {
        return Ok(Requirement::Absent(word(label)?));
    }
    if let Some((head, values)) = part.split_once('(') {
        let values = values.strip_suffix(')').ok_or("unexpected text after the closing parenthesis")?;
        let mut head = head.split_whitespace();
        let (label, operator, rest) = (head.next(), head.next(), head.next());
        let values = distinct(values.split(',').map(value).collect::<Result<_, _>>()?);
        return match (label, operator, rest) {
            (Some(label), Some("in"), None) => Ok(Requirement::In(word(label)?, values)),
            (Some(label), Some("notin"), None) => Ok(Requirement::NotIn(word(label)?, values)),
            _ => Err("parentheses are only valid in `label in (...)` and `label notin (...)`"),
        };
    }
    if let Some((label, wanted)) = part.split_once("!=") {
        return Ok(Requirement::NotIn(word(label)?, vec![value(wanted)?]));
    }
    if let Some((label, wanted)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Ok(Requirement::In(word(label)?, vec![value(wanted)?]));
    }
    Ok(Requirement::Exists(word(part)?))
}

/// The values in their order, each once.
fn distinct(mut values: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    values.retain(|value| seen.insert(value.clone()));
    values
}

fn word(text: &str) -> Result<String, &'static str> {
    let text = text.trim();
    if text.is_empty() { Err("missing label name") } else { value(text) }
}

fn value(text: &str) -> Result<String, &'static str> {
    let text = text.trim();
    let plain =
        |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.' | '/');
    if text.chars().all(plain) {
        Ok(text.to_owned())
    } else {
        Err("labels consist of letters, digits, '-', '_', '.' and '/'")
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, requirement) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            match requirement {
                Requirement::In(label, values) if values.len() == 1 => write!(f, "{label}={}", values[0])?,
                Requirement::NotIn(label, values) if values.len() == 1 => {
                    write!(f, "{label}!={}", values[0])?;
                }
                Requirement::In(label, values) => write!(f, "{label} in ({})", values.join(","))?,
                Requirement::NotIn(label, values) => write!(f, "{label} notin ({})", values.join(","))?,
                Requirement::Exists(label) => f.write_str(label)?,
                Requirement::Absent(label) => write!(f, "!{label}")?,
            }
        }
        Ok(())
    }
}

impl TryFrom<k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector> for LabelSelector {
    type Error = ParseError;

    fn try_from(
        selector: k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector,
    ) -> Result<Self, ParseError> {
        let mut requirements = Self::equal(selector.match_labels.unwrap_or_default()).0;
        for wanted in selector.match_expressions.unwrap_or_default() {
            let values = distinct(wanted.values.unwrap_or_default());
            requirements.push(match wanted.operator.as_str() {
                "In" => Requirement::In(wanted.key, values),
                "NotIn" => Requirement::NotIn(wanted.key, values),
                "Exists" => Requirement::Exists(wanted.key),
                "DoesNotExist" => Requirement::Absent(wanted.key),
                _ => return Err(ParseError { selector: wanted.operator, why: "unknown operator" }),
            });
        }
        requirements.sort();
        Ok(Self(requirements))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> BTreeMap<String, String> {
        let pairs = text.split(',').filter(|pair| !pair.is_empty());
        pairs.map(|pair| pair.split_once('=').unwrap()).map(|(l, v)| (l.to_owned(), v.to_owned())).collect()
    }

    #[test]
    fn every_form_matches_as_in_kubectl() {
        for (selector, chosen, refused) in [
            ("", "", "-"),
            ("app=web", "app=web", "app=db"),
            ("app==web", "app=web", ""),
            ("app!=web", "", "app=web"),
            ("app", "app=", ""),
            ("!app", "", "app=web"),
            ("app in (web,db)", "app=db", "app=cache"),
            ("app notin (web, db)", "", "app=db"),
            ("app=web,tier in (a,b),!old", "app=web,tier=a", "app=web,tier=a,old=1"),
            ("example.com/role=", "example.com/role=", "example.com/role=x"),
        ] {
            let read: LabelSelector = selector.parse().unwrap();
            assert!(read.matches(&labels(chosen)), "{selector} does not select {chosen}");
            if refused != "-" {
                assert!(!read.matches(&labels(refused)), "{selector} selects {refused}");
            }
            assert_eq!(read.to_string().parse::<LabelSelector>().unwrap(), read);
        }
    }

    #[test]
    fn invalid_selectors_are_rejected() {
        for wrong in ["a=b,", "a in (b", "a in b)", "a (b)", "=b", "a=b c", "a in (b) c", "a b"] {
            assert!(wrong.parse::<LabelSelector>().is_err(), "{wrong} was read");
        }
    }
}
