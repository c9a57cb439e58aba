//! How the registry of the API server stores and deletes the objects of a kind.
//!
//! The rules of a kind are in its folder; [`rules`] finds them. Values that depend on the clock or the request are
//! parameters.

use std::collections::BTreeMap;

use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::time;
use serde_json::Value;

use crate::kinds;

/// The default propagation policy of deletions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GarbageCollection {
    /// Dependents are deleted afterwards.
    Background,
    /// Dependents lose their owner reference.
    Orphan,
    /// Objects of the kind never have dependents.
    Unsupported,
}

/// The user of a request.
#[derive(Debug, Clone, Copy)]
pub struct Requester<'a> {
    /// User name.
    pub name: &'a str,
    /// UID; may be empty.
    pub uid: &'a str,
    /// Groups.
    pub groups: &'a [String],
    /// Additional attributes.
    pub extra: &'a BTreeMap<String, Vec<String>>,
}

/// A write, for [`RegistryRules::stamp`].
#[derive(Debug, Clone, Copy)]
pub struct Stamp<'a> {
    /// Seconds since the Unix epoch.
    pub now: i64,
    /// The user of the request.
    pub user: Requester<'a>,
}

impl Stamp<'_> {
    /// The time as in an object.
    pub(crate) fn time(&self) -> String {
        time::format_rfc3339(self.now)
    }
}

/// The rules of one kind.
#[derive(Debug)]
pub struct RegistryRules {
    /// Whether a PUT creates a missing object.
    pub creates_on_update: bool,
    /// Whether a PUT without a resourceVersion is allowed.
    pub unconditional_update: bool,
    /// Sets times and the requesting user in a new object, or in one that replaces the second one.
    pub stamp: fn(&mut Value, Option<&Value>, &Stamp<'_>),
    /// Completes a new object after its name is generated and it is validated.
    pub finish_create: fn(&mut Value),

    /// The default propagation policy.
    pub garbage_collection: GarbageCollection,
    /// The grace period of a deletion in seconds, given the requested one.
    pub grace_period: fn(&Value, Option<i64>) -> i64,
    /// Whether objects get a deletion timestamp even if they are removed immediately.
    pub marks_before_removal: bool,
    /// Changes an object that got a deletion timestamp.
    pub prepare_delete: fn(&mut Value),
    /// Whether the object has finalizers outside of its metadata.
    pub has_own_finalizers: fn(&Value) -> bool,
    /// Whether upstream stores the kind with its own preconditions, which have other messages.
    pub own_preconditions: bool,
    /// Whether a deletion returns the object instead of a Status.
    pub returns_deleted: bool,
    /// Upstream's warning for a deletion without a propagation policy.
    pub deletion_warning: Option<&'static str>,

    /// The deprecation warning.
    pub deprecation: Option<&'static str>,
    /// The name of the resource in kube-apiserver's keys in etcd, if it is not the plural.
    pub etcd_name: Option<&'static str>,
    /// An annotation that PartialObjectMetadata lacks, because upstream's internal type has a field for it.
    pub hidden_annotation: Option<&'static str>,
}

impl RegistryRules {
    /// The rules of most built-in kinds.
    pub(crate) const DEFAULT: Self = Self {
        creates_on_update: false,
        unconditional_update: true,
        stamp: |_, _, _| {},
        finish_create: |_| {},
        garbage_collection: GarbageCollection::Background,
        grace_period: |_, _| 0,
        marks_before_removal: false,
        prepare_delete: |_| {},
        has_own_finalizers: |_| false,
        own_preconditions: false,
        returns_deleted: false,
        deletion_warning: None,
        deprecation: None,
        etcd_name: None,
        hidden_annotation: None,
    };

    /// The rules of a group whose objects are only updated with their resourceVersion.
    pub(crate) const CONDITIONAL_UPDATE: Self = Self { unconditional_update: false, ..Self::DEFAULT };

    /// The rules of custom resources.
    pub const CUSTOM_RESOURCE: Self = Self::CONDITIONAL_UPDATE;
}

/// The rules of a built-in kind.
pub fn rules(gvk: Gvk<'_>) -> &'static RegistryRules {
    &kinds::rules(gvk).registry
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts;

    /// The kinds that a rule selects, as `kind` or `kind.group`.
    fn kinds(selects: impl Fn(&RegistryRules) -> bool) -> Vec<String> {
        let mut kinds: Vec<String> = facts::resources()
            .iter()
            .filter(|it| selects(rules(Gvk { group: it.group, version: it.version, kind: it.kind })))
            .map(|it| match it.group.split('.').next().unwrap_or_default() {
                "" => it.kind.to_owned(),
                group => format!("{}.{group}", it.kind),
            })
            .collect();
        kinds.sort();
        kinds.dedup();
        kinds
    }

    #[test]
    fn kinds_differ_where_upstreams_strategies_do() {
        assert_eq!(
            kinds(|rules| rules.creates_on_update).join(" "),
            "ClusterRole.rbac ClusterRoleBinding.rbac Endpoints Event Event.events Lease.coordination LimitRange Role.rbac \
             RoleBinding.rbac RuntimeClass.node Service"
        );
        assert_eq!(
            kinds(|rules| !rules.unconditional_update).join(" "),
            "APIService.apiregistration CSIDriver.storage CSINode.storage CSIStorageCapacity.storage \
             CustomResourceDefinition.apiextensions FlowSchema.flowcontrol Lease.coordination \
             MutatingAdmissionPolicy.admissionregistration MutatingAdmissionPolicyBinding.admissionregistration \
             MutatingWebhookConfiguration.admissionregistration PodDisruptionBudget.policy \
             PriorityLevelConfiguration.flowcontrol RuntimeClass.node \
             ValidatingAdmissionPolicy.admissionregistration ValidatingAdmissionPolicyBinding.admissionregistration \
             ValidatingWebhookConfiguration.admissionregistration VolumeAttachment.storage"
        );
        assert_eq!(
            kinds(|rules| rules.returns_deleted).join(" "),
            "CSIDriver.storage CSINode.storage DeviceClass.resource Namespace PersistentVolume PersistentVolumeClaim Pod \
             PodTemplate ResourceClaim.resource ResourceClaimTemplate.resource ResourceQuota ResourceSlice.resource \
             Service ServiceAccount StorageClass.storage VolumeAttachment.storage VolumeAttributesClass.storage"
        );
        let by_collection = |policy| kinds(|rules| rules.garbage_collection == policy);
        assert_eq!(by_collection(GarbageCollection::Orphan), ["Job.batch", "ReplicationController"]);
        assert_eq!(by_collection(GarbageCollection::Unsupported), ["Event", "Event.events"]);
    }
}
