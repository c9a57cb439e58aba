//! NamespaceLifecycle: rejects writes in missing namespaces, creation in terminating ones, and deletion of
//! system namespaces.

use kubewright_apimachinery::status::{ApiError, Cause, Qualified};

use super::{Admission, Attributes, Cluster, Notes, Operation, Plugin};

const NAMESPACES: Qualified<'_> = Qualified { group: "", name: "namespaces" };

pub(super) struct NamespaceLifecycle;

impl Plugin for NamespaceLifecycle {
    fn name(&self) -> &'static str {
        "NamespaceLifecycle"
    }

    fn handles(&self, operation: Operation) -> bool {
        operation != Operation::Connect
    }

    fn admit<'a>(
        &'a self,
        cluster: &'a Cluster,
        attributes: &'a mut Attributes<'_>,
        _notes: &'a mut Notes,
    ) -> Admission<'a> {
        check(cluster, attributes).into()
    }
}

fn check(cluster: &Cluster, attributes: &Attributes<'_>) -> Result<(), ApiError> {
    if attributes.kind.group.is_empty() && attributes.kind.kind == "Namespace" {
        let immortal = matches!(attributes.name, "default" | "kube-system" | "kube-public");
        if attributes.operation == Operation::Delete && immortal {
            let why = "this namespace may not be deleted";
            return Err(ApiError::forbidden(attributes.qualified(), attributes.name, why));
        }
        return Ok(());
    }
    let namespace = attributes.namespace;
    let review = attributes.is_for("authorization.k8s.io", "localsubjectaccessreviews");
    if namespace.is_empty() || attributes.operation == Operation::Delete || review {
        return Ok(());
    }
    let Some(version) = cluster.version("namespaces", namespace) else {
        return Err(ApiError::not_found(NAMESPACES, namespace));
    };
    let terminating = version.attributes.field("status.phase") == Some("Terminating");
    if attributes.operation != Operation::Create || !terminating {
        return Ok(());
    }
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let mut error = attributes.forbidden(&why);
    error.details.get_or_insert_default().causes.push(Cause {
        reason: "NamespaceTerminating".to_owned(),
        message: format!("namespace {namespace} is being terminated"),
        field: "metadata.namespace".to_owned(),
    });
    Err(error)
}
