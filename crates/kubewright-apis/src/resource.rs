//! Kinds of resource.k8s.io.
//!
//! Published devices and CEL selectors are not validated.

pub(crate) mod device_class;
pub(crate) mod resource_claim;
pub(crate) mod resource_claim_template;
pub(crate) mod resource_slice;

use crate::kinds::KindRules;
use crate::registry::RegistryRules;
use crate::reset_fields;
use crate::strategy::keep_spec_and_metadata;
use kubewright_apimachinery::meta::Check;

/// Rules that most kinds of the group share.
const GROUP: KindRules = KindRules {
    group: "resource.k8s.io",
    prepare_subresource: keep_spec_and_metadata,
    kube_finalizers: true,
    update_checks: &[Check::New, Check::Update],
    reset_fields: reset_fields::metadata_and_spec,
    registry: RegistryRules { returns_deleted: true, ..RegistryRules::DEFAULT },
    ..KindRules::DEFAULT
};
