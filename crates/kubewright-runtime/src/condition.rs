//! Status conditions: set, find, compare.
//!
//! Invariant: `lastTransitionTime` changes exactly when the status changes. The order is kept, so that setting an
//! unchanged condition leaves the object unchanged and nothing needs to be written.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// The desired state of a condition.
///
/// ```
/// use jiff::Timestamp;
/// use kubewright_runtime::condition::{self, ConditionUpdate};
///
/// let mut conditions = Vec::new();
/// let ready = || ConditionUpdate::true_("Available", "AllPodsRun", "3 of 3 pods run").observed(7);
/// assert!(condition::set_condition(&mut conditions, ready(), Timestamp::UNIX_EPOCH));
/// // Nothing has changed: nothing needs to be written.
/// assert!(!condition::set_condition(&mut conditions, ready(), Timestamp::MAX));
/// assert!(condition::is_true(&conditions, "Available"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionUpdate {
    type_: String,
    status: ConditionStatus,
    reason: String,
    message: String,
    observed_generation: Option<i64>,
}

impl ConditionUpdate {
    /// A condition with a type and a status. The reason is a CamelCase identifier for programs, the message is for
    /// users.
    pub fn new(
        type_: impl Into<String>,
        status: ConditionStatus,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            type_: type_.into(),
            status,
            reason: reason.into(),
            message: message.into(),
            observed_generation: None,
        }
    }

    /// A condition with status True.
    pub fn true_(type_: impl Into<String>, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(type_, ConditionStatus::True, reason, message)
    }

    /// A condition with status False.
    pub fn false_(type_: impl Into<String>, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(type_, ConditionStatus::False, reason, message)
    }

    /// A condition with status Unknown.
    pub fn unknown(type_: impl Into<String>, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(type_, ConditionStatus::Unknown, reason, message)
    }

    /// The `metadata.generation` that the condition was computed from, so that readers can detect outdated conditions.
    /// Accepts the metadata field directly.
    #[must_use]
    pub fn observed(mut self, generation: impl Into<Option<i64>>) -> Self {
        self.observed_generation = generation.into();
        self
    }
}

/// The status of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConditionStatus {
    /// True.
    True,
    /// False.
    False,
    /// Unknown.
    Unknown,
}

impl ConditionStatus {
    /// The value in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

impl std::fmt::Display for ConditionStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Sets the condition of the update's type, or appends it. Returns whether anything changed.
///
/// `now` becomes the transition time if the status changes. It is truncated to seconds, as in the API.
pub fn set_condition(conditions: &mut Vec<Condition>, update: ConditionUpdate, now: Timestamp) -> bool {
    let ConditionUpdate { type_, status, reason, message, observed_generation } = update;
    let Some(existing) = conditions.iter_mut().find(|condition| condition.type_ == type_) else {
        conditions.push(Condition {
            last_transition_time: to_the_second(now),
            message,
            observed_generation,
            reason,
            status: status.to_string(),
            type_,
        });
        return true;
    };
    let mut changed = false;
    if existing.status != status.as_str() {
        status.as_str().clone_into(&mut existing.status);
        existing.last_transition_time = to_the_second(now);
        changed = true;
    }
    changed |= replace(&mut existing.reason, reason);
    changed |= replace(&mut existing.message, message);
    changed |= replace(&mut existing.observed_generation, observed_generation);
    changed
}

/// Removes the condition of a type. Returns whether it existed.
pub fn remove_condition(conditions: &mut Vec<Condition>, type_: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.type_ != type_);
    conditions.len() < before
}

/// The condition of a type.
pub fn find_condition<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition exists with status True.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    is_present_and_equal(conditions, type_, ConditionStatus::True)
}

/// Whether the condition exists with status False. A missing condition is neither true nor false.
pub fn is_false(conditions: &[Condition], type_: &str) -> bool {
    is_present_and_equal(conditions, type_, ConditionStatus::False)
}

/// Whether the condition exists with this status.
pub fn is_present_and_equal(conditions: &[Condition], type_: &str, status: ConditionStatus) -> bool {
    find_condition(conditions, type_).is_some_and(|condition| condition.status == status.as_str())
}

fn replace<T: PartialEq>(place: &mut T, value: T) -> bool {
    let changed = *place != value;
    if changed {
        *place = value;
    }
    changed
}

fn to_the_second(moment: Timestamp) -> Time {
    Time(Timestamp::from_second(moment.as_second()).unwrap_or(moment))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn available(holds: bool) -> ConditionUpdate {
        ConditionUpdate::new("Available", holds.into(), "Because", "it is so")
    }

    #[test]
    fn the_transition_time_changes_only_with_the_status() {
        let mut conditions = Vec::new();
        assert!(set_condition(&mut conditions, available(true), at(1)));
        let reworded = ConditionUpdate::true_("Available", "Otherwise", "it is so still").observed(2);
        assert!(set_condition(&mut conditions, reworded, at(2)));
        assert_eq!(conditions[0].last_transition_time, Time(at(1)));
        assert_eq!(conditions[0].reason, "Otherwise");
        assert_eq!(conditions[0].message, "it is so still");
        assert_eq!(conditions[0].observed_generation, Some(2));

        assert!(set_condition(&mut conditions, available(false), at(3)));
        assert_eq!(conditions[0].last_transition_time, Time(at(3)));
        assert_eq!(conditions[0].status, "False");
        assert_eq!(conditions.len(), 1);
    }

    #[test]
    fn a_change_of_any_field_is_detected() {
        let base = || available(true).observed(1);
        let mut conditions = Vec::new();
        set_condition(&mut conditions, base(), at(1));
        let before = conditions.clone();
        assert!(!set_condition(&mut conditions, base(), at(9)));
        assert_eq!(conditions, before);

        let changes = [
            ConditionUpdate { reason: "Other".to_owned(), ..base() },
            ConditionUpdate { message: "other".to_owned(), ..base() },
            base().observed(2),
            base().observed(None),
            available(false).observed(1),
        ];
        for change in changes {
            let mut conditions = before.clone();
            assert!(set_condition(&mut conditions, change.clone(), at(2)), "{change:?}");
        }
    }

    #[test]
    fn order_is_kept_when_conditions_are_set_and_removed() {
        let mut conditions = Vec::new();
        for type_ in ["A", "B", "C"] {
            set_condition(&mut conditions, ConditionUpdate::true_(type_, "R", ""), at(1));
        }
        set_condition(&mut conditions, ConditionUpdate::unknown("A", "R", ""), at(2));
        assert!(remove_condition(&mut conditions, "B"));
        assert!(!remove_condition(&mut conditions, "B"));
        let types: Vec<_> = conditions.iter().map(|condition| condition.type_.as_str()).collect();
        assert_eq!(types, ["A", "C"]);
    }

    #[test]
    fn a_missing_or_unknown_condition_is_neither_true_nor_false() {
        let mut conditions = Vec::new();
        assert!(!is_true(&conditions, "Available") && !is_false(&conditions, "Available"));
        set_condition(&mut conditions, ConditionUpdate::unknown("Available", "R", ""), at(1));
        assert!(!is_true(&conditions, "Available") && !is_false(&conditions, "Available"));
        assert!(is_present_and_equal(&conditions, "Available", ConditionStatus::Unknown));
        set_condition(&mut conditions, available(false), at(1));
        assert!(is_false(&conditions, "Available"));
    }

    #[test]
    fn the_transition_time_equals_the_value_that_the_server_returns() {
        for moment in [1_500_000_000, 0] {
            let moment = Timestamp::from_nanosecond(moment).unwrap();
            let mut conditions = Vec::new();
            set_condition(&mut conditions, available(true), moment);
            let json = serde_json::to_value(&conditions).unwrap();
            let read: Vec<Condition> = serde_json::from_value(json).unwrap();
            assert_eq!(read, conditions);
        }
    }
}
