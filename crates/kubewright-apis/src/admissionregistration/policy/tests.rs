//! Tests of admission policies and their bindings.

use serde_json::{Value, json};

use crate::testing::row;

#[test]
fn admission_policies_show_their_parameters() {
    let group = "admissionregistration.k8s.io/v1";
    let policy =
        json!({"spec": {"validations": [{}], "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}});
    assert_eq!(row(group, "ValidatingAdmissionPolicy", policy), json!(["o", 1, "v1/ConfigMap", "60m"]));
    let binding = |params: Value| {
        let parts = json!({"spec": {"policyName": "p", "paramRef": params}});
        row(group, "ValidatingAdmissionPolicyBinding", parts)[2].clone()
    };
    assert_eq!(binding(json!(null)), "<unset>");
    assert_eq!(binding(json!({"name": "n"})), "*/n");
    assert_eq!(binding(json!({"name": "n", "namespace": "s"})), "s/n");
    let selector = json!({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "k", "operator": "In", "values": ["x", "y"]}]});
    assert_eq!(
        binding(json!({"selector": selector})),
        "&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement{\
         LabelSelectorRequirement{Key:k,Operator:In,Values:[x y],},},}"
    );
}
