//! The project of an operator: where it is, how it is built, and how files get into it.

mod build;
mod writes;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};

use crate::error::Hint as _;

pub(crate) use writes::Writes;

/// A package of cargo's, with an operator in it.
#[derive(Debug)]
pub(crate) struct Project {
    root: PathBuf,
}

impl Project {
    /// The project that a folder belongs to: its own, or that of the nearest folder above.
    pub(crate) fn find(folder: &Path) -> Result<Self> {
        let absolute = folder
            .canonicalize()
            .with_context(|| format!("cannot find the project {}", folder.display()))
            .hint("name the folder of an operator")?;
        let root = absolute.ancestors().find(|above| above.join("Cargo.toml").is_file());
        let root = root.ok_or_else(|| anyhow!("no Cargo.toml in {} or above it", folder.display()));
        Ok(Self { root: root.hint("run it in the folder of an operator, or name that folder")?.to_owned() })
    }

    /// The folder of Cargo.toml.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }
}
