//! Recorded requests.

use std::collections::BTreeMap;

use http::{Method, Request, header};
use percent_encoding::percent_decode_str;
use tokio::time::Instant;

/// A recorded request and its result.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RecordedRequest {
    /// The user: the impersonated user, or `admin`.
    pub user: String,
    /// Whether a manager of the environment sent it, not a client of the test.
    pub is_operator: bool,
    /// The RBAC verb: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: &'static str,
    /// The API group; empty for the core group and for non-resource paths.
    pub group: String,
    /// The API version.
    pub version: String,
    /// The plural resource name; empty for non-resource paths.
    pub resource: String,
    /// The subresource, such as `status`; empty for the object itself.
    pub subresource: String,
    /// The namespace, if there is one.
    pub namespace: Option<String>,
    /// The name, if there is one.
    pub name: Option<String>,
    /// The path.
    pub path: String,
    /// The query parameters, decoded.
    pub query: BTreeMap<String, String>,
    /// The content type of the body, which identifies the patch type.
    pub content_type: String,
    /// When it was sent, by tokio's clock.
    pub at: Instant,
    /// The status code of the response; `None` before the response, or if the connection broke.
    pub code: Option<u16>,
    /// The injected fault.
    pub fault: Option<&'static str>,
}

impl RecordedRequest {
    pub(super) fn new<B>(request: &Request<B>) -> Self {
        let header = |name: &str| {
            let value = request.headers().get(name).and_then(|value| value.to_str().ok());
            value.map(str::to_owned)
        };
        let path = request.uri().path().to_owned();
        let pairs = request.uri().query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        let query: BTreeMap<String, String> = pairs
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .map(|(name, value)| (name.to_owned(), decoded(value)))
            .collect();
        let place = Place::of(&path);
        let watch = query.get("watch").is_some_and(|watch| watch == "true" || watch == "1");
        let verb = match *request.method() {
            Method::GET if watch => "watch",
            Method::GET if place.name.is_none() && !place.resource.is_empty() => "list",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE if place.name.is_none() => "deletecollection",
            Method::DELETE => "delete",
            _ => "get",
        };
        Self {
            user: header("impersonate-user").unwrap_or_else(|| "admin".to_owned()),
            is_operator: false,
            verb,
            group: place.group,
            version: place.version,
            resource: place.resource,
            subresource: place.subresource,
            namespace: place.namespace,
            name: place.name,
            path,
            query,
            content_type: header(header::CONTENT_TYPE.as_str()).unwrap_or_default(),
            at: Instant::now(),
            code: None,
            fault: None,
        }
    }

    /// Whether the verb is a write.
    pub fn is_write(&self) -> bool {
        !matches!(self.verb, "get" | "list" | "watch")
    }

    /// Whether it is a watch.
    pub fn is_watch(&self) -> bool {
        self.verb == "watch"
    }

    /// Whether it is for this resource, given by plural name.
    pub fn is_of(&self, resource: &str) -> bool {
        self.resource == resource
    }

    /// `verb resource namespace/name`, for traces.
    pub fn line(&self) -> String {
        let mut line =
            format!("{} {}", self.verb, if self.resource.is_empty() { &self.path } else { &self.resource });
        if !self.subresource.is_empty() {
            line.push('/');
            line.push_str(&self.subresource);
        }
        let place: Vec<&str> =
            [&self.namespace, &self.name].into_iter().flatten().map(String::as_str).collect();
        if !place.is_empty() {
            line.push(' ');
            line.push_str(&place.join("/"));
        }
        line
    }
}

#[derive(Default)]
struct Place {
    group: String,
    version: String,
    resource: String,
    subresource: String,
    namespace: Option<String>,
    name: Option<String>,
}

impl Place {
    fn of(path: &str) -> Self {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return Self::default(),
        };
        let (namespace, rest) = match rest {
            // A namespace and its subresources are cluster-scoped.
            ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => (None, rest),
            ["namespaces", namespace, rest @ ..] => (Some(*namespace), rest),
            rest => (None, rest),
        };
        let part = |at: usize| rest.get(at).map(|part| decoded(part));
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            resource: part(0).unwrap_or_default(),
            subresource: part(2).unwrap_or_default(),
            namespace: namespace.map(decoded),
            name: part(1),
        }
    }
}

fn decoded(text: &str) -> String {
    percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: Method, uri: &str) -> RecordedRequest {
        RecordedRequest::new(&Request::builder().method(method).uri(uri).body(()).unwrap())
    }

    #[test]
    fn requests_have_rbac_verbs_and_resources() {
        for (method, uri, line) in [
            (Method::GET, "/api/v1/pods", "list pods"),
            (Method::GET, "/api/v1/namespaces/a/pods?watch=true&labelSelector=a%3Db", "watch pods a"),
            (Method::GET, "/apis/apps/v1/namespaces/a/deployments/web", "get deployments a/web"),
            (
                Method::PUT,
                "/apis/apps/v1/namespaces/a/deployments/web/status",
                "update deployments/status a/web",
            ),
            (Method::DELETE, "/api/v1/namespaces/a/pods", "deletecollection pods a"),
            (Method::DELETE, "/api/v1/namespaces/a", "delete namespaces a"),
            (Method::PUT, "/api/v1/namespaces/a/finalize", "update namespaces/finalize a"),
            (Method::POST, "/api/v1/namespaces", "create namespaces"),
            (Method::GET, "/version", "get /version"),
        ] {
            assert_eq!(request(method, uri).line(), line);
        }
        assert_eq!(
            request(Method::GET, "/api/v1/pods?labelSelector=a%3Db+c").query["labelSelector"],
            "a=b c"
        );
    }
}
