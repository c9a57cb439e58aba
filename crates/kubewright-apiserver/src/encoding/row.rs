//! Items of lists in another view than the complete object: rows of Tables and PartialObjectMetadata.
//!
//! A row needs few fields of its object, and managedFields are the largest part of most objects. So rows are rendered
//! from the stored JSON: metadata is copied, and only the fields of the cells are parsed. Objects that are stored in
//! another version are decoded.

mod raw;

use std::sync::Arc;

use kubewright_apimachinery::json;
use kubewright_apis::table;
use kubewright_structured_merge::packed;
use serde_json::Value;

use super::body::Render;
use super::response::{self, Include, View};
use crate::registry::resource::Resource;
use crate::storage::StoredObject;
use raw::Wanted;

/// Renders an item of a list in this view.
pub(crate) fn render(resource: Arc<Resource>, view: View, now: i64) -> Render {
    let stored = has_stored_metadata(&resource);
    let wanted = wanted(&resource);
    Box::new(move |version| {
        let mut out = Vec::with_capacity(version.json.len());
        match view {
            View::Whole => return response::whole(&resource, version),
            View::Metadata(api) | View::MetadataList(api) => {
                if let Some(raw) = raw::metadata(&version.json).filter(|_| stored) {
                    metadata(&mut out, raw, api);
                } else {
                    let object = response::packed(&resource, version);
                    packed::write_to(&mut out, &response::metadata_of(&resource, &object, api));
                }
            }
            View::Table(api, include) => {
                match raw::select(&version.json, &wanted).filter(|_| stored) {
                    Some((raw, object)) => {
                        // Defaults and pruning of custom resources.
                        let object = if resource.is_unstructured() {
                            resource.strategy.read_stored(object)
                        } else {
                            object
                        };
                        cells(&mut out, &resource, &object, now);
                        match include {
                            Include::Nothing => out.extend_from_slice(b"null"),
                            Include::Metadata => metadata(&mut out, raw, api),
                            Include::Object if resource.is_unstructured() => {
                                packed::write_to(&mut out, &response::packed(&resource, version));
                            }
                            Include::Object => out.extend_from_slice(&response::whole(&resource, version)),
                        }
                        out.push(b'}');
                    }
                    None => decoded_row(&mut out, &resource, version, api, include, now),
                }
            }
        }
        out.into()
    })
}

/// Whether responses have the metadata of objects as it is stored. Conversion webhooks may change labels and
/// annotations.
fn has_stored_metadata(resource: &Resource) -> bool {
    let stored = resource.is_unstructured() && resource.converter().is_none();
    (stored || resource.is_storage_form()) && resource.rules().hidden_annotation.is_none()
}

/// The fields of an object that its cells need.
fn wanted(resource: &Resource) -> Wanted {
    let Some(paths) = resource.strategy.cell_paths() else { return Wanted::without_managed_fields() };
    // Unstructured objects are read by their version and kind.
    let kind = [vec!["apiVersion"], vec!["kind"]].into_iter().filter(|_| resource.is_unstructured());
    Wanted::of(paths.into_iter().chain(kind))
}

/// PartialObjectMetadata with metadata as JSON.
fn metadata(out: &mut Vec<u8>, metadata: &[u8], api: &str) {
    out.extend_from_slice(b"{\"apiVersion\":\"meta.k8s.io/");
    out.extend_from_slice(api.as_bytes());
    out.extend_from_slice(b"\",\"kind\":\"PartialObjectMetadata\",\"metadata\":");
    out.extend_from_slice(metadata);
    out.push(b'}');
}

/// The row of an object that is stored in another version.
fn decoded_row(
    out: &mut Vec<u8>,
    resource: &Resource,
    version: &StoredObject,
    api: &str,
    include: Include,
    now: i64,
) {
    let object = response::packed(resource, version);
    cells(out, resource, &object, now);
    match include {
        Include::Nothing => out.extend_from_slice(b"null"),
        Include::Metadata => packed::write_to(out, &response::metadata_of(resource, &object, api)),
        Include::Object => packed::write_to(out, &object),
    }
    out.push(b'}');
}

/// The start of a row, up to its object.
fn cells(out: &mut Vec<u8>, resource: &Resource, object: &Value, now: i64) {
    out.extend_from_slice(b"{\"cells\":");
    json::write_to(out, &Value::Array(resource.strategy.cells(object, now)));
    if let Some(conditions) = table::row_conditions(resource.gvk(), object) {
        out.extend_from_slice(b",\"conditions\":");
        json::write_to(out, &conditions);
    }
    out.extend_from_slice(b",\"object\":");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::storage::Expect;
    use crate::{ApiServer, Options};

    fn parsed(bytes: &[u8]) -> Value {
        serde_json::from_slice(bytes).unwrap()
    }

    /// The row of a fully decoded object, as `GET` of one object as a Table has it.
    #[test]
    fn a_rendered_row_equals_the_row_of_the_decoded_object() {
        let server = ApiServer::new(Options::default());
        let registry = server.stages.resources.current();
        let pod = json!({
            "metadata": {"name": "a", "namespace": "default", "labels": {"x": "quote \" and \\ and {"},
                "managedFields": [{"manager": "m", "operation": "Apply", "fieldsV1": {"f:spec": {}}}]},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
            "status": {"phase": "Succeeded", "conditions": []},
        });
        let map = json!({"metadata": {"name": "a", "namespace": "default"}, "data": {"k": "{[\"", "l": ""}});
        let set = json!({
            "metadata": {"name": "a", "namespace": "default",
                "annotations": {"deprecated.daemonset.template.generation": "1"}},
            "spec": {"selector": {}, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}},
        });
        let deployment = json!({
            "metadata": {"name": "a", "namespace": "default", "creationTimestamp": "1970-01-01T00:00:00Z"},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}, "matchExpressions": []},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"volumes": [{"name": "v"}],
                    "containers": [{"name": "c", "image": "i", "args": ["]"]}, {"name": "d", "image": "j"}]}}},
            "status": {"readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 3},
        });
        for (storage, object) in
            [("apps/deployments", deployment), ("pods", pod), ("configmaps", map), ("apps/daemonsets", set)]
        {
            let resource = registry.stored(storage).unwrap();
            let version = server
                .stages
                .objects
                .put_without_steps(resource, "default/a", Expect::Absent, object)
                .unwrap();
            let decoded = response::object(resource, &version);
            for include in [Include::Nothing, Include::Metadata, Include::Object] {
                let row = render(resource.clone(), View::Table("v1", include), 100)(&version);
                let table = response::transformed(resource, View::Table("v1", include), &decoded, 100);
                assert_eq!(parsed(&row), table["rows"][0], "{storage} {include:?}");
            }
            let metadata = render(resource.clone(), View::MetadataList("v1"), 100)(&version);
            assert_eq!(parsed(&metadata), response::metadata_of(resource, &decoded, "v1"), "{storage}");
        }
    }

    #[tokio::test]
    async fn a_rendered_row_of_a_custom_resource_equals_the_row_of_the_decoded_object() {
        let server = ApiServer::new(Options::default());
        let column =
            |name: &str, kind: &str, path: &str| json!({"name": name, "type": kind, "jsonPath": path});
        let properties = json!({
            "size": {"type": "integer", "default": 3},
            "text": {"type": "string"},
            "other": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        });
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.example.org"},
            "spec": {
                "group": "example.org", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "additionalPrinterColumns": [
                        column("Size", "integer", ".spec.size"),
                        column("Pruned", "string", ".spec.pruned"),
                        column("Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status"),
                        column("Generation", "integer", ".metadata.generation"),
                        column("Age", "date", ".metadata.creationTimestamp"),
                    ],
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                        "spec": {"type": "object", "properties": properties},
                        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    }}}}],
            },
        });
        let request = http::Request::post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
            .header("content-type", "application/json")
            .body(http_body_util::Full::new(bytes::Bytes::from(crd.to_string())))
            .unwrap();
        assert!(server.handle(request).await.status().is_success());
        let registry = server.stages.objects.registry();
        let resource = registry.stored("example.org/things").unwrap();
        // As stored under an earlier schema: `size` has no default yet, and `pruned` is still there.
        let object = json!({
            "apiVersion": "example.org/v1", "kind": "Thing",
            "metadata": {"name": "a", "namespace": "default", "creationTimestamp": "1970-01-01T00:00:00Z",
                "generation": 2, "labels": {"x": "<"},
                "managedFields": [{"manager": "m", "operation": "Apply", "fieldsV1": {"f:spec": {}}}]},
            "spec": {"text": "\"}", "other": {"a": [1, {"b": null}]}, "pruned": "x"},
            "status": {"conditions": [{"type": "Other"}, {"type": "Ready", "status": "True"}]},
        });
        let version =
            server.stages.objects.put_without_steps(resource, "default/a", Expect::Absent, object).unwrap();
        let decoded = response::object(resource, &version);
        for include in [Include::Nothing, Include::Metadata, Include::Object] {
            let row = render(resource.clone(), View::Table("v1", include), 100)(&version);
            let table = response::transformed(resource, View::Table("v1", include), &decoded, 100);
            assert_eq!(parsed(&row), table["rows"][0], "{include:?}");
            assert_eq!(parsed(&row)["cells"], json!(["a", 3, null, "True", 2, "100s"]));
        }
        let metadata = render(resource.clone(), View::MetadataList("v1"), 100)(&version);
        assert_eq!(parsed(&metadata), response::metadata_of(resource, &decoded, "v1"));
    }
}
