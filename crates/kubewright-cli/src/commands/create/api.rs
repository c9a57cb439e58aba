//! `kubewright create api`: adds a kind, a version or a controller.

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
        "Add a version as a copy of the storage version",
        "kubewright create api --group shop --version v2 --kind Order",
    ),
    (
        "Add a second controller",
        "kubewright create api --group shop --version v1 --kind Order --controller-name order-backup",
    ),
    (
        "Add a controller for a built-in kind",
        "kubewright create api --group apps --version v1 --kind Deployment --resource=false",
    ),
    ("Generate the types from an existing CRD", "kubewright create api --from-crd crontabs.yaml"),
    ("Preview the changes", "kubewright create api --group shop --version v1 --kind Order --dry-run"),
];

const NEXT: &str = "Next: edit the spec and the reconciler, then run `make manifests test`";

/// Scaffold a Kubernetes API: types, controller, test, sample, RBAC rules and CRD
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,

    /// Plural resource name [default: derived from the kind]
    #[arg(long, value_name = "NAME")]
    plural: Option<String>,

    /// Generate the resource; false adds a controller only [default: true unless the kind is external]
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    resource: Option<bool>,

    /// Generate a controller [default: true unless another version has one]
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    controller: Option<bool>,

    /// Controller name, for a kind with several controllers
    #[arg(long, value_name = "NAME")]
    controller_name: Option<String>,

    /// Make the resource namespaced [default: true]
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    namespaced: Option<bool>,

    /// Rust module of an external type, defined in another crate
    #[arg(long, value_name = "PATH", requires = "external_api_domain")]
    external_api_path: Option<String>,

    /// Domain of the external type's API group
    #[arg(long, value_name = "DOMAIN", requires = "external_api_path")]
    external_api_domain: Option<String>,

    /// Crate that defines the external type
    #[arg(long, value_name = "NAME@VERSION", requires = "external_api_path")]
    external_api_module: Option<String>,

    /// YAML file with CRDs to generate the types from; `-` reads standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["external_api_path", "controller_name"])]
    from_crd: Option<PathBuf>,

    /// Project directory
    #[arg(long, value_name = "DIR", default_value = ".")]
    project: PathBuf,

    #[command(flatten)]
    kubebuilder: kubebuilder::Create,

    #[command(flatten)]
    how: How,
}

pub(super) fn run(args: &Args, ui: &Ui) -> Result<()> {
    args.kubebuilder.note(ui);
    let (root, project) = open(&args.project, ui)?;
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
             --storage-version {}` to change it",
            to.version, from.version, request.group, to.kind, to.version
        ));
    }
    let added =
        changed.after.resources.iter().find(|entry| entry.kind == request.kind && entry.api.is_some());
    if let Some(added) = added.filter(|_| builtin(&request.group, &request.version, &request.kind).is_some())
    {
        ui.note(&format!(
            "{} is a new custom resource; use --resource=false to add a controller for the built-in kind {}",
            added.shown(),
            request.kind
        ));
    }
    ui.note(NEXT);
    Ok(())
}

/// Adds the kinds of a CRD file.
fn import(args: &Args, file: &Path, (root, project): (&Path, &ProjectFile), ui: &Ui) -> Result<()> {
    if args.resource == Some(false) {
        bail!("--from-crd cannot be used with --resource=false");
    }
    let shown = if file == Path::new("-") { "standard input".to_owned() } else { file.display().to_string() };
    let definitions = read(file)
        .and_then(|text| from_crd::crds(&text))
        .with_context(|| format!("cannot generate types from {shown}"))?;
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
            ui.warn(&format!("not represented in the types of {kind}: {what}"));
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
