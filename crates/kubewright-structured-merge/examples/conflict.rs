//! Two field managers of one Deployment: ownership, a conflict, and giving up a field.
//!
//! ```console
//! cargo run -p kubewright-structured-merge --example conflict
//! ```

use kubewright_apimachinery::types;
use kubewright_structured_merge::{
    ApplyError, ManagedFields, OneVersion, Owners, Reset, Schema, Write, apply,
};
use serde_json::{Value, json};

fn main() -> Result<(), ApplyError> {
    let ty = types::type_of_kind("apps", "v1", "Deployment").expect("Deployment is a built-in type");
    let versions = OneVersion { api_version: "apps/v1", schema: Schema::built_in(ty) };
    let reset = Reset::default();
    let write = |manager| Write {
        manager,
        api_version: "apps/v1",
        kind: "Deployment",
        subresource: "",
        time: "2026-01-01T00:00:00Z",
        versions: &versions,
        reset: &reset,
        owners: Owners::Json,
    };

    let live = apply(None, &deployment(&json!({"replicas": 2, "paused": false})), false, &write("gitops"))?;
    show("gitops applies replicas and paused", &live);

    let wanted = deployment(&json!({"replicas": 5}));
    if let Err(error) = apply(Some(&live), &wanted, false, &write("autoscaler")) {
        println!("autoscaler applies replicas: {error}\n");
    }
    let live = apply(Some(&live), &wanted, true, &write("autoscaler"))?;
    show("autoscaler applies replicas with force", &live);

    let live = apply(Some(&live), &deployment(&json!({})), false, &write("gitops"))?;
    show("gitops applies an empty spec: paused is removed, replicas stays", &live);
    Ok(())
}

fn deployment(spec: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
}

fn show(title: &str, object: &Value) {
    println!("{title}\n  spec: {}", object["spec"]);
    let managed = ManagedFields::decode(&object["metadata"]["managedFields"]).unwrap_or_default();
    for entry in managed.entries() {
        println!("  {} owns {}", entry.manager.name, entry.fields.encode());
    }
    println!();
}
