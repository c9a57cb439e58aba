//! [`Client::kube`]: a kube client whose requests pass the fence and the write tracker of this client.
//!
//! The invariant: every request that is not a plain read is sent by [`Client::forward_write`], which checks the fence.
//! Reads are not changed.

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, Uri, header};
use http_body_util::BodyExt as _;
use kube::client::Body;
use percent_encoding::percent_decode_str;
use serde::Deserialize;

use super::unknown::Target;
use super::write::{Answer, Identity};
use super::{Client, Error};
use crate::connect::retry::was_not_sent;
use crate::error::Chain;
use crate::fence::is_read;
use crate::{Key, Kind, traces};

impl Client {
    /// A kube client, for requests that this client does not offer, such as logs, exec and discovery.
    ///
    /// Its writes are fenced and tracked as those of this client: with leader election, nothing is sent after the
    /// deadline of the Lease, and the key of a reconcile is not reconciled again before the cache has seen its writes.
    /// A fenced write fails with a [`kube::Error::Service`] whose source is [`Error::Fenced`]. Every request but GET,
    /// HEAD and OPTIONS is a write; so is a GET that upgrades the connection, such as exec.
    ///
    /// Reads go to the server. Of the settings of this client, only [`Client::dry_run`] and [`Client::namespaced`], as
    /// its default namespace, apply.
    ///
    /// The client of a reconcile can be used while the reconcile runs. Must be called within a tokio runtime.
    pub fn kube(&self) -> kube::Client {
        let client = self.clone();
        let raw = self.raw();
        let namespace = self.settings.namespace.as_deref().unwrap_or(raw.default_namespace()).to_owned();
        let valid_until = *raw.valid_until();
        // kube calls the service in a separate task, and polls the future in the task of the caller. The fence and the
        // tracker of the running reconcile are therefore looked up in the future.
        let service = tower::service_fn(move |request: Request<Body>| {
            let client = client.clone();
            async move { client.forward(request).await }
        });
        kube::Client::new(service, namespace).with_valid_until(valid_until)
    }

    async fn forward(&self, mut request: Request<Body>) -> Result<Response<Body>, kube::Error> {
        let span = traces::request(&mut request);
        let asking = self.trail().map(|trail| trail.asks(&request));
        let sent = async {
            let sent = if is_read(&request) {
                self.raw().send(request).await
            } else {
                self.forward_write(request).await
            };
            sent.inspect(|response| traces::answered(response.status()))
        };
        let sent = traces::follow(span, sent).await;
        if let Some(asking) = asking {
            let answer = match &sent {
                Ok(response) => Ok(response.status().as_u16()),
                Err(error) => Err(Chain(error).to_string()),
            };
            // The body belongs to the caller.
            asking.answered(answer, None);
        }
        sent
    }

    async fn forward_write(&self, request: Request<Body>) -> Result<Response<Body>, kube::Error> {
        let fence = self.fence();
        fence.check().map_err(|_| fenced())?;
        let (mut parts, body) = request.into_parts();
        if self.settings.dry_run {
            parts.uri = as_dry_run(&parts.uri);
        }
        let Some(write) = self.tracked(&parts) else {
            let sent = fence.guard(self.raw().send(Request::from_parts(parts, body))).await;
            return sent.unwrap_or_else(|_| Err(fenced()));
        };
        let body = body.collect().await?.to_bytes();
        let Some(write) = write.complete(&body) else {
            let sent = fence.guard(self.raw().send(Request::from_parts(parts, Body::from(body)))).await;
            return sent.unwrap_or_else(|_| Err(fenced()));
        };
        // Also tracked if the caller drops this future while it waits.
        let in_flight = self.in_flight(&write.kind, &write.target);
        let sent = fence.guard(async {
            let response = self.raw().send(Request::from_parts(parts, Body::from(body))).await?;
            let (head, body) = response.into_parts();
            Ok((head, body.collect().await?.to_bytes()))
        });
        let sent = sent.await.unwrap_or_else(|_| Err(fenced()));
        match &sent {
            Ok((head, body)) if head.status.is_success() => {
                if self.note_response(&write, body) {
                    in_flight.settle();
                }
            }
            // The server or a proxy may have failed after it processed the request.
            Ok((head, _)) if head.status < StatusCode::INTERNAL_SERVER_ERROR => in_flight.settle(),
            Err(error) if was_not_sent(error) => in_flight.settle(),
            Ok(_) | Err(_) => {}
        }
        sent.map(|(head, body)| Response::from_parts(head, Body::from(body)))
    }

    /// The write that this request is, if it changes a cached kind and writes are tracked.
    fn tracked(&self, parts: &Parts) -> Option<Write> {
        self.writes()?;
        let path = ResourcePath::parse(parts.uri.path())?;
        let kind = self.cache()?.kind_of_resource(&path.group, &path.plural)?;
        let query = parts.uri.query().unwrap_or_default();
        let is_dry_run = query.split('&').any(|pair| pair.starts_with("dryRun="));
        let upgrades = parts.headers.contains_key(header::UPGRADE);
        if is_dry_run || upgrades {
            return None;
        }
        let target = match path.name {
            Some(name) => Target::Object(Key::new(path.namespace.as_deref(), &name)),
            None => Target::Collection(path.namespace),
        };
        Some(Write { kind, target, method: parts.method.clone(), has_subresource: path.has_subresource })
    }

    /// Records the written object of a successful response. Returns false if the response does not contain it.
    fn note_response(&self, write: &Write, body: &Bytes) -> bool {
        let Ok(answer) = serde_json::from_slice::<Answer>(body) else { return false };
        match (&write.method, &write.target, write.has_subresource) {
            (_, Target::Object(key), true) => self.note_answer(&write.kind, key, &answer.metadata),
            (&Method::DELETE, Target::Object(key), false) => self.note_deleted(&write.kind, key, answer),
            (&Method::DELETE, Target::Collection(_), _) => self.note_all_deleted(&write.kind, answer),
            (_, Target::Object(key), false) => self.note_written(&write.kind, key, answer.metadata),
            (_, Target::Collection(_), _) => {
                let key = answer.metadata.key();
                self.note_written(&write.kind, &key, answer.metadata);
            }
        }
        true
    }
}

/// A write of a cached kind.
struct Write {
    kind: Kind,
    target: Target,
    method: Method,
    has_subresource: bool,
}

impl Write {
    /// Takes the name of a new object from the body. `None` if the body requests a dry run.
    fn complete(mut self, body: &Bytes) -> Option<Self> {
        #[derive(Deserialize, Default)]
        #[serde(default, rename_all = "camelCase")]
        struct Head {
            metadata: Identity,
            /// Of the options of a deletion.
            dry_run: Vec<String>,
        }

        let head: Head = serde_json::from_slice(body).unwrap_or_default();
        if self.method == Method::DELETE && !head.dry_run.is_empty() {
            return None;
        }
        if let (&Method::POST, Target::Collection(namespace), Some(name)) =
            (&self.method, &self.target, head.metadata.name())
        {
            self.target = Target::Object(Key::new(namespace.as_deref(), name));
        }
        Some(self)
    }
}

fn fenced() -> kube::Error {
    kube::Error::Service(Box::new(Error::Fenced))
}

/// The URI with the parameter `dryRun`.
fn as_dry_run(uri: &Uri) -> Uri {
    let mut parts = uri.clone().into_parts();
    let query = match uri.query() {
        Some(query) if query.split('&').any(|pair| pair.starts_with("dryRun=")) => return uri.clone(),
        Some(query) if !query.is_empty() => format!("{query}&dryRun=All"),
        _ => "dryRun=All".to_owned(),
    };
    let path = format!("{}?{query}", uri.path()).parse().expect("path and query come from a valid URI");
    parts.path_and_query = Some(path);
    Uri::from_parts(parts).expect("only the query of a valid URI changed")
}

/// The parts of a resource path such as `/apis/apps/v1/namespaces/default/deployments/web/status`.
#[derive(Debug, PartialEq, Eq)]
struct ResourcePath {
    group: String,
    plural: String,
    namespace: Option<String>,
    name: Option<String>,
    has_subresource: bool,
}

impl ResourcePath {
    /// `None` for a path that is not of a resource.
    fn parse(path: &str) -> Option<Self> {
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let segments: Vec<String> = path.split('/').filter(|it| !it.is_empty()).map(decoded).collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        let (group, rest) = match &segments[..] {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            // A namespace and its subresources.
            ["namespaces"] | ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => (None, rest),
            ["namespaces", namespace, rest @ ..] => (Some(*namespace), rest),
            rest => (None, rest),
        };
        let (plural, name) = (rest.first()?, rest.get(1));
        Some(Self {
            group: group.to_owned(),
            plural: (*plural).to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.map(|&name| name.to_owned()),
            has_subresource: rest.len() > 2,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(path: &str) -> Option<(String, String, String, String, bool)> {
        let it = ResourcePath::parse(path)?;
        Some((
            it.group,
            it.plural,
            it.namespace.unwrap_or_default(),
            it.name.unwrap_or_default(),
            it.has_subresource,
        ))
    }

    #[test]
    fn a_resource_path_has_group_namespace_and_name() {
        let parsed = |group: &str, plural: &str, namespace: &str, name: &str, sub| {
            Some((group.to_owned(), plural.to_owned(), namespace.to_owned(), name.to_owned(), sub))
        };
        for (path, expected) in [
            ("/api/v1/namespaces/a/pods/web", parsed("", "pods", "a", "web", false)),
            ("/api/v1/namespaces/a/pods/web/status", parsed("", "pods", "a", "web", true)),
            ("/apis/apps/v1/namespaces/a/deployments", parsed("apps", "deployments", "a", "", false)),
            ("/api/v1/nodes/n1", parsed("", "nodes", "", "n1", false)),
            ("/api/v1/namespaces", parsed("", "namespaces", "", "", false)),
            ("/api/v1/namespaces/a", parsed("", "namespaces", "", "a", false)),
            ("/api/v1/namespaces/a/finalize", parsed("", "namespaces", "", "a", true)),
            (
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Aa%2Fb",
                parsed("rbac.authorization.k8s.io", "clusterroles", "", "system:a/b", false),
            ),
            ("/version", None),
            ("/api/v1", None),
        ] {
            assert_eq!(parse(path), expected, "{path}");
        }
    }

    #[test]
    fn a_dry_run_is_requested_once() {
        for (uri, expected) in [
            ("/api/v1/pods", "/api/v1/pods?dryRun=All"),
            ("/api/v1/pods?fieldManager=a", "/api/v1/pods?fieldManager=a&dryRun=All"),
            ("/api/v1/pods?dryRun=All", "/api/v1/pods?dryRun=All"),
        ] {
            assert_eq!(as_dry_run(&uri.parse().unwrap()).to_string(), expected);
        }
    }

    #[test]
    fn the_name_of_a_new_object_comes_from_the_body() {
        let write = |method: Method| Write {
            kind: Kind::of::<k8s_openapi::api::core::v1::ConfigMap>(),
            target: Target::Collection(Some("default".to_owned())),
            method,
            has_subresource: false,
        };
        let target = |method: Method, body: &'static str| {
            write(method).complete(&Bytes::from_static(body.as_bytes())).map(|write| write.target)
        };
        let collection = Some(Target::Collection(Some("default".to_owned())));
        let named = target(Method::POST, r#"{"metadata":{"name":"a"}}"#);
        assert_eq!(named, Some(Target::Object(Key::namespaced("default", "a"))));
        assert_eq!(target(Method::POST, r#"{"metadata":{"generateName":"a-"}}"#), collection);
        assert_eq!(target(Method::DELETE, r#"{"propagationPolicy":"Background"}"#), collection);
        assert_eq!(target(Method::DELETE, r#"{"dryRun":["All"]}"#), None);
    }
}
