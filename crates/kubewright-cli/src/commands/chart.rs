//! `kubewright chart`: generates a Helm chart from config/default.

use std::path::PathBuf;

use anyhow::Result;

use crate::cli::examples::examples;
use crate::delivery::chart::{self, Source};
use crate::delivery::generated::{How, Tree};
use crate::project::Project;
use crate::ui::Ui;

const EXAMPLES: &[(&str, &str)] = &[
    ("Generate the chart, or update it", "kubewright chart"),
    ("Fail in CI if the chart is out of date", "kubewright chart --check"),
    ("Set the default image", "kubewright chart --image example.com/shop:v1.2.0"),
    ("Replace a chart that another tool generated", "kubewright chart --force"),
];

/// Generate a Helm chart in dist/chart
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(crate) struct Args {
    /// Project directory
    #[arg(value_name = "DIR", default_value = ".")]
    project: PathBuf,

    #[command(flatten)]
    how: How,

    /// Image of the manager in values.yaml [default: the image in config/default]
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Result<()> {
    let project = Project::find(&args.project)?;
    let source = Source::read(&project, args.image.as_deref())?;
    let files = chart::files(&source)?;
    Tree { command: "chart", record: chart::RECORD, files }.carry_out(&project, args.how, ui)
}
