//! The crates of a workspace and their dependencies, from `cargo metadata` and `cargo tree`.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use cargo_metadata::{DependencyKind, MetadataCommand};

/// The members of a workspace.
#[derive(Debug, Default)]
pub struct Workspace {
    /// In the order of `cargo metadata`.
    pub members: Vec<Member>,
}

/// A workspace crate.
#[derive(Debug)]
pub struct Member {
    /// The name of the package.
    pub name: String,
    /// The directory relative to the root, with `/`.
    pub folder: String,
    /// The direct dependencies.
    pub dependencies: Vec<Dependency>,
    /// All transitive dependencies except dev-dependencies. Empty unless requested in [`Workspace::load`].
    pub closure: BTreeSet<String>,
}

/// A dependency in a manifest.
#[derive(Debug)]
pub struct Dependency {
    /// The name of the package.
    pub name: String,
    /// The key in the manifest. Differs from the name if the dependency is renamed.
    pub key: String,
    /// Normal, build or development.
    pub kind: DependencyKind,
    /// Whether it has a version requirement.
    pub versioned: bool,
}

impl Member {
    /// The path of the manifest relative to the root.
    pub fn manifest(&self) -> String {
        if self.folder.is_empty() { "Cargo.toml".into() } else { format!("{}/Cargo.toml", self.folder) }
    }
}

impl Workspace {
    /// Loads the workspace at `root`, with transitive dependencies of the members in `closures`.
    pub fn load(root: &Path, closures: &[&str]) -> Result<Self> {
        let metadata = MetadataCommand::new()
            .current_dir(root)
            .manifest_path(root.join("Cargo.toml"))
            .no_deps()
            .exec()
            .with_context(|| format!("read the workspace at {}", root.display()))?;
        let mut members = Vec::new();
        for package in metadata.workspace_packages() {
            let folder = package.manifest_path.parent().context("manifest path has no parent")?;
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

    /// The member with this name.
    pub fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name == name)
    }
}

/// The transitive dependencies of `package`. `cargo metadata` would include features that other members
/// enable; `cargo tree` does not.
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
