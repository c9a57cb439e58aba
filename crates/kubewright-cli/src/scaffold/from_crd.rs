//! Kinds of definitions that exist already: what a CustomResourceDefinition says, as types, a sample and a definition.
//!
//! [`definitions`] finds them in a file, [`choose`] those that are meant, and [`generate`] makes the files' contents.
//! The types are such that `kubewright manifests` makes the same definition of them again; what Rust cannot say is
//! told. A project keeps the definition as it was given, since later commands merge with what was made of it.

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

/// A version of a kind in a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chosen {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) namespaced: bool,
    /// The definition with this version alone.
    pub(crate) definition: Value,
}

/// What a user says beside the file. It may choose, and must not contradict.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// With its domain or without it.
    pub(crate) group: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) plural: Option<String>,
    pub(crate) namespaced: Option<bool>,
}

/// What is made of a definition.
#[derive(Clone, Debug)]
pub(crate) struct Generated {
    /// The file of the types.
    pub(crate) code: String,
    /// What `kubewright manifests` will write.
    pub(crate) definition: Value,
    /// The fields of an object beside its kind and its metadata.
    pub(crate) sample: Map<String, Value>,
    /// The API server takes the sample.
    pub(crate) is_sample_taken: bool,
    /// The status has conditions, as controllers write them.
    pub(crate) has_conditions: bool,
    /// What the types cannot say.
    pub(crate) lost: Vec<String>,
}

/// All definitions in a text of YAML.
pub(crate) fn definitions(text: &str) -> Result<Vec<Value>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| {
        let said = error.to_string();
        anyhow!("it is no YAML: {}", said.lines().next().unwrap_or_default().trim_start_matches("error: "))
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
        return Err(anyhow!("there is no CustomResourceDefinition in it"))
            .hint("`kubectl get crd NAME -o yaml` prints one");
    }
    if let Some(old) = found.iter().find(|found| found["apiVersion"] != "apiextensions.k8s.io/v1") {
        let (name, version) = (&old["metadata"]["name"], &old["apiVersion"]);
        return Err(anyhow!(
            "the definition {name} is of {version}, and only apiextensions.k8s.io/v1 is known"
        ))
        .hint("a cluster gives it in the other version: `kubectl get crd NAME -o yaml`");
    }
    Ok(found)
}

/// Those of the definitions that a user means: all, or the one that is named; of each the stored version, or the named.
pub(crate) fn choose(definitions: &[Value], wanted: &Wanted) -> Result<Vec<Chosen>> {
    let said = |definition: &Value, pointer: &str| {
        definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let shown = |definition: &Value| {
        format!("{}, {}", said(definition, "/spec/group"), said(definition, "/spec/names/kind"))
    };
    let meant: Vec<&Value> = definitions
        .iter()
        .filter(|definition| {
            let group = said(definition, "/spec/group");
            // With its domain or without.
            let is_group = |wanted: &String| {
                group.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            wanted.group.as_ref().is_none_or(is_group)
                && wanted.kind.as_ref().is_none_or(|kind| *kind == said(definition, "/spec/names/kind"))
        })
        .collect();
    if meant.is_empty() {
        let there: Vec<String> = definitions.iter().map(shown).collect();
        let asked: Vec<&str> = wanted.group.iter().chain(&wanted.kind).map(String::as_str).collect();
        return Err(anyhow!("the file does not define {}", asked.join(", ")))
            .hint(format!("it defines {}; leave out --group and --kind", there.join("; ")));
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
            let wanted = wanted.version.as_deref().unwrap_or("that is stored");
            return Err(anyhow!("{} has no version {wanted}", shown(definition)))
                .hint(format!("it has {}", there.join(", ")));
        };
        let plural = said(definition, "/spec/names/plural");
        if let Some(wanted) = wanted.plural.as_ref().filter(|wanted| **wanted != plural) {
            return Err(anyhow!("the plural of {} is {plural}, and not {wanted}", shown(definition)))
                .hint("leave out --plural");
        }
        let namespaced = said(definition, "/spec/scope") == "Namespaced";
        if wanted.namespaced.is_some_and(|wanted| wanted != namespaced) {
            let scope = if namespaced { "in namespaces" } else { "of the cluster" };
            return Err(anyhow!("objects of {} are {scope}", shown(definition)))
                .hint("leave out --namespaced");
        }
        if version.pointer("/schema/openAPIV3Schema").is_none_or(|schema| !schema.is_object()) {
            bail!("{} has no schema in its version {}", shown(definition), name(version));
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

/// A CRD with one version under the name of another version, which is not stored.
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

/// What is kept of the metadata: who does not belong to the group must not use it without this.
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
