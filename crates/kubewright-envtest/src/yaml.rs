//! Fixtures: objects as people write them.

use std::path::{Path, PathBuf};

use kube::api::DynamicObject;
use serde_json::Value;

/// A fixture that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FixtureError {
    /// The file cannot be read.
    #[error("{} cannot be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It is no YAML.
    #[error("{origin} is no YAML: {why}")]
    Parse {
        /// Where it comes from.
        origin: String,
        /// What is wrong, and where.
        why: String,
    },
    /// A document in it is no Kubernetes object.
    #[error("document {number} of {origin} is no object: {why}")]
    NoObject {
        /// Where it comes from.
        origin: String,
        /// Which document, from 1.
        number: usize,
        /// What is missing.
        why: String,
    },
}

/// The objects of a YAML text with one or several documents; empty documents are skipped, lists are taken apart.
pub fn objects(yaml: &str) -> Result<Vec<DynamicObject>, FixtureError> {
    read("the YAML", yaml)
}

/// The objects of a file, or of all `.yaml`, `.yml` and `.json` files of a folder in the order of their names.
pub(crate) fn load(path: &Path) -> Result<Vec<DynamicObject>, FixtureError> {
    let failed = |source| FixtureError::Read { path: path.to_owned(), source };
    if !path.is_dir() {
        let text = std::fs::read_to_string(path).map_err(failed)?;
        return read(&path.display().to_string(), &text);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        let known = file.extension().is_some_and(|it| it == "yaml" || it == "yml" || it == "json");
        if known && file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    let mut found = Vec::new();
    for file in files {
        found.extend(load(&file)?);
    }
    Ok(found)
}

fn read(origin: &str, yaml: &str) -> Result<Vec<DynamicObject>, FixtureError> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(yaml)
        .map_err(|error| FixtureError::Parse { origin: origin.to_owned(), why: error.to_string() })?;
    let mut found = Vec::new();
    for (at, document) in documents.into_iter().enumerate() {
        let wrong = |why: String| FixtureError::NoObject { origin: origin.to_owned(), number: at + 1, why };
        for object in flat(document) {
            if object.is_null() {
                continue;
            }
            let object: DynamicObject =
                serde_json::from_value(object).map_err(|error| wrong(error.to_string()))?;
            match &object.types {
                Some(types) if !types.kind.is_empty() && !types.api_version.is_empty() => {}
                _ => return Err(wrong("apiVersion and kind are missing".to_owned())),
            }
            found.push(object);
        }
    }
    Ok(found)
}

/// The objects of a List, or the object itself.
fn flat(mut document: Value) -> Vec<Value> {
    let is_list = document["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
    match document.get_mut("items").filter(|_| is_list).map(Value::take) {
        Some(Value::Array(items)) => items,
        _ => vec![document],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_and_lists_become_objects_in_their_order() {
        let found = objects(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n---\napiVersion: v1\nkind: List\nitems:\n\
             - {apiVersion: v1, kind: Secret, metadata: {name: b}}\n",
        );
        let names: Vec<String> =
            found.unwrap().into_iter().filter_map(|object| object.metadata.name).collect();
        assert_eq!(names, ["a", "b"]);
    }

    #[test]
    fn what_is_no_object_says_which_document_it_is() {
        let error = objects("apiVersion: v1\nkind: ConfigMap\n---\nmetadata: {name: a}\n").unwrap_err();
        assert_eq!(error.to_string(), "document 2 of the YAML is no object: apiVersion and kind are missing");
        assert!(matches!(objects("a: [b"), Err(FixtureError::Parse { .. })));
        assert!(load(Path::new("no/such/file.yaml")).is_err());
    }
}
