//! Builds the book with mdBook into `target/book`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::tools;

/// Builds the book. Warnings are errors.
pub fn run(root: &Path) -> Result<()> {
    let book = crate::target_dir(root).join("book");
    let mut command = Command::new("mdbook");
    command
        .args(["build", "docs", "--dest-dir"])
        .arg(&book)
        .current_dir(root)
        .env("PATH", tools::path(root)?);
    let output = command.output().context("start mdbook; `cargo xtask ci --only tools` installs it")?;
    let log = String::from_utf8_lossy(&output.stderr);
    eprint!("{log}");
    ensure!(output.status.success(), "mdbook: {}", output.status);
    ensure!(!log.contains("WARN"), "mdbook printed warnings");
    println!("{}", book.join("index.html").display());
    Ok(())
}
