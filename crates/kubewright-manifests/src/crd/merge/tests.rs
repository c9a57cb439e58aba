//! Compatible and conflicting versions.

use serde_json::json;

use super::*;

fn version(name: &str, storage: bool) -> Kind {
    let path = format!("api::{name}::Book");
    Kind {
        item: Item { file: "src/api.rs".to_owned(), line: 1, path },
        definition: json!({
            "metadata": { "name": "books.example.com" },
            "spec": {
                "group": "example.com",
                "names": { "kind": "Book", "plural": "books", "singular": "book" },
                "scope": "Namespaced",
                "versions": [{ "name": name, "served": true, "storage": storage, "deprecated": name == "v1" }],
            },
        }),
        findings: Vec::new(),
    }
}

fn messages(merged: &Merged) -> Vec<String> {
    merged
        .findings
        .iter()
        .map(|finding| format!("{} {}: {}", finding.code, finding.item.path, finding.message))
        .collect()
}

#[test]
fn versions_of_a_kind_are_merged_in_any_input_order() {
    let merged = merge(vec![version("v2", true), version("v1beta1", false), version("v1", false)]);
    assert_eq!(messages(&merged), [""; 0]);
    let [only] = merged.crds.as_slice() else { panic!("{merged:?}") };
    assert_eq!(only.file, "example.com_books.yaml");
    assert_eq!(only.items.len(), 3);
    let versions = only.crd["spec"]["versions"].as_array().unwrap();
    let rendered: Vec<_> = versions.iter().map(|v| (&v["name"], &v["storage"], &v["deprecated"])).collect();
    assert_eq!(
        rendered,
        [
            (&json!("v1"), &json!(false), &json!(true)),
            (&json!("v1beta1"), &json!(false), &json!(false)),
            (&json!("v2"), &json!(true), &json!(false)),
        ]
    );
    assert_eq!(merge(vec![version("v1", false), version("v1beta1", false), version("v2", true)]), merged);
}

#[test]
fn exactly_one_version_must_be_the_storage_version() {
    let none = merge(vec![version("v1", false)]);
    assert_eq!(messages(&none), ["KW120 api::v1::Book: Book has no storage version"]);
    let two = merge(vec![version("v1", true), version("v2", true)]);
    assert_eq!(
        messages(&two),
        ["KW120 api::v2::Book: both Book v2 and v1 are storage versions, but only one version can be"]
    );
}

#[test]
fn common_properties_of_versions_must_be_equal() {
    let mut other = version("v2", false);
    other.definition["spec"]["scope"] = "Cluster".into();
    other.definition["spec"]["names"]["shortNames"] = json!(["bk"]);
    let merged = merge(vec![version("v1", true), other]);
    assert_eq!(
        messages(&merged),
        [
            "KW122 api::v2::Book: Book v1 and v2 have different scope, which must be the same in all versions",
            "KW122 api::v2::Book: Book v1 and v2 have different shortNames, which must be the same in all versions",
        ]
    );
}

#[test]
fn a_version_must_not_be_declared_twice() {
    let merged = merge(vec![version("v1", true), version("v1", false)]);
    assert_eq!(messages(&merged), ["KW121 api::v1::Book: Book v1 is declared twice, also by api::v1::Book"]);
}
