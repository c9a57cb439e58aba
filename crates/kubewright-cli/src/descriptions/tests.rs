//! Compares the descriptions with recorded schemas of a real API server.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use kubewright_apis::openapi;

use super::*;

/// Recorded responses of a real API server: the path in an OpenAPI v3 document and the value there.
fn recorded() -> Vec<(Vec<String>, Value)> {
    let path = "tests/oracle/scenarios/openapi/builtin.json";
    let text = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let mut scenario: Value = serde_json::from_slice(&text).unwrap();
    let steps = scenario["steps"].as_array_mut().unwrap().iter_mut();
    let step = |step: &mut Value| {
        let pick = step["pick"].as_array().into_iter().flatten();
        (pick.map(|key| key.as_str().unwrap().to_owned()).collect(), step["response"]["body"].take())
    };
    steps.map(step).collect()
}

#[test]
fn descriptions_match_the_recorded_schemas() {
    let mut compared = 0;
    let mut same = |ours: Option<&str>, recorded: &Value, of: &[&str]| {
        // The recording escapes `<` as `<<`.
        let recorded = recorded["description"].as_str().map(|text| text.replace("<<", "<"));
        assert_eq!(ours, recorded.as_deref(), "{of:?}");
        compared += 1;
    };
    for (pick, body) in recorded() {
        match pick.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["components", "schemas", name] => {
                same(KubernetesDescriptions.of_type(name), &body, &[name]);
                for (field, schema) in body["properties"].as_object().into_iter().flatten() {
                    same(KubernetesDescriptions.of_field(name, field), schema, &[name, field]);
                }
            }
            ["components", "schemas", name, "properties", field] => {
                same(KubernetesDescriptions.of_field(name, field), &body, &[name, field]);
            }
            _ => {}
        }
    }
    assert_eq!(compared, 20, "types and fields");
}

#[test]
fn every_published_type_except_lists_has_a_description() {
    let document = openapi::v2_document(&[], &KubernetesDescriptions);
    let definitions = document["definitions"].as_object().unwrap();
    let silent: BTreeSet<_> = definitions
        .iter()
        .filter(|(_, schema)| schema.get("description").is_none())
        .map(|(name, _)| name.as_str())
        .collect();
    let lists: BTreeSet<_> = definitions
        .iter()
        .filter(|(name, schema)| name.ends_with("List") && !schema["properties"]["items"].is_null())
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(silent, lists);
}

#[test]
fn lists_have_the_descriptions_of_common_fields() {
    let of_list = |field| KubernetesDescriptions.of_field("io.k8s.api.core.v1.PodList", field);
    let of_pod = |field| KubernetesDescriptions.of_field("io.k8s.api.core.v1.Pod", field);
    for field in ["apiVersion", "kind"] {
        assert!(of_list(field).is_some());
        assert_eq!(of_list(field), of_pod(field));
    }
    assert_eq!(of_list("items"), None);
}
