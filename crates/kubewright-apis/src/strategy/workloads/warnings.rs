//! Warnings about workloads.

use serde_json::Value;

use crate::strategy::pods::pod_template_warnings;
use kubewright_apimachinery::field::{Path, quote};
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::names;
use kubewright_apimachinery::object::Fields as _;

pub(in crate::strategy) fn warnings(gvk: Gvk<'_>, new: &Value, old: Option<&Value>) -> Vec<String> {
    let spec = Path::new("spec");
    let mut warnings = Vec::new();
    if old.is_none()
        && matches!(gvk.kind, "Deployment" | "ReplicaSet" | "ReplicationController" | "Job" | "CronJob")
    {
        warnings.extend(name(new.str_at("metadata.name")));
    }
    // An unchanged spec causes no new warnings.
    let changed = old.is_none_or(|old| new.at("metadata.generation") != old.at("metadata.generation"));
    if changed {
        warnings.extend(match gvk.kind {
            "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" => {
                pod_template_warnings(new.at("spec.template"), &spec.child("template"))
            }
            // Upstream omits `spec` from this path.
            "ReplicationController" => pod_template_warnings(new.at("spec.template"), &Path::new("template")),
            "Job" => job(new.at("spec"), &spec),
            "CronJob" => job(new.at("spec.jobTemplate.spec"), &spec.child("jobTemplate").child("spec")),
            _ => Vec::new(),
        });
    }
    if gvk.kind == "StatefulSet" {
        warnings.extend(stateful_set(new, old.is_some()));
    }
    warnings
}

fn name(name: &str) -> Option<String> {
    let messages = names::dns1123_label(name);
    (!messages.is_empty()).then(|| {
        format!(
            "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS \
             label is recommended: [{}]",
            messages.join(" ")
        )
    })
}

fn job(spec: &Value, path: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    let completions = spec.int_at("completions").unwrap_or_default();
    let parallelism = spec.int_at("parallelism").unwrap_or_default();
    if spec.str_at("completionMode") == "Indexed" && completions > 100_000 && parallelism > 10_000 {
        warnings.push(format!(
            "{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than \
             10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        ));
    }
    warnings.extend(pod_template_warnings(spec.at("template"), &path.child("template")));
    warnings
}

fn stateful_set(object: &Value, update: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    for (i, claim) in object.list_at("spec.volumeClaimTemplates").iter().enumerate() {
        let claim_path = Path::new("spec").child("volumeClaimTemplates").index(i);
        // Upstream's path differs on update.
        let claim_path = if update { claim_path.child("Spec") } else { claim_path };
        for list in ["requests", "limits"] {
            let storage = claim.at("spec.resources").at(list).str_at("storage");
            if storage.ends_with(['m', 'u', 'n']) {
                let path = claim_path.child("resources").child(list).key("storage");
                let storage = quote(storage);
                warnings
                    .push(format!("{path}: fractional byte value {storage} is invalid, must be an integer"));
            }
        }
    }
    if object.int_at("spec.revisionHistoryLimit").is_some_and(|limit| limit < 0) {
        warnings.push(
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is \
             recommended"
                .to_owned(),
        );
    }
    warnings
}
