//! Fetches the packages whose definitions are installed, with cargo as the machine has it set up.
//!
//! Each is a crate that carries a vendor's own YAML. None is built, and none is a dependency: a project that
//! names them has cargo fetch them and tell where they are. What it fetched once needs no network again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// Packages with the definitions of one vendor each, in `resources`.
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

/// A package that is tested with definitions of many vendors, and objects that people wrote, in `tests`.
const MIXED: &str = "kopium";

/// A definition as its vendor wrote it.
pub(crate) struct Vendored {
    /// The package that it is from.
    pub(crate) package: &'static str,
    pub(crate) object: Value,
}

/// All definitions of all vendors.
pub(crate) fn all() -> &'static [Vendored] {
    static DEFINITIONS: LazyLock<Vec<Vendored>> =
        LazyLock::new(|| definitions().unwrap_or_else(|error| panic!("{error:#}")));
    &DEFINITIONS
}

/// Definitions of many vendors, and objects that people wrote by them, each as its file has it.
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

/// The YAML files of a folder.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        files.push(entry?.path());
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    Ok(files)
}

/// The documents of a YAML file, without those that say nothing.
fn documents(file: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
    let documents = text.split("\n---").map(|document| document.trim_start_matches("---"));
    Ok(documents.filter(|document| document.contains("kind:")).map(str::to_owned).collect())
}

static FOLDERS: LazyLock<BTreeMap<&str, PathBuf>> = LazyLock::new(|| {
    let project = Path::new(env!("CARGO_TARGET_TMPDIR")).join("vendors");
    fetch(&project).unwrap_or_else(|error| panic!("{error:#}"))
});

/// Where each package lies.
fn fetch(project: &Path) -> Result<BTreeMap<&'static str, PathBuf>> {
    let vendors = VENDORS.map(|name| format!("{name} = \"=0.1.0\"\n")).concat();
    // Nobody needs the types that go with the vendors' YAML, so what these are made of stays away.
    write(
        &project.join("k8s-openapi"),
        "[package]\nname = \"k8s-openapi\"\nversion = \"0.15.0\"\n[features]\nv1_20 = []\n",
    )?;
    write(
        project,
        &format!(
            "[package]\nname = \"vendors\"\n[workspace]\n[dependencies]\n{vendors}\
             {MIXED} = {{ version = \"=0.24.1\", default-features = false }}\n\
             [patch.crates-io]\nk8s-openapi = {{ path = \"k8s-openapi\" }}\n"
        ),
    )?;
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--quiet", "--format-version=1"])
        .current_dir(project)
        .output()
        .context("start cargo")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo could not fetch the definitions: {}", said.trim());
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let all = metadata["packages"].as_array().context("cargo tells of no packages")?;
    let find = |name: &'static str| {
        let package = all.iter().find(|package| package["name"] == name);
        let manifest = package.and_then(|package| package["manifest_path"].as_str());
        let folder = manifest.and_then(|manifest| Path::new(manifest).parent());
        Ok((name, folder.with_context(|| format!("cargo does not tell where {name} is"))?.to_owned()))
    };
    VENDORS.into_iter().chain([MIXED]).map(find).collect()
}

/// Writes a crate of nothing, unless it is there.
fn write(folder: &Path, manifest: &str) -> Result<()> {
    let file = folder.join("Cargo.toml");
    if std::fs::read_to_string(&file).is_ok_and(|there| there == manifest) {
        return Ok(());
    }
    std::fs::create_dir_all(folder.join("src"))?;
    std::fs::write(folder.join("src/lib.rs"), "")?;
    std::fs::write(&file, manifest).with_context(|| format!("write {}", file.display()))
}
