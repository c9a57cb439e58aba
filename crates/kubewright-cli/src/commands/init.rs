//! `kubewright init`: creates a project.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use serde_json::Value;

use super::change::{How, check_is_new, required, start};
use super::dependency::KubewrightArgs;
use super::kubebuilder;
use crate::cli::examples::examples;
use crate::error::Hint as _;
use crate::project::project_file::ProjectFile;
use crate::scaffold::{Dependency, Options, REPOSITORY, add, adopt, from_crd, names};
use crate::ui::Ui;

const EXAMPLES: &[(&str, &str)] = &[
    ("Create a project in the current directory", "kubewright init --domain example.com"),
    (
        "Create a namespace-scoped operator in a new directory",
        "kubewright init --domain example.com --namespaced shop",
    ),
    ("Import a kubebuilder project", "kubewright init --from ../shop-go/PROJECT"),
];

/// Initialize a new project
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(crate) struct Args {
    /// Project directory; created if missing
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,

    /// Domain for API groups
    #[arg(long, value_name = "DOMAIN")]
    domain: Option<String>,

    /// Project name [default: the directory name]
    #[arg(long, value_name = "NAME")]
    project_name: Option<String>,

    /// License for the project
    #[arg(long, value_enum, default_value = "apache2")]
    license: License,

    /// Copyright owner for source headers
    #[arg(long, value_name = "OWNER")]
    owner: Option<String>,

    /// Use one directory per API group
    #[arg(long)]
    multigroup: bool,

    /// Watch only the operator's namespace, with Roles instead of ClusterRoles
    #[arg(long)]
    namespaced: bool,

    /// PROJECT file of a kubebuilder project to import
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,

    #[command(flatten)]
    kubewright: KubewrightArgs,

    #[command(flatten)]
    kubebuilder: kubebuilder::Init,

    #[command(flatten)]
    how: How,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum License {
    Apache2,
    None,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Result<()> {
    args.kubebuilder.note(ui);
    let root = std::path::absolute(&args.folder).context("cannot resolve the directory")?;
    check_is_new(&root)?;
    let (mut project, left) = match &args.from {
        Some(file) => carried_over(file)?,
        None => (ProjectFile::new("", ""), Vec::new()),
    };
    if args.domain.is_some() || project.domain.is_empty() {
        project.domain = required("domain", args.domain.as_ref(), "example.com", &["init"], ui)?;
    }
    names::check_domain("domain", &project.domain)?;
    if let Some(name) = &args.project_name {
        project.project_name.clone_from(name);
    } else if project.project_name.is_empty() {
        project.project_name = names::project_of(&root.file_name().unwrap_or_default().to_string_lossy());
    }
    names::check_project(&project.project_name).map_err(anyhow::Error::new).hint("set --project-name")?;
    project.multigroup |= args.multigroup;
    project.namespaced |= args.namespaced;
    if args.license == License::Apache2 {
        project.set("license", "apache2".into());
    }
    if let Some(owner) = &args.owner {
        project.set("owner", owner.as_str().into());
    }
    add::check_project(&project)?;
    let chosen = args.kubewright.dependency(&root)?;
    let is_chosen = chosen.is_some();
    let options = Options {
        dependency: chosen.unwrap_or_else(|| Dependency::of_this_build(&root)),
        standalone: root.ancestors().skip(1).any(|above| above.join("Cargo.toml").is_file()),
    };
    let done = start(&root, &project, &options, args.how, ui)?;
    for what in left {
        ui.warn(&format!("not imported: {what}"));
    }
    if done && let Some(note) = note(&options.dependency, is_chosen) {
        ui.note(&note);
    }
    if done && project.resources.is_empty() {
        ui.note("Next: add an API with `kubewright create api --group GROUP --version v1 --kind KIND`");
    }
    Ok(())
}

/// What a user should know about the dependency on kubewright.
fn note(dependency: &Dependency, is_chosen: bool) -> Option<String> {
    match dependency {
        Dependency::Path(path) => Some(format!(
            "the project is not portable yet: Cargo.toml depends on the kubewright checkout at {path}. \
             `kubewright update --kubewright-git {REPOSITORY}` changes it"
        )),
        Dependency::Git { url, rev: None } if !is_chosen => Some(format!(
            "Cargo.toml depends on the newest commit of {url}, because the commit of this kubewright is unknown. \
             `kubewright update --kubewright-version VERSION` changes it"
        )),
        _ => None,
    }
}

fn carried_over(file: &Path) -> Result<(ProjectFile, Vec<String>)> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let theirs = ProjectFile::read(&text).with_context(|| format!("cannot import {}", file.display()))?;
    let crds = crds(&file.with_file_name("config").join("crd/bases"))?;
    let (ours, mut left) = adopt(&theirs, &crds);
    let webhooks = ours.resources.iter().any(|resource| resource.webhooks().is_some());
    let what = if webhooks { "reconcilers and webhooks" } else { "reconcilers" };
    left.push(format!("Go code: {what} start from templates"));
    Ok((ours, left))
}

/// The CRDs that `make manifests` generated in a kubebuilder project; empty if the directory is missing.
fn crds(folder: &Path) -> Result<Vec<Value>> {
    let failed = |path: &Path| format!("cannot read {}", path.display());
    let mut crds = Vec::new();
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(crds),
        entries => entries.with_context(|| failed(folder))?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.with_context(|| failed(folder))?.path());
    }
    paths.sort();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|is| is == "yaml")) {
        let text = fs::read_to_string(path).with_context(|| failed(path))?;
        crds.extend(from_crd::crds(&text).with_context(|| failed(path))?);
    }
    Ok(crds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_commit_is_noted_unless_the_user_chose_the_repository() {
        let git = |rev: Option<&str>| Dependency::Git { url: "URL".into(), rev: rev.map(str::to_owned) };
        assert!(note(&git(None), false).unwrap().contains("the newest commit of URL"));
        assert_eq!(note(&git(None), true), None);
        assert_eq!(note(&git(Some("0123456")), false), None);
        assert!(note(&Dependency::Path("../kubewright".into()), true).unwrap().contains("not portable"));
        assert_eq!(note(&Dependency::default(), false), None);
    }
}
