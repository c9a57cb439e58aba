//! `kubewright image load`: builds an image and loads it into a local cluster.

use std::path::PathBuf;

use anyhow::Result;

use super::ImageArgs;
use crate::cli::examples::examples;
use crate::delivery::image::layout;
use crate::delivery::image::load::Cluster;
use crate::delivery::image::platform::Platform;
use crate::project::Project;
use crate::ui::Ui;

const EXAMPLES: &[(&str, &str)] = &[
    ("Build and load into the default kind cluster", "kubewright image load kind"),
    ("Load into a minikube profile", "kubewright image load minikube --name sandbox -t controller:dev"),
    ("Load an existing archive", "kubewright image load containerd --archive dist/image.tar"),
];

/// Load the operator's image into a local cluster
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(crate) struct Args {
    /// Cluster: kind, minikube, k3d or containerd (of this machine)
    #[arg(value_name = "CLUSTER", hide_possible_values = true)]
    cluster: Cluster,

    /// Project directory
    #[arg(value_name = "DIR", default_value = ".")]
    project: PathBuf,

    /// Cluster name, minikube profile or containerd namespace [default: the tool's, and k8s.io]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Platform of the nodes [default: linux on this machine's architecture]
    #[arg(long, value_name = "PLATFORM")]
    platform: Option<Platform>,

    /// Load this archive instead of building one
    #[arg(long, value_name = "FILE", conflicts_with_all = ["tag", "binary", "platform"])]
    archive: Option<PathBuf>,

    #[command(flatten)]
    image: ImageArgs,
}

pub(super) fn run(args: &Args, ui: &Ui) -> Result<()> {
    let archive = match &args.archive {
        Some(archive) => archive.clone(),
        None => args.build(ui)?,
    };
    args.cluster.load(&archive, args.name.as_deref(), ui)?;
    ui.print(format!("loaded {}\n", archive.display()).as_bytes())
}

impl Args {
    /// Builds the image, and returns the path of its archive.
    fn build(&self, ui: &Ui) -> Result<PathBuf> {
        let project = Project::find(&self.project)?;
        let reference = self.image.reference()?;
        self.image.check_archive(self.platform.as_slice())?;
        let image = self.image.build(&project, self.platform.as_slice(), ui)?;
        let archive = project.root().join("dist/image.tar");
        layout::write_archive(&image, &reference, &archive)?;
        Ok(archive)
    }
}
