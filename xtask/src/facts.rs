//! `cargo xtask facts`: generates the tables of built-in Kubernetes kinds from registry packages.
//!
//! Writes the reviewed text files in the `facts/` directories of the crates. Only this module reads upstream
//! schemas; the crates read our format. The output depends only on the packages, so a second run changes
//! nothing.

mod golang;
mod openapi;
mod parameters;
mod resources;
mod sources;
mod types;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

pub use sources::{Sources, definitions};

/// The Kubernetes minor version of the tables.
pub const KUBERNETES_MINOR: &str = "1.36";

/// Arguments of `cargo xtask facts`.
#[derive(Debug, clap::Args)]
pub struct FactsArgs {
    /// Compare with the checked-in files instead of writing; fail if anything differs
    #[arg(long)]
    pub check: bool,
    /// Directory with recorded discovery, schemas and table columns of a kube-apiserver
    #[arg(long, value_name = "DIR", default_value = "../shared/data")]
    pub data: PathBuf,
}

/// Generates the tables and writes them, or compares them if `check` is set.
pub fn run(args: &FactsArgs) -> Result<()> {
    let root = crate::repo_root()?;
    let data = root.join(&args.data);
    if !data.join("openapi-v3-facts.json").is_file() {
        bail!("no openapi-v3-facts.json in {}; set the directory with --data DIR", args.data.display());
    }
    let sources = Sources::fetch(&crate::target_dir(&root).join("facts"))?;
    let mut stale = Vec::new();
    for (path, text) in derive(&sources, &data)? {
        let file = root.join("crates").join(path);
        if args.check {
            if fs::read_to_string(&file).unwrap_or_default() != text {
                stale.push(path);
            }
        } else {
            let folder = file.parent().context("file has no parent directory")?;
            fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
            fs::write(&file, &text).with_context(|| format!("write {}", file.display()))?;
            println!("crates/{path}: {} lines, {} bytes", text.lines().count(), text.len());
        }
    }
    if !stale.is_empty() {
        bail!("{} differ from the packages; run `cargo xtask facts`", stale.join(", "));
    }
    Ok(())
}

/// The generated files by path below `crates/`.
fn derive(sources: &Sources, data: &Path) -> Result<Vec<(&'static str, String)>> {
    let go = golang::Structs::read(&sources.go)?;
    let served = read_json(&data.join("openapi-v3-facts.json"))?;
    let types = types::derive(&sources.definitions, &served, &go)?;
    let messages = go.messages(&types);
    let docs = parameters::Docs::read(&sources.go)?;
    let discovery = read_json(&data.join("discovery.json"))?;
    let legacy = read_json(&data.join("discovery-legacy.json"))?;
    let bootstrap = read_json(&data.join("bootstrap-objects.json"))?;
    let columns = resources::columns(&read_json(&data.join("table-columns.json"))?)?;
    Ok(vec![
        ("kubewright-macros/facts/types.txt", types.clone()),
        ("kubewright-apimachinery/facts/types.txt", types),
        ("kubewright-apis/facts/protobuf.txt", messages),
        ("kubewright-apis/facts/openapi.txt", openapi::derive(&sources.definitions, &served, &go)?),
        ("kubewright-apis/facts/parameters.txt", parameters::derive(&served, &go, &docs)?),
        ("kubewright-apis/facts/resources.txt", resources::derive(&discovery, &legacy)?),
        ("kubewright-apiextensions/facts/columns.txt", resources::standard_columns(&columns)?),
        ("kubewright-apis/facts/columns.txt", columns),
        ("kubewright-apis/facts/bootstrap.txt", resources::bootstrap(&bootstrap)?),
        ("kubewright-apis/facts/aggregated.txt", resources::aggregated(&bootstrap)?),
    ])
}

/// Facts about types from the PyPI package alone. A test compares every fact with them.
pub use types::facts_of_definitions;

fn read_json(path: &Path) -> Result<serde_json::Value> {
    let text = fs::read(path).with_context(|| format!("read {}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("parse {}", path.display()))
}
