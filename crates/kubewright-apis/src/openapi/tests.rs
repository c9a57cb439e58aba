//! Tests of whole documents.

use std::collections::BTreeSet;

use kubewright_apiextensions::Structural;
use serde_json::{Value, json};

use super::*;

/// The served versions of a CRD.
fn versions(definition: &Value) -> Vec<CustomVersion<'_>> {
    fn text(value: &Value) -> &str {
        value.as_str().unwrap_or_default()
    }
    let spec = &definition["spec"];
    let names = &spec["names"];
    let served =
        spec["versions"].as_array().into_iter().flatten().filter(|version| version["served"] == true);
    served
        .map(|version| {
            let subresources = &version["subresources"];
            let fields = version["selectableFields"].as_array().into_iter().flatten();
            CustomVersion {
                group: text(&spec["group"]),
                version: text(&version["name"]),
                plural: text(&names["plural"]),
                kind: text(&names["kind"]),
                list_kind: text(&names["listKind"]),
                namespaced: spec["scope"] == "Namespaced",
                status: !subresources["status"].is_null(),
                scale: !subresources["scale"].is_null(),
                preserve_unknown_fields: spec["preserveUnknownFields"] == true,
                schema: Structural::parse(&version["schema"]["openAPIV3Schema"])
                    .ok()
                    .map(|schema| schema.to_openapi()),
                selectable_fields: fields.map(|field| text(&field["jsonPath"])).collect(),
            }
        })
        .collect()
}

fn cron_tab() -> Value {
    json!({ "spec": {
        "group": "stable.example.com",
        "scope": "Namespaced",
        "names": { "plural": "crontabs", "kind": "CronTab", "listKind": "CronTabList" },
        "versions": [
            {
                "name": "v1", "served": true,
                "subresources": { "status": {}, "scale": { "specReplicasPath": ".spec.replicas" } },
                "selectableFields": [{ "jsonPath": ".spec.schedule" }],
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": { "type": "object", "properties": {
                            "schedule": { "type": "string", "default": "never" },
                            "port": { "x-kubernetes-int-or-string": true },
                            "template": { "type": "object", "x-kubernetes-embedded-resource": true },
                        } },
                    },
                } },
            },
            { "name": "v1alpha1", "served": false, "schema": { "openAPIV3Schema": { "type": "object" } } },
            {
                "name": "v1beta1", "served": true,
                "schema": { "openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                } },
            },
        ],
    } })
}

/// Visits every `$ref` below `value`.
fn references<'a>(value: &'a Value, visit: &mut impl FnMut(&'a str)) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(reference)) = map.get("$ref") {
                visit(reference);
            }
            map.values().for_each(|value| references(value, visit));
        }
        Value::Array(list) => list.iter().for_each(|value| references(value, visit)),
        _ => {}
    }
}

#[track_caller]
fn every_reference_resolves(document: &Value) {
    references(document, &mut |reference| {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some_and(Value::is_object), "{reference}");
    });
}

#[track_caller]
fn operation_ids_are_unique(document: &Value) {
    let mut ids = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap().iter().filter(|(key, _)| *key != "parameters") {
            assert!(ids.insert(operation["operationId"].as_str().unwrap()), "{method} {path}");
        }
    }
}

#[test]
fn every_document_of_the_index_exists_and_is_complete() {
    let definition = cron_tab();
    let custom = versions(&definition);
    let paths = v3_paths(&custom);
    for path in ["api", "api/v1", "apis", "apis/apps", "apis/apps/v1", "version", "openid/v1/jwks"] {
        assert!(paths.iter().any(|known| known == path), "{path}");
    }
    assert!(paths.contains(&"apis/stable.example.com/v1".to_owned()));
    assert!(!paths.contains(&"apis/stable.example.com/v1alpha1".to_owned()), "not served");
    assert!(
        !paths.contains(&"apis/stable.example.com".to_owned()),
        "groups of custom resources have no document"
    );
    for path in &paths {
        let document = v3_document(path, &custom, &NoDescriptions).unwrap();
        every_reference_resolves(&document);
        operation_ids_are_unique(&document);
    }
}

#[test]
fn group_versions_that_are_not_served_have_no_document() {
    for path in
        ["", "api/v2", "apis/nosuch/v1", "apis/apps/v1/deployments", "apis/stable.example.com/v1", "apis/"]
    {
        assert!(v3_document(path, &[], &NoDescriptions).is_none(), "{path}");
    }
}

#[test]
fn patch_operations_have_the_parameters_that_kubectl_checks() {
    let document = v3_document("apis/apps/v1", &[], &NoDescriptions).unwrap();
    let patch = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
    let types: Vec<_> = patch["requestBody"]["content"].as_object().unwrap().keys().collect();
    assert_eq!(
        types,
        [
            "application/apply-patch+yaml",
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/strategic-merge-patch+json"
        ]
    );
    let names: Vec<_> = patch["parameters"].as_array().unwrap().iter().map(|p| &p["name"]).collect();
    assert_eq!(names, ["dryRun", "fieldManager", "fieldValidation", "force"]);
    assert_eq!(
        patch["x-kubernetes-group-version-kind"],
        json!({ "group": "apps", "version": "v1", "kind": "Deployment" })
    );
}

#[test]
fn common_parameters_are_moved_to_the_path() {
    let document = v3_document("api/v1", &[], &NoDescriptions).unwrap();
    let names = |path: &str| -> Vec<String> {
        let parameters = document["paths"][path]["parameters"].as_array().unwrap().iter();
        parameters.map(|p| format!("{}:{}", p["in"].as_str().unwrap(), p["name"].as_str().unwrap())).collect()
    };
    assert_eq!(
        names("/api/v1/namespaces/{namespace}/pods/{name}"),
        ["path:name", "path:namespace", "query:pretty"]
    );
    assert_eq!(names("/api/v1/nodes/{name}/proxy/{path}"), ["path:name", "path:path", "query:path"]);
    let connect = &document["paths"]["/api/v1/nodes/{name}/proxy/{path}"]["get"];
    assert_eq!(connect["operationId"], "connectCoreV1GetNodeProxyWithPath");
    assert!(connect.get("parameters").is_none());
}

#[test]
fn a_custom_resource_is_published_with_type_meta_and_metadata() {
    let definition = cron_tab();
    let custom = versions(&definition);
    let document = v3_document("apis/stable.example.com/v1", &custom, &NoDescriptions).unwrap();
    let schema = &document["components"]["schemas"]["com.example.stable.v1.CronTab"];
    assert_eq!(schema["x-kubernetes-selectable-fields"], json!([{ "fieldPath": "spec.schedule" }]));
    assert_eq!(schema["properties"]["kind"]["type"], "string");
    assert_eq!(
        schema["properties"]["metadata"]["allOf"][0]["$ref"],
        "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    );
    let template = &schema["properties"]["spec"]["properties"]["template"];
    assert_eq!(template["required"], json!(["kind", "apiVersion"]));
    let paths: Vec<_> = document["paths"].as_object().unwrap().keys().collect();
    assert_eq!(
        paths,
        [
            "/apis/stable.example.com/v1/crontabs",
            "/apis/stable.example.com/v1/namespaces/{namespace}/crontabs",
            "/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}",
            "/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}/scale",
            "/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}/status",
        ]
    );
    assert_eq!(
        document["paths"][paths[0]]["get"]["operationId"],
        "listStableExampleComV1CronTabForAllNamespaces"
    );
}

#[test]
fn unknown_fields_hide_the_schema_from_kubectl_in_v2_only() {
    let definition = cron_tab();
    let custom = versions(&definition);
    let kinds = json!([{ "group": "stable.example.com", "version": "v1beta1", "kind": "CronTab" }]);
    let v2 = v2_document(&custom, &NoDescriptions);
    assert_eq!(
        v2["definitions"]["com.example.stable.v1beta1.CronTab"],
        json!({ "type": "object", "x-kubernetes-group-version-kind": kinds })
    );
    let v3 = v3_document("apis/stable.example.com/v1beta1", &custom, &NoDescriptions).unwrap();
    let schema = &v3["components"]["schemas"]["com.example.stable.v1beta1.CronTab"];
    assert!(schema["properties"]["metadata"].is_object());
}

#[test]
fn the_v2_document_is_complete_and_has_no_defaults() {
    let definition = cron_tab();
    let custom = versions(&definition);
    let document = v2_document(&custom, &NoDescriptions);
    every_reference_resolves(&document);
    operation_ids_are_unique(&document);
    let spec = &document["definitions"]["com.example.stable.v1.CronTab"]["properties"]["spec"]["properties"];
    assert_eq!(spec["schedule"], json!({ "type": "string" }));
    assert_eq!(spec["port"], json!({ "x-kubernetes-int-or-string": true }));
    let pod = &document["definitions"]["io.k8s.api.core.v1.Pod"]["properties"]["spec"];
    assert_eq!(pod["$ref"], "#/definitions/io.k8s.api.core.v1.PodSpec");
    assert!(pod.get("default").is_none());
    let patch = &document["paths"]["/api/v1/namespaces/{namespace}/configmaps/{name}"]["patch"];
    assert!(patch["parameters"].as_array().unwrap().iter().any(|p| p["name"] == "fieldValidation"));
}

/// Has descriptions for most types and fields.
struct Texts;

impl Descriptions for Texts {
    fn of_type(&self, name: &str) -> Option<&str> {
        (name != "io.k8s.api.core.v1.PodSpec").then_some("a type")
    }

    fn of_field(&self, _: &str, field: &str) -> Option<&str> {
        (field != "nodeName").then_some("a field")
    }
}

#[test]
fn descriptions_are_published_if_available() {
    let definition = cron_tab();
    let custom = versions(&definition);
    let document = v2_document(&custom, &Texts);
    let definitions = &document["definitions"];
    assert_eq!(definitions["io.k8s.api.core.v1.Pod"]["description"], "a type");
    assert_eq!(definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"]["description"], "a type");
    let spec = &definitions["io.k8s.api.core.v1.PodSpec"];
    assert!(spec.get("description").is_none());
    assert_eq!(spec["properties"]["nodeName"], json!({ "type": "string" }));
    assert_eq!(spec["properties"]["hostname"], json!({ "type": "string", "description": "a field" }));
    assert_eq!(
        spec["properties"]["restartPolicy"]["description"],
        "a field\n\nPossible enum values:\n - `\"Always\"`\n - `\"Never\"`\n - `\"OnFailure\"`"
    );
    let claim = &definitions["io.k8s.api.core.v1.PersistentVolumeClaimSpec"]["properties"]["accessModes"];
    assert_eq!(claim["description"], "a field", "the enum is set on the elements");
    let kind = &definitions["com.example.stable.v1.CronTab"]["properties"]["kind"];
    assert_eq!(*kind, json!({ "type": "string", "description": "a field" }));
}

#[test]
fn without_a_text_there_is_no_description() {
    fn visit(value: &Value) {
        match value {
            Value::Object(map) => {
                assert_ne!(map.get("description"), Some(&Value::from("")));
                map.values().for_each(visit);
            }
            Value::Array(list) => list.iter().for_each(visit),
            _ => {}
        }
    }
    let definition = cron_tab();
    let custom = versions(&definition);
    for path in v3_paths(&custom) {
        visit(&v3_document(&path, &custom, &NoDescriptions).unwrap());
    }
    let document = v3_document("api/v1", &[], &NoDescriptions).unwrap();
    let fields = &document["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"];
    assert_eq!(
        fields["securityContext"],
        json!({ "$ref": "#/components/schemas/io.k8s.api.core.v1.PodSecurityContext" })
    );
}

/// The length-delimited fields of a message: number and bytes.
fn fields(mut message: &[u8]) -> Vec<(u64, &[u8])> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        value
    }
    let mut fields = Vec::new();
    while !message.is_empty() {
        let tag = varint(&mut message);
        match tag & 7 {
            0 => {
                varint(&mut message);
            }
            1 => message = &message[8..],
            2 => {
                let length = usize::try_from(varint(&mut message)).unwrap();
                let (field, rest) = message.split_at(length);
                fields.push((tag >> 3, field));
                message = rest;
            }
            wire => panic!("wire type {wire}"),
        }
    }
    fields
}

/// The value of the pair with this name in field `number`.
fn named<'a>(message: &'a [u8], number: u64, name: &str) -> &'a [u8] {
    let mut pairs =
        fields(message).into_iter().filter(|(field, _)| *field == number).map(|(_, pair)| fields(pair));
    let pair = pairs.find(|pair| pair[0] == (1, name.as_bytes())).unwrap_or_else(|| panic!("no {name}"));
    pair[1].1
}

fn field(message: &[u8], number: u64) -> &[u8] {
    fields(message)
        .into_iter()
        .find(|(field, _)| *field == number)
        .unwrap_or_else(|| panic!("no field {number}"))
        .1
}

#[test]
fn the_protobuf_document_equals_the_json_document() {
    let bytes = v2_protobuf(&v2_document(&[], &NoDescriptions));
    assert_eq!(field(&bytes, 1), b"2.0");
    let spec = named(field(&bytes, 9), 1, "io.k8s.api.core.v1.PodSpec");
    let containers = named(field(spec, 25), 1, "containers");
    assert_eq!(field(field(containers, 22), 1), b"array");
    let items = field(field(containers, 23), 1);
    assert_eq!(field(items, 1), b"#/definitions/io.k8s.api.core.v1.Container");
    assert_eq!(field(named(containers, 31, "x-kubernetes-patch-merge-key"), 2), b"\"name\"\n");
    let path = named(field(&bytes, 8), 2, "/api/v1/namespaces/{namespace}/configmaps/{name}");
    let patch = field(path, 8);
    assert_eq!(field(patch, 5), b"patchCoreV1NamespacedConfigMap");
    let consumes: Vec<_> =
        fields(patch).into_iter().filter(|(number, _)| *number == 7).map(|(_, t)| t).collect();
    assert!(consumes.contains(&b"application/strategic-merge-patch+json".as_slice()));
}

#[test]
fn the_hash_is_fnv_1a_and_differs_between_documents() {
    assert_eq!(content_hash(b""), "6C62272E07BB014262B821756295C58D");
    assert_eq!(content_hash(b"foobar"), "343E1662793C64BF6F0D3597BA446F18");
}
