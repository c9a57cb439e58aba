//! Directories of this machine, and the names that replace them in the binary.
//!
//! Panic messages and `file!()` contain paths. The compiler replaces their prefixes, so that the same source
//! gives the same binary on other machines. The values of `env!("OUT_DIR")` and similar macros are not paths for
//! the compiler and stay.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::package::DependencyGraph;

/// The name of the workspace that contains the operator.
const WORKSPACE: &str = "/operator";
/// The name of the target directory, wherever it is.
const TARGET: &str = "/operator/target";
/// The name of cargo's home directory.
const HOME: &str = "/cargo";
/// The name of the directory of a registry's sources. Its own name has a hash of the registry's URL.
const REGISTRY: &str = "/cargo/registry";
/// Prefix of path dependencies outside of the workspace.
const DEPENDENCIES: &str = "/dependencies";

/// Compiler flags that replace the directories of a build.
pub(crate) fn remapped(graph: &DependencyGraph) -> Result<Vec<String>> {
    let home = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
    flags(&names(graph, home))
}

/// The names of all directories.
fn names(graph: &DependencyGraph, home: Option<PathBuf>) -> BTreeMap<PathBuf, String> {
    let mut names: BTreeMap<PathBuf, String> = BTreeMap::new();
    let mut add = |folder: PathBuf, name: String| {
        // The compiler sees paths with and without resolved links.
        if let Ok(canonical) = folder.canonicalize() {
            names.insert(canonical, name.clone());
        }
        names.insert(folder, name);
    };
    if let Some(home) = home {
        add(home, HOME.to_owned());
    }
    for (package, folder) in graph.folders() {
        match &package.source {
            Some(source) if source.starts_with("git+") => {}
            Some(_) => {
                if let Some(registry) = folder.parent() {
                    add(registry.to_owned(), REGISTRY.to_owned());
                }
            }
            None if folder.starts_with(graph.workspace_root()) => {}
            None => add(folder.to_owned(), format!("{DEPENDENCIES}/{}", package.name)),
        }
    }
    add(graph.workspace_root().to_owned(), WORKSPACE.to_owned());
    add(graph.target_directory().to_owned(), TARGET.to_owned());
    names
}

/// The last matching flag applies, so directories come before those inside of them.
fn flags(names: &BTreeMap<PathBuf, String>) -> Result<Vec<String>> {
    // Paths are ordered by their components: a directory is less than its content.
    let flags = names.iter().map(|(folder, name)| {
        let folder = folder.to_str().context("a path of the project is not UTF-8")?;
        Ok(format!("--remap-path-prefix={folder}={name}"))
    });
    flags.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_directories_of_a_build_are_replaced() {
        let graph: DependencyGraph = serde_json::from_str(
            r#"{"workspace_root": "/w k", "target_directory": "/tmp/t", "packages": [
                {"id": "op", "name": "op", "version": "1.0.0", "manifest_path": "/w k/operator/Cargo.toml"},
                {"id": "in", "name": "in", "version": "1.0.0", "manifest_path": "/w k/in/Cargo.toml"},
                {"id": "out", "name": "out", "version": "1.0.0", "manifest_path": "/out/of/it/Cargo.toml"},
                {"id": "g", "name": "g", "version": "1.0.0", "manifest_path": "/h/git/checkouts/g-1/2/Cargo.toml",
                 "source": "git+https://example.com/g"},
                {"id": "a", "name": "a", "version": "1.0.0", "manifest_path": "/h/registry/src/x-1/a-1.0.0/Cargo.toml",
                 "source": "registry+https://github.com/rust-lang/crates.io-index"}]}"#,
        )
        .unwrap();
        let flags = flags(&names(&graph, Some(PathBuf::from("/h")))).unwrap();
        assert_eq!(
            flags,
            [
                "--remap-path-prefix=/h=/cargo",
                "--remap-path-prefix=/h/registry/src/x-1=/cargo/registry",
                "--remap-path-prefix=/out/of/it=/dependencies/out",
                "--remap-path-prefix=/tmp/t=/operator/target",
                "--remap-path-prefix=/w k=/operator",
            ]
        );
    }
}
