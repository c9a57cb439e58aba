//! Defaults of the kinds of apps, batch, autoscaling and policy, and of ReplicationController.

mod autoscaling;
mod batch;
#[cfg(test)]
mod tests;

use serde_json::Value;

use super::pods::pod_template;
use crate::convert::TEMPLATE_GENERATION;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;

pub(super) fn apply(gvk: Gvk<'_>, object: &mut Value) {
    match (gvk.group, gvk.kind) {
        ("apps", "Deployment") => deployment(object),
        ("apps", "ReplicaSet") => replica_set(object),
        ("apps", "StatefulSet") => stateful_set(object),
        ("apps", "DaemonSet") => daemon_set(object),
        ("batch", "Job") => batch::job(object),
        ("batch", "CronJob") => batch::cron_job(object),
        ("autoscaling", "HorizontalPodAutoscaler") if gvk.version == "v1" => autoscaling::v1(object),
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaling::v2(object),
        ("", "ReplicationController") => replication_controller(object),
        _ => {}
    }
}

fn deployment(object: &mut Value) {
    default_template(object, "spec.template");
    object.default_at("spec.replicas", 1);
    default_text(object, "spec.strategy.type", "RollingUpdate");
    if object.str_at("spec.strategy.type") == "RollingUpdate" {
        object.default_at("spec.strategy.rollingUpdate.maxUnavailable", "25%");
        object.default_at("spec.strategy.rollingUpdate.maxSurge", "25%");
    }
    object.default_at("spec.revisionHistoryLimit", 10);
    object.default_at("spec.progressDeadlineSeconds", 600);
}

fn replica_set(object: &mut Value) {
    default_template(object, "spec.template");
    object.default_at("spec.replicas", 1);
}

fn stateful_set(object: &mut Value) {
    default_template(object, "spec.template");
    default_text(object, "spec.podManagementPolicy", "OrderedReady");
    if object.str_at("spec.updateStrategy.type").is_empty() {
        object.set_at("spec.updateStrategy.type", "RollingUpdate");
        object.object_mut("spec.updateStrategy.rollingUpdate");
    }
    if object.str_at("spec.updateStrategy.type") == "RollingUpdate"
        && object.has("spec.updateStrategy.rollingUpdate")
    {
        object.default_at("spec.updateStrategy.rollingUpdate.partition", 0);
    }
    default_text(object, "spec.persistentVolumeClaimRetentionPolicy.whenDeleted", "Retain");
    default_text(object, "spec.persistentVolumeClaimRetentionPolicy.whenScaled", "Retain");
    object.default_at("spec.replicas", 1);
    object.default_at("spec.revisionHistoryLimit", 10);
    for claim in object.list_mut("spec.volumeClaimTemplates").into_iter().flatten() {
        // The server always sets these, so that clients cannot set others.
        claim.set_at("apiVersion", "v1");
        claim.set_at("kind", "PersistentVolumeClaim");
        super::apply(Gvk { group: "", version: "v1", kind: "PersistentVolumeClaim" }, claim);
    }
}

fn daemon_set(object: &mut Value) {
    default_template(object, "spec.template");
    default_text(object, "spec.updateStrategy.type", "RollingUpdate");
    if object.str_at("spec.updateStrategy.type") == "RollingUpdate" {
        object.default_at("spec.updateStrategy.rollingUpdate.maxUnavailable", 1);
        object.default_at("spec.updateStrategy.rollingUpdate.maxSurge", 0);
    }
    object.default_at("spec.revisionHistoryLimit", 10);
    let annotations = object.object_mut("metadata.annotations");
    annotations.entry(TEMPLATE_GENERATION).or_insert_with(|| "0".into());
}

fn replication_controller(object: &mut Value) {
    default_template(object, "spec.template");
    let labels = object.at("spec.template.metadata.labels").clone();
    if labels.is_object() {
        if object.map_at("spec.selector").is_empty() {
            object.set_at("spec.selector", labels.clone());
        }
        if object.map_at("metadata.labels").is_empty() {
            object.set_at("metadata.labels", labels);
        }
    }
    object.default_at("spec.replicas", 1);
}

/// Sets the defaults of the pod template at `path`, if any.
fn default_template(object: &mut Value, path: &str) {
    if let Some(template) = object.at_mut(path) {
        pod_template(template);
    }
}

/// Sets a string that is absent or empty. Decoding leaves required strings empty.
fn default_text(object: &mut Value, path: &str, value: &str) {
    if object.str_at(path).is_empty() {
        object.set_at(path, value);
    }
}
