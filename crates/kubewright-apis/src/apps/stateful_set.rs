//! StatefulSet.

mod validation;

use serde_json::Value;

use crate::core::persistent_volume_claim;
use crate::core::pod::defaults::default_template;
use crate::core::pod::strategy::pod_template_warnings;
use crate::defaults::default_text;
use crate::kinds::KindRules;
use crate::strategy::{keep_status_and_count, reset_status_and_generation, workload};
use crate::table::WORKLOAD_PATHS;
use crate::table::row::Row;
use kubewright_apimachinery::field::{ErrorList, Path, quote};
use kubewright_apimachinery::meta::{Check, NameRule};
use kubewright_apimachinery::object::Fields as _;

pub(crate) const RULES: KindRules = KindRules {
    kind: "StatefulSet",
    defaults,
    prepare_create: |object| {
        drop_max_unavailable(object);
        reset_status_and_generation(object);
    },
    prepare_update: |new, old| {
        if !old.has(MAX_UNAVAILABLE) {
            drop_max_unavailable(new);
        }
        keep_status_and_count(new, old);
    },
    warnings: |new, old| {
        let mut warnings = workload::changed_spec(new, old, || {
            pod_template_warnings(new.at("spec.template"), &Path::new("spec").child("template"))
        });
        warnings.extend(stateful_set_warnings(new, old.is_some()));
        warnings
    },
    name: |_| NameRule::DnsLabel,
    update_checks: &[Check::Update],
    validate: validation::create,
    validate_update: validation::update,
    validate_subresource: |subresource, new, old| match subresource {
        "status" => validation::status(new, old),
        _ => ErrorList::new(),
    },
    cells,
    cell_paths: Some(WORKLOAD_PATHS),
    ..super::GROUP
};

fn defaults(object: &mut Value) {
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
        persistent_volume_claim::defaults(claim);
    }
}

const MAX_UNAVAILABLE: &str = "spec.updateStrategy.rollingUpdate.maxUnavailable";

/// Drops a field whose feature gate is off by default.
fn drop_max_unavailable(stateful_set: &mut Value) {
    stateful_set.remove_at(MAX_UNAVAILABLE);
}

fn stateful_set_warnings(object: &Value, update: bool) -> Vec<String> {
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

fn cells(row: &Row<'_>) -> Vec<Value> {
    let [names, images] = row.containers("spec.template.spec");
    vec![row.name(), ready(row), row.age(), names, images]
}

/// Ready and desired replicas, also of a Deployment.
pub(super) fn ready(row: &Row<'_>) -> Value {
    format!("{}/{}", row.int("status.readyReplicas"), row.int("spec.replicas")).into()
}

#[cfg(test)]
mod tests;
