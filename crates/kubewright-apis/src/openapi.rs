//! The published OpenAPI documents: v3 with one document per group version, and v2 with one for the whole
//! API.
//!
//! Documents are generated from the facts table and the given custom versions. Nothing is cached here. The
//! same input gives the same bytes and the same [`content_hash`]. [`v3_paths`] lists the documents,
//! [`v3_document`] generates one.
//!
//! The facts table has no descriptions of types and fields. The caller can pass them as [`Descriptions`].
//!
//! ```
//! use kubewright_apimachinery::json;
//! use kubewright_apis::openapi;
//! use openapi::NoDescriptions;
//!
//! let document = openapi::v3_document("apis/apps/v1", &[], &NoDescriptions).unwrap();
//! let hash = openapi::content_hash(&json::to_vec(&document));
//! let index = openapi::v3_index([("apis/apps/v1", hash.as_str())]);
//! let url = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().unwrap();
//! assert_eq!(url, format!("/openapi/v3/apis/apps/v1?hash={hash}"));
//! ```

mod builtin;
mod custom;
mod descriptions;
mod group_versions;
mod parameters;
mod protobuf;
mod resolve;
mod route;
mod schema;
mod v2;
mod v2_schema;
mod v3;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

pub use custom::CustomVersion;
pub use descriptions::{Descriptions, NoDescriptions};
pub(crate) use resolve::cel_schema;
pub use resolve::resolved_schema;

use crate::facts;
use group_versions::CrossRegistered;
use schema::{Form, Schemas};

/// The `info.version` of the documents.
pub(crate) const KUBERNETES_VERSION: &str = "v1.36.4";

/// The media type of [`v2_protobuf`]. Upstream also accepts it with `@` instead of the first dot after `v2`,
/// and responds with this one.
pub const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// The paths of the documents below `/openapi/v3`, sorted: `api`, `api/v1`, `apis`, `apis/apps`,
/// `apis/apps/v1`, ...
pub fn v3_paths(custom: &[CustomVersion<'_>]) -> Vec<String> {
    let mut paths: BTreeSet<String> = builtin::roots().iter().map(|(path, _)| (*path).to_owned()).collect();
    for resource in facts::resources() {
        let (group, version) = (resource.group, resource.version);
        if group.is_empty() {
            paths.insert(format!("api/{version}"));
        } else {
            paths.insert(format!("apis/{group}"));
            paths.insert(format!("apis/{group}/{version}"));
        }
    }
    paths.extend(custom.iter().map(CustomVersion::document_path));
    paths.into_iter().collect()
}

/// The response of `/openapi/v3`, from the path and the [`content_hash`] of every document.
pub fn v3_index<'a>(documents: impl IntoIterator<Item = (&'a str, &'a str)>) -> Value {
    let url =
        |path: &str, hash: &str| json!({ "serverRelativeURL": format!("/openapi/v3/{path}?hash={hash}") });
    let paths: Map<_, _> =
        documents.into_iter().map(|(path, hash)| (path.to_owned(), url(path, hash))).collect();
    object([("paths", paths.into())])
}

/// The document at a path of [`v3_paths`], such as `api/v1`. Includes the versions in `custom` that are
/// published at this path, after the built-in ones.
pub fn v3_document(
    path: &str,
    custom: &[CustomVersion<'_>],
    descriptions: &dyn Descriptions,
) -> Option<Value> {
    let schemas = |registered| Schemas::new(Form::V3, registered, descriptions);
    let root = builtin::roots().into_iter().find(|(root, _)| *root == path);
    if let Some((_, route)) = root {
        return Some(v3::builtin(vec![route], schemas(CrossRegistered::Everywhere)));
    }
    let (group, version) = match path.split('/').collect::<Vec<_>>()[..] {
        ["api", version] => ("", Some(version)),
        ["apis", group] => (group, None),
        ["apis", group, version] => (group, Some(version)),
        _ => return None,
    };
    let built_in = facts::resources().iter().find(|resource| {
        resource.group == group && version.is_none_or(|version| resource.version == version)
    });
    match (built_in, version) {
        (Some(resource), Some(_)) => {
            let (group, version) = (resource.group, resource.version);
            let registered = CrossRegistered::Document { group, version };
            Some(v3::builtin(builtin::group_version(group, version), schemas(registered)))
        }
        (Some(resource), None) if !group.is_empty() => {
            let route = builtin::group(resource.group);
            Some(v3::builtin(vec![route], schemas(CrossRegistered::Everywhere)))
        }
        _ => custom_document(path, custom, schemas(CrossRegistered::Clients)),
    }
}

fn custom_document(path: &str, custom: &[CustomVersion<'_>], mut schemas: Schemas<'_>) -> Option<Value> {
    let mut routes = Vec::new();
    for version in custom.iter().filter(|version| version.document_path() == path) {
        version.add_schemas(&mut schemas);
        routes.extend(version.routes());
    }
    (!routes.is_empty()).then(|| v3::custom(routes, schemas))
}

/// The v2 document with all built-in and custom versions.
pub fn v2_document(custom: &[CustomVersion<'_>], descriptions: &dyn Descriptions) -> Value {
    let mut schemas = Schemas::new(Form::V2, CrossRegistered::Everywhere, descriptions);
    let mut routes: Vec<_> = builtin::roots().into_iter().map(|(_, route)| route).collect();
    let groups: BTreeSet<_> = facts::resources().iter().map(|resource| resource.group).collect();
    routes.extend(groups.into_iter().filter(|group| !group.is_empty()).map(builtin::group));
    let versions: BTreeSet<_> =
        facts::resources().iter().map(|resource| (resource.group, resource.version)).collect();
    routes.extend(versions.iter().flat_map(|(group, version)| builtin::group_version(group, version)));
    for version in custom.iter().filter(|version| !versions.contains(&(version.group, version.version))) {
        version.add_schemas(&mut schemas);
        routes.extend(version.routes());
    }
    v2::document(routes, schemas)
}

/// The v2 document as [`V2_PROTOBUF`].
pub fn v2_protobuf(document: &Value) -> Vec<u8> {
    protobuf::document(document)
}

/// Builds an object without copying the values, unlike `json!`.
fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// A hash of a document's bytes: its ETag (in quotes), and `hash` in its URL. 128 bits of FNV-1a in upper-case
/// hex; upstream's SHA-512 is longer, and means as little to clients. The crate `fnv` has 64 bits only.
pub fn content_hash(document: &[u8]) -> String {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let hash = document.iter().fold(OFFSET, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME));
    format!("{hash:032X}")
}

#[cfg(test)]
mod tests;
