//! Tests of ServiceCIDR.

use serde_json::{Value, json};

use crate::strategy::prepare_subresource;
use crate::testing::{networking, update_errors};
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;

#[test]
fn a_status_update_keeps_the_spec() {
    let old = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
        "metadata": {"name": "c", "labels": {"a": "b"}}, "spec": {"cidrs": ["10.0.0.0/24"]},
    });
    let mut new = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
        "metadata": {"name": "c", "finalizers": ["x/y"]}, "spec": {"cidrs": []}, "status": {"conditions": []},
    });
    prepare_subresource(Gvk::of(&old), "status", &mut new, &old);
    assert_eq!(new.at("spec"), old.at("spec"));
    assert_eq!(new.at("metadata"), old.at("metadata"));
    assert!(new.has("status"));
}

#[test]
fn a_service_cidr_can_only_add_a_second_family() {
    let range = |cidrs: Value| json!({"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": {"name": "c"}, "spec": {"cidrs": cidrs}});
    assert_eq!(
        networking("ServiceCIDR", json!({})),
        ["spec.cidrs: Required value: at least one CIDR required"]
    );
    assert_eq!(
        networking("ServiceCIDR", json!({"cidrs": ["10.0.0.0/24", "10.1.0.0/24"]})),
        [
            r#"spec.cidrs: Invalid value: ["10.0.0.0/24","10.1.0.0/24"]: may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"#
        ]
    );
    let one = range(json!(["10.0.0.0/24"]));
    assert!(update_errors(&range(json!(["10.0.0.0/24", "2001:db8::/64"])), &one).is_empty());
    assert_eq!(
        update_errors(&range(json!(["10.1.0.0/24"])), &one),
        [r#"spec.cidrs[0]: Invalid value: "10.1.0.0/24": field is immutable"#]
    );
    assert_eq!(update_errors(&range(json!([])), &one), ["spec.cidrs: Invalid value: []: field is immutable"]);
}
