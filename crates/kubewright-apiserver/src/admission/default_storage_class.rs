//! DefaultStorageClass: a claim without a class gets the default StorageClass.

use kubewright_apimachinery::object::Fields as _;
use serde_json::Value;

use super::{Admission, Attributes, Cluster, Notes, Operation, Plugin};

pub(super) struct DefaultStorageClass;

impl Plugin for DefaultStorageClass {
    fn name(&self) -> &'static str {
        "DefaultStorageClass"
    }

    fn handles(&self, operation: Operation) -> bool {
        operation == Operation::Create
    }

    fn admit<'a>(
        &'a self,
        cluster: &'a Cluster,
        attributes: &'a mut Attributes<'_>,
        _notes: &'a mut Notes,
    ) -> Admission<'a> {
        let claim = &mut attributes.object;
        let has_class = claim.has("spec.storageClassName")
            || claim.map_at("metadata.annotations").contains_key("volume.beta.kubernetes.io/storage-class");
        if attributes.is_for("", "persistentvolumeclaims") && !has_class {
            let classes = cluster.list("storage.k8s.io/storageclasses", "");
            if let Some(name) = default_class(&classes, "storageclass.kubernetes.io/is-default-class") {
                attributes.object.set_at("spec.storageClassName", name);
            }
        }
        Admission::ALLOWED
    }
}

/// The newest class that has the annotation for default classes.
pub(super) fn default_class(classes: &[Value], annotation: &str) -> Option<String> {
    let marked = classes.iter().filter(|class| {
        class.map_at("metadata.annotations").get(annotation).and_then(Value::as_str) == Some("true")
    });
    let newest = marked.max_by_key(|class| class.str_at("metadata.creationTimestamp").to_owned())?;
    Some(newest.str_at("metadata.name").to_owned())
}
