//! Every built-in kind can be used in `object!`.

use std::collections::BTreeSet;

use kubewright::object::ApplyObject;
use kubewright::{Object, object};

/// The group, version and kind of an object's type, and its name.
fn kind<K: Object>(object: &ApplyObject<K>) -> (String, Option<&str>) {
    let kind = format!("{}/{} {}", K::group(&()), K::version(&()), K::kind(&()));
    (kind, object.metadata.name.as_deref())
}

macro_rules! every {
    ($($package:ident::$version:ident::$kind:ident,)+) => {
        [$(kind(&object! { $package::$version::$kind { metadata: { name: stringify!($kind) }, .. } })),+]
            .map(|(kind, name)| (kind, name.map(str::to_owned)))
    };
}

#[test]
fn every_builtin_kind_with_metadata_can_be_used() {
    let named = every! {
        admissionregistration::v1::MutatingAdmissionPolicy,
        admissionregistration::v1::MutatingAdmissionPolicyBinding,
        admissionregistration::v1::MutatingWebhookConfiguration,
        admissionregistration::v1::ValidatingAdmissionPolicy,
        admissionregistration::v1::ValidatingAdmissionPolicyBinding,
        admissionregistration::v1::ValidatingWebhookConfiguration,
        admissionregistration::v1alpha1::MutatingAdmissionPolicy,
        admissionregistration::v1alpha1::MutatingAdmissionPolicyBinding,
        admissionregistration::v1beta1::MutatingAdmissionPolicy,
        admissionregistration::v1beta1::MutatingAdmissionPolicyBinding,
        apiextensions::v1::CustomResourceDefinition,
        apiregistration::v1::APIService,
        apiserverinternal::v1alpha1::StorageVersion,
        apps::v1::ControllerRevision,
        apps::v1::DaemonSet,
        apps::v1::Deployment,
        apps::v1::ReplicaSet,
        apps::v1::StatefulSet,
        authentication::v1::SelfSubjectReview,
        authentication::v1::TokenRequest,
        authentication::v1::TokenReview,
        authorization::v1::LocalSubjectAccessReview,
        authorization::v1::SelfSubjectAccessReview,
        authorization::v1::SelfSubjectRulesReview,
        authorization::v1::SubjectAccessReview,
        autoscaling::v1::HorizontalPodAutoscaler,
        autoscaling::v1::Scale,
        autoscaling::v2::HorizontalPodAutoscaler,
        batch::v1::CronJob,
        batch::v1::Job,
        certificates::v1::CertificateSigningRequest,
        certificates::v1alpha1::ClusterTrustBundle,
        certificates::v1beta1::ClusterTrustBundle,
        certificates::v1beta1::PodCertificateRequest,
        coordination::v1::Lease,
        coordination::v1alpha2::LeaseCandidate,
        coordination::v1beta1::LeaseCandidate,
        core::v1::Binding,
        core::v1::ComponentStatus,
        core::v1::ConfigMap,
        core::v1::Endpoints,
        core::v1::Event,
        core::v1::LimitRange,
        core::v1::Namespace,
        core::v1::Node,
        core::v1::PersistentVolume,
        core::v1::PersistentVolumeClaim,
        core::v1::Pod,
        core::v1::PodTemplate,
        core::v1::ReplicationController,
        core::v1::ResourceQuota,
        core::v1::Secret,
        core::v1::Service,
        core::v1::ServiceAccount,
        discovery::v1::EndpointSlice,
        events::v1::Event,
        flowcontrol::v1::FlowSchema,
        flowcontrol::v1::PriorityLevelConfiguration,
        networking::v1::IPAddress,
        networking::v1::Ingress,
        networking::v1::IngressClass,
        networking::v1::NetworkPolicy,
        networking::v1::ServiceCIDR,
        networking::v1beta1::IPAddress,
        networking::v1beta1::ServiceCIDR,
        node::v1::RuntimeClass,
        policy::v1::Eviction,
        policy::v1::PodDisruptionBudget,
        rbac::v1::ClusterRole,
        rbac::v1::ClusterRoleBinding,
        rbac::v1::Role,
        rbac::v1::RoleBinding,
        resource::v1::DeviceClass,
        resource::v1::ResourceClaim,
        resource::v1::ResourceClaimTemplate,
        resource::v1::ResourceSlice,
        resource::v1alpha3::DeviceTaintRule,
        resource::v1alpha3::ResourcePoolStatusRequest,
        resource::v1beta1::DeviceClass,
        resource::v1beta1::ResourceClaim,
        resource::v1beta1::ResourceClaimTemplate,
        resource::v1beta1::ResourceSlice,
        resource::v1beta2::DeviceClass,
        resource::v1beta2::DeviceTaintRule,
        resource::v1beta2::ResourceClaim,
        resource::v1beta2::ResourceClaimTemplate,
        resource::v1beta2::ResourceSlice,
        scheduling::v1::PriorityClass,
        scheduling::v1alpha2::PodGroup,
        scheduling::v1alpha2::Workload,
        storage::v1::CSIDriver,
        storage::v1::CSINode,
        storage::v1::CSIStorageCapacity,
        storage::v1::StorageClass,
        storage::v1::VolumeAttachment,
        storage::v1::VolumeAttributesClass,
        storage::v1beta1::VolumeAttributesClass,
        storagemigration::v1beta1::StorageVersionMigration,
    };
    let table = include_str!("../../../kubewright-macros/facts/types.txt");
    let kind_of_line = |line: &str| {
        let mut words = line.split(' ');
        let kind = words.next()?.rsplit('.').next()?.to_owned();
        let group_version = words.find_map(|word| word.strip_prefix("@kind="))?.to_owned();
        line.contains(" metadata:meta.v1.ObjectMeta").then(|| (format!("{group_version} {kind}"), Some(kind)))
    };
    let expected: BTreeSet<_> = table.lines().filter_map(kind_of_line).collect();
    assert!(expected.len() > 80, "{}", expected.len());
    assert_eq!(BTreeSet::from(named), expected);
}
