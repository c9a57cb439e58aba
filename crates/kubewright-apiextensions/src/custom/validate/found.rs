//! Validation errors: position, type and text.

use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use serde_json::Value;

use crate::custom::print::shown;
use crate::structural::Allowed;
use kubewright_apimachinery::field::{ErrorKind, ErrorList, FieldError, Path, quote};

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

/// Maximum size of the reported errors. Each appears twice in the Status.
const MAX_BYTES: usize = 1 << 20;

/// Distinct errors, and the number of successful checks.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) errors: Vec<Found>,
    pub(super) matches: usize,
    /// Errors with equal texts are reported once, even for different fields. Filled with the second error.
    known: Option<HashSet<Text>>,
    bytes: usize,
    /// Errors beyond [`MAX_BYTES`] were dropped.
    truncated: bool,
}

impl Outcome {
    pub(super) fn add(&mut self, error: Found) {
        if let Some(first) = self.errors.first() {
            let known = self.known.get_or_insert_with(|| HashSet::from([first.text.clone()]));
            if !known.insert(error.text.clone()) {
                return;
            }
        }
        // The first error is always reported.
        if self.errors.is_empty() || self.bytes + error.bytes() <= MAX_BYTES {
            self.bytes += error.bytes();
            self.errors.push(error);
        } else {
            self.truncated = true;
        }
    }

    pub(super) fn extend(&mut self, error: Option<Found>) {
        if let Some(error) = error {
            self.add(error);
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        let (matches, truncated) = (self.matches + other.matches, self.truncated | other.truncated);
        if self.errors.is_empty() {
            *self = other;
        } else {
            other.errors.into_iter().for_each(|error| self.add(error));
        }
        (self.matches, self.truncated) = (matches, self.truncated | truncated);
    }

    /// Removes the errors.
    pub(super) fn clear(&mut self) {
        *self = Self { matches: self.matches, ..Self::default() };
    }

    pub(super) fn into_errors(self, path: &Path) -> ErrorList {
        let more = self.truncated.then(|| FieldError {
            kind: ErrorKind::Invalid,
            field: path.to_string(),
            value: Some("null".to_owned()),
            detail: "too many errors; further errors are not reported".to_owned(),
        });
        self.errors.into_iter().map(|error| error.into_error(path)).chain(more).collect()
    }
}

/// A validation error.
pub(super) struct Found {
    /// The field; `None` where upstream does not report one.
    name: Option<Rc<str>>,
    text: Text,
    what: What,
}

/// The message of kube-openapi.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Text {
    Of(Rc<str>),
    /// A field and its supported values, without a copy of the values.
    NotSupported(Rc<str>, Supported),
}

/// The supported values in messages. They may be long: the hash of a text is the hash of its field.
#[derive(Clone)]
struct Supported(Arc<str>);

impl PartialEq for Supported {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Eq for Supported {}

impl std::hash::Hash for Supported {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

enum What {
    Required,
    NotSupported { value: String },
    TooLong { max: i64 },
    TooMany { actual: i64, max: i64 },
    Type { value: String },
    Invalid { value: String },
}

impl Text {
    fn of(text: String) -> Self {
        Self::Of(text.into())
    }
}

impl Found {
    fn new(at: &At<'_>, rule: &str, what: What) -> Self {
        let name = at.to_string();
        Self { text: Text::of(format!("{name} in body {rule}")), name: Some(name.into()), what }
    }

    /// The size of the error in a response.
    fn bytes(&self) -> usize {
        let name = self.name.as_ref().map_or(0, |name| name.len());
        let value = match &self.what {
            What::NotSupported { value } | What::Type { value } | What::Invalid { value } => value.len(),
            What::Required | What::TooLong { .. } | What::TooMany { .. } => 0,
        };
        let text = match &self.text {
            Text::Of(text) => text.len(),
            Text::NotSupported(_, supported) => supported.0.len(),
        };
        name + value + text
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

    pub(super) fn not_supported(at: &At<'_>, value: &Value, allowed: &Allowed) -> Self {
        let name: Rc<str> = at.to_string().into();
        let text = Text::NotSupported(name.clone(), Supported(allowed.supported().clone()));
        Self { name: Some(name), text, what: What::NotSupported { value: shown(value) } }
    }

    pub(super) fn forbidden_property(at: &At<'_>, name: &str) -> Self {
        let text = Text::of(format!("{at}.{name} in body is a forbidden property"));
        Self { name: Some(at.to_string().into()), text, what: What::Invalid { value: quote(name) } }
    }

    /// The factor of `multipleOf` is invalid.
    pub(super) fn bad_factor(at: &At<'_>, factor: String) -> Self {
        let name = at.to_string();
        let text = Text::of(format!("factor MultipleOf declared for {name} must be positive: {factor}"));
        Self { name: Some(name.into()), text, what: What::Invalid { value: factor } }
    }

    /// An error of a junctor. Upstream reports the field only in the text.
    pub(super) fn whole(at: &At<'_>, rule: &str) -> Self {
        Self::nameless(format!("{} {rule}", quote(&at.to_string())))
    }

    /// An error without a field.
    pub(super) fn nameless(text: String) -> Self {
        Self { name: None, text: Text::of(text), what: What::Invalid { value: "\"\"".to_owned() } }
    }

    fn into_error(self, path: &Path) -> FieldError {
        let field = match self.name.as_deref() {
            None | Some("" | ".") => path.clone(),
            Some(name) => path.child(name.strip_prefix('.').unwrap_or(name)),
        };
        let (kind, value) = match self.what {
            What::Required => return FieldError::required(&field, ""),
            What::TooLong { max } => {
                return FieldError::too_long(&field, usize::try_from(max).unwrap_or_default());
            }
            What::TooMany { actual, max } => {
                let count = |count: i64| usize::try_from(count).unwrap_or_default();
                return FieldError::too_many(&field, count(actual), count(max));
            }
            What::NotSupported { value } => (ErrorKind::NotSupported, value),
            What::Type { value } => (ErrorKind::TypeInvalid, value),
            What::Invalid { value } => (ErrorKind::Invalid, value),
        };
        let detail = match self.text {
            Text::Of(text) => text.as_ref().to_owned(),
            Text::NotSupported(_, supported) => format!("supported values: {}", supported.0),
        };
        FieldError { kind, field: field.to_string(), value: Some(value), detail }
    }
}
