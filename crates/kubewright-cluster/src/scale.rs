//! Access to the scale subresource of any kind.

use k8s_openapi::api::autoscaling::v1::Scale;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kubewright_runtime::{Client, Gvk, Key, Result, client};
use serde_json::json;

/// An object with a scale subresource.
pub(crate) struct Target {
    api: Api<DynamicObject>,
    gvk: Gvk,
    key: Key,
    /// The resource with its group, such as `jobs.batch`.
    resource: String,
}

/// The result of reading a scale.
#[derive(Debug)]
pub(crate) enum Found {
    Scale(Box<Scale>),
    /// The object does not exist.
    Gone,
    /// The object has no scale subresource.
    NotScalable,
}

impl Target {
    /// Resolves a reference. Fails if the server does not serve the kind.
    pub(crate) async fn named(
        client: &Client,
        api_version: &str,
        kind: &str,
        key: &Key,
    ) -> Result<Self, client::Error> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let gvk = Gvk::new(group, version, kind);
        let found = client.kind(&gvk).await?;
        let resource = ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            plural: found.plural().to_owned(),
        };
        let name =
            if group.is_empty() { resource.plural.clone() } else { format!("{}.{group}", resource.plural) };
        let namespace = key.namespace().unwrap_or_default();
        let api = Api::namespaced_with(client.kube(), namespace, &resource);
        Ok(Self { api, gvk, key: key.clone(), resource: name })
    }

    /// The resource with its group, such as `jobs.batch`.
    pub(crate) fn resource(&self) -> &str {
        &self.resource
    }

    /// Reads the scale.
    pub(crate) async fn get(&self, client: &Client) -> Result<Found> {
        match self.api.get_scale(self.key.name()).await {
            Ok(scale) => Ok(Found::Scale(Box::new(scale))),
            // Either the object or its scale subresource does not exist.
            Err(kube::Error::Api(status)) if status.code == 404 => {
                match client.uncached().get_dynamic(&self.gvk, &self.key).await {
                    Ok(_) => Ok(Found::NotScalable),
                    Err(error) if error.is_not_found() => Ok(Found::Gone),
                    Err(error) => Err(error.into()),
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Sets the replicas, with the resourceVersion of the read scale as a precondition.
    pub(crate) async fn set(&self, read: &Scale, replicas: i32) -> Result<(), kube::Error> {
        let version = read.metadata.resource_version.as_deref();
        let patch = json!({
            "metadata": { "resourceVersion": version }, "spec": { "replicas": replicas },
        });
        self.api.patch_scale(self.key.name(), &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }
}
