//! Finds vendors' CRDs in crates that contain the original YAML.
//!
//! The project in `tests/vendors` lists the crates; none of them is compiled. `cargo xtask ci` downloads them
//! in its step `fetch`; without that step the test downloads them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// Packages with the CRDs of one vendor each, in `resources`.
const VENDORS: [&str; 8] = [
    "argo-cd-crds",
    "argo-events-crds",
    "argo-rollouts-crds",
    "cert-manager-crds",
    "flux-crds",
    "istio-crds",
    "kube-prometheus-stack-crds",
    "longhorn-crds",
];

/// A package with CRDs of many vendors and handwritten objects, in `tests`.
const MIXED: &str = "kopium";

/// A CRD as its vendor wrote it.
pub(crate) struct Vendored {
    /// The package that contains it.
    pub(crate) package: &'static str,
    pub(crate) object: Value,
}

/// All CRDs of all vendors.
pub(crate) fn all() -> &'static [Vendored] {
    static DEFINITIONS: LazyLock<Vec<Vendored>> =
        LazyLock::new(|| definitions().unwrap_or_else(|error| panic!("{error:#}")));
    &DEFINITIONS
}

/// CRDs of many vendors and handwritten objects, by file.
pub(crate) fn written_by_people() -> Result<Vec<(String, Value)>> {
    let mut found = Vec::new();
    for file in files(&FOLDERS[MIXED].join("tests"))? {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for document in documents(&file)? {
            let object = serde_saphyr::from_str(&document).with_context(|| name.clone())?;
            found.push((name.clone(), object));
        }
    }
    Ok(found)
}

fn definitions() -> Result<Vec<Vendored>> {
    let mut found = Vec::new();
    for package in VENDORS {
        for file in files(&FOLDERS[package].join("resources"))? {
            let mut documents = documents(&file)?;
            documents.retain(|document| document.contains("kind: CustomResourceDefinition"));
            for document in documents {
                let object =
                    serde_saphyr::from_str(&document).with_context(|| format!("{}", file.display()))?;
                found.push(Vendored { package, object });
            }
        }
    }
    Ok(found)
}

/// The YAML files of a directory.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        files.push(entry?.path());
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    Ok(files)
}

/// The documents of a YAML file, without empty ones.
fn documents(file: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
    let documents = text.split("\n---").map(|document| document.trim_start_matches("---"));
    Ok(documents.filter(|document| document.contains("kind:")).map(str::to_owned).collect())
}

static FOLDERS: LazyLock<BTreeMap<&str, PathBuf>> =
    LazyLock::new(|| folders().unwrap_or_else(|error| panic!("{error:#}")));

/// The directory of each package. cargo downloads missing ones, unless it is offline.
fn folders() -> Result<BTreeMap<&'static str, PathBuf>> {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vendors/Cargo.toml");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--quiet", "--locked", "--format-version=1"])
        // Without a platform, cargo downloads the dependencies of every platform.
        .args(["--filter-platform", "host-tuple", "--manifest-path", manifest])
        .output()
        .context("start cargo")?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "cargo cannot download the CRDs; `cargo xtask ci --only fetch` does it: {}",
        stderr.trim()
    );
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let all = metadata["packages"].as_array().context("`cargo metadata` prints no packages")?;
    let find = |name: &'static str| {
        let package = all.iter().find(|package| package["name"] == name);
        let manifest = package.and_then(|package| package["manifest_path"].as_str());
        let folder = manifest.and_then(|manifest| Path::new(manifest).parent());
        Ok((name, folder.with_context(|| format!("`cargo metadata` does not list {name}"))?.to_owned()))
    };
    VENDORS.into_iter().chain([MIXED]).map(find).collect()
}
