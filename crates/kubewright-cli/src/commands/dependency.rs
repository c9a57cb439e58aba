//! The flags for the kubewright dependency of a project.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};

use crate::error::Hint as _;
use crate::scaffold::Dependency;

/// The kubewright dependency of the project.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
pub(crate) struct KubewrightArgs {
    /// Depend on a local kubewright checkout
    #[arg(long = "kubewright-path", id = "kubewright-path", value_name = "DIR")]
    path: Option<PathBuf>,

    /// Depend on a kubewright git repository
    #[arg(long = "kubewright-git", id = "kubewright-git", value_name = "URL")]
    git: Option<String>,

    /// Depend on a kubewright release
    #[arg(long = "kubewright-version", id = "kubewright-version", value_name = "VERSION")]
    version: Option<String>,
}

impl KubewrightArgs {
    /// The dependency of the flags, if one is set, for a project in a directory.
    pub(crate) fn dependency(&self, project: &Path) -> Result<Option<Dependency>> {
        if let Some(path) = &self.path {
            let root = std::path::absolute(path).context("cannot resolve the checkout")?;
            if !root.join("crates/kubewright/Cargo.toml").is_file() {
                return Err(anyhow!("{} is not a kubewright checkout", path.display()))
                    .hint("a checkout contains crates/kubewright");
            }
            return Ok(Some(Dependency::checkout(&root, project)));
        }
        let git = self.git.as_ref().map(|url| Dependency::Git { url: url.clone(), rev: None });
        Ok(git.or_else(|| self.version.clone().map(Dependency::Version)))
    }
}
