//! An API server in this process, to which rendered objects are applied.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use kube::core::GroupVersionKind;
use kube::discovery::{self, Scope};
use kubewright_apiserver::{ApiServer, Options};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// A server with the CRDs of cert-manager and the Prometheus Operator, and the namespace `shop-system`.
#[expect(clippy::struct_field_names, reason = "it is the API server")]
pub(super) struct Server {
    server: ApiServer,
    client: kube::Client,
    runtime: Runtime,
}

impl Server {
    pub(super) fn start() -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let server = ApiServer::new(Options::default());
        let client = runtime.block_on(async { kube::Client::new(server.clone(), "default") });
        let started = Self { server, client, runtime };
        started.applies(&json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            // Pods that are not restricted would give a warning.
            "metadata": { "name": "shop-system", "labels": { "pod-security.kubernetes.io/warn": "restricted" } },
        }));
        for (group, kind, plural) in [
            ("cert-manager.io", "Certificate", "certificates"),
            ("cert-manager.io", "Issuer", "issuers"),
            ("monitoring.coreos.com", "ServiceMonitor", "servicemonitors"),
        ] {
            let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
            started.applies(&json!({
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": { "name": format!("{plural}.{group}") },
                "spec": {
                    "group": group,
                    "names": { "kind": kind, "plural": plural, "singular": kind.to_lowercase() },
                    "scope": "Namespaced",
                    "versions": [
                        { "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } },
                    ],
                },
            }));
        }
        started
    }

    /// Applies an object. Fails if the server rejects it or warns.
    #[track_caller]
    pub(super) fn applies(&self, object: &Value) {
        let answer = self.runtime.block_on(self.apply(object));
        if let Err(problem) = answer {
            panic!("{}: {problem}\n{object:#}", super::id(object));
        }
    }

    async fn apply(&self, object: &Value) -> Result<(), String> {
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = GroupVersionKind::gvk(group, version, object["kind"].as_str().unwrap_or_default());
        let (resource, capabilities) =
            discovery::pinned_kind(&self.client, &kind).await.map_err(|error| error.to_string())?;
        let root = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
        let namespace =
            match (capabilities.scope == Scope::Namespaced, object["metadata"]["namespace"].as_str()) {
                (true, namespace) => format!("/namespaces/{}", namespace.unwrap_or("shop-system")),
                (false, None) => String::new(),
                (false, Some(namespace)) => {
                    return Err(format!("a cluster-scoped object has the namespace {namespace}"));
                }
            };
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let path = format!("{root}/{version}{namespace}/{}/{name}", resource.plural);
        let request = Request::patch(format!("{path}?fieldManager=helm&force=true&fieldValidation=Warn"))
            .header("content-type", "application/apply-patch+yaml")
            .body(Full::new(Bytes::from(object.to_string())))
            .map_err(|error| error.to_string())?;
        let response = self.server.handle(request).await;
        let warnings: Vec<String> = response
            .headers()
            .get_all("warning")
            .iter()
            .map(|warning| warning.to_str().unwrap_or("a warning").to_owned())
            .collect();
        let status = response.status();
        let body = response.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes();
        if warnings.is_empty() && status.is_success() {
            Ok(())
        } else {
            Err(format!("{status} {warnings:?} {}", String::from_utf8_lossy(&body)))
        }
    }
}
