//! `cargo xtask api`: lists the public API of the facade and of envtest, so that a change of it is seen in review.
//!
//! Reads the sources with syn, so that it works with the stable compiler: `sources` parses the crates, `resolve`
//! follows re-exports, and `list` prints one line per public item. Limits: items that macros generate are not listed,
//! and neither are impls of types for foreign traits that a blanket impl provides.

mod list;
mod print;
mod resolve;
mod sources;

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context as _, Result, bail};

use crate::repo_root;
use crate::tidy::Files;

/// The crates with a stable API (docs/versioning.md). Each is the first of its list; the others are the crates that it
/// re-exports items of. The runtime's items are in the list of the facade only.
const LISTS: [&[&str]; 2] = [
    &[
        "kubewright",
        "kubewright-runtime",
        "kubewright-manifests",
        "kubewright-macros",
        "kubewright-apimachinery",
    ],
    &["kubewright-envtest", "kubewright-manifests", "kubewright-apimachinery"],
];

/// Arguments of `cargo xtask api`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask api                        rewrite public-api.txt of kubewright and kubewright-envtest
  cargo xtask api --check                fail if one differs from the sources")]
pub struct ApiArgs {
    /// Compare the lists with the sources instead of rewriting them
    #[arg(long)]
    pub check: bool,
}

/// Writes the lists, or compares them with the sources.
pub fn run(args: &ApiArgs) -> Result<()> {
    let root = repo_root()?;
    let files = Files::read(&root)?;
    for crates in LISTS {
        let list = format!("crates/{}/public-api.txt", crates[0]);
        let current = public_api(&files, crates)?;
        if !args.check {
            let path = root.join(&list);
            fs::write(&path, &current).with_context(|| format!("write {}", path.display()))?;
            continue;
        }
        let changes = difference(files.text(&list).unwrap_or_default(), &current);
        if !changes.is_empty() {
            bail!(
                "the public API differs from {list}; run `cargo xtask api` and commit the file:\n{}",
                changes.join("\n")
            );
        }
    }
    Ok(())
}

/// The public API of the first crate, one line per item. The other crates are those that it re-exports items of.
pub fn public_api(files: &Files, crates: &[&str]) -> Result<String> {
    let mut parsed = Vec::new();
    for name in crates {
        parsed.push(sources::Crate::parse(files, name)?);
    }
    let mut text = list::lines(&resolve::Crates(parsed)).join("\n");
    text.push('\n');
    Ok(text)
}

/// Removed lines with `-`, added ones with `+`.
fn difference(before: &str, after: &str) -> Vec<String> {
    let (old, new): (BTreeSet<&str>, BTreeSet<&str>) = (before.lines().collect(), after.lines().collect());
    let removed = old.difference(&new).map(|line| format!("- {line}"));
    removed.chain(new.difference(&old).map(|line| format!("+ {line}"))).collect()
}

#[cfg(test)]
mod tests;
