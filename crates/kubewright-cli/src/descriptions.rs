//! Descriptions of built-in types and fields, from the schemas in k8s-openapi.
//!
//! Only a binary can provide them: k8s-openapi requires one Kubernetes version for the whole build, which a
//! library must not choose. So the server takes [`Descriptions`] from its caller. Texts are passed through
//! unchanged. k8s-openapi has one generic list type, so lists have no descriptions.

use std::sync::LazyLock;

use k8s_openapi::api::{
    admissionregistration::v1 as admissionregistration, apps::v1 as apps,
    authentication::v1 as authentication, authorization::v1 as authorization, autoscaling,
    batch::v1 as batch, certificates::v1 as certificates, coordination::v1 as coordination, core::v1 as core,
    discovery::v1 as discovery, events::v1 as events, flowcontrol::v1 as flowcontrol,
    networking::v1 as networking, node::v1 as node, policy::v1 as policy, rbac::v1 as rbac,
    resource::v1 as resource, scheduling::v1 as scheduling, storage::v1 as storage,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions;
use k8s_openapi::apimachinery::pkg::{apis::meta::v1 as meta, version};
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1 as apiregistration;
use kubewright_apis::openapi::Descriptions;
use schemars::SchemaGenerator;
use serde_json::{Map, Value};

/// The descriptions of Kubernetes v1.36. The table is built on first use, which most runs never need.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KubernetesDescriptions;

impl Descriptions for KubernetesDescriptions {
    fn of_type(&self, name: &str) -> Option<&str> {
        text(SCHEMAS.get(name)?)
    }

    fn of_field(&self, name: &str, field: &str) -> Option<&str> {
        // List types are missing in k8s-openapi; their `apiVersion` and `kind` have the same descriptions as
        // other kinds.
        let schema = match SCHEMAS.get(name) {
            None if matches!(field, "apiVersion" | "kind") => SCHEMAS.get("io.k8s.api.core.v1.Pod")?,
            schema => schema?,
        };
        text(schema.get("properties")?.get(field)?)
    }
}

fn text(schema: &Value) -> Option<&str> {
    schema.get("description")?.as_str()
}

/// Schemas by published type name.
static SCHEMAS: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    let mut generator = SchemaGenerator::default();
    add_schemas(&mut generator);
    generator.take_definitions(false)
});

macro_rules! add_schemas {
    ($generator:ident, $($ty:ty),+ $(,)?) => {
        $($generator.subschema_for::<$ty>();)+
    };
}

/// Adds the root types; generating them adds the types that they reference.
fn add_schemas(generator: &mut SchemaGenerator) {
    add_schemas!(
        generator,
        admissionregistration::MutatingAdmissionPolicy,
        admissionregistration::MutatingAdmissionPolicyBinding,
        admissionregistration::MutatingWebhookConfiguration,
        admissionregistration::ValidatingAdmissionPolicy,
        admissionregistration::ValidatingAdmissionPolicyBinding,
        admissionregistration::ValidatingWebhookConfiguration,
        apps::ControllerRevision,
        apps::DaemonSet,
        apps::Deployment,
        apps::ReplicaSet,
        apps::StatefulSet,
        authentication::SelfSubjectReview,
        authentication::TokenRequest,
        authentication::TokenReview,
        authorization::LocalSubjectAccessReview,
        authorization::SelfSubjectAccessReview,
        authorization::SelfSubjectRulesReview,
        authorization::SubjectAccessReview,
        autoscaling::v1::HorizontalPodAutoscaler,
        autoscaling::v1::Scale,
        autoscaling::v2::HorizontalPodAutoscaler,
        batch::CronJob,
        batch::Job,
        certificates::CertificateSigningRequest,
        coordination::Lease,
        core::Binding,
        core::ComponentStatus,
        core::ConfigMap,
        core::Endpoints,
        core::Event,
        core::LimitRange,
        core::Namespace,
        core::Node,
        core::PersistentVolume,
        core::Pod,
        core::PodTemplate,
        core::ReplicationController,
        core::ResourceQuota,
        core::Secret,
        core::Service,
        core::ServiceAccount,
        discovery::EndpointSlice,
        events::Event,
        flowcontrol::FlowSchema,
        flowcontrol::PriorityLevelConfiguration,
        networking::IPAddress,
        networking::Ingress,
        networking::IngressClass,
        networking::NetworkPolicy,
        networking::ServiceCIDR,
        node::RuntimeClass,
        policy::Eviction,
        policy::PodDisruptionBudget,
        rbac::ClusterRole,
        rbac::ClusterRoleBinding,
        rbac::Role,
        rbac::RoleBinding,
        resource::DeviceClass,
        resource::ResourceClaim,
        resource::ResourceClaimTemplate,
        resource::ResourceSlice,
        scheduling::PriorityClass,
        storage::CSIDriver,
        storage::CSINode,
        storage::CSIStorageCapacity,
        storage::StorageClass,
        storage::VolumeAttachment,
        storage::VolumeAttributesClass,
        apiextensions::CustomResourceDefinition,
        meta::APIGroupList,
        meta::APIResourceList,
        meta::APIVersions,
        meta::Patch,
        meta::Status,
        meta::WatchEvent<()>,
        version::Info,
        apiregistration::APIService,
    );
}

#[cfg(test)]
mod tests;
