//! Package metadata of the operator from cargo and git: labels of the image, and its dependencies for the SBOM.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, anyhow};
use serde::Deserialize;

use crate::error::Hint as _;
use crate::project::{Project, cargo, not_started};

/// The output of `cargo metadata`.
#[derive(Debug, Deserialize)]
pub(crate) struct DependencyGraph {
    packages: Vec<Package>,
    /// Absent without dependencies.
    resolve: Option<Resolve>,
    workspace_root: PathBuf,
    #[serde(default)]
    target_directory: PathBuf,
}

/// The dependencies to list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dependencies<'a> {
    /// The Rust target of the operator.
    pub(crate) target: &'a str,
    /// The arguments of the build, of which those that select dependencies apply.
    pub(crate) cargo: &'a [String],
    /// Fail if Cargo.lock is out of date. After a build it is not.
    pub(crate) locked: bool,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) description: Option<String>,
    pub(crate) license: Option<String>,
    #[serde(default)]
    pub(crate) authors: Vec<String>,
    pub(crate) repository: Option<String>,
    pub(crate) homepage: Option<String>,
    pub(crate) documentation: Option<String>,
    /// Absent for path dependencies.
    pub(crate) source: Option<String>,
    manifest_path: PathBuf,
}

#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    deps: Vec<Edge>,
}

#[derive(Debug, Deserialize)]
struct Edge {
    pkg: String,
    dep_kinds: Vec<EdgeKind>,
}

#[derive(Debug, Deserialize)]
struct EdgeKind {
    /// Absent for normal dependencies.
    kind: Option<String>,
}

impl Project {
    /// The packages of the workspace, without their dependencies.
    pub(crate) fn packages(&self) -> Result<DependencyGraph> {
        self.cargo_metadata(&["--no-deps".to_owned()])
    }

    /// The packages of the workspace and all dependencies of a build.
    pub(crate) fn dependencies(&self, of: Dependencies<'_>) -> Result<DependencyGraph> {
        let mut arguments = vec!["--filter-platform".to_owned(), of.target.to_owned()];
        arguments.extend(selecting(of.cargo));
        let locked = "--locked".to_owned();
        if of.locked && !arguments.contains(&locked) && self.packages()?.lock_file().exists() {
            arguments.push(locked);
        }
        self.cargo_metadata(&arguments)
    }

    fn cargo_metadata(&self, arguments: &[String]) -> Result<DependencyGraph> {
        let mut command = Command::new(cargo());
        command.current_dir(self.root()).args(["metadata", "--format-version", "1"]).args(arguments);
        let output = command.stdin(Stdio::null()).output().map_err(not_started)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(anyhow!(said).context("failed to list the operator's dependencies with cargo"))
                .hint("fix Cargo.toml and Cargo.lock, or skip the SBOM with --sbom=false");
        }
        serde_json::from_slice(&output.stdout).context("cannot read the output of cargo")
    }
}

/// The arguments of a build that also change the result of `cargo metadata`.
fn selecting(cargo: &[String]) -> Vec<String> {
    const WITH_VALUE: [&str; 4] = ["--features", "-F", "--config", "-Z"];
    const ALONE: [&str; 5] = ["--all-features", "--no-default-features", "--locked", "--offline", "--frozen"];
    let mut chosen = Vec::new();
    let mut left = cargo.iter();
    while let Some(argument) = left.next() {
        if WITH_VALUE.contains(&argument.as_str()) {
            chosen.extend([argument.clone()].into_iter().chain(left.next().cloned()));
        } else if ALONE.contains(&argument.as_str())
            || ["--features=", "-F", "--config=", "-Z"].iter().any(|start| argument.starts_with(start))
        {
            chosen.push(argument.clone());
        }
    }
    chosen
}

impl DependencyGraph {
    /// The package of the project.
    pub(crate) fn operator(&self, project: &Project) -> Result<&Package> {
        let manifest = project.root().join("Cargo.toml");
        self.packages
            .iter()
            .find(|package| package.manifest_path == manifest)
            .with_context(|| format!("{} is a workspace, not a package", project.root().display()))
            .hint("pass the directory of the operator")
    }

    /// The operator's dependencies in the binary, with their own: normal dependencies only. Those of build
    /// scripts and tests are not in the image.
    pub(crate) fn linked(&self, operator: &Package) -> BTreeMap<&str, (&Package, BTreeSet<&str>)> {
        let nodes: BTreeMap<&str, &Node> = self
            .resolve
            .iter()
            .flat_map(|resolve| &resolve.nodes)
            .map(|node| (node.id.as_str(), node))
            .collect();
        let packages: BTreeMap<&str, &Package> =
            self.packages.iter().map(|package| (package.id.as_str(), package)).collect();
        let mut found: BTreeMap<&str, (&Package, BTreeSet<&str>)> = BTreeMap::new();
        let mut left = vec![operator.id.as_str()];
        while let Some(id) = left.pop() {
            let (Some(node), Some(package)) = (nodes.get(id), packages.get(id)) else { continue };
            let normal = |edge: &&Edge| edge.dep_kinds.iter().any(|kind| kind.kind.is_none());
            let needed: BTreeSet<&str> =
                node.deps.iter().filter(normal).map(|edge| edge.pkg.as_str()).collect();
            left.extend(needed.iter().filter(|id| !found.contains_key(*id)));
            found.insert(package.id.as_str(), (package, needed));
        }
        found
    }

    /// All packages with their directories.
    pub(crate) fn folders(&self) -> impl Iterator<Item = (&Package, &Path)> {
        self.packages.iter().filter_map(|package| Some((package, package.manifest_path.parent()?)))
    }

    pub(crate) fn workspace_root(&self) -> &Path {
        &self.workspace_root
    }

    pub(crate) fn target_directory(&self) -> &Path {
        &self.target_directory
    }

    /// The path of Cargo.lock.
    pub(crate) fn lock_file(&self) -> PathBuf {
        self.workspace_root.join("Cargo.lock")
    }
}

/// The labels of the image, from Cargo.toml and git.
pub(crate) fn labels(project: &Project, package: &Package) -> BTreeMap<String, String> {
    let authors = Some(package.authors.join(", ")).filter(|authors| !authors.is_empty());
    let known = [
        ("title", Some(package.name.clone())),
        ("version", Some(package.version.clone())),
        ("description", package.description.clone()),
        ("licenses", package.license.as_deref().map(license)),
        ("authors", authors),
        ("source", package.repository.clone()),
        ("url", package.homepage.clone()),
        ("documentation", package.documentation.clone()),
        ("revision", revision(project)),
    ];
    known
        .into_iter()
        .filter_map(|(name, value)| Some((format!("org.opencontainers.image.{name}"), value?)))
        .collect()
}

/// An SPDX expression; old crates separate alternatives with slashes.
pub(crate) fn license(text: &str) -> String {
    text.replace('/', " OR ")
}

/// The commit, with `-dirty` if files of the project differ from it; `None` outside of a repository.
fn revision(project: &Project) -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .current_dir(project.root())
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .ok()
            .filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--verify", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=normal", "--", "."])?;
    Some(if changed.is_empty() { commit } else { format!("{commit}-dirty") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_linked_packages_are_listed() {
        let packages: DependencyGraph = serde_json::from_str(
            r#"{"workspace_root": "/w", "packages": [
                {"id": "op", "name": "op", "version": "1.0.0", "manifest_path": "/w/Cargo.toml"},
                {"id": "a", "name": "a", "version": "1.0.0", "manifest_path": "/a"},
                {"id": "b", "name": "b", "version": "1.0.0", "manifest_path": "/b"},
                {"id": "build", "name": "build", "version": "1.0.0", "manifest_path": "/c"}],
               "resolve": {"nodes": [
                {"id": "op", "deps": [
                    {"pkg": "a", "dep_kinds": [{"kind": null}, {"kind": "dev"}]},
                    {"pkg": "build", "dep_kinds": [{"kind": "build"}]}]},
                {"id": "a", "deps": [{"pkg": "b", "dep_kinds": [{"kind": null}]}]},
                {"id": "b", "deps": [{"pkg": "a", "dep_kinds": [{"kind": "dev"}]}]},
                {"id": "build", "deps": []}]}}"#,
        )
        .unwrap();
        let linked = packages.linked(&packages.packages[0]);
        assert_eq!(linked.keys().copied().collect::<Vec<_>>(), ["a", "b", "op"]);
        assert_eq!(linked["op"].1, BTreeSet::from(["a"]));
    }

    #[test]
    fn features_of_the_build_select_its_dependencies() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let build = "--features a,b -F c --jobs 2 --no-default-features --features=d -Fe --offline --verbose";
        let expected = "--features a,b -F c --no-default-features --features=d -Fe --offline";
        assert_eq!(selecting(&words(build)), words(expected));
        assert!(selecting(&words("--jobs 2 --timings")).is_empty());
    }

    #[test]
    fn slashes_in_licenses_are_alternatives() {
        assert_eq!(license("MIT/Apache-2.0"), "MIT OR Apache-2.0");
    }
}
