//! Options of a list.

use crate::selector::{LabelSelector, ParseError};

/// Selects the objects to list or to delete.
///
/// ```
/// use kubewright_runtime::ListOptions;
///
/// let list = ListOptions::namespace("default").labels("app=web").field("spec.nodeName", "node-1");
/// ```
#[derive(Debug, Clone, Default)]
pub struct ListOptions {
    pub(crate) namespace: Option<String>,
    pub(crate) labels: String,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) limit: Option<usize>,
}

impl ListOptions {
    /// All objects in all namespaces.
    pub fn all() -> Self {
        Self::default()
    }

    /// All objects in one namespace.
    pub fn namespace(namespace: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), ..Self::default() }
    }

    /// Only objects that match a label selector such as `app=web,tier in (a,b)`.
    #[must_use]
    pub fn labels(mut self, selector: impl AsRef<str>) -> Self {
        if !self.labels.is_empty() {
            self.labels.push(',');
        }
        self.labels.push_str(selector.as_ref());
        self
    }

    /// Only objects that match a [`LabelSelector`].
    #[must_use]
    pub fn matching(self, selector: &LabelSelector) -> Self {
        if selector.is_empty() { self } else { self.labels(selector.to_string()) }
    }

    /// Only objects with this value of a field. The cache uses the index of that name; the server supports a fixed set
    /// of fields.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>, value: impl Into<String>) -> Self {
        self.fields.push((field.into(), value.into()));
        self
    }

    /// At most this many objects.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }

    pub(crate) fn label_selector(&self) -> Result<LabelSelector, ParseError> {
        self.labels.parse()
    }

    pub(crate) fn field_selector(&self) -> String {
        let parts: Vec<String> =
            self.fields.iter().map(|(field, value)| format!("{field}={}", escaped(value))).collect();
        parts.join(",")
    }
}

/// Escapes a value for a field selector.
fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace(',', r"\,").replace('=', r"\=")
}
