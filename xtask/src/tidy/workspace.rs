//! The crates of a workspace and what they depend on, as cargo sees them.
//!
//! Owns the two calls of cargo: `metadata` for what the manifests say, `tree` for what that comes to. Knows no
//! rule.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use cargo_metadata::{DependencyKind, MetadataCommand};

/// The members of a workspace.
#[derive(Debug, Default)]
pub struct Workspace {
    /// In the order of cargo's list.
    pub members: Vec<Member>,
}

/// One crate of ours.
#[derive(Debug)]
pub struct Member {
    /// The name of the package.
    pub name: String,
    /// Its folder from the root, with `/`.
    pub folder: String,
    /// What its manifest names.
    pub dependencies: Vec<Dependency>,
    /// The names of all packages that end up in it, dev-dependencies aside; empty unless it was asked for.
    pub closure: BTreeSet<String>,
}

/// One line of a manifest's dependencies.
#[derive(Debug)]
pub struct Dependency {
    /// The name of the package.
    pub name: String,
    /// The name that the manifest gives it, mostly the same.
    pub key: String,
    /// Normal, build or development.
    pub kind: DependencyKind,
    /// Whether a version is asked for, be it beside a path.
    pub versioned: bool,
}

impl Member {
    /// The path of the manifest from the root.
    pub fn manifest(&self) -> String {
        if self.folder.is_empty() { "Cargo.toml".into() } else { format!("{}/Cargo.toml", self.folder) }
    }
}

impl Workspace {
    /// Asks cargo for the workspace at `root`; the closure only of the members named in `closures`.
    pub fn load(root: &Path, closures: &[&str]) -> Result<Self> {
        let metadata = MetadataCommand::new()
            .current_dir(root)
            .manifest_path(root.join("Cargo.toml"))
            .no_deps()
            .exec()
            .with_context(|| format!("read the workspace at {}", root.display()))?;
        let mut members = Vec::new();
        for package in metadata.workspace_packages() {
            let folder = package.manifest_path.parent().context("a manifest lies in no folder")?;
            let folder = folder.strip_prefix(&metadata.workspace_root).unwrap_or(folder);
            let name = package.name.to_string();
            let closure =
                if closures.contains(&name.as_str()) { closure(root, &name)? } else { BTreeSet::new() };
            let dependencies = package.dependencies.iter().map(|dependency| Dependency {
                name: dependency.name.clone(),
                key: dependency.rename.clone().unwrap_or_else(|| dependency.name.clone()),
                kind: dependency.kind,
                versioned: !dependency.req.comparators.is_empty(),
            });
            members.push(Member {
                dependencies: dependencies.collect(),
                folder: folder.as_str().replace('\\', "/"),
                name,
                closure,
            });
        }
        Ok(Self { members })
    }

    /// The member of this name.
    pub fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name == name)
    }
}

/// Everything that ends up in `package`: `cargo tree` and not the whole graph of `cargo metadata`, since that
/// one mixes in the features that other members switch on.
fn closure(root: &Path, package: &str) -> Result<BTreeSet<String>> {
    let mut tree = Command::new("cargo");
    tree.args(["tree", "--all-features", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"]);
    let output = tree.args(["--package", package]).current_dir(root).output().context("start cargo tree")?;
    ensure!(
        output.status.success(),
        "`cargo tree --package {package}` failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let names = String::from_utf8_lossy(&output.stdout);
    Ok(names.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect())
}
