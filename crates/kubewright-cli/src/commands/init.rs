//! `kubewright init`: the files of an operator, in a folder that has none.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use clap::ValueEnum;
use serde_json::Value;

use super::change::{How, required, start};
use super::kubebuilder;
use crate::cli::examples::examples;
use crate::error::Hint as _;
use crate::project::project_file::{self, ProjectFile};
use crate::scaffold::{Dependency, Options, add, adopt, from_crd, names};
use crate::ui::Ui;

const EXAMPLES: &[(&str, &str)] = &[
    ("Start an operator in this folder", "kubewright init --domain example.com"),
    (
        "Start one for its own namespace, in a folder that is made",
        "kubewright init --domain example.com --namespaced shop",
    ),
    ("Carry over the kinds of a project in Go", "kubewright init --from ../shop-go/PROJECT"),
];

/// Start an operator: a cargo project with everything that it needs to be tested and deployed
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(crate) struct Args {
    /// Folder of the operator; it may be empty, new, or have other files
    #[arg(value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,

    /// Domain of the groups of its kinds
    #[arg(long, value_name = "DOMAIN")]
    domain: Option<String>,

    /// Name of the operator [default: that of the folder]
    #[arg(long, value_name = "NAME")]
    project_name: Option<String>,

    /// Licence of the code
    #[arg(long, value_enum, default_value = "apache2")]
    license: License,

    /// Whose copyright each source names at its top
    #[arg(long, value_name = "OWNER")]
    owner: Option<String>,

    /// Give each group of kinds a folder of its own
    #[arg(long)]
    multigroup: bool,

    /// Watch the operator's own namespace only, with Roles instead of ClusterRoles
    #[arg(long)]
    namespaced: bool,

    /// PROJECT of a project of kubebuilder's, to carry over what it says
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,

    #[command(flatten)]
    kubewright: KubewrightArgs,

    #[command(flatten)]
    kubebuilder: kubebuilder::Init,

    #[command(flatten)]
    how: How,
}

/// Where the project has kubewright from; otherwise from the checkout that this program was built in, or by version.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct KubewrightArgs {
    /// Depend on kubewright in a checkout
    #[arg(long = "kubewright-path", id = "kubewright-path", value_name = "FOLDER")]
    path: Option<PathBuf>,

    /// Depend on kubewright in a git repository
    #[arg(long = "kubewright-git", id = "kubewright-git", value_name = "URL")]
    git: Option<String>,

    /// Depend on a released version of kubewright
    #[arg(long = "kubewright-version", id = "kubewright-version", value_name = "VERSION")]
    version: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum License {
    Apache2,
    None,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Result<()> {
    args.kubebuilder.note(ui);
    let root = std::path::absolute(&args.folder).context("cannot find the folder")?;
    if root.join(project_file::PATH).exists() {
        return Err(anyhow!("{} is a project already", root.display()))
            .hint("add to it with `kubewright create api`, or change it with `kubewright edit`");
    }
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
    names::check_project(&project.project_name)
        .map_err(anyhow::Error::new)
        .hint("name it with --project-name")?;
    project.multigroup |= args.multigroup;
    project.namespaced |= args.namespaced;
    if args.license == License::Apache2 {
        project.set("license", "apache2".into());
    }
    if let Some(owner) = &args.owner {
        project.set("owner", owner.as_str().into());
    }
    add::check_project(&project)?;
    let options = Options {
        dependency: args.kubewright.dependency()?,
        standalone: root.ancestors().skip(1).any(|above| above.join("Cargo.toml").is_file()),
    };
    let done = start(&root, &project, &options, args.how, ui)?;
    for what in left {
        ui.warn(&format!("not carried over: {what}"));
    }
    if done && project.resources.is_empty() {
        ui.note("next, add a kind: `kubewright create api --group GROUP --version v1 --kind KIND`");
    }
    Ok(())
}

fn carried_over(file: &Path) -> Result<(ProjectFile, Vec<String>)> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let theirs = ProjectFile::read(&text).with_context(|| format!("cannot carry over {}", file.display()))?;
    let crds = crds(&file.with_file_name("config").join("crd/bases"))?;
    let (ours, mut left) = adopt(&theirs, &crds);
    let webhooks = ours.resources.iter().any(|resource| resource.webhooks().is_some());
    let what = if webhooks { "reconcilers and webhooks" } else { "reconcilers" };
    left.push(format!("the Go code: {what} start as templates"));
    Ok((ours, left))
}

/// The CRDs that `make manifests` wrote in a kubebuilder project; empty without that folder.
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
        crds.extend(from_crd::definitions(&text).with_context(|| failed(path))?);
    }
    Ok(crds)
}

impl KubewrightArgs {
    fn dependency(&self) -> Result<Dependency> {
        Ok(match (&self.path, &self.git, &self.version) {
            (Some(path), ..) => {
                let root = std::path::absolute(path).context("cannot find the checkout")?;
                if !root.join("crates/kubewright/Cargo.toml").is_file() {
                    return Err(anyhow!("{} is no checkout of kubewright", path.display()))
                        .hint("it is a folder with crates/kubewright in it");
                }
                Dependency::Path(root.display().to_string())
            }
            (_, Some(url), _) => Dependency::Git(url.clone()),
            (.., Some(version)) => Dependency::Version(version.clone()),
            _ => Dependency::of_this_build(),
        })
    }
}
