//! Tests of RoleBinding.

use serde_json::json;

use crate::testing::{defaulted, row, update_errors};

#[test]
fn subjects_of_a_binding_get_the_api_group_of_their_kind() {
    let object = defaulted(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "roleRef": {"apiGroup": "", "kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}]
    }));
    assert_eq!(object["roleRef"]["apiGroup"], "rbac.authorization.k8s.io");
    assert_eq!(
        object["subjects"],
        json!([
            {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "u"},
            {"kind": "ServiceAccount", "name": "s", "namespace": "n"}
        ])
    );
}

#[test]
fn the_role_ref_of_a_binding_is_immutable() {
    let binding = |name: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
        })
    };
    assert_eq!(
        update_errors(&binding("r2"), &binding("r1")),
        [
            "roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"Role\",\"Name\":\"r2\"}: \
          cannot change roleRef"
        ]
    );
}

#[test]
fn bindings_show_their_subjects() {
    let parts = json!({
        "roleRef": {"kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "name": "u"}, {"kind": "User", "name": "v"}, {"kind": "ServiceAccount", "name": "s"}],
    });
    assert_eq!(
        row("rbac.authorization.k8s.io/v1", "RoleBinding", parts),
        json!(["o", "Role/r", "60m", "u, v", "", "/s"])
    );
}
