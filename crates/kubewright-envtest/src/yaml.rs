//! Loads objects from YAML.

use std::path::{Path, PathBuf};

use kube::api::DynamicObject;
use serde_json::Value;

/// An invalid fixture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FixtureError {
    /// The file cannot be read.
    #[error("failed to read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The text is not valid YAML.
    #[error("invalid YAML in {origin}: {why}")]
    Parse {
        /// The file, or `the YAML`.
        origin: String,
        /// The error with its position.
        why: String,
    },
    /// A document is not a Kubernetes object.
    #[error("document {number} of {origin} is not a Kubernetes object: {why}")]
    NoObject {
        /// The file, or `the YAML`.
        origin: String,
        /// The number of the document, from 1.
        number: usize,
        /// The reason.
        why: String,
    },
}

/// Parses the objects of a YAML text with one or more documents. Empty documents are skipped, and Lists are flattened.
pub fn objects(yaml: &str) -> Result<Vec<DynamicObject>, FixtureError> {
    read("the YAML", yaml)
}

/// Loads the objects of a file, or of all `.yaml`, `.yml` and `.json` files of a directory, sorted by name.
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

/// The items of a List, or the object itself.
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
    fn documents_and_lists_become_objects_in_order() {
        let found = objects(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n---\napiVersion: v1\nkind: List\nitems:\n\
             - {apiVersion: v1, kind: Secret, metadata: {name: b}}\n",
        );
        let names: Vec<String> =
            found.unwrap().into_iter().filter_map(|object| object.metadata.name).collect();
        assert_eq!(names, ["a", "b"]);
    }

    #[test]
    fn the_error_for_an_invalid_document_has_its_number() {
        let error = objects("apiVersion: v1\nkind: ConfigMap\n---\nmetadata: {name: a}\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "document 2 of the YAML is not a Kubernetes object: apiVersion and kind are missing"
        );
        assert!(matches!(objects("a: [b"), Err(FixtureError::Parse { .. })));
        assert!(load(Path::new("no/such/file.yaml")).is_err());
    }
}
