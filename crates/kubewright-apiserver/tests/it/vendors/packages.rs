//! Fetches the packages whose definitions are installed, with cargo as the machine has it set up.
//!
//! Each is a crate that carries a vendor's own YAML. None is built, and none is a dependency: a project that
//! names them has cargo fetch them and tell where they are. What it fetched once needs no network again.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

const PACKAGES: [&str; 8] = [
    "argo-cd-crds",
    "argo-events-crds",
    "argo-rollouts-crds",
    "cert-manager-crds",
    "flux-crds",
    "istio-crds",
    "kube-prometheus-stack-crds",
    "longhorn-crds",
];

/// A definition as its vendor wrote it.
pub(crate) struct Vendored {
    /// The package that it is from.
    pub(crate) package: &'static str,
    pub(crate) object: Value,
}

static DEFINITIONS: LazyLock<Vec<Vendored>> =
    LazyLock::new(|| definitions().unwrap_or_else(|error| panic!("{error:#}")));

/// All definitions of all packages.
pub(crate) fn all() -> &'static [Vendored] {
    &DEFINITIONS
}

fn definitions() -> Result<Vec<Vendored>> {
    let packages = fetch(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("vendors"))?;
    let mut found = Vec::new();
    for (package, folder) in packages {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder.join("resources"))? {
            files.push(entry?.path());
        }
        files.sort();
        for file in files {
            let text = std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
            for yaml in text.split("\n---").filter(|yaml| yaml.contains("kind: CustomResourceDefinition")) {
                let object = serde_saphyr::from_str(yaml).with_context(|| format!("{}", file.display()))?;
                found.push(Vendored { package, object });
            }
        }
    }
    Ok(found)
}

/// Where each package lies.
fn fetch(project: &Path) -> Result<Vec<(&'static str, PathBuf)>> {
    let wanted = PACKAGES.map(|name| format!("{name} = \"=0.1.0\"\n")).concat();
    // Nobody needs the types that go with the YAML, so what these are made of stays away.
    write(
        &project.join("k8s-openapi"),
        "[package]\nname = \"k8s-openapi\"\nversion = \"0.15.0\"\n[features]\nv1_20 = []\n",
    )?;
    write(
        project,
        &format!(
            "[package]\nname = \"vendors\"\n[workspace]\n[dependencies]\n{wanted}\
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
    PACKAGES.into_iter().map(find).collect()
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
