//! `/openapi/v3` and `/openapi/v2`: the published OpenAPI documents.
//!
//! Documents are built on first use and cached. Those of built-in groups never change and are shared with
//! forks. A document of custom resources is rebuilt when one of its CRDs changes; the v2 document has all of them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use kubewright_apimachinery::json;
use kubewright_apimachinery::status::ApiError;
use kubewright_apis::openapi::{self, CustomVersion, Descriptions};
use serde_json::Value;

use crate::clock::Clock;
use crate::encoding::body::Body;
use crate::encoding::negotiate::{Clause, clauses, not_acceptable};
use crate::encoding::response;
use crate::endpoints::version::KubernetesVersion;
use crate::registry::crd_resource::CrdResource;
use crate::registry::resource::Registry;
use crate::registry::resources::Resources;
use crate::request::Request;

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";
/// Cache lifetime of a URL that contains a hash: its content never changes.
const YEAR: u64 = 365 * 86_400;

/// One encoded document.
#[derive(Debug)]
struct Document {
    bytes: Bytes,
    hash: String,
}

impl Document {
    fn new(bytes: Vec<u8>) -> Self {
        Self { hash: openapi::content_hash(&bytes), bytes: bytes.into() }
    }
}

type Documents = BTreeMap<String, Arc<Document>>;

/// The documents of built-in groups. Forks share them.
pub(crate) struct BuiltInDocuments {
    descriptions: Arc<dyn Descriptions>,
    version: KubernetesVersion,
    v3: OnceLock<Documents>,
}

impl BuiltInDocuments {
    pub(crate) fn new(descriptions: Arc<dyn Descriptions>, version: KubernetesVersion) -> Self {
        Self { descriptions, version, v3: OnceLock::new() }
    }

    fn v3(&self) -> &Documents {
        let documents = || {
            let paths = openapi::v3_paths(&[]).into_iter();
            paths.filter_map(|path| self.document(&path, &[]).map(|document| (path, document))).collect()
        };
        self.v3.get_or_init(documents)
    }

    fn document(&self, path: &str, custom: &[CustomVersion<'_>]) -> Option<Arc<Document>> {
        let mut document = openapi::v3_document(path, custom, &*self.descriptions)?;
        self.pose(&mut document);
        Some(Arc::new(Document::new(json::to_vec(&document))))
    }

    /// Sets the configured Kubernetes version; documents of custom resources have their own version.
    fn pose(&self, document: &mut Value) {
        if document["info"]["title"] == "Kubernetes" {
            document["info"]["version"] = self.version.to_string().into();
        }
    }
}

/// The OpenAPI documents of one server.
pub(crate) struct OpenApi {
    pub(crate) built_in: Arc<BuiltInDocuments>,
    resources: Arc<Resources>,
    clock: Arc<dyn Clock>,
    v3: Mutex<Option<V3>>,
    v2: Mutex<Option<V2>>,
}

/// The v3 documents for one state of the registry.
struct V3 {
    of: Arc<Registry>,
    documents: Arc<Documents>,
    /// The CRDs of each document of custom resources.
    crds: HashMap<String, Vec<Arc<CrdResource>>>,
}

/// The v2 document, in JSON and protobuf.
struct V2 {
    of: Arc<Registry>,
    json: Arc<Document>,
    protobuf: Arc<Document>,
}

impl OpenApi {
    pub(crate) fn new(
        built_in: Arc<BuiltInDocuments>,
        resources: Arc<Resources>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { built_in, resources, clock, v3: Mutex::default(), v2: Mutex::default() }
    }

    /// Handles paths below `/openapi`.
    pub(crate) fn answer(&self, request: &Request, path: &[&str]) -> Result<Response<Body>, ApiError> {
        match path {
            ["v3"] => {
                let documents = self.v3_documents();
                let hashes = documents.iter().map(|(path, document)| (path.as_str(), document.hash.as_str()));
                let index = Document::new(json::to_vec(&openapi::v3_index(hashes)));
                Ok(with_tag(request, TEXT, &index))
            }
            ["v3", path @ ..] => {
                let documents = self.v3_documents();
                let path = path.join("/");
                let Some(document) = documents.get(&path) else {
                    let mut response = Response::new(Body::empty());
                    *response.status_mut() = StatusCode::NOT_FOUND;
                    return Ok(response);
                };
                self.one_document(request, &path, document)
            }
            ["v2"] => Ok(self.v2_document(request)),
            _ => Ok(crate::server::no_page()),
        }
    }

    fn one_document(
        &self,
        request: &Request,
        path: &str,
        document: &Document,
    ) -> Result<Response<Body>, ApiError> {
        if !accepts(request, JSON) {
            return Err(not_acceptable());
        }
        let asked = request.query.get("hash").unwrap_or_default();
        if !asked.is_empty() && asked != document.hash {
            let now_at = format!("/openapi/v3/{path}?hash={}", document.hash);
            let mut response = response::respond(StatusCode::MOVED_PERMANENTLY, TEXT, "");
            set(&mut response, header::LOCATION, &now_at);
            return Ok(response);
        }
        let mut response = with_tag(request, JSON, document);
        if !asked.is_empty() {
            let now = u64::try_from(self.clock.now()).unwrap_or_default();
            let ends = SystemTime::UNIX_EPOCH + Duration::from_secs(now + YEAR);
            set(&mut response, header::CACHE_CONTROL, "public, immutable");
            set(&mut response, header::EXPIRES, &httpdate::fmt_http_date(ends));
        }
        Ok(response)
    }

    /// All documents of v3.
    fn v3_documents(&self) -> Arc<Documents> {
        let registry = self.resources.current();
        let mut published = self.v3.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(v3) = &*published
            && Arc::ptr_eq(&v3.of, &registry)
        {
            return v3.documents.clone();
        }
        let mut documents = self.built_in.v3().clone();
        let crds = crds_by_path(&registry, &documents);
        for (path, crds) in &crds {
            let unchanged = published.as_ref().and_then(|v3| {
                let same = v3.crds.get(path).is_some_and(|known| is_same(known, crds));
                same.then(|| v3.documents.get(path).cloned()).flatten()
            });
            let document = unchanged.or_else(|| {
                let versions: Vec<_> = crds.iter().flat_map(|custom| custom.published_versions()).collect();
                self.built_in.document(path, &versions)
            });
            documents.extend(document.map(|document| (path.clone(), document)));
        }
        let documents = Arc::new(documents);
        *published = Some(V3 { of: registry, documents: documents.clone(), crds });
        documents
    }

    fn v2_document(&self, request: &Request) -> Response<Body> {
        let registry = self.resources.current();
        let mut published = self.v2.lock().unwrap_or_else(PoisonError::into_inner);
        let current = published.take().filter(|v2| Arc::ptr_eq(&v2.of, &registry));
        let v2 = published.insert(current.unwrap_or_else(|| {
            let custom = established_versions(&registry);
            let mut document = openapi::v2_document(&custom, &*self.built_in.descriptions);
            self.built_in.pose(&mut document);
            let protobuf = Arc::new(Document::new(openapi::v2_protobuf(&document)));
            V2 { of: registry, json: Arc::new(Document::new(json::to_vec(&document))), protobuf }
        }));
        let old_name = openapi::V2_PROTOBUF.replacen("v2.v1", "v2@v1", 1);
        for clause in clauses(wanted(request)) {
            if covers(&clause, JSON) {
                return with_tag(request, JSON, &v2.json);
            }
            if covers(&clause, openapi::V2_PROTOBUF) || covers(&clause, &old_name) {
                return with_tag(request, openapi::V2_PROTOBUF, &v2.protobuf);
            }
        }
        // As upstream, without a body.
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_ACCEPTABLE;
        response
    }
}

/// The CRDs of each v3 document of custom resources. A group version with built-in resources has no custom ones.
fn crds_by_path(registry: &Registry, built_in: &Documents) -> HashMap<String, Vec<Arc<CrdResource>>> {
    let mut crds: HashMap<String, Vec<Arc<CrdResource>>> = HashMap::new();
    for custom in registry.crds().filter(|custom| custom.info.established) {
        for version in custom.info.served_versions() {
            let path = format!("apis/{}/{}", custom.info.group, version.name);
            if !built_in.contains_key(&path) {
                crds.entry(path).or_default().push(custom.clone());
            }
        }
    }
    crds
}

fn is_same(one: &[Arc<CrdResource>], other: &[Arc<CrdResource>]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| Arc::ptr_eq(one, other))
}

/// The custom resources that discovery lists.
fn established_versions(registry: &Registry) -> Vec<CustomVersion<'_>> {
    let established = registry.crds().filter(|custom| custom.info.established);
    established.flat_map(|custom| custom.published_versions()).collect()
}

fn wanted(request: &Request) -> &str {
    let accept = request.header(header::ACCEPT);
    if accept.is_empty() { "*/*" } else { accept }
}

fn accepts(request: &Request, media: &str) -> bool {
    clauses(wanted(request)).iter().any(|clause| covers(clause, media))
}

fn covers(clause: &Clause<'_>, media: &str) -> bool {
    media.split_once('/').is_some_and(|(kind, subtype)| clause.covers(kind, subtype))
}

/// A document with its ETag, or 304 if the client has it.
fn with_tag(request: &Request, media: &'static str, document: &Document) -> Response<Body> {
    let tag = format!("\"{}\"", document.hash);
    let known = request.header(header::IF_NONE_MATCH).split(',').any(|known| known.trim() == tag);
    let mut response = if known {
        response::respond(StatusCode::NOT_MODIFIED, media, "")
    } else {
        response::respond(StatusCode::OK, media, document.bytes.clone())
    };
    set(&mut response, header::ETAG, &tag);
    set(&mut response, header::VARY, "Accept");
    response
}

fn set(response: &mut Response<Body>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{ApiServer, Options};

    async fn create_crd(server: &ApiServer, group: &str) {
        let schema = json!({"openAPIV3Schema": {"type": "object"}});
        let crd = json!({
            "metadata": {"name": format!("things.{group}")},
            "spec": {
                "group": group, "scope": "Cluster", "names": {"kind": "Thing", "plural": "things"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
            },
        });
        let request = http::Request::post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
            .header("content-type", "application/json")
            .body(http_body_util::Full::new(Bytes::from(crd.to_string())))
            .unwrap();
        assert!(server.handle(request).await.status().is_success());
    }

    #[tokio::test]
    async fn a_new_crd_rebuilds_only_the_document_of_its_group() {
        let server = ApiServer::new(Options::default());
        create_crd(&server, "one.example.org").await;
        let openapi = &server.stages.discovery.openapi;
        let before = openapi.v3_documents();
        create_crd(&server, "two.example.org").await;
        let after = openapi.v3_documents();
        let (one, two) = ("apis/one.example.org/v1", "apis/two.example.org/v1");
        assert!(Arc::ptr_eq(&before[one], &after[one]));
        assert!(!before.contains_key(two) && after.contains_key(two));
    }
}
