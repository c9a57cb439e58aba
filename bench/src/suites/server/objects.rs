//! The written objects: a typical ConfigMap of about 1 KB and a Deployment of about 1.5 KB.

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::Full;
use serde_json::{Value, json};

/// A prepared request.
pub(in crate::suites) type Call = Request<Full<Bytes>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    ConfigMap,
    Deployment,
}

impl Kind {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Deployment => "Deployment",
        }
    }

    /// The path of the collection in the namespace.
    pub(super) fn collection(self) -> &'static str {
        match self {
            Self::ConfigMap => "/api/v1/namespaces/default/configmaps",
            Self::Deployment => "/apis/apps/v1/namespaces/default/deployments",
        }
    }

    /// An object. Each `turn` gives a different spec.
    pub(super) fn object(self, name: &str, turn: u32) -> Value {
        match self {
            Self::ConfigMap => config_map(name, turn),
            Self::Deployment => deployment(name, turn),
        }
    }
}

/// The name of the object with this index.
pub(super) fn name(at: usize) -> String {
    format!("object-{at:05}")
}

pub(super) fn create(base: &str, kind: Kind, name: &str) -> Call {
    call(Method::POST, format!("{base}{}", kind.collection()), &kind.object(name, 0))
}

/// A PUT without a resourceVersion. It replaces the object unconditionally; the server still reads and
/// compares.
pub(super) fn update(base: &str, kind: Kind, name: &str, turn: u32) -> Call {
    call(Method::PUT, format!("{base}{}/{name}", kind.collection()), &kind.object(name, turn))
}

pub(super) fn get(base: &str, kind: Kind, name: &str) -> Call {
    request(Method::GET, format!("{base}{}/{name}", kind.collection()), Bytes::new())
}

/// A list as `kubectl get` reads it.
pub(super) fn table(path: &str) -> Call {
    read(path, "application/json;as=Table;g=meta.k8s.io;v=v1")
}

pub(super) fn list(base: &str, kind: Kind) -> Call {
    request(Method::GET, format!("{base}{}", kind.collection()), Bytes::new())
}

/// A POST of any object to a collection of an in-process server.
pub(super) fn post(path: &str, object: &Value) -> Call {
    call(Method::POST, path.to_owned(), object)
}

/// A GET with a media type.
pub(super) fn read(path: &str, media: &str) -> Call {
    let builder = Request::builder().uri(path).header(header::ACCEPT, media);
    builder.body(Full::new(Bytes::new())).expect("valid path and headers")
}

pub(super) fn watch(base: &str, kind: Kind, from: u64) -> Call {
    let uri = format!("{base}{}?watch=true&resourceVersion={from}", kind.collection());
    request(Method::GET, uri, Bytes::new())
}

fn call(method: Method, uri: String, object: &Value) -> Call {
    request(method, uri, Bytes::from(object.to_string()))
}

fn request(method: Method, uri: String, body: Bytes) -> Call {
    let builder = Request::builder().method(method).uri(uri).header(header::ACCEPT, "application/json");
    let builder =
        if body.is_empty() { builder } else { builder.header(header::CONTENT_TYPE, "application/json") };
    builder.body(Full::new(body)).expect("valid path and headers")
}

fn config_map(name: &str, turn: u32) -> Value {
    let settings = format!(
        "# Settings of the shop's front end.\nlog.level=info\nlog.format=json\nlistener.http.port=8080\n\
         listener.http.idle-timeout=75s\nlistener.http.max-header-size=16KiB\ncache.size=256MiB\ncache.ttl=10m\n\
         upstream.catalogue=http://catalogue.shop.svc.cluster.local:8080\n\
         upstream.cart=http://cart.shop.svc.cluster.local:8080\n\
         upstream.payment=http://payment.shop.svc.cluster.local:8080\n\
         upstream.search=http://search.shop.svc.cluster.local:9200\n\
         upstream.retries=3\nupstream.timeout=2s\nfeature.recommendations=true\nfeature.turn={turn}\n"
    );
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "labels": {
                "app.kubernetes.io/name": "front-end",
                "app.kubernetes.io/instance": name,
                "app.kubernetes.io/part-of": "shop",
                "app.kubernetes.io/managed-by": "bench",
            },
            "annotations": {"shop.example.com/owner": "team-front-end@example.com"},
        },
        "data": {
            "front-end.properties": settings,
            "replicas": "3",
            "region": "eu-central-1",
            "robots.txt": "User-agent: *\nDisallow: /cart\nDisallow: /account\nAllow: /\n",
        },
    })
}

fn deployment(name: &str, turn: u32) -> Value {
    let labels = json!({"app.kubernetes.io/name": "front-end", "app.kubernetes.io/instance": name});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": {"shop.example.com/owner": "team-front-end@example.com"},
        },
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": labels},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": "25%"}},
            "template": {
                "metadata": {"labels": labels, "annotations": {"prometheus.io/scrape": "true"}},
                "spec": {
                    "serviceAccountName": "front-end",
                    "securityContext": {"runAsNonRoot": true, "runAsUser": 65532, "fsGroup": 65532},
                    "containers": [{
                        "name": "front-end",
                        "image": format!("registry.example.com/shop/front-end:1.4.{turn}"),
                        "args": ["--config=/etc/front-end/front-end.properties"],
                        "ports": [
                            {"name": "http", "containerPort": 8080},
                            {"name": "metrics", "containerPort": 9090},
                        ],
                        "env": [
                            {"name": "REGION", "valueFrom": {"configMapKeyRef": {"name": name, "key": "region"}}},
                            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                        ],
                        "resources": {
                            "requests": {"cpu": "100m", "memory": "128Mi"},
                            "limits": {"memory": "256Mi"},
                        },
                        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}, "periodSeconds": 5},
                        "livenessProbe": {"httpGet": {"path": "/livez", "port": "http"}},
                        "volumeMounts": [{"name": "config", "mountPath": "/etc/front-end", "readOnly": true}],
                    }],
                    "volumes": [{"name": "config", "configMap": {"name": name}}],
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_have_the_documented_size() {
        let size = |kind: Kind| kind.object("object-00001", 0).to_string().len();
        assert!((900..1_150).contains(&size(Kind::ConfigMap)), "{}", size(Kind::ConfigMap));
        assert!((1_350..1_650).contains(&size(Kind::Deployment)), "{}", size(Kind::Deployment));
    }

    #[test]
    fn every_turn_gives_a_different_version() {
        for kind in [Kind::ConfigMap, Kind::Deployment] {
            assert_ne!(kind.object("a", 1), kind.object("a", 2));
        }
    }
}
