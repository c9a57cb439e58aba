//! Connections to containers, Services and nodes: `exec`, `attach`, `portforward` and `proxy`.
//!
//! Requests are admitted and validated as upstream does. Containers are simulated, so a valid request gets an error with
//! this reason.

use http::Response;
use kubewright_apimachinery::gvk::Gvk;
use kubewright_apimachinery::object::Fields as _;
use kubewright_apimachinery::status::ApiError;
use serde_json::Value;

use super::Subresources;
use super::logs::container;
use crate::admission::{Attributes, Notes, Operation, OperationOptions, connect_options};
use crate::encoding::body::Body;
use crate::registry::resource::Resource;
use crate::request::{Query, Request};

impl Subresources {
    /// CONNECT to a Pod, Service or Node.
    pub(super) async fn connect(
        &self,
        request: &Request,
        resource: &Resource,
        namespace: &str,
        name: &str,
        subresource: &str,
        kind: &str,
    ) -> Result<Response<Body>, ApiError> {
        let kind = Gvk { group: "", version: "v1", kind };
        let options = connect_options(kind.kind, &request.query);
        let mut notes = Notes::of(request);
        let mut attributes = Attributes {
            operation: Operation::Connect,
            resource,
            kind,
            strategy: &*resource.strategy,
            subresource,
            namespace,
            name,
            object: options,
            old_object: None,
            options: OperationOptions::None,
            user: &request.user,
            dry_run: false,
            managed_fields_before: None,
        };
        self.writes.admission.admit_and_validate(&mut attributes, &mut notes).await?;
        // The name in a `proxy` path can have a scheme and a port: `https:web:8443`.
        let plain = match name.split(':').collect::<Vec<_>>()[..] {
            [plain, _] if subresource == "proxy" => plain,
            [_, plain, _] if subresource == "proxy" => plain,
            _ => name,
        };
        let version = self.reads.find(resource, namespace, plain)?;
        if resource.plural() == "pods" {
            check_pod(&version.object(), subresource, &request.query)?;
        }
        Err(ApiError::new(501, "NotImplemented", simulated(resource.plural(), subresource)))
    }
}

/// As upstream: the container exists, and the Pod is scheduled.
fn check_pod(pod: &Value, subresource: &str, query: &Query) -> Result<(), ApiError> {
    if matches!(subresource, "exec" | "attach") {
        container(pod, query.get("container").unwrap_or_default())?;
    }
    if subresource != "proxy" && pod.str_at("spec.nodeName").is_empty() {
        let name = pod.str_at("metadata.name");
        return Err(ApiError::bad_request(format!("pod {name} does not have a host assigned")));
    }
    Ok(())
}

fn simulated(resource: &str, subresource: &str) -> String {
    let why = match resource {
        "services" => "Services are not routed on this API server",
        "nodes" => "the nodes of this API server are simulated",
        _ => "the containers of this Pod are simulated and run no process",
    };
    format!("{subresource} is not supported: {why}; use a real cluster")
}
