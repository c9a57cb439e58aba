//! Acceptance of resource names, and the conditions `NamesAccepted` and `Established`.
//!
//! A name belongs to one CRD per group. Upstream's controllers set the status in several steps; [`settle`]
//! does it in one.

use std::collections::HashSet;

use serde_json::Value;

use super::approval;
use super::conditions::{self, Condition};
use super::spec::same;
use super::validate::ca_bundle_problem;
use kubewright_apimachinery::field::quote;
use kubewright_apimachinery::object::Fields as _;

/// The result of the name check of a CRD.
#[derive(Debug, Clone, PartialEq)]
pub struct Naming {
    /// `status.acceptedNames`.
    pub accepted: Value,
    /// The condition `NamesAccepted`.
    pub names_accepted: Condition,
    /// The condition `Established` before the CRD is served; `None` if it does not change.
    pub established: Option<Condition>,
}

/// Checks the names of a CRD. `all` are the existing CRDs; other groups and an older state of this CRD are
/// ignored.
pub fn names_conditions<'a>(object: &Value, all: impl IntoIterator<Item = &'a Value>) -> Naming {
    let taken = Taken::by(object, all);
    let had = object.at("status.acceptedNames");
    let mut decision =
        Decision { asked: object.at("spec.names"), had, accepted: had.clone(), conflict: None };
    decision.name("plural", "PluralConflict", &taken.resources);
    decision.name("singular", "SingularConflict", &taken.resources);
    decision.short_names(&taken.resources);
    decision.name("kind", "KindConflict", &taken.kinds);
    decision.name("listKind", "ListKindConflict", &taken.kinds);
    decision.accept("categories");
    let names_accepted = match decision.conflict {
        Some((reason, message)) => Condition::new("NamesAccepted", false, reason, message),
        None => Condition::new("NamesAccepted", true, "NoConflicts", "no conflicts found"),
    };
    Naming {
        accepted: decision.accepted,
        established: before_established(object, names_accepted.status),
        names_accepted,
    }
}

/// Sets the status that upstream's controllers would set: accepted names, established, API approval. `now` is
/// the transition time. Returns whether anything changed.
///
/// A change can release names, so the caller must then settle the other CRDs of the group again. The same
/// applies after a CRD is deleted.
pub fn settle<'a>(object: &mut Value, all: impl IntoIterator<Item = &'a Value>, now: &str) -> bool {
    let mut changed = false;
    if let Some(condition) = approval::condition(object) {
        changed |= conditions::set(object, &condition, now);
    }
    if !same(object.at("spec.names"), object.at("status.acceptedNames")) {
        let naming = names_conditions(object, all);
        changed |= !same(object.at("status.acceptedNames"), &naming.accepted);
        object.set_at("status.acceptedNames", naming.accepted);
        changed |= conditions::set(object, &naming.names_accepted, now);
        if let Some(established) = naming.established {
            changed |= conditions::set(object, &established, now);
        }
    }
    if conditions::is_true(object, "NamesAccepted") && !conditions::is_true(object, "Established") {
        changed |= conditions::set(object, &established(object), now);
    }
    changed
}

/// The condition `Established` of a CRD with accepted names.
fn established(object: &Value) -> Condition {
    let bundle = object.str_at("spec.conversion.webhook.clientConfig.caBundle");
    if ca_bundle_problem(bundle).is_some() {
        let message = "The conversion webhook CABundle is invalid";
        return Condition::new("Established", false, "InvalidCABundle", message);
    }
    Condition::new("Established", true, "InitialNamesAccepted", "the initial names have been accepted")
}

fn before_established(object: &Value, names_accepted: bool) -> Option<Condition> {
    if conditions::is_true(object, "Established") {
        return None;
    }
    if names_accepted {
        let message = "the initial names have been accepted";
        return Some(Condition::new("Established", false, "Installing", message));
    }
    conditions::find(object, "Established")
        .is_none()
        .then(|| Condition::new("Established", false, "NotAccepted", "not all names are accepted"))
}

/// The names used by the CRDs of a group.
struct Taken {
    resources: HashSet<String>,
    kinds: HashSet<String>,
}

impl Taken {
    fn by<'a>(object: &Value, all: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut taken = Self { resources: HashSet::new(), kinds: HashSet::new() };
        taken.add(object.at("status.acceptedNames"));
        for other in all {
            let is_other = other.str_at("metadata.name") != object.str_at("metadata.name");
            if is_other && other.str_at("spec.group") == object.str_at("spec.group") {
                taken.add(other.at("status.acceptedNames"));
            }
        }
        taken
    }

    fn add(&mut self, names: &Value) {
        let text = |name: &Value| name.as_str().unwrap_or_default().to_owned();
        self.resources.extend(["plural", "singular"].map(|field| text(names.at(field))));
        self.resources.extend(names.list_at("shortNames").iter().map(text));
        self.kinds.extend(["kind", "listKind"].map(|field| text(names.at(field))));
    }
}

struct Decision<'a> {
    asked: &'a Value,
    had: &'a Value,
    accepted: Value,
    /// The last conflict: the reason and the message.
    conflict: Option<(&'static str, String)>,
}

impl Decision<'_> {
    fn name(&mut self, field: &str, reason: &'static str, taken: &HashSet<String>) {
        let name = self.asked.str_at(field);
        if name != self.had.str_at(field) && taken.contains(name) {
            self.conflict = Some((reason, in_use(name)));
        } else {
            self.accept(field);
        }
    }

    fn short_names(&mut self, taken: &HashSet<String>) {
        let had = self.had.list_at("shortNames");
        let mut refused: Vec<String> = Vec::new();
        for name in self.asked.list_at("shortNames").iter().filter(|name| !had.contains(name)) {
            let name = name.as_str().unwrap_or_default();
            if taken.contains(name) && !name.is_empty() && !refused.contains(&in_use(name)) {
                refused.push(in_use(name));
            }
        }
        match refused.as_slice() {
            [] => self.accept("shortNames"),
            [one] => self.conflict = Some(("ShortNamesConflict", one.clone())),
            several => self.conflict = Some(("ShortNamesConflict", format!("[{}]", several.join(", ")))),
        }
    }

    fn accept(&mut self, field: &str) {
        match self.asked.at(field) {
            Value::Null => {
                self.accepted.remove_at(field);
            }
            name => self.accepted.set_at(field, name.clone()),
        }
    }
}

fn in_use(name: &str) -> String {
    format!("{} is already in use", quote(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn definition(plural: &str, names: &Value) -> Value {
        let mut object = json!({
            "metadata": {"name": format!("{plural}.example.com")},
            "spec": {"group": "example.com", "names": names},
            "status": {"acceptedNames": {"plural": "", "kind": ""}, "conditions": null}
        });
        object.set_at("spec.names.plural", plural);
        object
    }

    fn shown(object: &Value) -> Vec<String> {
        let condition = |c: &Value| {
            format!(
                "{}={} {}: {}",
                c.str_at("type"),
                c.str_at("status"),
                c.str_at("reason"),
                c.str_at("message")
            )
        };
        object.list_at("status.conditions").iter().map(condition).collect()
    }

    fn widgets() -> Value {
        let names =
            json!({"kind": "Widget", "listKind": "WidgetList", "singular": "widget", "shortNames": ["wd"]});
        let mut widgets = definition("widgets", &names);
        assert!(settle(&mut widgets, [], "t1"));
        widgets
    }

    #[test]
    fn free_names_are_accepted_and_the_crd_is_established() {
        let mut widgets = widgets();
        assert_eq!(widgets.at("status.acceptedNames"), widgets.at("spec.names"));
        assert_eq!(
            shown(&widgets),
            [
                "NamesAccepted=True NoConflicts: no conflicts found",
                "Established=True InitialNamesAccepted: the initial names have been accepted"
            ]
        );
        assert!(!settle(&mut widgets, [], "t2"), "nothing is left to do");
    }

    #[test]
    fn conflicting_names_are_rejected_until_the_other_crd_is_deleted() {
        let widgets = widgets();
        let names = json!({"kind": "Widget", "listKind": "WidgetList", "singular": "widget"});
        let mut gadgets = definition("gadgets", &names);
        assert!(settle(&mut gadgets, [&widgets], "t1"));
        assert_eq!(gadgets.at("status.acceptedNames"), &json!({"plural": "gadgets", "kind": ""}));
        assert_eq!(
            shown(&gadgets),
            [
                "NamesAccepted=False ListKindConflict: \"WidgetList\" is already in use",
                "Established=False NotAccepted: not all names are accepted"
            ]
        );
        assert!(settle(&mut gadgets, [], "t2"));
        assert!(conditions::is_true(&gadgets, "Established"));
        assert_eq!(gadgets.at("status.conditions")[1].str_at("lastTransitionTime"), "t2");
    }

    #[test]
    fn a_crd_stays_established_when_it_requests_a_taken_name() {
        let widgets = widgets();
        let names = json!({"kind": "Thing", "listKind": "ThingList", "singular": "thing"});
        let mut things = definition("things", &names);
        settle(&mut things, [&widgets], "t1");
        things.set_at("spec.names.shortNames", json!(["th", "wd"]));
        assert!(settle(&mut things, [&widgets], "t2"));
        assert_eq!(
            shown(&things),
            [
                "NamesAccepted=False ShortNamesConflict: \"wd\" is already in use",
                "Established=True InitialNamesAccepted: the initial names have been accepted"
            ]
        );
        assert!(!things.has("status.acceptedNames.shortNames"));
    }

    #[test]
    fn protected_groups_need_an_approval_annotation() {
        let mut widgets = definition("widgets", &json!({"kind": "Widget", "singular": "widget"}));
        widgets.set_at("spec.group", "x.k8s.io");
        settle(&mut widgets, [], "t1");
        assert_eq!(
            shown(&widgets)[0],
            "KubernetesAPIApprovalPolicyConformant=False MissingAnnotation: protected groups must have approval \
             annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111"
        );
        let annotations = json!({"api-approved.kubernetes.io": "https://example.com/1"});
        widgets.set_at("metadata.annotations", annotations);
        settle(&mut widgets, [], "t2");
        assert_eq!(
            shown(&widgets)[0],
            "KubernetesAPIApprovalPolicyConformant=True ApprovedAnnotation: approved in https://example.com/1"
        );
    }
}
