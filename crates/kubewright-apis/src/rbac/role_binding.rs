//! RoleBinding, and the rules that it shares with ClusterRoleBinding.

use serde_json::Value;

use crate::kinds::KindRules;
use crate::table::row::{Row, joined};
use crate::validation::{one_of, required};
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "RoleBinding",
    defaults,
    validate: |object| binding(object, KINDS),
    validate_update: |new, old| binding_update(new, old, KINDS),
    cells,
    ..super::GROUP
};

/// The kinds that a RoleBinding may refer to.
const KINDS: &[&str] = &["Role", "ClusterRole"];
const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn defaults(object: &mut Value) {
    if object.str_at("roleRef.apiGroup").is_empty() {
        object.set_at("roleRef.apiGroup", GROUP);
    }
    for subject in object.list_mut("subjects").into_iter().flatten() {
        let of_rbac = matches!(subject.str_at("kind"), "User" | "Group");
        if of_rbac && subject.str_at("apiGroup").is_empty() {
            subject.set_at("apiGroup", GROUP);
        }
    }
}

/// Validates a binding that replaces `old`. Its roleRef is immutable.
pub(super) fn binding_update(new: &Value, old: &Value, kinds: &[&str]) -> ErrorList {
    let mut errors = binding(new, kinds);
    errors.extend(binding(new, kinds));
    if new.at("roleRef") != old.at("roleRef") {
        let role = new.at("roleRef");
        let printed = format!(
            "{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}",
            kubewright_apimachinery::json::quote(role.str_at("apiGroup")),
            kubewright_apimachinery::json::quote(role.str_at("kind")),
            kubewright_apimachinery::json::quote(role.str_at("name"))
        );
        errors.push(FieldError::invalid_printed(&Path::new("roleRef"), printed, "cannot change roleRef"));
    }
    errors
}

/// Validates a binding. `kinds` are the kinds that it may refer to.
pub(super) fn binding(object: &Value, kinds: &[&str]) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("roleRef");
    let role = object.at("roleRef");
    errors.extend(one_of(role.str_at("apiGroup"), &[GROUP], &path.child("apiGroup")));
    errors.extend(one_of(role.str_at("kind"), kinds, &path.child("kind")));
    let name = role.str_at("name");
    errors.extend(required(name, &path.child("name")));
    errors.extend(meta::invalid(&path.child("name"), name, names::path_segment_name(name)));
    let path = Path::new("subjects");
    let namespaced = kinds.len() > 1;
    for (i, one) in object.list_at("subjects").iter().enumerate() {
        errors.extend(subject(one, namespaced, &path.index(i)));
    }
    errors
}

fn subject(subject: &Value, namespaced: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let name = subject.str_at("name");
    errors.extend(required(name, &path.child("name")));
    let group = subject.str_at("apiGroup");
    match subject.str_at("kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                errors.extend(meta::invalid(&path.child("name"), name, names::dns1123_subdomain(name)));
            }
            errors.extend(one_of(group, &[""], &path.child("apiGroup")));
            if !namespaced {
                errors.extend(required(subject.str_at("namespace"), &path.child("namespace")));
            }
        }
        "User" | "Group" => errors.extend(one_of(group, &[GROUP], &path.child("apiGroup"))),
        kind => errors.extend(one_of(kind, &["ServiceAccount", "User", "Group"], &path.child("kind"))),
    }
    errors
}

pub(super) fn cells(row: &Row<'_>) -> Vec<Value> {
    let role = row.object.at("roleRef");
    let subjects = row.list("subjects");
    let names = |kind: &str| {
        let of_kind = subjects.iter().filter(|subject| subject.str_at("kind") == kind);
        joined(of_kind.map(|subject| subject.str_at("name")), ", ").into()
    };
    let accounts = subjects.iter().filter(|subject| subject.str_at("kind") == "ServiceAccount");
    let accounts = accounts.map(|a| format!("{}/{}", a.str_at("namespace"), a.str_at("name")));
    vec![
        row.name(),
        format!("{}/{}", role.str_at("kind"), role.str_at("name")).into(),
        row.age(),
        names("User"),
        names("Group"),
        accounts.collect::<Vec<_>>().join(", ").into(),
    ]
}

#[cfg(test)]
mod tests;
