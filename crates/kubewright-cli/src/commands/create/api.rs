//! `kubewright create api`: a kind, a version or a controller more.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context as _, Result, bail};
use clap::ArgAction;

use crate::cli::examples::examples;
use crate::commands::change::{How, Which, change, open};
use crate::commands::kubebuilder;
use crate::project::project_file::ProjectFile;
use crate::scaffold::add::{self, Copied, External, Request};
use crate::scaffold::builtin;
use crate::scaffold::from_crd::{self, Wanted};
use crate::ui::Ui;

const EXAMPLES: &[(&str, &str)] = &[
    ("Add a kind and its controller", "kubewright create api --group shop --version v1 --kind Order"),
    (
        "Add a version; it starts as a copy, and the old one stays the storage version",
        "kubewright create api --group shop --version v2 --kind Order",
    ),
    (
        "Add a second controller",
        "kubewright create api --group shop --version v1 --kind Order --controller-name order-backup",
    ),
    (
        "Follow a kind of Kubernetes itself",
        "kubewright create api --group apps --version v1 --kind Deployment --resource=false",
    ),
    ("Take the types from a definition that exists", "kubewright create api --from-crd crontabs.yaml"),
    ("See what would change", "kubewright create api --group shop --version v1 --kind Order --dry-run"),
];

const NEXT: &str = "next: edit the spec and the reconciler, then run `make manifests test`";

/// Add a kind with its types, controller, test, sample, roles and CRD
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,

    /// Plural in paths [default: by the rules of English]
    #[arg(long, value_name = "NAME")]
    plural: Option<String>,

    /// Whether the project defines the kind; with false it gets a controller only [default: unless a crate does]
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    resource: Option<bool>,

    /// Whether to add a controller [default: unless another version has one]
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    controller: Option<bool>,

    /// Name of the controller, where the kind has several
    #[arg(long, value_name = "NAME")]
    controller_name: Option<String>,

    /// Whether objects are in namespaces, and not of the cluster [default: true]
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    namespaced: Option<bool>,

    /// Rust module with the type of a kind that a crate defines
    #[arg(long, value_name = "PATH", requires = "external_api_domain")]
    external_api_path: Option<String>,

    /// Domain of the group of such a kind
    #[arg(long, value_name = "DOMAIN", requires = "external_api_path")]
    external_api_domain: Option<String>,

    /// Crate to depend on for it
    #[arg(long, value_name = "NAME@VERSION", requires = "external_api_path")]
    external_api_module: Option<String>,

    /// YAML with CustomResourceDefinitions to make the types from; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["external_api_path", "controller_name"])]
    from_crd: Option<PathBuf>,

    /// Folder of the project
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    project: PathBuf,

    #[command(flatten)]
    kubebuilder: kubebuilder::Create,

    #[command(flatten)]
    how: How,
}

pub(super) fn run(args: &Args, ui: &Ui) -> Result<()> {
    args.kubebuilder.note(ui);
    let (root, project) = open(&args.project)?;
    if let Some(file) = &args.from_crd {
        return import(args, file, (&root, &project), ui);
    }
    let external = args.external_api_path.as_ref().map(|path| External {
        path: path.clone(),
        domain: args.external_api_domain.clone().unwrap_or_default(),
        module: args.external_api_module.clone().unwrap_or_default(),
    });
    let [group, version, kind] = args.which.ask(&["create", "api"], ui)?;
    let request = Request {
        group,
        version,
        kind,
        plural: args.plural.clone(),
        resource: args.resource,
        controller: args.controller,
        controller_name: args.controller_name.clone(),
        namespaced: args.namespaced,
        external,
        definition: None,
        force: args.how.force,
    };
    let changed = add::add(&project, &request)?;
    if !change(&root, &changed, args.how, ui)? {
        return Ok(());
    }
    if let Some(Copied { from, to }) = &changed.copied {
        ui.note(&format!(
            "{} starts as a copy of {}, which stays the storage version; `kubewright edit api --group {} --kind {} \
             --storage-version {}` changes that",
            to.version, from.version, request.group, to.kind, to.version
        ));
    }
    let added =
        changed.after.resources.iter().find(|entry| entry.kind == request.kind && entry.api.is_some());
    if let Some(added) = added.filter(|_| builtin(&request.group, &request.version, &request.kind).is_some())
    {
        ui.note(&format!(
            "{} is a kind of this project; --resource=false adds a controller for the built-in kind {} instead",
            added.shown(),
            request.kind
        ));
    }
    ui.note(NEXT);
    Ok(())
}

/// Adds what a file defines.
fn import(args: &Args, file: &Path, (root, project): (&Path, &ProjectFile), ui: &Ui) -> Result<()> {
    if args.resource == Some(false) {
        bail!("--from-crd makes types of a definition, and --resource=false wants none");
    }
    let shown = if file == Path::new("-") { "standard input".to_owned() } else { file.display().to_string() };
    let definitions = read(file)
        .and_then(|text| from_crd::definitions(&text))
        .with_context(|| format!("cannot take types from {shown}"))?;
    let wanted = Wanted {
        group: args.which.group.clone(),
        version: args.which.version.clone(),
        kind: args.which.kind.clone(),
        plural: args.plural.clone(),
        namespaced: args.namespaced,
    };
    let chosen = from_crd::choose(&definitions, &wanted)?;
    let requests: Vec<Request> = chosen
        .into_iter()
        .map(|chosen| Request { controller: args.controller, force: args.how.force, ..add::imported(chosen) })
        .collect();
    let changed = add::add_all(project, &requests)?;
    let done = change(root, &changed, args.how, ui)?;
    for Request { kind, definition, .. } in &requests {
        let lost = definition.iter().flat_map(|definition| from_crd::generate(definition, true).lost);
        for what in lost {
            ui.warn(&format!("not in the types of {kind}: {what}"));
        }
    }
    if done {
        ui.note(NEXT);
    }
    Ok(())
}

fn read(file: &Path) -> Result<String> {
    if file != Path::new("-") {
        return Ok(fs::read_to_string(file)?);
    }
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    Ok(text)
}
