//! `kubewright build-installer`: one YAML file with everything that `kubectl apply` needs.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::image;
use crate::cli::examples::examples;
use crate::project::Project;
use crate::ui::Ui;

const EXAMPLES: &[(&str, &str)] = &[
    ("Write dist/install.yaml", "kubewright build-installer --image registry.example.com/shop:v1"),
    ("Print the installer", "kubewright build-installer --output -"),
];

/// Generate dist/install.yaml with the CRDs and the deployment
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(crate) struct Args {
    /// Project directory
    #[arg(value_name = "DIR", default_value = ".")]
    project: PathBuf,

    /// Image of the operator; with a digest, the installer does not change when the tag does
    #[arg(long, value_name = "IMG", default_value = "controller:latest")]
    image: String,

    /// Output file; - is standard output [default: dist/install.yaml]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Result<()> {
    let project = Project::find(&args.project)?;
    image::parse(&args.image)?;
    let mut rendered = project.rendered()?;
    rendered.set_image(&args.image)?;
    let text = rendered.to_yaml();
    if args.output.as_deref() == Some(Path::new("-")) {
        return ui.print(text.as_bytes());
    }
    let file = args.output.clone().unwrap_or_else(|| project.root().join("dist/install.yaml"));
    let failed = || format!("cannot write {}", file.display());
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).with_context(failed)?;
    }
    fs::write(&file, text).with_context(failed)?;
    ui.print(format!("wrote {}\n", file.display()).as_bytes())
}
