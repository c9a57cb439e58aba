//! Non-resource paths: discovery, version and health.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header};
use kubewright_apimachinery::json;
use kubewright_apimachinery::status::ApiError;
use serde_json::{Map, Value, json};

use crate::authn::Authn;
use crate::encoding::body::Body;
use crate::encoding::negotiate::{Clause, clauses, negotiate_document, no_representation};
use crate::encoding::response::{self, Encoding};
use crate::endpoints::openapi::OpenApi;
use crate::endpoints::version::KubernetesVersion;
use crate::registry::resource::{Registry, Resource, Subresource};
use crate::registry::resources::Resources;
use crate::request::Request;
use crate::server::{no_page, no_resource};
use crate::storage::Store;

const TEXT: &str = "text/plain; charset=utf-8";
const AGGREGATED_YAML: &str = "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const AGGREGATED_PROTOBUF: &str =
    "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The checks that kube-apiserver lists at its health endpoints.
const CHECKS: [&str; 6] = [
    "ping",
    "log",
    "etcd",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/rbac/bootstrap-roles",
    "informer-sync",
];

/// Answers requests for non-resource paths.
pub(crate) struct Discovery {
    pub(crate) resources: Arc<Resources>,
    pub(crate) openapi: OpenApi,
    pub(crate) version: KubernetesVersion,
    /// For the keys of service account tokens.
    pub(crate) authn: Arc<Authn>,
    /// For health and metrics.
    pub(crate) store: Arc<Store>,
}

impl Discovery {
    /// Whether a response shows the served resources. It can be large, and needs CPU time for each of them.
    pub(crate) fn shows_resources(path: &str) -> bool {
        matches!(path.trim_matches('/').split('/').next(), Some("" | "api" | "apis" | "openapi"))
    }

    /// Handles a request for a non-resource path.
    pub(crate) fn answer(&self, request: &Request) -> Result<Response<Body>, ApiError> {
        let path = request.path.as_str();
        let trimmed = path.trim_end_matches('/');
        let parts: Vec<&str> = trimmed.trim_start_matches('/').split('/').collect();
        if !matches!(request.method, Method::GET | Method::HEAD) {
            return match parts[0] {
                "api" | "apis" | "version" | "healthz" | "livez" | "readyz" => {
                    Err(ApiError::method_not_allowed())
                }
                _ => Ok(no_page()),
            };
        }
        let registry = &self.resources.current();
        match parts[..] {
            ["api" | "apis"] => roots(registry, request, parts[0]),
            ["api", version] => resource_list(registry, request, "", version),
            ["apis", group] => group_answer(registry, request, group),
            ["apis", group, version] => resource_list(registry, request, group, version),
            ["version"] => {
                let accept = request.header(header::ACCEPT);
                let json = |clause: &str| {
                    matches!(clause.split(';').next().unwrap_or_default().trim(), "application/json" | "*/*")
                };
                if !accept.is_empty() && !accept.split(',').any(json) {
                    return Err(no_representation("application/json"));
                }
                Ok(response::respond_json(StatusCode::OK, &self.version.info()))
            }
            ["healthz" | "livez" | "readyz"] if path == trimmed => Ok(self.health(request, parts[0])),
            [endpoint @ ("healthz" | "livez" | "readyz"), ref check @ ..] => {
                Ok(self.single_check(endpoint, &check.join("/")))
            }
            ["openapi", ref path @ ..] => self.openapi.answer(request, path),
            ["metrics"] => Ok(self.metrics()),
            [".well-known", "openid-configuration"] => self.authn.openid_configuration(),
            ["openid", "v1", "jwks"] => self.authn.json_web_keys(),
            [""] => Ok(response::respond_json(StatusCode::OK, &paths(registry))),
            _ => Ok(no_page()),
        }
    }

    /// A few metrics for scrapers.
    fn metrics(&self) -> Response<Body> {
        let text = format!(
            "# HELP apiserver_storage_revision Revision of the last change.\n\
             # TYPE apiserver_storage_revision counter\n\
             apiserver_storage_revision {}\n",
            self.store.revision()
        );
        response::respond(
            StatusCode::OK,
            "text/plain; version=0.0.4; charset=utf-8; escaping=underscores",
            text,
        )
    }
}

fn roots(registry: &Registry, request: &Request, root: &str) -> Result<Response<Body>, ApiError> {
    let aggregated_as = |clause: &Clause<'_>| {
        let wanted = clause.target() == Some(("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList"));
        clause.encoding().filter(|_| wanted)
    };
    // Aggregated discovery takes precedence at any position.
    let accept = request.header(header::ACCEPT);
    if let Some(encoding) = clauses(accept).iter().find_map(aggregated_as) {
        let list = aggregated(registry, root == "api");
        return Ok(match encoding {
            Encoding::Json => with_etag(request, AGGREGATED, json::to_vec(&list).into()),
            Encoding::Yaml => {
                let json = json::to_vec(&list).into();
                with_etag(request, AGGREGATED_YAML, response::to_yaml(&json))
            }
            Encoding::Protobuf => {
                with_etag(request, AGGREGATED_PROTOBUF, response::to_protobuf(&list).unwrap_or_default())
            }
        });
    }
    // Upstream's aggregator serves the group list directly, without the router.
    let encoding = negotiate_document(request, root == "api")?;
    let value = if root == "api" { api_versions() } else { group_list(registry) };
    Ok(response::answer_value(StatusCode::OK, encoding, &value))
}

/// Responds with an ETag, or with 304 if the client's copy is current.
fn with_etag(request: &Request, media: &'static str, bytes: Bytes) -> Response<Body> {
    use std::hash::{Hash as _, Hasher as _};
    let mut hasher = std::hash::DefaultHasher::new();
    bytes.hash(&mut hasher);
    let tag = format!("\"{:016X}\"", hasher.finish());
    let mut response = if request.header(header::IF_NONE_MATCH) == tag {
        response::respond(StatusCode::NOT_MODIFIED, media, "")
    } else {
        response::respond(StatusCode::OK, media, bytes)
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
    response
}

fn paths(registry: &Registry) -> Value {
    let mut paths = vec!["/api".to_owned(), "/api/v1".to_owned(), "/apis".to_owned(), "/apis/".to_owned()];
    for (group, versions) in groups(registry) {
        paths.push(format!("/apis/{group}"));
        paths.extend(versions.iter().map(|version| format!("/apis/{group}/{version}")));
    }
    let others = [
        "/.well-known/openid-configuration",
        "/healthz",
        "/livez",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/openapi/v3/",
        "/openid/v1/jwks",
        "/readyz",
        "/version",
    ];
    paths.extend(others.map(str::to_owned));
    paths.sort();
    json!({"paths": paths})
}

fn api_versions() -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}],
    })
}

/// The groups other than core with their versions, in discovery order.
fn groups(registry: &Registry) -> Vec<(&str, Vec<&str>)> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut positions: HashMap<&str, usize> = HashMap::new();
    for resource in registry.all().filter(|resource| !resource.group().is_empty()) {
        let (group, version) = (resource.group(), resource.version());
        let at = *positions.entry(group).or_insert_with(|| {
            groups.push((group, Vec::new()));
            groups.len() - 1
        });
        let versions = &mut groups[at].1;
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
    groups
}

fn group_value(name: &str, versions: &[&str]) -> Map<String, Value> {
    let version = |version: &str| json!({"groupVersion": format!("{name}/{version}"), "version": version});
    let mut group = Map::new();
    group.insert("name".to_owned(), name.into());
    group.insert("versions".to_owned(), versions.iter().map(|v| version(v)).collect());
    group.insert("preferredVersion".to_owned(), version(versions.first().copied().unwrap_or_default()));
    group
}

fn group_list(registry: &Registry) -> Value {
    let groups: Vec<Value> =
        groups(registry).iter().map(|(name, versions)| Value::Object(group_value(name, versions))).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

fn group_answer(registry: &Registry, request: &Request, name: &str) -> Result<Response<Body>, ApiError> {
    let groups = groups(registry);
    let Some((name, versions)) = groups.iter().find(|(group, _)| *group == name) else {
        return Ok(no_page());
    };
    let encoding = negotiate_document(request, registry.is_built_in(name))?;
    let mut group = group_value(name, versions);
    group.insert("kind".to_owned(), "APIGroup".into());
    group.insert("apiVersion".to_owned(), "v1".into());
    Ok(response::answer_value(StatusCode::OK, encoding, &Value::Object(group)))
}

fn resource_list(
    registry: &Registry,
    request: &Request,
    group: &str,
    version: &str,
) -> Result<Response<Body>, ApiError> {
    let of =
        |resource: &&std::sync::Arc<Resource>| resource.group() == group && resource.version() == version;
    let mut list: Vec<Value> = Vec::new();
    for resource in registry.all().filter(of) {
        list.push(api_resource(resource, None));
        list.extend(resource.subresources.iter().map(|sub| api_resource(resource, Some(sub))));
    }
    if list.is_empty() {
        // Upstream has a handler only for built-in groups; groups of custom resources return a plain 404.
        let known = group.is_empty() || registry.is_built_in(group);
        return if known { Err(no_resource()) } else { Ok(no_page()) };
    }
    let encoding = negotiate_document(request, group.is_empty() || registry.is_built_in(group))?;
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let mut value = json!({"kind": "APIResourceList", "groupVersion": group_version, "resources": list});
    // The core group's list predates the field.
    if !group.is_empty() {
        value["apiVersion"] = "v1".into();
    }
    Ok(response::answer_value(StatusCode::OK, encoding, &value))
}

fn api_resource(resource: &Resource, sub: Option<&Subresource>) -> Value {
    let mut entry = Map::new();
    let mut set = |name: &str, value: Value| entry.insert(name.to_owned(), value);
    match sub {
        None => {
            set("name", resource.plural().into());
            set("singularName", resource.singular().into());
            set("namespaced", resource.namespaced().into());
            set("kind", resource.kind().into());
            set("verbs", words(&resource.verbs));
            if !resource.short_names.is_empty() {
                set("shortNames", words(&resource.short_names));
            }
            if !resource.categories.is_empty() {
                set("categories", words(&resource.categories));
            }
            if let Some(hash) = &resource.storage_hash {
                set("storageVersionHash", hash.as_ref().into());
            }
        }
        Some(sub) => {
            set("name", format!("{}/{}", resource.plural(), sub.name).into());
            set("singularName", "".into());
            set("namespaced", resource.namespaced().into());
            if let Some((group, version)) = &sub.group_version {
                set("group", group.as_ref().into());
                set("version", version.as_ref().into());
            }
            set("kind", sub.kind.as_ref().into());
            set("verbs", words(&sub.verbs));
        }
    }
    Value::Object(entry)
}

fn words(words: &[impl AsRef<str>]) -> Value {
    words.iter().map(|word| Value::from(word.as_ref())).collect()
}

fn aggregated(registry: &Registry, core: bool) -> Value {
    let groups = if core { vec![("", vec!["v1"])] } else { groups(registry) };
    let mut resources: HashMap<(&str, &str), Vec<Value>> = HashMap::new();
    for resource in registry.all().filter(|resource| resource.group().is_empty() == core) {
        let resources = resources.entry((resource.group(), resource.version())).or_default();
        resources.push(aggregated_resource(resource));
    }
    let items: Vec<Value> = groups
        .iter()
        .map(|(name, versions)| {
            let versions: Vec<Value> = versions
                .iter()
                .map(|version| {
                    let resources = resources.remove(&(*name, *version)).unwrap_or_default();
                    json!({"version": version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            let metadata = if name.is_empty() { json!({}) } else { json!({"name": name}) };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregated_resource(resource: &Resource) -> Value {
    let mut entry = json!({
        "resource": resource.plural(),
        // Group and version are empty if they equal those of the list.
        "responseKind": {"group": "", "version": "", "kind": resource.kind()},
        "scope": if resource.namespaced() { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular(),
        "verbs": words(&resource.verbs),
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = words(&resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = words(&resource.categories);
    }
    if !resource.subresources.is_empty() {
        let subresource = |sub: &Subresource| {
            let (group, version) = match &sub.group_version {
                Some((group, version)) => (group.as_ref(), version.as_ref()),
                None => ("", ""),
            };
            json!({
                "subresource": sub.name,
                "responseKind": {"group": group, "version": version, "kind": sub.kind},
                "verbs": words(&sub.verbs),
            })
        };
        entry["subresources"] = resource.subresources.iter().map(subresource).collect();
    }
    entry
}

impl Discovery {
    /// `/healthz`, `/livez` and `/readyz`. The server is not ready while its log cannot be written.
    fn health(&self, request: &Request, endpoint: &str) -> Response<Body> {
        use std::fmt::Write as _;
        let excluded: Vec<&str> = request.query.all("exclude").collect();
        let fails = |check: &str| !excluded.contains(&check) && self.check_fails(endpoint, check);
        let failed = CHECKS.into_iter().any(fails);
        if request.query.get("verbose").is_none() && !failed {
            return response::respond(StatusCode::OK, TEXT, "ok");
        }
        let mut text = String::new();
        for check in CHECKS {
            let line = match check {
                check if excluded.contains(&check) => format!("[+]{check} excluded: ok"),
                check if fails(check) => format!("[-]{check} failed: reason withheld"),
                check => format!("[+]{check} ok"),
            };
            writeln!(text, "{line}").unwrap_or_default();
        }
        let (status, word) =
            if failed { (StatusCode::INTERNAL_SERVER_ERROR, "failed") } else { (StatusCode::OK, "passed") };
        writeln!(text, "{endpoint} check {word}").unwrap_or_default();
        response::respond(status, TEXT, text)
    }

    fn single_check(&self, endpoint: &str, name: &str) -> Response<Body> {
        if !CHECKS.contains(&name) {
            return no_page();
        }
        if self.check_fails(endpoint, name) {
            let text = "internal server error: etcd failed: reason withheld\n";
            return response::respond(StatusCode::INTERNAL_SERVER_ERROR, TEXT, text);
        }
        response::respond(StatusCode::OK, TEXT, "ok")
    }

    /// The log is checked in place of etcd. As upstream, it does not affect liveness.
    fn check_fails(&self, endpoint: &str, check: &str) -> bool {
        check == "etcd" && endpoint != "livez" && self.store.failure().is_some()
    }
}
