//! Imports kinds from existing CRDs: generates types, a sample and the resulting CRD.
//!
//! [`crds`] parses a file, [`choose`] selects CRDs and versions, and [`generate`] creates the file
//! contents. `kubewright manifests` regenerates the same CRD from the types; what Rust types cannot express
//! is reported. The project keeps the original CRD for later merges.

mod code;
mod idents;
mod item;
mod kind;
mod known;
mod marks;
mod model;
mod sample;
mod shared;

use anyhow::{Result, anyhow, bail};
use serde_json::{Map, Value, json};

pub(crate) use self::kind::{generate, name_attributes};
use crate::error::Hint as _;

/// A selected version of a CRD.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chosen {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) namespaced: bool,
    /// The CRD with only this version.
    pub(crate) definition: Value,
}

/// The user's selection. It must not contradict the CRDs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// With or without the domain.
    pub(crate) group: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) plural: Option<String>,
    pub(crate) namespaced: Option<bool>,
}

/// The generated content.
#[derive(Clone, Debug)]
pub(crate) struct Generated {
    /// The Rust source.
    pub(crate) code: String,
    /// The CRD that `kubewright manifests` will generate.
    pub(crate) definition: Value,
    /// The fields of a sample, without apiVersion, kind and metadata.
    pub(crate) sample: Map<String, Value>,
    /// Whether the sample matches the schema.
    pub(crate) is_sample_taken: bool,
    /// Whether the status has standard conditions.
    pub(crate) has_conditions: bool,
    /// What the types cannot express.
    pub(crate) lost: Vec<String>,
}

/// Parses all CRDs in a YAML text.
pub(crate) fn crds(text: &str) -> Result<Vec<Value>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| {
        let said = error.to_string();
        anyhow!("invalid YAML: {}", said.lines().next().unwrap_or_default().trim_start_matches("error: "))
    })?;
    let lists = documents.into_iter().flat_map(|mut document| {
        let is_list = document["kind"] == "List";
        match document.get_mut("items") {
            Some(Value::Array(items)) if is_list => std::mem::take(items),
            _ => vec![document],
        }
    });
    let found: Vec<Value> = lists.filter(|document| document["kind"] == "CustomResourceDefinition").collect();
    if found.is_empty() {
        return Err(anyhow!("no CustomResourceDefinition found"))
            .hint("export one with `kubectl get crd NAME -o yaml`");
    }
    if let Some(old) = found.iter().find(|found| found["apiVersion"] != "apiextensions.k8s.io/v1") {
        let (name, version) = (&old["metadata"]["name"], &old["apiVersion"]);
        return Err(anyhow!("the CRD {name} uses {version}; only apiextensions.k8s.io/v1 is supported"))
            .hint("convert it with a cluster: `kubectl get crd NAME -o yaml`");
    }
    Ok(found)
}

/// Selects CRDs: all, or the named one; of each, the storage version or the named one.
pub(crate) fn choose(crds: &[Value], wanted: &Wanted) -> Result<Vec<Chosen>> {
    let said = |definition: &Value, pointer: &str| {
        definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let shown = |definition: &Value| {
        format!("{}, {}", said(definition, "/spec/group"), said(definition, "/spec/names/kind"))
    };
    let meant: Vec<&Value> = crds
        .iter()
        .filter(|definition| {
            let group = said(definition, "/spec/group");
            // With or without the domain.
            let is_group = |wanted: &String| {
                group.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            wanted.group.as_ref().is_none_or(is_group)
                && wanted.kind.as_ref().is_none_or(|kind| *kind == said(definition, "/spec/names/kind"))
        })
        .collect();
    if meant.is_empty() {
        let there: Vec<String> = crds.iter().map(shown).collect();
        let asked: Vec<&str> = wanted.group.iter().chain(&wanted.kind).map(String::as_str).collect();
        return Err(anyhow!("the file does not define {}", asked.join(", ")))
            .hint(format!("it defines {}; omit --group and --kind", there.join("; ")));
    }
    let mut chosen = Vec::new();
    for definition in meant {
        let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
        let versions = versions.map(Vec::as_slice).unwrap_or_default();
        let name = |version: &Value| version["name"].as_str().unwrap_or_default().to_owned();
        let version = versions.iter().find(|version| match &wanted.version {
            Some(wanted) => *wanted == name(version),
            None => version["storage"] == true,
        });
        let Some(version) = version else {
            let there: Vec<String> = versions.iter().map(name).collect();
            let wanted = wanted.version.as_deref().unwrap_or("with storage: true");
            return Err(anyhow!("{} has no version {wanted}", shown(definition)))
                .hint(format!("available: {}", there.join(", ")));
        };
        let plural = said(definition, "/spec/names/plural");
        if let Some(wanted) = wanted.plural.as_ref().filter(|wanted| **wanted != plural) {
            return Err(anyhow!("the plural of {} is {plural}, not {wanted}", shown(definition)))
                .hint("omit --plural");
        }
        let namespaced = said(definition, "/spec/scope") == "Namespaced";
        if wanted.namespaced.is_some_and(|wanted| wanted != namespaced) {
            let scope = if namespaced { "namespaced" } else { "cluster-scoped" };
            return Err(anyhow!("{} is {scope}", shown(definition))).hint("omit --namespaced");
        }
        if version.pointer("/schema/openAPIV3Schema").is_none_or(|schema| !schema.is_object()) {
            bail!("version {1} of {0} has no schema", shown(definition), name(version));
        }
        let mut spec = definition["spec"].clone();
        spec["versions"] = json!([version]);
        chosen.push(Chosen {
            group: said(definition, "/spec/group"),
            version: name(version),
            kind: said(definition, "/spec/names/kind"),
            plural,
            namespaced,
            definition: json!({
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": metadata(definition),
                "spec": spec,
            }),
        });
    }
    Ok(chosen)
}

/// Whether a CRD with one version stores it.
pub(crate) fn is_stored(definition: &Value) -> bool {
    definition.pointer("/spec/versions/0/storage") == Some(&Value::Bool(true))
}

/// Copies a CRD's only version under another name, not stored.
pub(crate) fn as_version(definition: &Value, name: &str) -> Value {
    let mut definition = definition.clone();
    if let Some(version) = definition.pointer_mut("/spec/versions/0") {
        version["name"] = name.into();
        version["served"] = true.into();
        version["storage"] = false.into();
        for key in ["deprecated", "deprecationWarning"] {
            if let Some(version) = version.as_object_mut() {
                version.remove(key);
            }
        }
    }
    definition
}

/// The metadata to keep: protected API groups require the approval annotation.
fn metadata(definition: &Value) -> Value {
    const APPROVED: &str = "api-approved.kubernetes.io";
    let mut metadata = json!({ "name": definition["metadata"]["name"] });
    if let Some(approved) = definition["metadata"]["annotations"].get(APPROVED) {
        metadata["annotations"] = json!({ APPROVED: approved });
    }
    metadata
}

#[cfg(test)]
mod tests;
