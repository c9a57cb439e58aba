//! Label selectors: `a=b,c!=d,e in (x,y),!f`.
//!
//! A [`LabelSelector`] is created from query text or from a `metav1.LabelSelector` object. Both use
//! [`Requirement::new`], so keys and values are always valid.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use super::label_parser::parse;
use crate::json::{quote, to_string};
use crate::names;

/// Requirements on labels, sorted by key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelSelector {
    /// `None` selects nothing.
    requirements: Option<Vec<Requirement>>,
}

/// A requirement on one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

/// The relation between a label and the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `in`: the label has one of the values.
    In,
    /// `notin`: the label is missing or has none of the values.
    NotIn,
    /// `=`
    Equals,
    /// `==`
    DoubleEquals,
    /// `!=`: the label is missing or has another value.
    NotEquals,
    /// The label exists.
    Exists,
    /// `!`: the label does not exist.
    DoesNotExist,
    /// `>`: the label is a greater integer.
    GreaterThan,
    /// `<`: the label is a smaller integer.
    LessThan,
}

/// Why a text or object is not a label selector. The text is upstream's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LabelSelectorError(pub(super) String);

/// Lookup of labels.
pub trait Labels {
    /// The value of a label.
    fn label(&self, key: &str) -> Option<&str>;
}

/// `metadata.labels` of an object. Values that are not strings are ignored.
impl Labels for Map<String, Value> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Value::as_str)
    }
}

/// `metadata.labels` of an object; `null` and other non-objects have no labels.
impl Labels for Value {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Value::as_str)
    }
}

impl Labels for BTreeMap<String, String> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
    }
}

impl LabelSelector {
    /// Selects everything.
    pub const fn everything() -> Self {
        Self { requirements: Some(Vec::new()) }
    }

    /// Selects nothing. Has no text form.
    pub const fn nothing() -> Self {
        Self { requirements: None }
    }

    /// Selects objects that meet all requirements.
    pub fn new(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Self { requirements: Some(requirements) }
    }

    /// Parses the text of a query.
    pub fn parse(selector: &str) -> Result<Self, LabelSelectorError> {
        parse(selector).map(Self::new)
    }

    /// Converts a `metav1.LabelSelector`. `null` selects nothing; an empty object selects everything. Fields
    /// of a wrong type count as missing, because the caller has decoded the object before.
    pub fn from_object(selector: &Value) -> Result<Self, LabelSelectorError> {
        if selector.is_null() {
            return Ok(Self::nothing());
        }
        let mut requirements = Vec::new();
        for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
            let value = value.as_str().unwrap_or_default().to_owned();
            requirements.push(Requirement::new(key.clone(), Operator::Equals, vec![value])?);
        }
        for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
            let operator = match expression["operator"].as_str().unwrap_or_default() {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => {
                    let operator = quote(other);
                    return Err(LabelSelectorError(format!(
                        "{operator} is not a valid label selector operator"
                    )));
                }
            };
            let key = expression["key"].as_str().unwrap_or_default().to_owned();
            let values = expression["values"].as_array().into_iter().flatten();
            let values = values.map(|value| value.as_str().unwrap_or_default().to_owned()).collect();
            requirements.push(Requirement::new(key, operator, values)?);
        }
        Ok(Self::new(requirements))
    }

    /// Selects objects with all of these labels. Does not validate them.
    pub fn from_labels<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let requirement = |(key, value): (&str, &str)| Requirement {
            key: key.to_owned(),
            operator: Operator::Equals,
            values: vec![value.to_owned()],
        };
        Self::new(labels.into_iter().map(requirement).collect())
    }

    /// The requirements; empty for the selector that selects nothing.
    pub fn requirements(&self) -> &[Requirement] {
        self.requirements.as_deref().unwrap_or_default()
    }

    /// Whether everything is selected.
    pub fn is_empty(&self) -> bool {
        self.requirements.as_ref().is_some_and(Vec::is_empty)
    }

    /// Whether an object with these labels is selected.
    pub fn matches(&self, labels: &impl Labels) -> bool {
        self.requirements.as_ref().is_some_and(|all| all.iter().all(|one| one.matches(labels)))
    }

    /// The value that the first requirement on the label demands, if any.
    pub fn required_value(&self, key: &str) -> Option<&str> {
        let requirement = self.requirements().iter().find(|requirement| requirement.key == key)?;
        match (requirement.operator, &requirement.values[..]) {
            (Operator::Equals | Operator::DoubleEquals | Operator::In, [value]) => Some(value),
            _ => None,
        }
    }
}

/// The canonical text; empty for the selector that selects nothing.
impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, requirement) in self.requirements().iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

impl Requirement {
    /// Validates the key, the number of values and the values.
    pub fn new(key: String, operator: Operator, values: Vec<String>) -> Result<Self, LabelSelectorError> {
        let mut errors = Vec::new();
        check_key(&key, "key", &mut errors);
        let one_value = values.len() == 1;
        let wrong_count = match operator {
            Operator::In | Operator::NotIn if values.is_empty() => {
                Some("for 'in', 'notin' operators, values set can't be empty")
            }
            Operator::Equals | Operator::DoubleEquals | Operator::NotEquals if !one_value => {
                Some("exact-match compatibility requires one single value")
            }
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
                Some("values set must be empty for exists and does not exist")
            }
            Operator::GreaterThan | Operator::LessThan if !one_value => {
                Some("for 'Gt', 'Lt' operators, exactly one value is required")
            }
            _ => None,
        };
        if let Some(message) = wrong_count {
            // Upstream prints a nil slice if the object has no values.
            let shown =
                if values.is_empty() { "null".to_owned() } else { to_string(&Value::from(values.clone())) };
            errors.push(format!("values: Invalid value: {shown}: {message}"));
        }
        if let Operator::GreaterThan | Operator::LessThan = operator {
            for (i, value) in values.iter().enumerate().filter(|(_, value)| value.parse::<i64>().is_err()) {
                let message = "for 'Gt', 'Lt' operators, the value must be an integer";
                errors.push(format!("values[{i}]: Invalid value: {}: {message}", quote(value)));
            }
        }
        for (i, value) in values.iter().enumerate() {
            let messages = names::label_value(value);
            if !messages.is_empty() {
                let (value, messages) = (quote(value), messages.join("; "));
                errors.push(format!("values[{i}][{key}]: Invalid value: {value}: {messages}"));
            }
        }
        match &mut errors[..] {
            [] => Ok(Self { key, operator, values }),
            [error] => Err(LabelSelectorError(std::mem::take(error))),
            _ => Err(LabelSelectorError(format!("[{}]", errors.join(", ")))),
        }
    }

    /// The label key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The operator.
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// The values.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Whether the labels meet the requirement.
    pub fn matches(&self, labels: &impl Labels) -> bool {
        let label = labels.label(&self.key);
        let has_value = |label: &str| self.values.iter().any(|value| value == label);
        let compare = |label: &str| {
            let value = self.values.first()?.parse::<i64>().ok()?;
            Some(label.parse::<i64>().ok()?.cmp(&value))
        };
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => label.is_some_and(has_value),
            Operator::NotIn | Operator::NotEquals => !label.is_some_and(has_value),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan => label.and_then(compare).is_some_and(Ordering::is_gt),
            Operator::LessThan => label.and_then(compare).is_some_and(Ordering::is_lt),
        }
    }
}

/// The canonical text, with sorted values.
impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        let mut values: Vec<&str> = self.values.iter().map(String::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        match self.operator {
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

/// Adds the error of an invalid key, with upstream's field path.
pub(super) fn check_key(key: &str, path: &str, errors: &mut Vec<String>) {
    let messages = names::label_key(key);
    if !messages.is_empty() {
        errors.push(format!("{path}: Invalid value: {}: {}", quote(key), messages.join("; ")));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn selects(selector: &str, labels: &Value) -> bool {
        LabelSelector::parse(selector).expect(selector).matches(labels)
    }

    #[test]
    fn requirements_match_labels() {
        let labels = json!({"a": "1", "b": "x", "e": ""});
        for selector in [
            "",
            "a",
            "a=1",
            "a==1",
            "a!=2",
            "c!=2",
            "a in (1,2)",
            "a notin (2)",
            "c notin (2)",
            "!c",
            "e=",
            "e",
            "a>0",
            "a<2",
            "a=1,b=x",
            "e in ()",
            "a in (1,)",
            "a in (,1)",
        ] {
            assert!(selects(selector, &labels), "{selector}");
        }
        for selector in [
            "c",
            "a=2",
            "c=",
            "c==1",
            "a!=1",
            "a in (2)",
            "c in (1)",
            "a notin (1)",
            "!a",
            "a>1",
            "a<1",
            "b>0",
            "c>0",
            "a=1,b=y",
        ] {
            assert!(!selects(selector, &labels), "{selector}");
        }
    }

    #[test]
    fn an_object_without_labels_matches_negative_requirements() {
        assert!(selects("!a,b!=1", &Value::Null));
        assert!(!selects("a", &Value::Null));
    }

    #[test]
    fn match_labels_and_match_expressions_are_combined() {
        let selector = LabelSelector::from_object(&json!({
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["b", "a"]},
                {"key": "env", "operator": "NotIn", "values": ["dev"]},
                {"key": "new", "operator": "Exists"},
                {"key": "old", "operator": "DoesNotExist", "values": []},
            ],
        }))
        .unwrap();
        assert_eq!(selector.to_string(), "app=web,env notin (dev),new,!old,tier in (a,b)");
        assert!(selector.matches(&json!({"app": "web", "tier": "a", "new": ""})));
        assert!(!selector.matches(&json!({"app": "web", "tier": "a", "new": "", "old": ""})));
    }

    #[test]
    fn null_selects_nothing_and_an_empty_object_everything() {
        let nothing = LabelSelector::from_object(&Value::Null).unwrap();
        assert_eq!(nothing, LabelSelector::nothing());
        assert!(!nothing.matches(&json!({})) && !nothing.is_empty() && nothing.to_string().is_empty());
        let everything = LabelSelector::from_object(&json!({})).unwrap();
        assert_eq!(everything, LabelSelector::everything());
        assert!(everything.matches(&json!({})) && everything.is_empty());
    }

    #[test]
    fn a_label_selector_object_is_validated() {
        let error = |selector: Value| LabelSelector::from_object(&selector).unwrap_err().to_string();
        assert_eq!(
            error(json!({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]})),
            "\"Gt\" is not a valid label selector operator"
        );
        assert_eq!(
            error(json!({"matchExpressions": [{"key": "a", "operator": "In"}]})),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
        );
        assert_eq!(
            error(json!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]})),
            "values: Invalid value: [\"x\"]: values set must be empty for exists and does not exist"
        );
        let both = error(json!({"matchLabels": {"-": "!"}}));
        assert!(both.starts_with("[key: Invalid value: \"-\": name part must consist"), "{both}");
        assert!(both.contains(", values[0][-]: Invalid value: \"!\": a valid label must be"), "{both}");
    }

    #[test]
    fn only_equality_requires_a_single_value() {
        let selector = LabelSelector::parse("a=1,b in (2),c in (3,4),d!=5,e").unwrap();
        assert_eq!(selector.required_value("a"), Some("1"));
        assert_eq!(selector.required_value("b"), Some("2"));
        for key in ["c", "d", "e", "f"] {
            assert_eq!(selector.required_value(key), None);
        }
    }

    #[test]
    fn a_selector_is_built_from_labels() {
        let selector = LabelSelector::from_labels([("b", "2"), ("a", "1")]);
        assert_eq!(selector.to_string(), "a=1,b=2");
    }

    proptest! {
        #[test]
        fn selectors_round_trip(
            text in "(!?[a-c]|[a-c](=|==|!=|<|>)[0-9]|[a-c] (in|notin) \\([a-z](,[a-z]){0,3}\\))(,[d-f]){0,2}",
        ) {
            let selector = LabelSelector::parse(&text).unwrap();
            prop_assert_eq!(LabelSelector::parse(&selector.to_string()).unwrap(), selector);
        }

        #[test]
        fn no_input_panics(text in "[ab=!,()<> in\\x00-]{0,16}|.*") {
            let _ = LabelSelector::parse(&text);
        }
    }
}
