//! `kubewright image build`: compiles the operator and writes or pushes its image.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::{ImageArgs, runtime};
use crate::cli::examples::examples;
use crate::delivery::image::platform::Platform;
use crate::delivery::image::registry::{Pushed, Repository};
use crate::delivery::image::{Image, layout};
use crate::project::Project;
use crate::ui::Ui;

const EXAMPLES: &[(&str, &str)] = &[
    ("Build an OCI layout in dist/image", "kubewright image build"),
    (
        "Push an image for two platforms",
        "kubewright image build -t registry.example.com/shop:v1 --platform linux/amd64,linux/arm64 -o push",
    ),
    (
        "Write an archive for `docker load` and `ctr images import`",
        "kubewright image build -t shop:v1 --output docker-archive --dest shop.tar",
    ),
    ("Package a compiled binary", "kubewright image build --binary target/release/shop"),
];

/// Build the operator's image
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(crate) struct Args {
    /// Project directory
    #[arg(value_name = "DIR", default_value = ".")]
    project: PathBuf,

    /// Platforms, such as linux/amd64,linux/arm64 [default: linux on this machine's architecture]
    #[arg(long, value_name = "PLATFORM", value_delimiter = ',')]
    platform: Vec<Platform>,

    /// Where the image goes: oci-layout, docker-archive or push
    #[arg(short, long, value_name = "OUTPUT", default_value = "oci-layout", hide_possible_values = true)]
    output: Output,

    /// Path of the layout or archive [default: dist/image or dist/image.tar]
    #[arg(long, value_name = "PATH")]
    dest: Option<PathBuf>,

    /// Write the digest to this file
    #[arg(long, value_name = "FILE")]
    digest_file: Option<PathBuf>,

    /// Use HTTP for the registry; the default for registries on this machine
    #[arg(long)]
    insecure_registry: bool,

    #[command(flatten)]
    image: ImageArgs,
}

/// Where an image goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    /// A directory with an OCI layout
    OciLayout,
    /// An archive for `docker load`
    DockerArchive,
    /// A registry
    Push,
}

pub(super) fn run(args: &Args, ui: &Ui) -> Result<()> {
    let project = Project::find(&args.project)?;
    let reference = args.image.reference()?;
    let dest = |name: &str| args.dest.clone().unwrap_or_else(|| project.root().join("dist").join(name));
    if args.output == Output::DockerArchive {
        args.image.check_archive(&args.platform)?;
    }
    let image = args.image.build(&project, &args.platform, ui)?;
    let result = match args.output {
        Output::OciLayout => {
            let folder = dest("image");
            layout::write_directory(&image, &reference, &folder)?;
            format!("{} {}", folder.display(), image.digest())
        }
        Output::DockerArchive => {
            let file = dest("image.tar");
            layout::write_archive(&image, &reference, &file)?;
            format!("{} {}", file.display(), image.digest())
        }
        Output::Push => push(&image, &reference, args.insecure_registry, ui)?,
    };
    if let Some(file) = &args.digest_file {
        fs::write(file, image.digest())
            .with_context(|| format!("cannot write the digest to {}", file.display()))?;
    }
    ui.print(format!("{result}\n").as_bytes())
}

/// Pushes an image, and returns its reference by digest.
pub(crate) fn push(
    image: &Image,
    reference: &oci_client::Reference,
    insecure: bool,
    ui: &Ui,
) -> Result<String> {
    let Pushed { uploaded, present } = runtime()?.block_on(async {
        let repository = Repository::connect(reference, insecure, ui).await?;
        repository.push(image).await
    })?;
    ui.note(&format!("pushed {reference}: {uploaded} blobs uploaded, {present} already in the registry"));
    Ok(format!("{}/{}@{}", reference.registry(), reference.repository(), image.digest()))
}
