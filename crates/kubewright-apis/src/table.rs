//! Table rows of built-in kinds, as printed by `kubectl get`.
//!
//! This module computes the cells. Column headers are facts in `facts/columns.txt`, and the server combines
//! both. Cells include those of `-o wide`. Numbers are JSON numbers where upstream has numbers, even in
//! columns of type string. Columns of custom resources are not handled here.

mod admission;
mod autoscaling;
mod cluster;
mod network;
mod pods;
mod row;
mod storage;
mod workloads;

use serde_json::{Value, json};

use crate::convert::convert;
use crate::facts::{Column, columns};
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::time;
use row::Row;
pub use row::age;

/// The cells of an object in the order of its [`column_definitions`]. `now` is a Unix time in seconds. Kinds
/// without their own columns have name and creation time.
pub fn cells(gvk: Gvk<'_>, object: &Value, now: i64) -> Vec<Value> {
    let row = &Row { object, now };
    match (gvk.group, gvk.kind) {
        ("", "Pod") => pods::pod(row),
        ("", "PodTemplate") => workloads::pod_template(row),
        ("", "ReplicationController") => workloads::replication_controller(row),
        ("apps", "ReplicaSet") => workloads::replica_set(row),
        ("apps", "Deployment") => workloads::deployment(row),
        ("apps", "StatefulSet") => workloads::stateful_set(row),
        ("apps", "DaemonSet") => workloads::daemon_set(row),
        ("apps", "ControllerRevision") => workloads::controller_revision(row),
        ("batch", "Job") => workloads::job(row),
        ("batch", "CronJob") => workloads::cron_job(row),
        ("policy", "PodDisruptionBudget") => workloads::pod_disruption_budget(row),
        ("autoscaling", "Scale") => autoscaling::scale(row),
        ("autoscaling", "HorizontalPodAutoscaler") if gvk.version == "v1" => {
            let object = &convert(object.clone(), Gvk { version: "v2", ..gvk });
            autoscaling::horizontal_pod_autoscaler(&Row { object, now })
        }
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaling::horizontal_pod_autoscaler(row),

        ("", "Service") => network::service(row),
        ("", "Endpoints") => network::endpoints(row),
        ("discovery.k8s.io", "EndpointSlice") => network::endpoint_slice(row),
        ("networking.k8s.io", "Ingress") => network::ingress(row),
        ("networking.k8s.io", "IngressClass") => network::ingress_class(row),
        ("networking.k8s.io", "NetworkPolicy") => network::network_policy(row),
        ("networking.k8s.io", "ServiceCIDR") => network::service_cidr(row),
        ("networking.k8s.io", "IPAddress") => network::ip_address(row),

        ("", "PersistentVolume") => storage::persistent_volume(row),
        ("", "PersistentVolumeClaim") => storage::persistent_volume_claim(row),
        ("storage.k8s.io", "StorageClass") => storage::storage_class(row),
        ("storage.k8s.io", "VolumeAttributesClass") => storage::volume_attributes_class(row),
        ("storage.k8s.io", "VolumeAttachment") => storage::volume_attachment(row),
        ("storage.k8s.io", "CSIDriver") => storage::csi_driver(row),
        ("storage.k8s.io", "CSINode") => storage::csi_node(row),

        ("", "Node") => cluster::node(row),
        ("", "Namespace") => cluster::namespace(row),
        ("", "ComponentStatus") => cluster::component_status(row),
        ("", "ConfigMap") => cluster::config_map(row),
        ("", "Secret") => cluster::secret(row),
        ("", "ResourceQuota") => cluster::resource_quota(row),
        ("", "Event") => cluster::event(row),
        ("events.k8s.io", "Event") => {
            let object = &convert(object.clone(), Gvk { group: "", ..gvk });
            cluster::event(&Row { object, now })
        }
        ("", "ServiceAccount") | ("resource.k8s.io", "DeviceClass" | "ResourceClaimTemplate") => {
            vec![row.name(), row.age()]
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => cluster::role_binding(row),
        ("certificates.k8s.io", "CertificateSigningRequest") => cluster::certificate_signing_request(row),
        ("coordination.k8s.io", "Lease") => {
            vec![row.name(), row.text("spec.holderIdentity"), row.age()]
        }
        ("node.k8s.io", "RuntimeClass") => vec![row.name(), row.text("handler"), row.age()],
        ("scheduling.k8s.io", "PriorityClass") => cluster::priority_class(row),
        ("resource.k8s.io", "ResourceClaim") => cluster::resource_claim(row),
        ("resource.k8s.io", "ResourceSlice") => cluster::resource_slice(row),

        (
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration",
        ) => vec![row.name(), row.count("webhooks"), row.age()],
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => {
            admission::policy(row, "spec.validations")
        }
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy") => {
            admission::policy(row, "spec.mutations")
        }
        (
            "admissionregistration.k8s.io",
            "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding",
        ) => admission::policy_binding(row),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => admission::flow_schema(row),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => admission::priority_level(row),
        ("apiregistration.k8s.io", "APIService") => admission::api_service(row),

        _ => vec![row.name(), created_at(object)],
    }
}

/// The paths of all fields that [`cells`] and [`row_conditions`] read, for kinds with large objects. A path in a list
/// applies to its items. `None` for other kinds.
pub fn cell_paths(gvk: Gvk<'_>) -> Option<&'static [&'static str]> {
    Some(match (gvk.group, gvk.kind) {
        ("", "Pod") => &[
            "metadata.name",
            "metadata.creationTimestamp",
            "metadata.deletionTimestamp",
            "spec.containers.name",
            "spec.initContainers.name",
            "spec.initContainers.restartPolicy",
            "spec.nodeName",
            "spec.readinessGates",
            "status",
        ],
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet")
        | ("", "ReplicationController") => &[
            "metadata.name",
            "metadata.creationTimestamp",
            "spec.replicas",
            "spec.selector",
            "spec.template.spec.containers.name",
            "spec.template.spec.containers.image",
            "spec.template.spec.nodeSelector",
            "status",
        ],
        ("batch", "Job") => &[
            "metadata.name",
            "metadata.creationTimestamp",
            "metadata.deletionTimestamp",
            "spec.completions",
            "spec.parallelism",
            "spec.selector",
            "spec.template.spec.containers.name",
            "spec.template.spec.containers.image",
            "status",
        ],
        _ => return None,
    })
}

/// The `columnDefinitions` of a resource's Table. Resources without their own columns have `Name` and
/// `Created At`.
pub fn column_definitions(group: &str, version: &str, plural: &str) -> Vec<Value> {
    let own = columns(group, version, plural);
    // LimitRange is a kind without its own columns.
    let found = own.or_else(|| columns("", "v1", "limitranges")).unwrap_or_default();
    found.iter().map(definition).collect()
}

/// The `columnDefinitions` of the `scale` subresource of any resource.
pub fn scale_column_definitions() -> Vec<Value> {
    let replicas = |name, description: &str| json!({"name": name, "type": "integer", "format": "", "description": description, "priority": 0});
    let mut definitions = column_definitions("", "v1", "serviceaccounts");
    if let Some(name) = definitions.first_mut() {
        // Upstream has no format here.
        name.set_at("format", "");
    }
    let inner = [
        replicas("Desired", "replicas is the desired number of instances for the scaled object."),
        replicas("Available", "replicas is the actual number of observed instances of the scaled object."),
    ];
    definitions.splice(1..1, inner);
    definitions
}

/// The `conditions` of a row, which mark completed pods.
pub fn row_conditions(gvk: Gvk<'_>, object: &Value) -> Option<Value> {
    if (gvk.group, gvk.kind) != ("", "Pod") {
        return None;
    }
    let phase = object.str_at("status.phase");
    let message = match phase {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": phase, "message": message}]))
}

/// Sorts the objects of a list for the Table: FlowSchemas by matching precedence.
pub fn sort_rows(gvk: Gvk<'_>, objects: &mut [&Value]) {
    if sorts_rows(gvk) {
        objects
            .sort_by_key(|object| (object.int_at("spec.matchingPrecedence"), object.str_at("metadata.name")));
    }
}

/// Whether the rows of a kind are sorted.
pub fn sorts_rows(gvk: Gvk<'_>) -> bool {
    (gvk.group, gvk.kind) == ("flowcontrol.apiserver.k8s.io", "FlowSchema")
}

fn definition(column: &Column) -> Value {
    json!({
        "name": column.name,
        "type": column.ty,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    })
}

/// The creation timestamp, or Go's zero time.
fn created_at(object: &Value) -> Value {
    let created = time::parse_rfc3339(object.str_at("metadata.creationTimestamp"));
    created.map_or_else(|| "0001-01-01T00:00:00Z".into(), |seconds| time::format_rfc3339(seconds).into())
}

#[cfg(test)]
mod tests;
