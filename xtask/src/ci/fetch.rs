//! Downloads every registry package that later steps need, so that they run offline.
//!
//! Downloads packages for the current platform and for static images only, like `cargo build`. A test that needs
//! a package of another platform therefore fails here too.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::tools;
use crate::facts;

/// The manifest of this workspace.
pub const WORKSPACE: &str = "Cargo.toml";

/// The manifest of the CRDs that the server's tests install.
const VENDORS: &str = "crates/kubewright-apiserver/tests/vendors/Cargo.toml";

/// The manifest of the dependencies of the operators in the adoption guides.
const ADOPT: &str = "crates/kubewright-cli/testdata/adopt/dependencies/Cargo.toml";

/// Downloads all packages.
pub fn run(root: &Path) -> Result<()> {
    packages(root, WORKSPACE)?;
    packages(root, VENDORS)?;
    packages(root, ADOPT)?;
    facts::definitions(&crate::target_dir(root).join("facts"))?;
    Ok(())
}

/// Downloads the packages of one lock file.
pub fn packages(root: &Path, manifest: &str) -> Result<()> {
    let mut fetch = crate::cargo();
    fetch.args(["fetch", "--locked", "--target", "host-tuple", "--target", tools::MUSL]);
    fetch.args(["--manifest-path", manifest]);
    let status = fetch.current_dir(root).status().context("start cargo fetch")?;
    let shown = super::line(&fetch);
    ensure!(
        status.success(),
        "`{shown}` failed ({status}); if Cargo.lock is out of date, run `cargo check --manifest-path {manifest}`"
    );
    Ok(())
}
