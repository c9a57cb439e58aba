//! Defaults of RoleBinding and ClusterRoleBinding.

use serde_json::Value;

use kubewright_apimachinery::object::Fields as _;

const RBAC: &str = "rbac.authorization.k8s.io";

pub(super) fn binding(object: &mut Value) {
    if object.str_at("roleRef.apiGroup").is_empty() {
        object.set_at("roleRef.apiGroup", RBAC);
    }
    for subject in object.list_mut("subjects").into_iter().flatten() {
        let of_rbac = matches!(subject.str_at("kind"), "User" | "Group");
        if of_rbac && subject.str_at("apiGroup").is_empty() {
            subject.set_at("apiGroup", RBAC);
        }
    }
}
