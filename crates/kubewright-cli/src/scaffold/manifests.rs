//! CRDs and RBAC rules of scaffolded kinds.
//!
//! They equal the output of `kubewright manifests` for the unmodified project, without compiling it: the same
//! code generates the files, and a test compares them.

use kubewright_apimachinery::gvk::Gvk;
use kubewright_manifests::crd;
use kubewright_manifests::declare::{Declared, Item, Kind as DeclaredKind, Webhook};
use kubewright_manifests::files::{Files, Plan};
use kubewright_manifests::inventory::{ControllerDeclared, ConversionDeclared, Inventory, Resource};
use serde_json::{Map, Value, json};

use super::kinds::{Admission, Kind};
use super::template::fill;
use crate::project::project_file::{ProjectFile, WebhookCerts};

/// The generated files.
pub(super) fn files(project: &ProjectFile, kinds: &[Kind<'_>]) -> Files {
    let inventory = inventory(project, kinds);
    let merged = crd::merge_all(&inventory);
    let crds: Vec<(String, Value)> = merged.crds.into_iter().map(|made| (made.file, made.crd)).collect();
    Plan::new(&inventory, &crds, "").files().clone()
}

/// The inventory that the project's binary would print.
pub(super) fn inventory(project: &ProjectFile, kinds: &[Kind<'_>]) -> Inventory {
    let controllers = kinds.iter().flat_map(|kind| {
        kind.controllers.iter().map(|controller| ControllerDeclared {
            name: controller.named.clone().unwrap_or_else(|| kind.singular.clone()),
            of: Resource {
                group: kind.group.clone(),
                version: kind.resource.version.clone(),
                kind: kind.resource.kind.clone(),
                plural: kind.plural.clone(),
                namespaced: kind.namespaced(),
            },
            ..ControllerDeclared::default()
        })
    });
    let conversions = kinds.iter().filter(|kind| !kind.spokes().is_empty()).map(|kind| {
        let versions = [&kind.resource.version].into_iter().chain(kind.spokes()).cloned();
        let (group, kind) = (kind.group.clone(), kind.resource.kind.clone());
        ConversionDeclared { group, kind, versions: versions.collect() }
    });
    Inventory {
        leader_election: true,
        secure_metrics: true,
        events: true,
        namespaces: watched(project).into_iter().collect(),
        declared: kinds.iter().filter(|kind| kind.own).map(|kind| Declared::Kind(declared(kind))).collect(),
        webhooks: kinds.iter().flat_map(webhooks).collect(),
        webhook_certificates: project.webhook_certs() == WebhookCerts::SelfSigned,
        conversions: conversions.collect(),
        controllers: controllers.collect(),
        ..Inventory::new(&project.project_name)
    }
}

/// The `#[webhook]` declarations of a kind.
fn webhooks(kind: &Kind<'_>) -> Vec<Webhook> {
    let (version, name) = (&kind.resource.version, &kind.resource.kind);
    let gvk = Gvk { group: &kind.group, version, kind: name };
    let webhook = |webhook: Admission| {
        let declared = Webhook {
            name: webhook.named.unwrap_or_default(),
            mutating: webhook.mutating,
            path: webhook.path,
            object_selector: kind
                .selected
                .as_ref()
                .map(|label| json!({ "matchLabels": { label: "enabled" } })),
            ..Webhook::default()
        };
        declared.for_kind(gvk, &kind.plural, kind.namespaced())
    };
    kind.admission().into_iter().map(webhook).collect()
}

/// The namespace of a namespaced operator, as config/default names it.
pub(crate) fn watched(project: &ProjectFile) -> Option<String> {
    project.namespaced.then(|| format!("{}-system", project.project_name))
}

/// Fields of every object besides spec and status.
pub(super) fn common() -> Map<String, Value> {
    serde_json::from_str(include_str!("../../templates/config/crd/common.json"))
        .expect("the template is JSON")
}

fn declared(kind: &Kind<'_>) -> DeclaredKind {
    if let Some(imported) = &kind.imported {
        return DeclaredKind {
            item: Item::default(),
            definition: imported.definition.clone(),
            findings: Vec::new(),
        };
    }
    let name = &kind.resource.kind;
    let schema = fill(
        include_str!("../../templates/config/crd/schema.json.j2"),
        &json!({ "kind": name, "plural": kind.plural }),
    );
    let mut schema: Value = serde_json::from_str(&schema).expect("the template is JSON");
    for (name, property) in common() {
        schema["properties"][name] = property;
    }
    let mut definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{}.{}", kind.plural, kind.group) },
        "spec": {
            "group": kind.group,
            "names": {
                "kind": name,
                "listKind": format!("{name}List"),
                "plural": kind.plural,
                "singular": kind.singular,
            },
            "scope": if kind.namespaced() { "Namespaced" } else { "Cluster" },
            "versions": [{
                "additionalPrinterColumns": [
                    {
                        "name": "Ready",
                        "type": "string",
                        "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status",
                    },
                    { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
                ],
                "name": kind.resource.version,
                "schema": { "openAPIV3Schema": schema },
                "served": true,
                "storage": kind.stored,
                "subresources": { "status": {} },
            }],
        },
    });
    for key in ["singular", "shortNames", "categories"] {
        if let Some(value) = kind.names.and_then(|names| names.get(key)) {
            definition["spec"]["names"][key] = value.clone();
        }
    }
    DeclaredKind { item: Item::default(), definition, findings: Vec::new() }
}
