//! Field selectors: `metadata.name=x,spec.nodeName!=y`.
//!
//! In values, a backslash escapes a comma, an equals sign or a backslash; field names cannot be escaped.

use std::borrow::Cow;
use std::fmt;

/// Requirements on fields, sorted by their text like upstream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector {
    requirements: Vec<FieldRequirement>,
}

/// A field that must or must not have a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldRequirement {
    /// The path of the field, such as `metadata.name`.
    pub field: String,
    /// Whether the value must be equal or different.
    pub equals: bool,
    /// The value.
    pub value: String,
}

/// Why a text is not a field selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldSelectorError {
    /// A term has no operator.
    #[error("invalid selector: '{selector}'; can't understand '{term}'")]
    Term {
        /// The whole selector.
        selector: String,
        /// The invalid term.
        term: String,
    },
    /// A backslash before another character than a comma, an equals sign or a backslash.
    #[error("invalid field selector: invalid escape sequence: {0}")]
    Escape(String),
    /// An unescaped equals sign in a value. The message contains its character code, as upstream's does.
    #[error("invalid field selector: unescaped character in value: {}", u32::from(*.0))]
    Unescaped(char),
}

impl FieldSelector {
    /// Parses a selector. Ignores empty terms.
    pub fn parse(selector: &str) -> Result<Self, FieldSelectorError> {
        let mut terms = split_terms(selector);
        terms.sort_unstable();
        let terms = terms.into_iter().filter(|term| !term.is_empty());
        let requirements = terms.map(|term| {
            let (field, equals, value) = split_term(term).ok_or_else(|| FieldSelectorError::Term {
                selector: selector.to_owned(),
                term: term.to_owned(),
            })?;
            Ok(FieldRequirement {
                field: field.to_owned(),
                equals,
                value: unescape_value(value)?.into_owned(),
            })
        });
        Ok(Self { requirements: requirements.collect::<Result<_, _>>()? })
    }

    /// The requirements.
    pub fn requirements(&self) -> &[FieldRequirement] {
        &self.requirements
    }

    /// Whether everything is selected.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether an object matches; `field` looks up its fields. A missing field has the empty value.
    pub fn matches<'a>(&self, field: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = field(&requirement.field).unwrap_or_default();
            (value == requirement.value) == requirement.equals
        })
    }

    /// The value that the selector requires for a field, if any.
    pub fn required_value(&self, field: &str) -> Option<&str> {
        let exact = self.requirements.iter().find(|r| r.equals && r.field == field);
        exact.map(|requirement| requirement.value.as_str())
    }
}

/// The canonical text, which parses to an equal selector.
impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, FieldRequirement { field, equals, value }) in self.requirements.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            let operator = if *equals { "=" } else { "!=" };
            write!(f, "{comma}{field}{operator}{}", escape_value(value))?;
        }
        Ok(())
    }
}

/// Escapes a literal value for a selector.
pub fn escape_value(value: &str) -> Cow<'_, str> {
    if !value.contains(['\\', ',', '=']) {
        return Cow::Borrowed(value);
    }
    let mut out = String::with_capacity(value.len() + 4);
    for c in value.chars() {
        if matches!(c, '\\' | ',' | '=') {
            out.push('\\');
        }
        out.push(c);
    }
    Cow::Owned(out)
}

fn unescape_value(value: &str) -> Result<Cow<'_, str>, FieldSelectorError> {
    if !value.contains(['\\', ',', '=']) {
        return Ok(Cow::Borrowed(value));
    }
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => escaped,
                Some(other) => return Err(FieldSelectorError::Escape(format!("\\{other}"))),
                None => return Err(FieldSelectorError::Escape("\\".to_owned())),
            },
            ',' | '=' => return Err(FieldSelectorError::Unescaped(c)),
            plain => plain,
        });
    }
    Ok(Cow::Owned(out))
}

/// Splits at unescaped commas.
fn split_terms(selector: &str) -> Vec<&str> {
    let mut escaped = false;
    selector
        .split(|c| {
            let is_separator = c == ',' && !escaped;
            escaped = c == '\\' && !escaped;
            is_separator
        })
        .collect()
}

/// Splits a term at its first operator: the field, whether it must be equal, and the value.
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let at = term.find('=').into_iter().chain(term.find("!=")).min()?;
    let (field, rest) = term.split_at(at);
    if let Some(value) = rest.strip_prefix("!=") {
        return Some((field, false, value));
    }
    let value = rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?;
    Some((field, true, value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(selector: &str) -> FieldSelector {
        FieldSelector::parse(selector).expect(selector)
    }

    fn error(selector: &str) -> String {
        FieldSelector::parse(selector).expect_err(selector).to_string()
    }

    #[test]
    fn terms_are_split_at_commas_and_operators() {
        let selector = parse("metadata.name=x,spec.foo!=y,a==b");
        let terms: Vec<_> =
            selector.requirements().iter().map(|r| (&*r.field, r.equals, &*r.value)).collect();
        assert_eq!(terms, [("a", true, "b"), ("metadata.name", true, "x"), ("spec.foo", false, "y")]);
        assert_eq!(selector.to_string(), "a=b,metadata.name=x,spec.foo!=y");
    }

    #[test]
    fn an_empty_selector_selects_everything() {
        for empty in ["", ",", ",,"] {
            assert!(parse(empty).is_empty());
            assert!(parse(empty).matches(|_| None));
        }
        assert_eq!(parse("metadata.name=x,").to_string(), "metadata.name=x");
    }

    #[test]
    fn a_missing_field_has_the_empty_value() {
        let fields = |field: &str| (field == "a").then_some("1");
        assert!(parse("a=1,b=").matches(fields));
        assert!(parse("b!=1").matches(fields));
        assert!(!parse("a=1,b=2").matches(fields));
        assert!(!parse("a!=1").matches(fields));
    }

    #[test]
    fn escaped_characters_are_part_of_the_value() {
        let selector = parse(r"metadata.name=a\,b\=c\\d");
        assert_eq!(selector.required_value("metadata.name"), Some(r"a,b=c\d"));
        assert_eq!(selector.to_string(), r"metadata.name=a\,b\=c\\d");
        assert_eq!(parse(r"a=\\,b=1").to_string(), r"a=\\,b=1");
    }

    #[test]
    fn errors_have_upstreams_text() {
        assert_eq!(
            error("metadata.name"),
            "invalid selector: 'metadata.name'; can't understand 'metadata.name'"
        );
        assert_eq!(error("a=b,c in (d)"), "invalid selector: 'a=b,c in (d)'; can't understand 'c in (d)'");
        assert_eq!(error(r"a=\x"), r"invalid field selector: invalid escape sequence: \x");
        assert_eq!(error(r"a=b\"), r"invalid field selector: invalid escape sequence: \");
        assert_eq!(error("a=b=c"), "invalid field selector: unescaped character in value: 61");
        assert_eq!(error("a===c"), "invalid field selector: unescaped character in value: 61");
    }

    #[test]
    fn only_equality_requires_a_value() {
        assert_eq!(parse("a=1,b!=2").required_value("a"), Some("1"));
        assert_eq!(parse("a=1,b!=2").required_value("b"), None);
    }

    proptest! {
        #[test]
        fn selectors_round_trip(field in "[a-z.]{1,8}", value in ".*", equals: bool) {
            let selector = FieldSelector { requirements: vec![FieldRequirement { field, equals, value }] };
            prop_assert_eq!(FieldSelector::parse(&selector.to_string()).unwrap(), selector);
        }

        #[test]
        fn no_input_panics(text in ".*") {
            let _ = FieldSelector::parse(&text);
        }
    }
}
