//! API approval: CRDs in `*.k8s.io` and `*.kubernetes.io` need the annotation `api-approved.kubernetes.io`.

use serde_json::Value;

use super::conditions::Condition;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::object::Fields as _;

const ANNOTATION: &str = "api-approved.kubernetes.io";
const KIND: &str = "KubernetesAPIApprovalPolicyConformant";
const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Invalid,
    Approved,
    Bypassed,
    Missing,
}

/// The condition `KubernetesAPIApprovalPolicyConformant`; `None` outside the protected groups.
pub fn condition(object: &Value) -> Option<Condition> {
    if !is_protected(object.str_at("spec.group")) {
        return None;
    }
    let (state, message) = state(annotation(object));
    let (status, reason) = match state {
        State::Invalid => (false, "InvalidAnnotation"),
        State::Missing => (false, "MissingAnnotation"),
        State::Approved => (true, "ApprovedAnnotation"),
        State::Bypassed => (false, "UnapprovedAnnotation"),
    };
    Some(Condition::new(KIND, status, reason, message))
}

/// Validates the annotation of a CRD, unless its approval state did not change.
pub(super) fn validate(object: &Value, old: Option<&Value>) -> ErrorList {
    if !is_protected(object.str_at("spec.group")) {
        return ErrorList::new();
    }
    let text = annotation(object);
    let (now, reason) = state(text);
    if old.is_some_and(|old| state(annotation(old)).0 == now) {
        return ErrorList::new();
    }
    let path = Path::new("metadata").child("annotations").key(ANNOTATION);
    match now {
        State::Approved | State::Bypassed => ErrorList::new(),
        State::Missing => vec![FieldError::required(&path, reason)],
        State::Invalid => vec![FieldError::invalid(&path, text, reason)],
    }
}

fn annotation(object: &Value) -> &str {
    object.map_at("metadata.annotations").get(ANNOTATION).and_then(Value::as_str).unwrap_or_default()
}

fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"].into_iter().any(|owner| {
        group.strip_suffix(owner).is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('.'))
    })
}

fn state(annotation: &str) -> (State, String) {
    if annotation.is_empty() {
        let message = format!("protected groups must have approval annotation \"{ANNOTATION}\", {SEE}");
        return (State::Missing, message);
    }
    if annotation.starts_with("unapproved") {
        return (
            State::Bypassed,
            format!("not approved: {}", kubewright_apimachinery::field::quote(annotation)),
        );
    }
    if is_url(annotation) {
        return (State::Approved, format!("approved in {annotation}"));
    }
    let message = format!(
        "protected groups must have approval annotation \"{ANNOTATION}\" with either a URL or a reason starting \
         with \"unapproved\", {SEE}"
    );
    (State::Invalid, message)
}

/// Whether the text is an absolute URL with a host.
fn is_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        && !host.is_empty()
        && !text.contains(|c: char| c.is_ascii_control() || c == ' ')
}
