//! The contents of a bundle directory.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use serde_json::Value;

use crate::delivery::bundle::ANNOTATIONS;
use crate::delivery::rendered::Object;
use crate::error::Hint as _;

/// A bundle.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) folder: PathBuf,
    /// The annotations; null if metadata/annotations.yaml is missing.
    pub(super) annotations: Value,
    pub(super) csv: Value,
    /// CRDs.
    pub(super) definitions: Vec<Object>,
    /// All other objects.
    pub(super) others: Vec<Object>,
    /// The custom resources in alm-examples.
    pub(super) examples: Vec<Value>,
    /// Why alm-examples cannot be parsed.
    pub(super) broken_examples: Option<String>,
}

impl Contents {
    /// Reads a bundle. Fails if it has no ClusterServiceVersion.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let annotations = folder.join("metadata/annotations.yaml");
        let annotations: Value = match fs::read_to_string(&annotations) {
            Ok(text) => serde_saphyr::from_str(&text)
                .with_context(|| format!("cannot read {}", annotations.display()))?,
            Err(_) => Value::Null,
        };
        let annotations = annotations["annotations"].clone();
        let manifests =
            annotations[format!("{ANNOTATIONS}bundle.manifests.v1")].as_str().unwrap_or("manifests/");
        let manifests = folder.join(manifests.trim_start_matches('/'));
        let mut files: Vec<PathBuf> = fs::read_dir(&manifests)
            .with_context(|| format!("cannot read {}", manifests.display()))
            .hint("generate the bundle with `kubewright bundle`, or pass its directory")?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|it| it == "yaml" || it == "yml" || it == "json"))
            .collect();
        files.sort();
        let (mut csv, mut definitions, mut others) = (None, Vec::new(), Vec::new());
        for file in files {
            let text =
                fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let documents: Vec<Value> = serde_saphyr::from_multiple(&text)
                .map_err(|error| anyhow!("{error}"))
                .with_context(|| format!("{} is not valid YAML", file.display()))?;
            for document in documents.into_iter().filter(|document| !document.is_null()) {
                let object = Object::new(document).with_context(|| format!("in {}", file.display()))?;
                match object.kind() {
                    "ClusterServiceVersion" => {
                        if csv.replace(object.value().clone()).is_some() {
                            return Err(anyhow!(
                                "{} has several ClusterServiceVersions",
                                manifests.display()
                            ))
                            .hint("a bundle is one version; remove the others");
                        }
                    }
                    "CustomResourceDefinition" => definitions.push(object),
                    _ => others.push(object),
                }
            }
        }
        let csv = csv
            .with_context(|| format!("{} has no ClusterServiceVersion", manifests.display()))
            .hint("generate the bundle with `kubewright bundle`")?;
        let examples = csv["metadata"]["annotations"]["alm-examples"].as_str().unwrap_or("[]").to_owned();
        let (examples, broken_examples) = match serde_json::from_str::<Vec<Value>>(&examples) {
            Ok(examples) => (examples, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        Ok(Self {
            folder: folder.to_owned(),
            annotations,
            csv,
            definitions,
            others,
            examples,
            broken_examples,
        })
    }

    /// The owned CRDs in the ClusterServiceVersion.
    pub(super) fn owned(&self) -> impl Iterator<Item = &Value> {
        self.csv["spec"]["customresourcedefinitions"]["owned"].as_array().into_iter().flatten()
    }

    /// The owned CRD of a custom resource.
    pub(super) fn owner(&self, resource: &Value) -> Option<&Value> {
        let version = version(resource);
        let mut of_kind = self.owned().filter(|owned| owned["kind"] == resource["kind"]);
        let exact = self.owned().find(|it| it["kind"] == resource["kind"] && it["version"] == version);
        exact.or_else(|| of_kind.next())
    }

    /// The schema of a custom resource; `None` if no CRD in the bundle has one.
    pub(super) fn schema(&self, resource: &Value) -> Option<&Value> {
        let (group, version) = (group(resource), version(resource));
        let definition = self.definitions.iter().map(Object::value).find(|definition| {
            definition["spec"]["group"] == group && definition["spec"]["names"]["kind"] == resource["kind"]
        })?;
        let versions = definition["spec"]["versions"].as_array()?;
        let found = versions.iter().find(|it| it["name"] == version)?;
        found["schema"].get("openAPIV3Schema")
    }
}

/// The group of an object.
pub(super) fn group(object: &Value) -> &str {
    object["apiVersion"].as_str().unwrap_or_default().split_once('/').map_or("", |(group, _)| group)
}

/// The version of an object.
pub(super) fn version(object: &Value) -> &str {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    api_version.split_once('/').map_or(api_version, |(_, version)| version)
}

/// Kind and name of a custom resource, for messages.
pub(super) fn shown(resource: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    format!("{} {}", text(&resource["kind"]), text(&resource["metadata"]["name"]))
}
