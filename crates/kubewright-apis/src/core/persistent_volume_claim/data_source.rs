//! Synchronizes `dataSource` and `dataSourceRef` of PersistentVolumeClaims.

use serde_json::{Value, json};

use kubewright_apimachinery::object::Fields as _;

/// Drops data sources that upstream ignores, then fills the field that is absent.
pub(super) fn prepare(claim: &mut Value, old: Option<&Value>) {
    let old_has = |path: &str| old.is_some_and(|old| old.has(path));
    // Sources in other namespaces need a feature gate that is off.
    if !claim.str_at("spec.dataSourceRef.namespace").is_empty() && !old_has("spec.dataSourceRef") {
        claim.remove_at("spec.dataSourceRef");
    }
    let was_used = old_has("spec.dataSource") || old_has("spec.dataSourceRef");
    if !was_used && !claim.has("spec.dataSourceRef") && !is_claim_or_snapshot(claim.at("spec.dataSource")) {
        claim.remove_at("spec.dataSource");
    }
    let in_other_namespace = !claim.str_at("spec.dataSourceRef.namespace").is_empty();
    match (claim.has("spec.dataSource"), claim.has("spec.dataSourceRef")) {
        (true, false) => claim.set_at("spec.dataSourceRef", reference(claim.at("spec.dataSource"))),
        (false, true) if !in_other_namespace => {
            claim.set_at("spec.dataSource", reference(claim.at("spec.dataSourceRef")));
        }
        _ => {}
    }
}

fn is_claim_or_snapshot(source: &Value) -> bool {
    matches!(
        (source.str_at("apiGroup"), source.str_at("kind")),
        ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
    )
}

fn reference(source: &Value) -> Value {
    let mut reference = json!({"kind": source.str_at("kind"), "name": source.str_at("name")});
    if source.has("apiGroup") {
        reference["apiGroup"] = source["apiGroup"].clone();
    }
    reference
}
