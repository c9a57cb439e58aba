//! Validation errors: position, type and text.

use serde_json::Value;

use crate::custom::print::shown;
use kubewright_apimachinery::field::{ErrorKind, ErrorList, FieldError, Path, quote};
use kubewright_apimachinery::json;

/// The position of a value relative to the validated one. Formatted only for errors.
pub(super) enum At<'a> {
    /// The validated value itself.
    Root,
    /// A declared property.
    Field(&'a At<'a>, &'a str),
    /// A field of `additionalProperties`. As upstream, it has a leading dot even at the root.
    Further(&'a At<'a>, &'a str),
    /// A list item.
    Index(&'a At<'a>, usize),
}

impl std::fmt::Display for At<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Self::Root, name) => f.write_str(name),
            Self::Field(parent, name) | Self::Further(parent, name) => write!(f, "{parent}.{name}"),
            Self::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// Distinct errors, and the number of successful checks.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) errors: Vec<Found>,
    pub(super) matches: usize,
}

impl Outcome {
    pub(super) fn add(&mut self, error: Found) {
        // Errors with equal texts are reported once, even for different fields.
        if !self.errors.iter().any(|known| known.text == error.text) {
            self.errors.push(error);
        }
    }

    pub(super) fn extend(&mut self, error: Option<Found>) {
        if let Some(error) = error {
            self.add(error);
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.matches += other.matches;
        if self.errors.is_empty() {
            self.errors = other.errors;
        } else {
            other.errors.into_iter().for_each(|error| self.add(error));
        }
    }

    pub(super) fn into_errors(self, path: &Path) -> ErrorList {
        self.errors.into_iter().map(|error| error.into_error(path)).collect()
    }
}

/// A validation error.
pub(super) struct Found {
    /// The field; `None` where upstream does not report one.
    name: Option<String>,
    /// The message of kube-openapi.
    text: String,
    what: What,
}

enum What {
    Required,
    NotSupported { value: String, supported: String },
    TooLong { max: i64 },
    TooMany { actual: i64, max: i64 },
    Type { value: String },
    Invalid { value: String },
}

impl Found {
    fn new(at: &At<'_>, rule: &str, what: What) -> Self {
        let name = at.to_string();
        Self { text: format!("{name} in body {rule}"), name: Some(name), what }
    }

    /// The value has the wrong type or format.
    pub(super) fn wrong_type(at: &At<'_>, wanted: &str, given: &str) -> Self {
        let value = quote(given);
        Self::new(at, &format!("must be of type {wanted}: {value}"), What::Type { value })
    }

    pub(super) fn invalid(at: &At<'_>, value: String, rule: &str) -> Self {
        Self::new(at, rule, What::Invalid { value })
    }

    pub(super) fn required(at: &At<'_>) -> Self {
        Self::new(at, "is required", What::Required)
    }

    pub(super) fn too_long(at: &At<'_>, max: i64) -> Self {
        Self::new(at, &format!("should be at most {max} chars long"), What::TooLong { max })
    }

    pub(super) fn too_many(at: &At<'_>, of: &str, actual: i64, max: i64) -> Self {
        Self::new(at, &format!("should have at most {max} {of}"), What::TooMany { actual, max })
    }

    pub(super) fn not_supported(at: &At<'_>, value: &Value, allowed: &[Value]) -> Self {
        let quoted = |value: &Value| match value {
            Value::String(text) => quote(text),
            other => quote(&json::to_string(other)),
        };
        let supported = allowed.iter().map(quoted).collect::<Vec<_>>().join(", ");
        let rule = format!("should be one of [{supported}]");
        Self::new(at, &rule, What::NotSupported { value: shown(value), supported })
    }

    pub(super) fn forbidden_property(at: &At<'_>, name: &str) -> Self {
        let text = format!("{at}.{name} in body is a forbidden property");
        Self { name: Some(at.to_string()), text, what: What::Invalid { value: quote(name) } }
    }

    /// The factor of `multipleOf` is invalid.
    pub(super) fn bad_factor(at: &At<'_>, factor: String) -> Self {
        let name = at.to_string();
        let text = format!("factor MultipleOf declared for {name} must be positive: {factor}");
        Self { name: Some(name), text, what: What::Invalid { value: factor } }
    }

    /// An error of a junctor. Upstream reports the field only in the text.
    pub(super) fn whole(at: &At<'_>, rule: &str) -> Self {
        Self::nameless(format!("{} {rule}", quote(&at.to_string())))
    }

    /// An error without a field.
    pub(super) fn nameless(text: String) -> Self {
        Self { name: None, text, what: What::Invalid { value: "\"\"".to_owned() } }
    }

    fn into_error(self, path: &Path) -> FieldError {
        let field = match self.name.as_deref() {
            None | Some("" | ".") => path.clone(),
            Some(name) => path.child(name.strip_prefix('.').unwrap_or(name)),
        };
        let (kind, value, detail) = match self.what {
            What::Required => return FieldError::required(&field, ""),
            What::TooLong { max } => {
                return FieldError::too_long(&field, usize::try_from(max).unwrap_or_default());
            }
            What::TooMany { actual, max } => {
                let count = |count: i64| usize::try_from(count).unwrap_or_default();
                return FieldError::too_many(&field, count(actual), count(max));
            }
            What::NotSupported { value, supported } => {
                (ErrorKind::NotSupported, value, format!("supported values: {supported}"))
            }
            What::Type { value } => (ErrorKind::TypeInvalid, value, self.text),
            What::Invalid { value } => (ErrorKind::Invalid, value, self.text),
        };
        FieldError { kind, field: field.to_string(), value: Some(value), detail }
    }
}
