//! `cargo xtask tidy`: checks repository rules that no other tool checks.
//!
//! A rule is a pure function from the files ([`Files`]) and the crates ([`Workspace`]) to violations. Only
//! [`check`] reads the disk and calls cargo, so tests can pass in any files. Reports all violations, not only
//! the first.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::repo_root;

pub use files::Files;
pub use workspace::Workspace;

mod blocks;
mod book;
mod commits;
mod edges;
mod files;
mod kinds;
mod links;
mod lock;
mod manifests;
mod map;
mod order;
mod packages;
mod places;
mod rust;
mod storage;
mod workspace;

/// Arguments of `cargo xtask tidy`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Checks that
  - dependencies between crates follow ARCHITECTURE.md
  - every Rust file opens with `//!`, has at most 600 lines, and skips no test and no lint
  - links between Markdown files are valid, and those of the book stay in it
  - the book shows current source lines, and lists every page and every environment variable
  - commands in the book start with `$ `, and its translations have the code blocks of the English pages
  - no file contains paths or package hosts of the machine that it was written on
  - Cargo.lock contains no crate that deny.toml bans
  - the API server and the runtime do not use channels that wake tasks in random order
  - only the registry of the API server commits to the storage, and authorization does not write
  - the storage does not know field managers, and the rules of a kind are in its folder
  - ARCHITECTURE.md names existing files, and its reading lists are short
  - every crate inherits its version, lints and dependencies from the workspace
  - every published crate has a description, a README, keywords and categories
  - README and scaffold name the Rust version of the workspace

Examples:
  cargo xtask tidy                       this checkout
  cargo xtask tidy --root ../other       another checkout")]
pub struct TidyArgs {
    /// The workspace to check [default: this checkout]
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
}

/// A violated rule and its fix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The path relative to the root, with `/`.
    pub path: String,
    /// The line, starting at 1.
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

/// Prints all violations and fails if there are any.
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
        1 => bail!("1 violation, see above"),
        many => bail!("{many} violations, see above"),
    }
}

/// All violations in the workspace at `root`, by file and line.
pub fn check(root: &Path) -> Result<Vec<Violation>> {
    let files = Files::read(root)?;
    let workspace = Workspace::load(root, edges::GUARDED)?;
    let mut violations = Vec::new();
    edges::check(&workspace, &files, &mut violations);
    blocks::check(&files, &mut violations);
    book::check(&files, &mut violations);
    manifests::check(&workspace, &files, &mut violations);
    packages::check(&workspace, &files, &mut violations);
    rust::check(&files, &mut violations);
    links::check(&files, &mut violations);
    lock::check(&files, &mut violations);
    places::check(&files, &mut violations);
    order::check(&files, &mut violations);
    commits::check(&files, &mut violations);
    storage::check(&files, &mut violations);
    kinds::check(&files, &mut violations);
    map::check(&files, &mut violations);
    violations.sort();
    violations.dedup();
    Ok(violations)
}
