//! The step `package`: every crate can be packaged for publication, and the packages can be installed.
//!
//! Verification by cargo would compile each package several times, which takes minutes. Instead, this step checks that
//! the files that sources include are in the package, installs the command line from the packages, and checks a new project
//! with its tests, which use the other packages. The packages are compiled with their own features only.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

/// Macros and attributes whose argument is a path relative to the file.
const INCLUDES: [&str; 3] = ["include_str!(\"", "include_bytes!(\"", "#[path = \""];

/// A crate of the workspace.
#[derive(Debug)]
struct Crate {
    name: String,
    version: String,
    folder: PathBuf,
    is_published: bool,
}

/// Packages all published crates and checks their files.
pub fn run(root: &Path, offline: bool) -> Result<()> {
    let cargo = || {
        let mut command = crate::cargo();
        command.current_dir(root);
        if offline {
            command.env("CARGO_NET_OFFLINE", "true");
        }
        command
    };
    let crates = crates(cargo())?;
    let mut package = cargo();
    package.args(["package", "--workspace", "--no-verify", "--allow-dirty", "--quiet"]);
    for other in crates.iter().filter(|it| !it.is_published) {
        package.args(["--exclude", &other.name]);
    }
    ensure!(package.status().context("start cargo package")?.success(), "cargo package failed");
    let mut missing = Vec::new();
    for published in crates.iter().filter(|it| it.is_published) {
        let mut list = cargo();
        list.args(["package", "--list", "--allow-dirty", "--package", &published.name]);
        let files: BTreeSet<PathBuf> = output(&mut list)?.lines().map(PathBuf::from).collect();
        for file in
            files.iter().filter(|it| it.starts_with("src") && it.extension().is_some_and(|e| e == "rs"))
        {
            let text = std::fs::read_to_string(published.folder.join(file))
                .with_context(|| format!("read {}", published.folder.join(file).display()))?;
            let folder = file.parent().unwrap_or(Path::new(""));
            for included in included(&text) {
                if normal(&folder.join(included)).is_none_or(|path| !files.contains(&path)) {
                    missing.push(format!("{}: {} includes {included}", published.name, file.display()));
                }
            }
        }
    }
    if !missing.is_empty() {
        bail!("files are not in the package of the crate that includes them:\n{}", missing.join("\n"));
    }
    let published: Vec<&Crate> = crates.iter().filter(|it| it.is_published).collect();
    install(root, &published, &cargo)
}

/// Installs the command line from the packages, as `cargo install kubewright-cli` does, creates a project with it, and
/// checks this project with the packages.
fn install(root: &Path, crates: &[&Crate], cargo: &dyn Fn() -> Command) -> Result<()> {
    let packages = &crate::target_dir(root).join("package");
    let folder = packages.join("installed");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).with_context(|| format!("remove {}", folder.display()))?;
    }
    let project = folder.join("project");
    std::fs::create_dir_all(&project).with_context(|| format!("create {}", project.display()))?;
    let unpacked = |package: &Crate| format!("{}-{}", package.name, package.version);
    let mut patches = String::new();
    for package in crates {
        let archive = packages.join(format!("{}.crate", unpacked(package)));
        let mut tar = Command::new("tar");
        output(tar.arg("-xzf").arg(archive).arg("-C").arg(&folder))?;
        writeln!(patches, "{} = {{ path = \"{}\" }}", package.name, unpacked(package))
            .context("format the patches")?;
    }
    let cli = crates
        .iter()
        .find(|it| it.name == "kubewright-cli")
        .context("the package kubewright-cli is not in the workspace")?;
    // The profile of this workspace, so that dependencies are not compiled again.
    let workspace = format!(
        "[workspace]\nresolver = \"3\"\nmembers = [\"{}\"]\n\n[patch.crates-io]\n{patches}\n\
         [profile.dev]\ndebug = \"line-tables-only\"\n\n[profile.dev.package.\"*\"]\ndebug = false\n",
        unpacked(cli)
    );
    std::fs::write(folder.join("Cargo.toml"), workspace).context("write the workspace of the packages")?;
    let mut install = cargo();
    install.args(["install", "--debug", "--quiet", "--no-track", "--force", "--root"]).arg(&folder);
    output(install.arg("--path").arg(folder.join(unpacked(cli))))?;
    let kubewright = || {
        let mut command = Command::new(folder.join("bin/kubewright"));
        command.current_dir(&project);
        command
    };
    output(kubewright().args(["init", "--domain", "example.com"]))?;
    output(kubewright().args(["create", "api", "--group", "sales", "--version", "v1", "--kind", "Order"]))?;
    let manifest = std::fs::read_to_string(project.join("Cargo.toml")).context("read Cargo.toml")?;
    let dependency = manifest.lines().find(|line| line.starts_with("kubewright = ")).unwrap_or_default();
    // The packages are those of a registry, which then has this version.
    let expected = format!("kubewright = \"{}\"", cli.version);
    ensure!(
        dependency == expected,
        "an installed `kubewright init` writes `{dependency}`, expected `{expected}`"
    );
    let patches: Vec<_> = crates
        .iter()
        .map(|package| format!("{} = {{ path = \"../{}\" }}", package.name, unpacked(package)))
        .collect();
    let manifest = format!("{manifest}\n[patch.crates-io]\n{}\n", patches.join("\n"));
    std::fs::write(project.join("Cargo.toml"), manifest).context("patch Cargo.toml")?;
    // The versions that are downloaded.
    std::fs::copy(root.join("Cargo.lock"), project.join("Cargo.lock")).context("copy Cargo.lock")?;
    let mut check = cargo();
    check.args(["check", "--tests", "--quiet"]).current_dir(&project);
    output(check.env("CARGO_TARGET_DIR", crate::target_dir(root)))?;
    Ok(())
}

fn crates(mut command: Command) -> Result<Vec<Crate>> {
    command.args(["metadata", "--no-deps", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&output(&mut command)?).context("parse cargo metadata")?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let found = packages.iter().map(|package| {
        let manifest = Path::new(package["manifest_path"].as_str()?);
        Some(Crate {
            name: package["name"].as_str()?.to_owned(),
            version: package["version"].as_str()?.to_owned(),
            folder: manifest.parent()?.to_owned(),
            // An empty list of registries is `publish = false`.
            is_published: package["publish"].as_array().is_none_or(|registries| !registries.is_empty()),
        })
    });
    found.collect::<Option<_>>().context("cargo metadata has an unexpected form")
}

fn output(command: &mut Command) -> Result<String> {
    let shown = super::line(command);
    let output = command.output().with_context(|| format!("start `{shown}`"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`{shown}` failed ({}):\n{}", output.status, said.trim());
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` printed invalid UTF-8"))
}

/// The paths that a source file includes.
fn included(text: &str) -> Vec<&str> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let found =
        INCLUDES.iter().flat_map(|start| code.match_indices(start).map(|(at, start)| at + start.len()));
    found.filter_map(|start| code[start..].split('"').next()).collect()
}

/// A path without `..`; `None` if it is outside of the crate.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => normal.pop().then_some(())?,
            Component::Normal(name) => normal.push(name),
            _ => {}
        }
    }
    Some(normal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn included_files_are_found() {
        let text = "a(include_str!(\"../x.txt\")); include_bytes!(\"y\");\n#[cfg(test)]\nmod t { include_str!(\"z\") }";
        assert_eq!(included(text), ["../x.txt", "y"]);
    }

    #[test]
    fn paths_outside_of_the_crate_are_not_normal() {
        assert_eq!(normal(Path::new("src/a/../../x.txt")), Some(PathBuf::from("x.txt")));
        assert_eq!(normal(Path::new("src/../../x.txt")), None);
    }
}
