//! Development tasks of this repository, as functions that tests can call.
//!
//! One module per command of `cargo xtask`; `main.rs` only parses arguments and dispatches. This crate may
//! depend on any other, so no crate may depend on it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

pub mod api;
pub mod bench;
pub mod ci;
pub mod facts;
pub mod prose;
pub mod screenshots;
pub mod soak;
pub mod tidy;

/// `cargo` without the variables that describe the package of xtask. They would make the build script of
/// `ring` and all its dependents rebuild.
fn cargo() -> Command {
    let mut command = Command::new("cargo");
    let of_xtask = |name: &str| ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|it| name.starts_with(it));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(of_xtask)) {
        command.env_remove(name);
    }
    command
}

/// cargo's target directory. Downloads and tools are stored there too.
pub fn target_dir(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |target| root.join(target))
}

/// The root directory of this checkout.
pub fn repo_root() -> Result<PathBuf> {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = xtask.parent().context("the directory xtask/ has no parent")?;
    root.canonicalize().with_context(|| format!("resolve {}", root.display()))
}
