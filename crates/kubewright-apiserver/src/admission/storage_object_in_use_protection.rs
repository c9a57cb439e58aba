//! StorageObjectInUseProtection: adds the protection finalizer to PersistentVolumeClaims, PersistentVolumes
//! and VolumeAttributesClasses.

use kubewright_apimachinery::object::Fields as _;
use serde_json::Value;

use super::{Admission, Attributes, Cluster, Notes, Operation, Plugin};

pub(super) struct StorageObjectInUseProtection;

impl Plugin for StorageObjectInUseProtection {
    fn name(&self) -> &'static str {
        "StorageObjectInUseProtection"
    }

    fn handles(&self, operation: Operation) -> bool {
        operation == Operation::Create
    }

    fn admit<'a>(
        &'a self,
        _cluster: &'a Cluster,
        attributes: &'a mut Attributes<'_>,
        _notes: &'a mut Notes,
    ) -> Admission<'a> {
        if attributes.is_for("", "persistentvolumeclaims") {
            add_finalizer(&mut attributes.object, "kubernetes.io/pvc-protection");
        } else if attributes.is_for("", "persistentvolumes") {
            add_finalizer(&mut attributes.object, "kubernetes.io/pv-protection");
        } else if attributes.is_for("storage.k8s.io", "volumeattributesclasses") {
            add_finalizer(&mut attributes.object, "kubernetes.io/vac-protection");
        }
        Admission::ALLOWED
    }
}

fn add_finalizer(object: &mut Value, finalizer: &str) {
    if object.list_at("metadata.finalizers").iter().any(|f| f == finalizer) {
        return;
    }
    let mut finalizers = object.list_at("metadata.finalizers").to_vec();
    finalizers.push(finalizer.into());
    object.set_at("metadata.finalizers", finalizers);
}
