//! What cargo knows about a project without building it: package, binaries, target directory and source
//! files.
//!
//! Dependencies are not resolved, so this is fast and needs no network. Packages of the same workspace are
//! still known.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, anyhow};
use serde::Deserialize;

use super::Project;
use super::build::{cargo, no_program, not_started, several_programs};
use crate::error::Hint as _;

/// Metadata of a package and its workspace.
#[derive(Debug)]
pub(crate) struct Metadata {
    /// The name of the package.
    pub(crate) name: String,
    /// The target directory.
    pub(crate) target: PathBuf,
    /// The arguments of `cargo build` that select the operator.
    pub(crate) selection: Vec<String>,
    pub(crate) sources: Sources,
}

/// The source locations of an operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sources {
    /// Directories of Cargo.toml, Cargo.lock and build.rs, without subdirectories.
    pub(crate) roots: BTreeSet<PathBuf>,
    /// Source directories, with subdirectories.
    pub(crate) code: BTreeSet<PathBuf>,
}

/// The used part of `cargo metadata`.
#[derive(Deserialize)]
struct Answer {
    packages: Vec<Package>,
    target_directory: PathBuf,
    workspace_root: PathBuf,
    #[serde(default)]
    workspace_default_members: Vec<String>,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    manifest_path: PathBuf,
    targets: Vec<Target>,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
    src_path: PathBuf,
}

#[derive(Deserialize)]
struct Dependency {
    /// Set for path dependencies.
    path: Option<PathBuf>,
    /// Absent for normal dependencies.
    kind: Option<String>,
}

impl Project {
    /// Runs `cargo metadata`. Fails if the package has no binary, or several and `bin` is not set.
    pub(crate) fn metadata(&self, bin: Option<&str>) -> Result<Metadata> {
        let mut answer = Answer::read(self.root())?;
        if answer.workspace_root != self.root() {
            // In a member's directory, cargo reports this member as the only default member.
            answer.workspace_default_members =
                Answer::read(&answer.workspace_root)?.workspace_default_members;
        }
        answer.of(self, bin)
    }
}

impl Answer {
    /// Runs `cargo metadata` in a directory.
    fn read(directory: &Path) -> Result<Self> {
        let output = Command::new(cargo())
            .current_dir(directory)
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .stdin(Stdio::null())
            .output()
            .map_err(not_started)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(anyhow!(said))
                .with_context(|| format!("cargo cannot read the project in {}", directory.display()))
                .hint("fix Cargo.toml");
        }
        serde_json::from_slice(&output.stdout).context("cannot read the output of cargo")
    }
}

impl Answer {
    fn of(self, project: &Project, bin: Option<&str>) -> Result<Metadata> {
        let packages: BTreeMap<&Path, &Package> =
            self.packages.iter().map(|package| (package.folder(), package)).collect();
        let Some(package) = packages.get(project.root()) else {
            let with_programs: Vec<String> = self
                .packages
                .iter()
                .filter(|package| !package.programs().is_empty())
                .map(|package| package.folder().strip_prefix(project.root()).unwrap_or(package.folder()))
                .map(|folder| folder.display().to_string())
                .collect();
            return Err(anyhow!("{} is a workspace, not a package", project.root().display())).hint(format!(
                "pass the directory of the operator; packages with binaries: {}",
                with_programs.join(", ")
            ));
        };
        let programs = package.programs();
        let names: Vec<&str> = programs.iter().map(String::as_str).collect();
        match (bin, &names[..]) {
            (_, []) => return Err(no_program(project)),
            (Some(bin), names) if !names.contains(&bin) => {
                return Err(anyhow!("the package has no binary {bin}"))
                    .hint(format!("available: {}", names.join(", ")));
            }
            (None, [_, _, ..]) => return Err(several_programs(&names)),
            _ => {}
        }
        Ok(Metadata {
            name: package.name.clone(),
            selection: self.selection(project, package, bin.unwrap_or(names[0])),
            sources: sources(&self.workspace_root, package, &packages),
            target: self.target_directory.clone(),
        })
    }
}

impl Answer {
    /// Selects the operator's binary. In a larger workspace, cargo also resolves the features of the default
    /// members, as `cargo build` in the root does, so that both builds share their dependencies.
    fn selection(&self, project: &Project, package: &Package, bin: &str) -> Vec<String> {
        let mut arguments = vec!["--bin".to_owned(), bin.to_owned()];
        if self.workspace_root != project.root() {
            let others = self.workspace_default_members.iter().filter(|id| **id != package.id);
            for id in std::iter::once(&package.id).chain(others) {
                arguments.extend(["--package".to_owned(), id.clone()]);
            }
        }
        arguments
    }
}

impl Package {
    fn folder(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(&self.manifest_path)
    }

    fn programs(&self) -> Vec<String> {
        let programs = self.targets.iter().filter(|target| target.kind.iter().any(|kind| kind == "bin"));
        programs.map(|target| target.name.clone()).collect()
    }
}

/// The sources of a package and of its dependencies in the same workspace.
fn sources(workspace: &Path, package: &Package, packages: &BTreeMap<&Path, &Package>) -> Sources {
    let mut sources = Sources { roots: BTreeSet::from([workspace.to_owned()]), ..Sources::default() };
    let mut seen = BTreeSet::new();
    let mut left = vec![package];
    while let Some(package) = left.pop() {
        if !seen.insert(package.folder()) {
            continue;
        }
        sources.roots.insert(package.folder().to_owned());
        for target in &package.targets {
            // Tests, benchmarks and examples are not part of the binary.
            let built = !target.kind.iter().any(|kind| matches!(kind.as_str(), "test" | "bench" | "example"));
            match target.src_path.parent() {
                Some(folder) if built && folder != package.folder() => {
                    sources.code.insert(folder.to_owned());
                }
                _ => {}
            }
        }
        let built_in =
            package.dependencies.iter().filter(|dependency| dependency.kind.as_deref() != Some("dev"));
        left.extend(built_in.filter_map(|dependency| packages.get(dependency.path.as_deref()?)));
    }
    // Drop directories that are inside another one.
    let all = sources.code.clone();
    sources.code.retain(|folder| !folder.ancestors().skip(1).any(|above| all.contains(above)));
    sources
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Answer {
        serde_json::from_str(text).unwrap()
    }

    fn workspace() -> Answer {
        answer(
            r#"{
                "workspace_root": "/w", "target_directory": "/t",
                "workspace_default_members": ["two#1", "operator#1"],
                "packages": [
                    {"id": "operator#1", "name": "operator", "manifest_path": "/w/operator/Cargo.toml",
                     "targets": [
                        {"name": "operator", "kind": ["bin"], "src_path": "/w/operator/src/main.rs"},
                        {"name": "it", "kind": ["test"], "src_path": "/w/operator/tests/it/main.rs"}],
                     "dependencies": [
                        {"path": "/w/api", "kind": null},
                        {"path": "/w/testing", "kind": "dev"},
                        {"path": "/elsewhere", "kind": null},
                        {"kind": null}]},
                    {"id": "api#1", "name": "api", "manifest_path": "/w/api/Cargo.toml",
                     "targets": [{"name": "api", "kind": ["lib"], "src_path": "/w/api/src/lib.rs"}],
                     "dependencies": []},
                    {"id": "testing#1", "name": "testing", "manifest_path": "/w/testing/Cargo.toml",
                     "targets": [{"name": "testing", "kind": ["lib"], "src_path": "/w/testing/src/lib.rs"}],
                     "dependencies": []},
                    {"id": "two#1", "name": "two", "manifest_path": "/w/two/Cargo.toml",
                     "targets": [
                        {"name": "a", "kind": ["bin"], "src_path": "/w/two/src/bin/a.rs"},
                        {"name": "b", "kind": ["bin"], "src_path": "/w/two/src/main.rs"}],
                     "dependencies": []}
                ]
            }"#,
        )
    }

    fn of(folder: &str, bin: Option<&str>) -> Result<Metadata> {
        workspace().of(&Project { root: PathBuf::from(folder) }, bin)
    }

    #[test]
    fn sources_include_workspace_dependencies() {
        let found = of("/w/operator", None).unwrap();
        let folders = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<BTreeSet<_>>();
        assert_eq!(found.sources.roots, folders(&["/w", "/w/api", "/w/operator"]));
        assert_eq!(found.sources.code, folders(&["/w/api/src", "/w/operator/src"]));
        assert_eq!((found.name.as_str(), found.target), ("operator", PathBuf::from("/t")));
    }

    #[test]
    fn features_are_those_of_the_default_members() {
        let selection = |folder: &str, bin| of(folder, bin).unwrap().selection.join(" ");
        assert_eq!(
            selection("/w/operator", None),
            "--bin operator --package operator#1 --package two#1",
            "as for a build in the root of the workspace"
        );
        assert_eq!(selection("/w/two", Some("a")), "--bin a --package two#1 --package operator#1");
    }

    /// cargo reports a member as the only default member when it runs in the member's directory.
    #[test]
    fn default_members_are_read_in_the_workspace_root() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let members = r#"["a", "b", "c"]"#;
        write(
            "Cargo.toml",
            &format!(
                "[workspace]\nresolver = \"3\"\nmembers = {members}\ndefault-members = [\"a\", \"b\"]\n"
            ),
        );
        for name in ["a", "b", "c"] {
            write(
                &format!("{name}/Cargo.toml"),
                &format!("[package]\nname = \"{name}\"\nedition = \"2024\"\n"),
            );
            write(&format!("{name}/src/main.rs"), "fn main() {}\n");
        }
        let selection = Project { root: root.join("b") }.metadata(None).unwrap().selection;
        let packages: Vec<&str> =
            selection.iter().filter_map(|argument| argument.split("/b#").nth(1)).collect();
        assert_eq!(packages, ["0.0.0"], "{selection:?}");
        assert!(selection.iter().any(|argument| argument.ends_with("/a#0.0.0")), "{selection:?}");
        assert!(!selection.iter().any(|argument| argument.ends_with("/c#0.0.0")), "{selection:?}");
    }

    #[test]
    fn nested_source_directories_are_watched_once() {
        let found = of("/w/two", Some("a")).unwrap();
        assert_eq!(found.sources.code, BTreeSet::from([PathBuf::from("/w/two/src")]));
    }

    #[test]
    fn packages_without_an_operator_are_rejected() {
        let refused = |folder: &str, bin| of(folder, bin).unwrap_err().to_string();
        assert_eq!(refused("/w/api", None), "the package in /w/api has no binary");
        assert_eq!(refused("/w/two", None), "the package has several binaries: a, b");
        assert_eq!(refused("/w/two", Some("c")), "the package has no binary c");
        assert_eq!(refused("/w", None), "/w is a workspace, not a package");
    }
}
