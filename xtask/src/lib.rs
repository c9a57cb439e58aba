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
pub mod tidy;

/// cargo, as somebody calls it who is not run by cargo: what the one that runs this says of it would have ring's build
/// script run again, and all that needs ring be built anew.
fn cargo() -> Command {
    let mut command = Command::new("cargo");
    let said = |name: &str| ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|it| name.starts_with(it));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(said)) {
        command.env_remove(name);
    }
    command
}

/// The root of this checkout.
pub fn repo_root() -> Result<PathBuf> {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = xtask.parent().context("the folder xtask/ has no parent")?;
    root.canonicalize().with_context(|| format!("find the checkout at {}", root.display()))
}
