//! `kubewright bundle`: generates an OLM bundle from config/default and the compiled operator.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::Value;

use crate::cli::examples::examples;
use crate::delivery::bundle::{self, Options, Previous, Source};
use crate::delivery::generated::{How, Tree};
use crate::delivery::package::Package;
use crate::dev::samples;
use crate::project::project_file::ProjectFile;
use crate::project::{Project, manifests, read};
use crate::ui::Ui;

const EXAMPLES: &[(&str, &str)] = &[
    ("Generate the bundle, or update it", "kubewright bundle"),
    ("Fail in CI if the bundle is out of date", "kubewright bundle --check"),
    (
        "Release a version that replaces another",
        "kubewright bundle --version 1.1.0 --channels stable --replaces shop.v1.0.0",
    ),
    (
        "Pin the image",
        "kubewright bundle --image example.com/shop@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    ),
];

/// Generate an OLM bundle in bundle/
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(crate) struct Args {
    /// Project directory
    #[arg(value_name = "DIR", default_value = ".")]
    project: PathBuf,

    #[command(flatten)]
    how: How,

    /// Version of the bundle [default: the version in Cargo.toml]
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,

    /// Channels that contain the bundle [default: alpha]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    channels: Vec<String>,

    /// Channel of new subscriptions [default: the first channel]
    #[arg(long, value_name = "NAME")]
    default_channel: Option<String>,

    /// ClusterServiceVersion that this version replaces, such as shop.v1.0.0
    #[arg(long, value_name = "NAME")]
    replaces: Option<String>,

    /// ClusterServiceVersions that updates skip
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    skips: Vec<String>,

    /// Range of versions that can be updated to this one, such as '>=1.0.0 <1.1.0'
    #[arg(long, value_name = "RANGE")]
    skip_range: Option<String>,

    /// Image of the manager, with a digest to pin it [default: the image in config/default]
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,

    /// Operator binary, if the package has several
    #[arg(long, value_name = "NAME")]
    bin: Option<String>,

    /// Arguments for cargo, after `--`
    #[arg(value_name = "CARGO_ARGS", last = true)]
    cargo: Vec<String>,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Result<()> {
    let project = Project::find(&args.project)?;
    let file = ProjectFile::load(project.root())?;
    let declarations = project.declarations(args.bin.as_deref(), &args.cargo, ui)?;
    let manifests = project.manifests(&declarations, &manifests::Options::default())?;
    manifests.tell(ui)?;
    if !manifests.changes.is_empty() {
        ui.warn("config/ differs from the compiled operator; run `kubewright manifests` first");
    }
    let previous = Previous::read(project.root(), &file.project_name)?;
    let mut objects = project.rendered()?;
    let placeholder = objects.manager()?.containers().any(|container| {
        container["image"].as_str().is_some_and(|image| image.split([':', '@']).next() == Some("controller"))
    });
    let image = args.image.clone().or_else(|| previous.image.clone().filter(|_| placeholder));
    if let Some(image) = &image {
        objects.set_image(image)?;
    }
    let package = Package::read(&project)?;
    let options = Options {
        version: args.version.clone(),
        channels: args.channels.clone(),
        default_channel: args.default_channel.clone(),
        replaces: args.replaces.clone(),
        skips: args.skips.clone(),
        skip_range: args.skip_range.clone(),
    };
    let options = options.or(&previous, &package.version);
    let samples: Vec<Value> =
        samples::read(project.root())?.iter().map(|sample| sample.object().clone()).collect();
    let source = Source {
        package,
        project: file,
        objects,
        declarations: &declarations,
        readme: read(project.root(), "README.md")?,
        samples,
    };
    let files = bundle::files(&source, &options)?;
    Tree { command: "bundle", record: bundle::RECORD, files }.carry_out(&project, args.how, ui)
}
