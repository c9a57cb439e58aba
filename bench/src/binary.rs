//! Programs of this workspace that are measured as processes of their own.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// The release build of a program, beside this one. Under cargo it is built first, so that it is never an old one.
///
/// It is built alone: with others at once, cargo would give it the features that they ask of what they share.
pub(crate) fn build(package: &str, program: &str, config: &[String]) -> Result<PathBuf> {
    if let Some(cargo) = env::var_os("CARGO") {
        let mut build = Command::new(cargo);
        // What the cargo that runs this says of it: ring's build script, and so all that needs ring, would be built anew.
        let said = |name: &str| ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|it| name.starts_with(it));
        for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(said)) {
            build.env_remove(name);
        }
        build.args(["build", "--release", "--quiet", "--package", package, "--bin", program]);
        for setting in config {
            build.args(["--config", setting]);
        }
        let status = build.status().context("cannot start cargo")?;
        ensure!(status.success(), "{package} could not be built ({status}); what went wrong stands above");
    }
    let own = env::current_exe().context("cannot find this program's own file")?;
    let path = own.with_file_name(format!("{program}{}", env::consts::EXE_SUFFIX));
    ensure!(
        path.is_file(),
        "there is no {}; run `cargo xtask bench`, or `cargo build --release -p {package}` first",
        path.display()
    );
    Ok(path)
}
