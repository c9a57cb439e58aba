//! What cargo knows of a project without building it: its package, its programs, where it builds to, and which files it
//! is built from.
//!
//! Dependencies are not resolved, so that this needs no network and little time; packages of the same workspace are
//! known all the same.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, anyhow};
use serde::Deserialize;

use super::Project;
use super::build::{cargo, no_program, not_started, several_programs};
use crate::error::Hint as _;

/// What cargo says of a package and its workspace.
#[derive(Debug)]
pub(crate) struct Metadata {
    /// The name of the package.
    pub(crate) name: String,
    /// The folder that cargo builds into.
    pub(crate) target: PathBuf,
    pub(crate) sources: Sources,
}

/// Where the files are that an operator is built from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sources {
    /// Folders of Cargo.toml, Cargo.lock and build.rs; what is below is not meant.
    pub(crate) roots: BTreeSet<PathBuf>,
    /// Folders of code, with everything below.
    pub(crate) code: BTreeSet<PathBuf>,
}

/// The part of cargo's answer that is used here.
#[derive(Deserialize)]
struct Answer {
    packages: Vec<Package>,
    target_directory: PathBuf,
    workspace_root: PathBuf,
}

#[derive(Deserialize)]
struct Package {
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
    /// Of a dependency that is a folder.
    path: Option<PathBuf>,
    /// None for those that are built into the program.
    kind: Option<String>,
}

impl Project {
    /// Asks cargo. A package without a program, or with several of which none was chosen, is a failure.
    pub(crate) fn metadata(&self, bin: Option<&str>) -> Result<Metadata> {
        let output = Command::new(cargo())
            .current_dir(self.root())
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .stdin(Stdio::null())
            .output()
            .map_err(not_started)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(anyhow!(said))
                .with_context(|| format!("cargo cannot read the project in {}", self.root().display()))
                .hint("correct its Cargo.toml");
        }
        let answer: Answer = serde_json::from_slice(&output.stdout).context("cannot read what cargo says")?;
        answer.of(self, bin)
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
            return Err(anyhow!("{} is a workspace, and no package", project.root().display())).hint(
                format!("name the folder of the operator; these have programs: {}", with_programs.join(", ")),
            );
        };
        let programs = package.programs();
        let names: Vec<&str> = programs.iter().map(String::as_str).collect();
        match (bin, &names[..]) {
            (_, []) => return Err(no_program(project)),
            (Some(bin), names) if !names.contains(&bin) => {
                return Err(anyhow!("the package has no program {bin}"))
                    .hint(format!("it has {}", names.join(", ")));
            }
            (None, [_, _, ..]) => return Err(several_programs(&names)),
            _ => {}
        }
        Ok(Metadata {
            name: package.name.clone(),
            sources: sources(&self.workspace_root, package, &packages),
            target: self.target_directory.clone(),
        })
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

/// The files of a package, and of all packages of its workspace that are built into it.
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
            // Tests, benchmarks and examples are not in the program.
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
    // A folder within another is watched with it.
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
                "packages": [
                    {"name": "operator", "manifest_path": "/w/operator/Cargo.toml",
                     "targets": [
                        {"name": "operator", "kind": ["bin"], "src_path": "/w/operator/src/main.rs"},
                        {"name": "it", "kind": ["test"], "src_path": "/w/operator/tests/it/main.rs"}],
                     "dependencies": [
                        {"path": "/w/api", "kind": null},
                        {"path": "/w/testing", "kind": "dev"},
                        {"path": "/elsewhere", "kind": null},
                        {"kind": null}]},
                    {"name": "api", "manifest_path": "/w/api/Cargo.toml",
                     "targets": [{"name": "api", "kind": ["lib"], "src_path": "/w/api/src/lib.rs"}],
                     "dependencies": []},
                    {"name": "testing", "manifest_path": "/w/testing/Cargo.toml",
                     "targets": [{"name": "testing", "kind": ["lib"], "src_path": "/w/testing/src/lib.rs"}],
                     "dependencies": []},
                    {"name": "two", "manifest_path": "/w/two/Cargo.toml",
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
    fn sources_are_those_of_the_package_and_of_what_is_built_into_it_from_the_workspace() {
        let found = of("/w/operator", None).unwrap();
        let folders = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<BTreeSet<_>>();
        assert_eq!(found.sources.roots, folders(&["/w", "/w/api", "/w/operator"]));
        assert_eq!(found.sources.code, folders(&["/w/api/src", "/w/operator/src"]));
        assert_eq!((found.name.as_str(), found.target), ("operator", PathBuf::from("/t")));
    }

    #[test]
    fn a_folder_within_another_is_watched_once() {
        let found = of("/w/two", Some("a")).unwrap();
        assert_eq!(found.sources.code, BTreeSet::from([PathBuf::from("/w/two/src")]));
    }

    #[test]
    fn what_is_no_operator_is_refused_with_what_to_do() {
        let refused = |folder: &str, bin| of(folder, bin).unwrap_err().to_string();
        assert_eq!(refused("/w/api", None), "the package in /w/api has no program");
        assert_eq!(refused("/w/two", None), "the package has several programs: a, b");
        assert_eq!(refused("/w/two", Some("c")), "the package has no program c");
        assert_eq!(refused("/w", None), "/w is a workspace, and no package");
    }
}
