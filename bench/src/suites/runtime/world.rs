//! A server with widgets, and copies of it.

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http::{HeaderValue, Method, Request, header};
use http_body_util::{BodyExt as _, Full};
use kube::CustomResourceExt as _;
use kubewright_apiserver::{ApiServer, Options};
use kubewright_bench_work::{Kind, NAMESPACE, Setup, Widget, widget};
use serde::Serialize;
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A server with the CRD of Widget and a number of widgets.
pub(super) struct World {
    pub(super) server: ApiServer,
    pub(super) names: Vec<String>,
}

impl World {
    pub(super) async fn filled(objects: usize) -> Result<Self> {
        let mut world = Self { server: ApiServer::new(Options::default()), names: Vec::new() };
        world.call(Method::POST, DEFINITIONS, &Widget::crd()).await?;
        world.fill(objects).await?;
        Ok(world)
    }

    /// Creates widgets until there are `objects` of them.
    pub(super) async fn fill(&mut self, objects: usize) -> Result<()> {
        for at in self.names.len()..objects {
            let name = format!("widget-{at:06}");
            self.call(Method::POST, &widgets(), &widget(&name, 0)).await?;
            self.names.push(name);
        }
        Ok(())
    }

    pub(super) async fn fill_pods(&self, objects: usize) -> Result<()> {
        for at in 0..objects {
            self.call(Method::POST, &pods(), &pod(&format!("pod-{at:06}"))).await?;
        }
        Ok(())
    }

    /// Creates Pods whose label `app` cycles through `apps` values.
    pub(super) async fn fill_labeled_pods(&self, objects: usize, apps: usize) -> Result<()> {
        for at in 0..objects {
            let mut pod = pod(&format!("pod-{at:06}"));
            pod["metadata"]["labels"]["app"] = format!("app-{}", at % apps).into();
            self.call(Method::POST, &pods(), &pod).await?;
        }
        Ok(())
    }

    /// An independent copy of the server.
    pub(super) fn copy(&self) -> Self {
        Self { server: self.server.fork(), names: self.names.clone() }
    }

    /// kube's client with the server as its service.
    pub(super) fn client(&self) -> kube::Client {
        kube::Client::new(self.server.clone(), NAMESPACE)
    }

    pub(super) fn setup(workers: u16) -> Setup {
        Setup { kind: Kind::Widgets, workers, lease: "bench".to_owned() }
    }

    /// Sends an object. Fails on an error response.
    pub(super) async fn call(&self, method: Method, path: &str, object: &impl Serialize) -> Result<()> {
        self.send(request(method, path, object)?).await
    }

    pub(super) async fn send(&self, request: Request<Full<Bytes>>) -> Result<()> {
        let response = self.server.handle(request).await;
        let status = response.status();
        let answer = response.into_body().collect().await.context("read the response")?.to_bytes();
        ensure!(
            status.is_success(),
            "the server responded with {status}: {}",
            String::from_utf8_lossy(&answer)
        );
        Ok(())
    }
}

/// A change of a widget's spec. A merge patch, because updating a custom resource requires its
/// resourceVersion.
pub(super) fn update(name: &str, turn: u32) -> Result<Request<Full<Bytes>>> {
    let patch = json!({"spec": {"replicas": turn}});
    let mut request = request(Method::PATCH, &format!("{}/{name}", widgets()), &patch)?;
    request
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/merge-patch+json"));
    Ok(request)
}

fn request(method: Method, path: &str, object: &impl Serialize) -> Result<Request<Full<Bytes>>> {
    let body = Bytes::from(serde_json::to_vec(object)?);
    let request =
        Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, "application/json");
    Ok(request.body(Full::new(body))?)
}

fn widgets() -> String {
    format!("/apis/bench.kubewright.dev/v1/namespaces/{NAMESPACE}/widgets")
}

fn pods() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/pods")
}

/// A Pod like those of a Deployment: two containers, twelve environment variables and a service account
/// token.
fn pod(name: &str) -> Value {
    let labels = json!({
        "app.kubernetes.io/name": "front-end",
        "app.kubernetes.io/instance": "shop",
        "app.kubernetes.io/part-of": "shop",
        "pod-template-hash": "6d4cf56db6",
    });
    let env: Vec<Value> = (0..10)
        .map(|at| json!({"name": format!("UPSTREAM_{at}"), "value": format!("http://service-{at}.shop.svc.cluster.local:8080")}))
        .chain([
            json!({"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}),
            json!({"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "front-end", "key": "token"}}}),
        ])
        .collect();
    let token = "/var/run/secrets/kubernetes.io/serviceaccount";
    let mounts = json!([
        {"name": "config", "mountPath": "/etc/front-end", "readOnly": true},
        {"name": "kube-api-access-x7k2p", "mountPath": token, "readOnly": true},
    ]);
    let resources = json!({"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}});
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "generateName": "front-end-6d4cf56db6-",
            "labels": labels,
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "9090"},
            "ownerReferences": [{
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "front-end-6d4cf56db6",
                "uid": "5e3f1c1a-6a83-4a43-a6d1-6f3f4c0f2a11",
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "serviceAccountName": "default",
            "nodeName": "node-17.eu-central-1.example.com",
            "securityContext": {"runAsNonRoot": true, "runAsUser": 65532, "fsGroup": 65532},
            "containers": [
                {
                    "name": "front-end",
                    "image": "registry.example.com/shop/front-end:1.4.0",
                    "args": ["--config=/etc/front-end/front-end.properties"],
                    "ports": [{"name": "http", "containerPort": 8080}, {"name": "metrics", "containerPort": 9090}],
                    "env": env,
                    "resources": resources,
                    "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}, "periodSeconds": 5},
                    "livenessProbe": {"httpGet": {"path": "/livez", "port": "http"}},
                    "volumeMounts": mounts,
                },
                {
                    "name": "proxy",
                    "image": "registry.example.com/mesh/proxy:2.1.7",
                    "resources": resources,
                    "volumeMounts": mounts,
                },
            ],
            "volumes": [
                {"name": "config", "configMap": {"name": "front-end"}},
                {"name": "kube-api-access-x7k2p", "projected": {"sources": [
                    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                    {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
                ]}},
            ],
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            ],
        },
    })
}
