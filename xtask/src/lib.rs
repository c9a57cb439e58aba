//! The chores of this repository, as functions that tests can call.
//!
//! One module per command of `cargo xtask`; `main.rs` only parses and dispatches. A chore may depend on
//! anything, so nothing may depend on this crate.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

pub mod bench;
pub mod ci;
pub mod facts;
pub mod soak;
pub mod tidy;

/// cargo without the variables that describe xtask's own package. With them, the build script of `ring` runs again, and
/// everything that depends on it is compiled again.
fn cargo() -> Command {
    let mut command = Command::new("cargo");
    let said = |name: &str| ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|it| name.starts_with(it));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(said)) {
        command.env_remove(name);
    }
    command
}

/// Where cargo puts what it builds. Downloads and tools are kept there too.
pub fn target_dir(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |target| root.join(target))
}

/// The root of this checkout.
pub fn repo_root() -> Result<PathBuf> {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = xtask.parent().context("the folder xtask/ has no parent")?;
    root.canonicalize().with_context(|| format!("find the checkout at {}", root.display()))
}
