//! Request info: verb, resource and name from the method, path and query.
//!
//! Owns Kubernetes' URL grammar. Independent of the served resources.

pub(crate) mod options;

use std::net::IpAddr;

use http::request::Parts;
use http::{Method, Uri};

use crate::audit::Annotations;
use crate::authn::User;

/// A parsed request.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    /// Path as sent, without the query.
    pub(crate) path: String,
    pub(crate) query: Query,
    pub(crate) headers: http::HeaderMap,
    pub(crate) user: User,
    pub(crate) target: Target,
    /// Whether the request came over a socket, so that it shares its thread with other clients.
    pub(crate) over_socket: bool,
    /// Annotations for the audit event.
    pub(crate) audit_annotations: Annotations,
}

/// Marks requests that came over a socket, in their extensions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OverSocket {
    /// The address of the client.
    pub(crate) peer: Option<IpAddr>,
}

/// The target of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// A non-resource path: discovery, health, version.
    Other,
    /// A resource or an object of it.
    Resource(ResourcePath),
}

/// The parts of a resource path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ResourcePath {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: String,
    pub(crate) resource: String,
    pub(crate) name: String,
    pub(crate) subresource: String,
    /// The path has more segments than any resource path.
    pub(crate) too_deep: bool,
    /// The deprecated watch path: `/api/v1/watch/...`.
    pub(crate) legacy_watch: bool,
}

impl Request {
    pub(crate) fn new(parts: &Parts, user: User) -> Self {
        let path = parts.uri.path().to_owned();
        let target = target(&path);
        Self {
            method: parts.method.clone(),
            query: Query::parse(parts.uri.query().unwrap_or_default()),
            headers: parts.headers.clone(),
            path,
            user,
            target,
            over_socket: parts.extensions.get::<OverSocket>().is_some(),
            audit_annotations: Annotations::default(),
        }
    }

    pub(crate) fn header(&self, name: http::HeaderName) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The verb for authorization and discovery.
    pub(crate) fn verb(&self) -> &'static str {
        let Target::Resource(path) = &self.target else {
            return lower(&self.method);
        };
        let collection = path.name.is_empty();
        match self.method {
            Method::GET | Method::HEAD => {
                if self.is_watch() {
                    "watch"
                } else if collection {
                    "list"
                } else {
                    "get"
                }
            }
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE if collection => "deletecollection",
            Method::DELETE => "delete",
            _ => lower(&self.method),
        }
    }

    /// Whether the response has no deadline: watches, logs and connections to a pod.
    pub(crate) fn is_long_running(&self) -> bool {
        self.is_watch() || connects(&self.target)
    }

    pub(crate) fn is_watch(&self) -> bool {
        watches(&self.method, &self.target, &self.query)
    }
}

/// As [`Request::is_long_running`], for a request that is not parsed yet.
pub(crate) fn is_long_running(method: &Method, uri: &Uri) -> bool {
    let target = target(uri.path());
    connects(&target) || watches(method, &target, &Query::parse(uri.query().unwrap_or_default()))
}

fn connects(target: &Target) -> bool {
    let subresources = ["attach", "exec", "log", "portforward", "proxy"];
    matches!(target, Target::Resource(path) if subresources.contains(&path.subresource.as_str()))
}

/// Only reads are watches: a write with the parameter `watch` is a write.
fn watches(method: &Method, target: &Target, query: &Query) -> bool {
    match target {
        Target::Resource(path) if matches!(*method, Method::GET | Method::HEAD) => {
            (path.name.is_empty() && query.flag("watch")) || path.legacy_watch
        }
        _ => false,
    }
}

fn lower(method: &Method) -> &'static str {
    match *method {
        Method::GET => "get",
        Method::HEAD => "head",
        Method::POST => "post",
        Method::PUT => "put",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        Method::OPTIONS => "options",
        _ => "unknown",
    }
}

fn target(path: &str) -> Target {
    let mut parts: Vec<String> = path.trim_start_matches('/').split('/').map(percent_decode).collect();
    // A trailing slash is ignored.
    if parts.last().is_some_and(String::is_empty) {
        parts.pop();
    }
    let (group, version, mut rest) = match parts.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["api", version, ..] if parts.len() > 2 => (String::new(), version.to_owned(), 2),
        ["apis", group, version, ..] if parts.len() > 3 => (group.to_owned(), version.to_owned(), 3),
        _ => return Target::Other,
    };
    let mut found = ResourcePath { group, version, ..ResourcePath::default() };
    if parts[rest] == "watch" && parts.len() > rest + 1 {
        found.legacy_watch = true;
        rest += 1;
    }
    let mut parts = &parts[rest..];
    if parts[0] == "namespaces" && parts.len() > 2 && !matches!(parts[2].as_str(), "finalize" | "status") {
        found.namespace.clone_from(&parts[1]);
        parts = &parts[2..];
    }
    found.resource.clone_from(&parts[0]);
    if let Some(name) = parts.get(1) {
        found.name.clone_from(name);
    }
    if let Some(subresource) = parts.get(2) {
        found.subresource.clone_from(subresource);
    }
    found.too_deep = parts.len() > 3 && found.subresource != "proxy";
    if found.resource == "namespaces" {
        found.namespace.clone_from(&found.name);
    }
    Target::Resource(found)
}

/// The query parameters of a URL.
#[derive(Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (percent_decode(key.replace('+', " ")), percent_decode(value.replace('+', " ")))
        });
        Self(pairs.collect())
    }

    /// The first value of `name`.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Every value of `name`.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A flag, parsed as upstream does: present and neither `false` nor `0`.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| !value.eq_ignore_ascii_case("false") && value != "0")
    }
}

/// Decodes percent encoding; invalid sequences are kept.
pub(crate) fn percent_decode(text: impl AsRef<str>) -> String {
    percent_encoding::percent_decode_str(text.as_ref()).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(path: &str) -> ResourcePath {
        match target(path) {
            Target::Resource(found) => found,
            Target::Other => panic!("{path} is not a resource path"),
        }
    }

    #[test]
    fn a_namespaced_object_is_found() {
        let path = resource("/apis/apps/v1/namespaces/a/deployments/web/scale");
        assert_eq!(
            (path.group.as_str(), path.version.as_str(), path.namespace.as_str()),
            ("apps", "v1", "a")
        );
        assert_eq!(
            (path.resource.as_str(), path.name.as_str(), path.subresource.as_str()),
            ("deployments", "web", "scale")
        );
    }

    #[test]
    fn a_namespace_is_an_object_too() {
        let path = resource("/api/v1/namespaces/a/finalize");
        assert_eq!(
            (path.resource.as_str(), path.name.as_str(), path.subresource.as_str()),
            ("namespaces", "a", "finalize")
        );
        assert_eq!(resource("/api/v1/namespaces/a").name, "a");
        assert_eq!(resource("/api/v1/namespaces").name, "");
    }

    #[test]
    fn an_empty_namespace_means_all() {
        let path = resource("/api/v1/namespaces//configmaps");
        assert_eq!(
            (path.namespace.as_str(), path.resource.as_str(), path.name.as_str()),
            ("", "configmaps", "")
        );
    }

    #[test]
    fn too_many_segments_are_no_resource() {
        assert!(resource("/api/v1/namespaces/a/configmaps/b/c/d").too_deep);
        assert_eq!(target("/api/v1"), Target::Other);
        assert_eq!(target("/apis/apps/v1/"), Target::Other);
    }

    #[test]
    fn only_watches_and_connections_have_no_deadline() {
        let pods = "/api/v1/namespaces/a/pods";
        let cases = [
            ("GET", format!("{pods}?watch=1"), true),
            ("GET", format!("{pods}?watch"), true),
            ("GET", format!("{pods}?watch=false"), false),
            ("GET", "/api/v1/watch/pods".to_owned(), true),
            ("GET", format!("{pods}/a/log?follow=true"), true),
            ("POST", format!("{pods}/a/exec"), true),
            ("POST", format!("{pods}/a/proxy/path"), true),
            ("POST", format!("{pods}?watch=1"), false),
            ("DELETE", format!("{pods}?watch=1"), false),
            ("PUT", format!("{pods}/log"), false),
            ("GET", format!("{pods}/exec"), false),
            ("PATCH", "/apis/proxy.io/v1/namespaces/proxy/proxies/proxy".to_owned(), false),
        ];
        for (method, uri, expected) in cases {
            let (method, parsed) = (method.parse().unwrap(), uri.parse().unwrap());
            assert_eq!(is_long_running(&method, &parsed), expected, "{method} {uri}");
        }
    }

    #[test]
    fn queries_are_decoded() {
        let query = Query::parse("labelSelector=a%3Db%2Cc&watch=1&x=a+b&dryRun=All&dryRun=No");
        assert_eq!(query.get("labelSelector"), Some("a=b,c"));
        assert_eq!(query.get("x"), Some("a b"));
        assert!(query.flag("watch"));
        assert_eq!(query.all("dryRun").collect::<Vec<_>>(), ["All", "No"]);
    }
}
