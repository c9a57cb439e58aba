//! Kinds of rbac.authorization.k8s.io. Privilege escalation is checked by the server.

pub(crate) mod cluster_role;
pub(crate) mod cluster_role_binding;
pub(crate) mod role;
pub(crate) mod role_binding;

use crate::kinds::KindRules;
use crate::registry::RegistryRules;
use kubewright_apimachinery::meta::{Check, NameRule};

/// Rules that all kinds share.
const GROUP: KindRules = KindRules {
    group: "rbac.authorization.k8s.io",
    name: |_| NameRule::PathSegment,
    kube_finalizers: true,
    update_checks: &[Check::New, Check::New, Check::Update],
    registry: RegistryRules { creates_on_update: true, ..RegistryRules::DEFAULT },
    ..KindRules::DEFAULT
};
