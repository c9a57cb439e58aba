//! An operator project: its location, how it is built, and how its files are written.

mod build;
mod lock;
pub(crate) mod manifests;
mod metadata;
pub(crate) mod project_file;
mod writes;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};

use crate::error::Hint as _;

pub(crate) use build::{Build, Programs, cargo, not_started};
pub(crate) use lock::LockedRoot;
pub(crate) use manifests::Manifests;
pub(crate) use metadata::{Metadata, Sources};
pub(crate) use writes::{Writes, read, write};

/// A cargo package that contains an operator.
#[derive(Clone, Debug)]
pub(crate) struct Project {
    root: PathBuf,
}

impl Project {
    /// Finds the project of a directory: in it, or in the nearest parent.
    pub(crate) fn find(folder: &Path) -> Result<Self> {
        let absolute = folder
            .canonicalize()
            .with_context(|| format!("cannot find the project {}", folder.display()))
            .hint("pass a project directory")?;
        let root = absolute.ancestors().find(|above| above.join("Cargo.toml").is_file());
        let root = root.ok_or_else(|| anyhow!("no Cargo.toml found in {} or its parents", folder.display()));
        Ok(Self { root: root.hint("run this in a project directory, or pass it as an argument")?.to_owned() })
    }

    /// The directory of Cargo.toml.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The Rust files under src/ by path relative to the root; empty if src/ is missing.
    pub(crate) fn sources(&self) -> Result<Vec<(String, String)>> {
        let mut found = Vec::new();
        let mut folders = vec![PathBuf::from("src")];
        while let Some(folder) = folders.pop() {
            let failed = || format!("cannot read {}", folder.display());
            let entries = match fs::read_dir(self.root.join(&folder)) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                entries => entries.with_context(failed)?,
            };
            for entry in entries {
                let entry = entry.with_context(failed)?;
                let path = folder.join(entry.file_name());
                if entry.file_type().with_context(failed)?.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    let text = fs::read_to_string(self.root.join(&path));
                    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
                    found.push((path.to_string_lossy().replace('\\', "/"), text));
                }
            }
        }
        found.sort();
        Ok(found)
    }
}
