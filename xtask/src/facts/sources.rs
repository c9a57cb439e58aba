//! Downloads the registry packages that the facts are generated from, once, to `target/facts`.
//!
//! PyPI's `kubernetes-validate` has every type with list types and merge keys. Debian's Go packages of
//! Kubernetes have what schemas lack: pointers and `omitempty`. pip and apt use the configuration of the
//! machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// Version of the PyPI package. It contains the schemas of every minor version since 1.25.
const VALIDATE: &str = "kubernetes-validate==1.37.0";

/// Debian packages with the Go types of Kubernetes.
const GO_PACKAGES: [&str; 3] =
    ["golang-k8s-api-dev", "golang-k8s-apimachinery-dev", "golang-k8s-apiextensions-apiserver-dev"];

/// The unpacked packages.
pub struct Sources {
    /// `$defs` of the PyPI package: schemas by OpenAPI name.
    pub definitions: Value,
    /// Directory that contains `k8s.io/api` and the other Go packages.
    pub go: PathBuf,
}

impl Sources {
    /// Downloads and unpacks both packages to `cache`, or reuses an earlier download.
    pub fn fetch(cache: &Path) -> Result<Self> {
        Ok(Self { definitions: definitions(cache)?, go: go_sources(&cache.join("go"))? })
    }
}

/// The `$defs` of the PyPI package for [`super::KUBERNETES_MINOR`].
pub fn definitions(cache: &Path) -> Result<Value> {
    let folder = cache.join("validate");
    let file = folder.join(format!(
        "kubernetes_validate/kubernetes-json-schema/v{}.0-local/_definitions.json",
        super::KUBERNETES_MINOR
    ));
    if !file.is_file() {
        fs::create_dir_all(&folder)?;
        run(
            Command::new("python3")
                .args(["-m", "pip", "download", "--quiet", "--no-deps", "--dest"])
                .arg(&folder)
                .arg(VALIDATE),
            "install python3 and pip (Debian: apt-get install python3-pip)",
        )?;
        let wheel = find(&folder, "whl")?;
        run(
            Command::new("python3").args(["-m", "zipfile", "-e"]).arg(wheel).arg(&folder),
            "install python3",
        )?;
    }
    let text = fs::read(&file).with_context(|| format!("read {}", file.display()))?;
    let mut schemas: Value = serde_json::from_slice(&text)?;
    Ok(schemas["$defs"].take())
}

/// Debian's Go sources of Kubernetes, from the newest suite of the configured apt mirror.
fn go_sources(folder: &Path) -> Result<PathBuf> {
    let sources = folder.join("root/usr/share/gocode/src");
    if sources.join("k8s.io/apiextensions-apiserver").is_dir() {
        return Ok(sources);
    }
    for sub in ["lists/partial", "cache/archives/partial", "debs", "root"] {
        fs::create_dir_all(folder.join(sub))?;
    }
    let folder = folder.canonicalize()?;
    let targets = run(
        Command::new("apt-get").args([
            "indextargets",
            "--format",
            "$(REPO_URI)",
            "Created-By: Packages",
            "Origin: Debian",
            "Label: Debian",
        ]),
        "this command reads Debian packages; run it on Debian after `apt-get update`",
    )?;
    let Some(mirror) = targets.lines().next() else {
        bail!("no Debian mirror in apt's configuration; run `apt-get update` first");
    };
    fs::write(folder.join("sources.list"), format!("deb {mirror} sid main\n"))?;
    let at = |sub: &str| folder.join(sub).display().to_string();
    let options = [
        format!("Dir::Etc::SourceList={}", at("sources.list")),
        "Dir::Etc::SourceParts=/dev/null".to_owned(),
        format!("Dir::State::Lists={}", at("lists")),
        format!("Dir::Cache={}", at("cache")),
    ];
    let apt = || {
        let mut command = Command::new("apt-get");
        command.arg("-qq").current_dir(folder.join("debs"));
        for option in &options {
            command.args(["-o", option]);
        }
        command
    };
    run(apt().arg("update"), "check apt's network configuration")?;
    run(apt().arg("download").args(GO_PACKAGES), "the version may have changed; see `apt-cache policy`")?;
    for entry in fs::read_dir(folder.join("debs"))? {
        let deb = entry?.path();
        let name = deb.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.contains(&format!("_0.{}.", &super::KUBERNETES_MINOR[2..])) {
            bail!(
                "{name} is not Kubernetes {}; review the new facts before accepting them",
                super::KUBERNETES_MINOR
            );
        }
        run(Command::new("dpkg-deb").arg("-x").arg(&deb).arg(folder.join("root")), "install dpkg")?;
    }
    Ok(sources)
}

fn find(folder: &Path, extension: &str) -> Result<PathBuf> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == extension) {
            return Ok(path);
        }
    }
    bail!("no .{extension} file in {}", folder.display())
}

fn run(command: &mut Command, hint: &str) -> Result<String> {
    let shown = format!("{command:?}");
    let output = command.output().with_context(|| format!("start {shown}; {hint}"))?;
    if !output.status.success() {
        bail!("{shown} failed: {}\n{hint}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}
