//! Findings about invalid declarations.

mod crds;
mod documented;
mod permissions;
mod webhooks;

use serde_json::{Value, json};

use super::*;
use crate::declare::{Declared, Kind};

fn item(path: &str, line: u32) -> Item {
    Item { file: "src/lib.rs".into(), line, path: path.into() }
}

/// All findings as printed.
fn rendered(inventory: &Inventory, crds: &[(String, Value)]) -> String {
    check(inventory, crds).iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// An operator with one kind that has these fields in its spec.
fn guestbook(spec: &Value) -> (Inventory, Vec<(String, Value)>) {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "guestbooks.example.com" },
        "spec": {
            "group": "example.com",
            "names": { "kind": "Guestbook", "listKind": "GuestbookList", "plural": "guestbooks", "singular": "guestbook" },
            "scope": "Namespaced",
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "apiVersion": { "type": "string" },
                    "kind": { "type": "string" },
                    "metadata": { "type": "object" },
                    "spec": { "type": "object", "properties": spec },
                }}},
            }],
        },
    });
    of_crd(definition)
}

fn of_crd(definition: Value) -> (Inventory, Vec<(String, Value)>) {
    let mut inventory = Inventory::new("guestbook");
    inventory.declared.push(Declared::Kind(Kind {
        item: item("guestbook::v1::Guestbook", 12),
        definition: definition.clone(),
        findings: Vec::new(),
    }));
    (inventory, vec![("example.com_guestbooks.yaml".into(), definition)])
}

#[test]
fn a_finding_is_printed_with_location_reason_and_fix() {
    let finding =
        Finding::error("KW201", &item("guestbook::v1::Guestbook", 12), "no type\n at all", "give it one")
            .at("spec.items");
    insta::assert_snapshot!(finding, @r"
    error[KW201] src/lib.rs:12 guestbook::v1::Guestbook spec.items: no type
       at all
      help: give it one
    ");
    let whole = Item { path: "guestbook".into(), ..Item::default() };
    insta::assert_snapshot!(Finding::warning("KW501", &whole, "left over", ""), @"warning[KW501] guestbook: left over");
}

#[test]
fn an_operator_that_declares_nothing_is_an_error() {
    let findings = check(&Inventory::new("guestbook"), &[]);
    assert_eq!(worst(&findings), Some(Level::Error));
    assert_eq!(findings[0].code, "KW502");
}

#[test]
fn findings_about_types_are_included_and_sorted() {
    let (mut inventory, crds) = guestbook(&json!({ "size": { "type": "integer", "format": "uint32" } }));
    if let Some(Declared::Kind(kind)) = inventory.declared.first_mut() {
        let found = Finding::warning("KW199", &kind.item, "dropped", "").at("spec");
        kind.findings = vec![found.clone(), found];
    }
    let codes: Vec<String> = check(&inventory, &crds).into_iter().map(|finding| finding.code).collect();
    assert_eq!(codes, ["KW199", "KW213"]);
}
