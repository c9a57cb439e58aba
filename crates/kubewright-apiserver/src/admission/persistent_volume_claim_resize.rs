//! PersistentVolumeClaimResize: a bound claim can grow only if its StorageClass allows volume expansion.

use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::quantity::Quantity;
use kubewright_apimachinery::status::ApiError;
use serde_json::Value;

use super::{Admission, Attributes, Cluster, Notes, Operation, Plugin};

pub(super) struct PersistentVolumeClaimResize;

impl Plugin for PersistentVolumeClaimResize {
    fn name(&self) -> &'static str {
        "PersistentVolumeClaimResize"
    }

    fn handles(&self, operation: Operation) -> bool {
        operation == Operation::Update
    }

    fn validate<'a>(
        &'a self,
        cluster: &'a Cluster,
        attributes: &'a Attributes<'_>,
        _notes: &'a mut Notes,
    ) -> Admission<'a> {
        if !attributes.is_for("", "persistentvolumeclaims") {
            return Admission::ALLOWED;
        }
        check(cluster, attributes).into()
    }
}

fn check(cluster: &Cluster, attributes: &Attributes<'_>) -> Result<(), ApiError> {
    let (new, Some(old)) = (&attributes.object, attributes.old_object) else { return Ok(()) };
    let size = |claim: &Value| Quantity::from_json(claim.at("spec.resources.requests.storage")).ok();
    if size(new) <= size(old) {
        return Ok(());
    }
    if old.str_at("status.phase") != "Bound" {
        return Err(attributes.forbidden("Only bound persistent volume claims can be expanded"));
    }
    let class = class_of(new);
    let allowed = !class.is_empty()
        && class == class_of(old)
        && cluster
            .get("storage.k8s.io/storageclasses", "", class)
            .is_some_and(|class| class.bool_at("allowVolumeExpansion"));
    if allowed {
        return Ok(());
    }
    Err(attributes.forbidden(
        "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support \
         resize",
    ))
}

/// The annotation is older than the field and takes precedence.
fn class_of(claim: &Value) -> &str {
    let annotation = claim.map_at("metadata.annotations").get("volume.beta.kubernetes.io/storage-class");
    annotation.and_then(Value::as_str).unwrap_or_else(|| claim.str_at("spec.storageClassName"))
}
