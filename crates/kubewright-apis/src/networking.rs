//! Kinds of networking.k8s.io.
//!
//! Upstream tolerates unchanged values that older servers accepted. This is not needed here, because all
//! stored objects passed this validation.

pub(crate) mod ingress;
pub(crate) mod ingress_class;
pub(crate) mod ip_address;
pub(crate) mod network_policy;
pub(crate) mod service_cidr;

use serde_json::Value;

use crate::kinds::KindRules;
use kubewright_apimachinery::field::{ErrorList, FieldError, Path};
use kubewright_apimachinery::meta::{Check, invalid};
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

/// Rules that most kinds of the group share.
const GROUP: KindRules = KindRules {
    group: "networking.k8s.io",
    kube_finalizers: true,
    update_checks: &[Check::New, Check::Update],
    ..KindRules::DEFAULT
};

/// Validates an object reference with group, kind and name.
fn reference(reference: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if let Some(group) = reference.at("apiGroup").as_str() {
        errors.extend(invalid(&path.child("apiGroup"), group, names::dns1123_subdomain(group)));
    }
    for field in ["kind", "name"] {
        errors.extend(required_name(reference.str_at(field), &path.child(field), names::path_segment_name));
    }
    errors
}

fn required_name(name: &str, path: &Path, rule: fn(&str) -> Vec<String>) -> ErrorList {
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    invalid(path, name, rule(name)).collect()
}
