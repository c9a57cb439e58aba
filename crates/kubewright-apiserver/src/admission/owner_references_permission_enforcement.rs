//! OwnerReferencesPermissionEnforcement: changing the owner references of an existing object requires permission to
//! delete it, and setting `blockOwnerDeletion` requires permission to update the owner's finalizers. Off by default.

use kubewright_apimachinery::gvk::split_api_version;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::ApiError;
use serde_json::Value;

use super::{Admission, Attributes, Cluster, Notes, Operation, Plugin};
use crate::authz::{Action, ActionOn};

pub(super) struct OwnerReferencesPermissionEnforcement;

impl Plugin for OwnerReferencesPermissionEnforcement {
    fn name(&self) -> &'static str {
        "OwnerReferencesPermissionEnforcement"
    }

    fn handles(&self, operation: Operation) -> bool {
        matches!(operation, Operation::Create | Operation::Update)
    }

    fn validate<'a>(
        &'a self,
        cluster: &'a Cluster,
        attributes: &'a Attributes<'_>,
        _notes: &'a mut Notes,
    ) -> Admission<'a> {
        check(cluster, attributes).into()
    }
}

fn check(cluster: &Cluster, attributes: &Attributes<'_>) -> Result<(), ApiError> {
    let owners = |object: &Value| object.list_at("metadata.ownerReferences").to_vec();
    let new = owners(&attributes.object);
    let old = attributes.old_object.map(owners).unwrap_or_default();
    let resource = attributes.resource;
    let is_pod_status =
        (resource.group(), resource.plural(), attributes.subresource) == ("", "pods", "status");
    if new == old || is_pod_status {
        return Ok(());
    }
    let combined = match attributes.subresource {
        "" => resource.plural().to_owned(),
        subresource => format!("{}/{subresource}", resource.plural()),
    };
    let on = ActionOn::Resource {
        group: resource.group(),
        resource: &combined,
        namespace: attributes.namespace,
        name: attributes.name,
    };
    let is_create = attributes.operation == Operation::Create;
    if !is_create && !cluster.allows(attributes.user, Action { verb: "delete", on }) {
        return Err(attributes.forbidden("cannot set an ownerRef on a resource you can't delete: , <nil>"));
    }
    for owner in new.iter().filter(|owner| owner.bool_at("blockOwnerDeletion")) {
        let blocked =
            |other: &Value| other.str_at("uid") == owner.str_at("uid") && other.bool_at("blockOwnerDeletion");
        if old.iter().any(blocked) {
            continue;
        }
        let (group, version) = split_api_version(owner.str_at("apiVersion"));
        let registry = cluster.registry();
        let Some(kind) = registry.all().find(|resource| {
            resource.group() == group
                && resource.version() == version
                && resource.kind() == owner.str_at("kind")
        }) else {
            let why =
                "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion";
            let why = format!("{why} {} Kind {}", owner.str_at("apiVersion"), owner.str_at("kind"));
            return Err(attributes.forbidden(&why));
        };
        let finalizers = format!("{}/finalizers", kind.plural());
        let on = ActionOn::Resource {
            group,
            resource: &finalizers,
            namespace: if kind.namespaced() { attributes.namespace } else { "" },
            name: owner.str_at("name"),
        };
        if !cluster.allows(attributes.user, Action { verb: "update", on }) {
            let why = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers \
                       on: , <nil>";
            return Err(attributes.forbidden(why));
        }
    }
    Ok(())
}
