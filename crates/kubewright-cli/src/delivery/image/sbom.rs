//! The software bill of materials of an image, as CycloneDX JSON.
//!
//! It lists the crates that are linked into the operator, with versions and checksums of Cargo.lock. It has no
//! time and no serial number, and is therefore reproducible.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context as _, Result, anyhow};
use serde::Deserialize;
use serde_json::{Value, json};

use super::blob::Blob;
use super::package::{DependencyGraph, Package, license};

/// The media type of the document, and the type of the artifact in a registry.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.cyclonedx+json";
/// The version of CycloneDX.
const VERSION: &str = "1.5";

/// The used part of Cargo.lock.
#[derive(Deserialize)]
struct Lock {
    #[serde(default, rename = "package")]
    packages: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

/// Writes the SBOM of an operator.
pub(crate) fn of(packages: &DependencyGraph, operator: &Package) -> Result<Blob> {
    let file = packages.lock_file();
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let lock: Lock = toml::from_str(&text)
        .map_err(|error| anyhow!("{error}"))
        .with_context(|| format!("cannot read {}", file.display()))?;
    let checksums: BTreeMap<(String, String), String> = lock
        .packages
        .into_iter()
        .filter_map(|package| Some(((package.name, package.version), package.checksum?)))
        .collect();
    Blob::json(MEDIA_TYPE, &document(packages, operator, &checksums))
}

fn document(
    packages: &DependencyGraph,
    operator: &Package,
    checksums: &BTreeMap<(String, String), String>,
) -> Value {
    let linked = packages.linked(operator);
    let reference = |id: &str| linked.get(id).map(|(package, _)| url(package));
    let mut components: Vec<Value> = Vec::new();
    let mut dependencies: Vec<Value> = Vec::new();
    for (package, needed) in linked.values() {
        if package.id != operator.id {
            let checksum = checksums.get(&(package.name.clone(), package.version.clone()));
            components.push(component(package, "library", checksum));
        }
        let mut needed: Vec<String> = needed.iter().filter_map(|id| reference(id)).collect();
        needed.sort();
        dependencies.push(json!({"ref": url(package), "dependsOn": needed}));
    }
    let by = |field: &'static str| move |value: &Value| value[field].as_str().unwrap_or_default().to_owned();
    components.sort_by_key(by("bom-ref"));
    dependencies.sort_by_key(by("ref"));
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": VERSION,
        "version": 1,
        "metadata": {
            "component": component(operator, "application", None),
            "tools": {"components": [{
                "type": "application",
                "name": "kubewright",
                "version": env!("CARGO_PKG_VERSION"),
            }]},
        },
        "components": components,
        "dependencies": dependencies,
    })
}

fn component(package: &Package, kind: &str, checksum: Option<&String>) -> Value {
    let mut component = json!({
        "type": kind,
        "bom-ref": url(package),
        "name": package.name,
        "version": package.version,
        "purl": url(package),
    });
    if let Some(text) = &package.license {
        component["licenses"] = json!([{"expression": license(text)}]);
    }
    if let Some(checksum) = checksum {
        component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    component
}

/// The package URL. Paths of this machine are not part of it.
fn url(package: &Package) -> String {
    let plain = format!("pkg:cargo/{}@{}", package.name, package.version.replace('+', "%2B"));
    match package.source.as_deref().and_then(|source| source.strip_prefix("git+")) {
        Some(git) => format!("{plain}?vcs_url=git%2B{}", git.replace('#', "%23").replace('?', "%3F")),
        None => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_checksums_licenses_and_dependencies() {
        let packages: DependencyGraph = serde_json::from_str(
            r#"{"workspace_root": "/w", "packages": [
                {"id": "op", "name": "op", "version": "1.0.0", "manifest_path": "/w/Cargo.toml"},
                {"id": "a", "name": "a", "version": "2.0.0+1", "manifest_path": "/a", "license": "MIT/Apache-2.0",
                 "source": "registry+https://github.com/rust-lang/crates.io-index"},
                {"id": "g", "name": "g", "version": "3.0.0", "manifest_path": "/g",
                 "source": "git+https://example.com/g?branch=main#0123"}],
               "resolve": {"nodes": [
                {"id": "op", "deps": [{"pkg": "g", "dep_kinds": [{"kind": null}]},
                                      {"pkg": "a", "dep_kinds": [{"kind": null}]}]},
                {"id": "a", "deps": []}, {"id": "g", "deps": []}]}}"#,
        )
        .unwrap();
        let project: Value =
            serde_json::json!({"id": "op", "name": "op", "version": "1.0.0", "manifest_path": ""});
        let operator: Package = serde_json::from_value(project).unwrap();
        let checksums = BTreeMap::from([(("a".to_owned(), "2.0.0+1".to_owned()), "ab".to_owned())]);
        let document = document(&packages, &operator, &checksums);
        insta::assert_snapshot!(
            serde_json::json!([document["components"], document["dependencies"]]).to_string(),
            @r#"[[{"bom-ref":"pkg:cargo/a@2.0.0%2B1","hashes":[{"alg":"SHA-256","content":"ab"}],"licenses":[{"expression":"MIT OR Apache-2.0"}],"name":"a","purl":"pkg:cargo/a@2.0.0%2B1","type":"library","version":"2.0.0+1"},{"bom-ref":"pkg:cargo/g@3.0.0?vcs_url=git%2Bhttps://example.com/g%3Fbranch=main%230123","name":"g","purl":"pkg:cargo/g@3.0.0?vcs_url=git%2Bhttps://example.com/g%3Fbranch=main%230123","type":"library","version":"3.0.0"}],[{"dependsOn":[],"ref":"pkg:cargo/a@2.0.0%2B1"},{"dependsOn":[],"ref":"pkg:cargo/g@3.0.0?vcs_url=git%2Bhttps://example.com/g%3Fbranch=main%230123"},{"dependsOn":["pkg:cargo/a@2.0.0%2B1","pkg:cargo/g@3.0.0?vcs_url=git%2Bhttps://example.com/g%3Fbranch=main%230123"],"ref":"pkg:cargo/op@1.0.0"}]]"#
        );
    }
}
