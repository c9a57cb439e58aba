//! Builds workspace programs that are measured as separate processes.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// The release build of a program, next to this one. Under cargo it is built first, so that it is up to date.
///
/// It is built separately. In a joint build, cargo would enable the features that other packages request.
pub(crate) fn build(package: &str, program: &str, config: &[String]) -> Result<PathBuf> {
    if let Some(cargo) = env::var_os("CARGO") {
        let mut build = Command::new(cargo);
        // Remove the variables of this package, or the build script of `ring` and all its dependents would
        // rebuild.
        let of_package = |name: &str| ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|it| name.starts_with(it));
        for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(of_package)) {
            build.env_remove(name);
        }
        build.args(["build", "--release", "--quiet", "--package", package, "--bin", program]);
        for setting in config {
            build.args(["--config", setting]);
        }
        let status = build.status().context("start cargo")?;
        ensure!(status.success(), "building {package} failed ({status}); see the output above");
    }
    let own = env::current_exe().context("get the path of this program")?;
    let path = own.with_file_name(format!("{program}{}", env::consts::EXE_SUFFIX));
    ensure!(
        path.is_file(),
        "{} does not exist; run `cargo xtask bench`, or `cargo build --release -p {package}` first",
        path.display()
    );
    Ok(path)
}
