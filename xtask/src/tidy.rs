//! `cargo xtask tidy`: the rules of this repository that no other tool checks.
//!
//! Owns the list of rules and how a violation is told. A rule is a pure function from the files ([`Files`])
//! and the crates ([`Workspace`]) to violations; only [`check`] reads the disk or calls cargo, so that a test
//! can plant any violation. All violations are told, not only the first.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::repo_root;

pub use files::Files;
pub use workspace::Workspace;

mod edges;
mod files;
mod links;
mod lock;
mod manifests;
mod order;
mod places;
mod rust;
mod workspace;

/// Arguments of `cargo xtask tidy`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Checks that
  - the crates depend on each other only as ARCHITECTURE.md says
  - every Rust file opens with `//!`, is short enough, and skips no test and no lint
  - no link between the Markdown files is dead
  - no file names a path or a package host of the machine that it was written on
  - nothing that deny.toml bans is in Cargo.lock
  - nothing between a request and a reconcile wakes tasks in random order
  - every crate inherits its version, lints and dependencies from the workspace

Examples:
  cargo xtask tidy                       this checkout
  cargo xtask tidy --root ../other       another one")]
pub struct TidyArgs {
    /// The workspace to check [default: this checkout]
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
}

/// A broken rule, and how to mend it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The file, from the root, with `/`.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub fix: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}; {}", self.path, self.line, self.what, self.fix)
    }
}

/// Prints every violation and fails if there is one.
pub fn run(args: &TidyArgs) -> Result<()> {
    let root = match &args.root {
        Some(root) => root.clone(),
        None => repo_root()?,
    };
    let violations = check(&root)?;
    for violation in &violations {
        println!("{violation}");
    }
    match violations.len() {
        0 => Ok(()),
        1 => bail!("1 violation, told above"),
        many => bail!("{many} violations, told above"),
    }
}

/// All violations in the workspace at `root`, by file and line.
pub fn check(root: &Path) -> Result<Vec<Violation>> {
    let files = Files::read(root)?;
    let workspace = Workspace::load(root, edges::GUARDED)?;
    let mut violations = Vec::new();
    edges::check(&workspace, &files, &mut violations);
    manifests::check(&workspace, &files, &mut violations);
    rust::check(&files, &mut violations);
    links::check(&files, &mut violations);
    lock::check(&files, &mut violations);
    places::check(&files, &mut violations);
    order::check(&files, &mut violations);
    violations.sort();
    violations.dedup();
    Ok(violations)
}
