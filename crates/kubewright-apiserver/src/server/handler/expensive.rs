//! Which requests are handled off the worker thread from the start.
//!
//! Other requests leave it when they reach an expensive part: the steps after a commit, CEL rules and policies.

use http::{Method, header};
use kubewright_apis::table;

use super::ApiServer;
use crate::registry::resource::Resource;
use crate::request::{Request, ResourcePath};

/// Bodies and stored objects above this size are decoded and validated off the worker thread.
const LARGE: usize = 32 << 10;
/// The same, for custom resources: their schemas come from users.
const LARGE_CUSTOM: usize = 4 << 10;

impl ApiServer {
    /// Whether a request may need much CPU time: large bodies and objects, CRDs, patterns of custom resources, deletions
    /// with their dependents, and lists that are encoded before they are sent.
    pub(super) fn is_expensive(
        &self,
        request: &Request,
        resource: &Resource,
        path: &ResourcePath,
        body: &bytes::Bytes,
    ) -> bool {
        match request.method {
            Method::GET | Method::HEAD => {
                let accept = request.header(header::ACCEPT);
                let whole = || accept.contains("Table") && table::sorts_rows(resource.gvk());
                match request.verb() {
                    "list" => accept.contains("protobuf") || whole(),
                    "get" => is_decoded(resource, accept) && self.is_larger(LARGE, resource, path),
                    _ => false,
                }
            }
            Method::DELETE => true,
            _ => {
                let large = if resource.crd().is_some() { LARGE_CUSTOM } else { LARGE };
                body.len() > large
                    || resource.defines_resources()
                    || resource.crd().is_some_and(|crd| crd.has_costly_patterns)
                    || self.is_larger(large, resource, path)
            }
        }
    }

    /// Whether the stored object of a request has more bytes.
    fn is_larger(&self, bytes: usize, resource: &Resource, path: &ResourcePath) -> bool {
        if path.name.is_empty() || !resource.is_stored() {
            return false;
        }
        let namespace = if resource.namespaced() { path.namespace.as_str() } else { "" };
        let version = self.stages.store.get(&resource.storage, &resource.key(namespace, &path.name));
        version.is_some_and(|version| version.json.len() > bytes)
    }
}

/// Whether the response is not a copy of the stored JSON.
fn is_decoded(resource: &Resource, accept: &str) -> bool {
    !resource.is_storage_form()
        || ["yaml", "protobuf", "as="].iter().any(|encoding| accept.contains(encoding))
}
