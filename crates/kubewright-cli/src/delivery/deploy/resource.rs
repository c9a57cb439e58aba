//! The resource of a rendered object in a cluster.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use kube::api::{Api, ApiResource, DynamicObject};
use kube::discovery::{self, Scope};
use kubewright_runtime::eventually;

use crate::delivery::rendered::Object;
use crate::dev::api_error;
use crate::error::Hint as _;

/// How long a newly installed kind may take to appear in discovery.
const PATIENCE: Duration = Duration::from_secs(5);

/// Finds the API of an object; `None` if the cluster does not serve its kind.
pub(super) async fn find(client: &kube::Client, object: &Object) -> Result<Option<Api<DynamicObject>>> {
    match discovery::pinned_kind(client, &object.group_version_kind()).await {
        Ok((resource, capabilities)) => {
            Ok(Some(api(client, &resource, capabilities.scope == Scope::Namespaced, object)))
        }
        Err(error) if is_unknown(&error) => Ok(None),
        Err(error) => {
            Err(api_error(error)).with_context(|| format!("cannot find the kind of {}", object.id()))
        }
    }
}

/// Finds the API of an object that is applied. Its kind may be installed moments ago.
pub(super) async fn served(client: &kube::Client, object: &Object) -> Result<Api<DynamicObject>> {
    let found = eventually(PATIENCE, async || match find(client, object).await {
        Ok(None) => Err("the kind is not served".to_owned()),
        Ok(Some(api)) => Ok(Ok(api)),
        Err(error) => Ok(Err(error)),
    });
    if let Ok(found) = found.await {
        return found;
    }
    let advice = match object.api_version().split('/').next() {
        Some("cert-manager.io") => {
            "install cert-manager, or run `kubewright edit --webhook-certs self-signed`"
        }
        Some("monitoring.coreos.com") => {
            "install the Prometheus operator, or run `kubewright edit --prometheus=false`"
        }
        _ => "install the CRD of this kind first",
    };
    Err(anyhow!(
        "cannot apply {}: the cluster has no kind {} in {}",
        object.id(),
        object.kind(),
        object.api_version()
    ))
    .hint(advice)
}

fn api(
    client: &kube::Client,
    resource: &ApiResource,
    is_namespaced: bool,
    object: &Object,
) -> Api<DynamicObject> {
    if is_namespaced {
        let namespace = object.namespace().unwrap_or_else(|| client.default_namespace());
        Api::namespaced_with(client.clone(), namespace, resource)
    } else {
        Api::all_with(client.clone(), resource)
    }
}

/// Whether the error means that the kind is not served.
fn is_unknown(error: &kube::Error) -> bool {
    match error {
        kube::Error::Discovery(_) => true,
        kube::Error::Api(status) => status.code == 404,
        _ => false,
    }
}
