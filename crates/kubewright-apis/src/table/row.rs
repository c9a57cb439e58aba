//! Building blocks of cells: names, ages, selectors, and lists that end in `+ 2 more...`.

use serde_json::{Map, Value};

use kubewright_apimachinery::duration::human_duration;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::selector::LabelSelector;
pub use kubewright_apimachinery::time::age;
pub(crate) use kubewright_apimachinery::time::instant;

/// An object and the current time.
pub(crate) struct Row<'a> {
    pub(crate) object: &'a Value,
    pub(crate) now: i64,
}

impl<'a> Row<'a> {
    pub(crate) fn name(&self) -> Value {
        self.text("metadata.name")
    }

    /// Time since creation.
    pub(crate) fn age(&self) -> Value {
        self.since("metadata.creationTimestamp").into()
    }

    /// Time since the time at `path`.
    pub(crate) fn since(&self, path: &str) -> String {
        age(self.str(path), self.now)
    }

    pub(crate) fn str(&self, path: &str) -> &'a str {
        self.object.str_at(path)
    }

    /// The string at `path`, or an empty string.
    pub(crate) fn text(&self, path: &str) -> Value {
        self.str(path).into()
    }

    /// The string at `path`, or `otherwise` if it is empty.
    pub(crate) fn text_or(&self, path: &str, otherwise: &str) -> Value {
        non_empty(self.str(path), otherwise).into()
    }

    /// The string at `path`, possibly empty, or `otherwise` if it is absent.
    pub(crate) fn optional(&self, path: &str, otherwise: &str) -> Value {
        self.object.at(path).as_str().unwrap_or(otherwise).into()
    }

    /// The integer at `path`, or zero.
    pub(crate) fn int(&self, path: &str) -> i64 {
        self.object.int_at(path).unwrap_or_default()
    }

    pub(crate) fn number(&self, path: &str) -> Value {
        self.int(path).into()
    }

    pub(crate) fn flag(&self, path: &str) -> Value {
        self.object.bool_at(path).into()
    }

    pub(crate) fn list(&self, path: &str) -> &'a [Value] {
        self.object.list_at(path)
    }

    /// The length of the list at `path`.
    pub(crate) fn count(&self, path: &str) -> Value {
        self.list(path).len().into()
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.object.has(path)
    }

    /// Whether the object has a deletion timestamp.
    pub(crate) fn is_deleted(&self) -> bool {
        self.has("metadata.deletionTimestamp")
    }

    /// The label selector at `path`.
    pub(crate) fn selector(&self, path: &str) -> Value {
        match LabelSelector::from_object(self.object.at(path)) {
            Ok(selector) => non_empty(&selector.to_string(), NONE).into(),
            Err(_) => "<error>".into(),
        }
    }

    /// The value of an annotation.
    pub(crate) fn annotation(&self, key: &str) -> Option<&'a str> {
        self.object.map_at("metadata.annotations").get(key).and_then(Value::as_str)
    }

    /// The labels at `path`.
    pub(crate) fn labels(&self, path: &str) -> Value {
        non_empty(&labels(self.object.map_at(path)), NONE).into()
    }

    /// Names and images of the containers of the pod spec at `path`.
    pub(crate) fn containers(&self, path: &str) -> [Value; 2] {
        let containers = self.object.at(path).list_at("containers");
        ["name", "image"].map(|field| joined(containers.iter().map(|c| c.str_at(field)), ",").into())
    }
}

/// Maximum number of list items in a cell.
pub(crate) const SHOWN: usize = 3;
pub(crate) const NONE: &str = "<none>";
pub(crate) const UNSET: &str = "<unset>";
pub(crate) const UNKNOWN: &str = "<unknown>";

/// Like [`age`], for a Unix time in seconds.
pub(crate) fn age_of(then: i64, now: i64) -> String {
    human_duration(now - then)
}

pub(crate) fn non_empty<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}

pub(crate) fn joined<'a>(items: impl IntoIterator<Item = &'a str>, separator: &str) -> String {
    items.into_iter().collect::<Vec<_>>().join(separator)
}

/// The strings of a list, joined.
pub(crate) fn joined_list(list: &[Value], separator: &str) -> String {
    joined(list.iter().filter_map(Value::as_str), separator)
}

/// The first `max` items, and the number of omitted ones.
pub(crate) fn first(items: &[String], max: usize, separator: &str) -> String {
    let shown = items[..items.len().min(max)].join(separator);
    match items.len().saturating_sub(max) {
        0 => shown,
        more => format!("{shown} + {more} more..."),
    }
}

/// The first condition of type `ty`.
pub(crate) fn condition<'a>(conditions: &'a [Value], ty: &str) -> Option<&'a Value> {
    conditions.iter().find(|condition| condition.str_at("type") == ty)
}

/// Whether the first condition of type `ty` is true.
pub(crate) fn is_true(conditions: &[Value], ty: &str) -> bool {
    condition(conditions, ty).is_some_and(|condition| condition.str_at("status") == "True")
}

fn labels(labels: &Map<String, Value>) -> String {
    let pairs: Vec<String> =
        labels.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    pairs.join(",")
}
