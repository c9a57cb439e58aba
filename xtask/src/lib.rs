//! The chores of this repository, as functions that tests can call.
//!
//! One module per command of `cargo xtask`; `main.rs` only parses and dispatches. A chore may depend on
//! anything, so nothing may depend on this crate.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

pub mod bench;
pub mod ci;
pub mod facts;
pub mod tidy;

/// The root of this checkout.
pub fn repo_root() -> Result<PathBuf> {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = xtask.parent().context("the folder xtask/ has no parent")?;
    root.canonicalize().with_context(|| format!("find the checkout at {}", root.display()))
}
