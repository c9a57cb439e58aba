//! Status conditions of CRDs.

use serde_json::{Value, json};

use kubewright_apimachinery::object::Fields as _;

/// A condition without its last transition time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The condition type, such as `Established`.
    pub kind: &'static str,
    /// Whether the status is `True`.
    pub status: bool,
    /// Machine-readable reason.
    pub reason: String,
    /// Human-readable message.
    pub message: String,
}

impl Condition {
    pub(super) fn new(kind: &'static str, status: bool, reason: &str, message: impl Into<String>) -> Self {
        Self { kind, status, reason: reason.to_owned(), message: message.into() }
    }

    fn status_text(&self) -> &'static str {
        if self.status { "True" } else { "False" }
    }
}

/// Whether the condition is present and `True`.
pub fn is_true(object: &Value, kind: &str) -> bool {
    find(object, kind).is_some_and(|condition| condition.str_at("status") == "True")
}

pub(super) fn find<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object.list_at("status.conditions").iter().find(|condition| condition.str_at("type") == kind)
}

/// Adds or replaces a condition. Sets `lastTransitionTime` to `now` if its status changed. Returns whether
/// anything changed.
pub fn set(object: &mut Value, condition: &Condition, now: &str) -> bool {
    if !object.at("status.conditions").is_array() {
        object.set_at("status.conditions", json!([]));
    }
    let Some(conditions) = object.list_mut("status.conditions") else { return false };
    let old = conditions.iter_mut().find(|old| old.str_at("type") == condition.kind);
    let Some(old) = old else {
        conditions.push(json!({
            "type": condition.kind,
            "status": condition.status_text(),
            "lastTransitionTime": now,
            "reason": condition.reason,
            "message": condition.message,
        }));
        return true;
    };
    let before = old.clone();
    if old.str_at("status") != condition.status_text() || !old.has("lastTransitionTime") {
        old.set_at("lastTransitionTime", now);
    }
    old.set_at("status", condition.status_text());
    old.set_at("reason", condition.reason.as_str());
    old.set_at("message", condition.message.as_str());
    *old != before
}
