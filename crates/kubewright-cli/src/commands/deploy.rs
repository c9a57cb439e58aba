//! `kubewright deploy`: image, manifests and rollout in one command.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, anyhow};
use oci_client::Reference;
use tokio::runtime::Runtime;

use super::dev::duration;
use super::image::{self, ImageArgs};
use crate::cli::examples::examples;
use crate::delivery::deploy::{self, Nodes, Target};
use crate::delivery::image::load::Cluster;
use crate::delivery::image::platform::Platform;
use crate::delivery::image::{Image, layout, registry, resolve};
use crate::delivery::rendered::DEFAULT;
use crate::error::Hint as _;
use crate::project::Project;
use crate::ui::Ui;

const EXAMPLES: &[(&str, &str)] = &[
    ("Build, push and deploy", "kubewright deploy --tag registry.example.com/shop:v1"),
    ("Build, load into the kind cluster of the context, and deploy", "kubewright deploy --context kind-dev"),
    ("Deploy an existing image", "kubewright deploy --image registry.example.com/shop:v1"),
    (
        "Print the manifests with the image",
        "kubewright deploy --image registry.example.com/shop:v1 --dry-run",
    ),
];

/// Build and deploy the operator, and wait until it is available
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(crate) struct Args {
    /// Project directory
    #[arg(value_name = "DIR", default_value = ".")]
    project: PathBuf,

    /// Deploy this image instead of building one, with the digest of its tag
    #[arg(long, value_name = "IMG", conflicts_with_all = ["build", "tag", "binary", "platform", "push", "load"])]
    image: Option<String>,

    /// Build the image [default, unless --image is set]
    #[arg(long)]
    build: bool,

    /// Push the image [default if its name has a registry]
    #[arg(long, conflicts_with = "load")]
    push: bool,

    /// Load the image into kind, minikube, k3d or containerd [default: by the context, such as kind-dev]
    #[arg(long, value_name = "CLUSTER", hide_possible_values = true)]
    load: Option<Cluster>,

    /// Cluster name, minikube profile or containerd namespace of --load [default: by the context]
    #[arg(long, value_name = "NAME", requires = "load")]
    name: Option<String>,

    /// Platforms of the image [default: linux on this machine's architecture]
    #[arg(long, value_name = "PLATFORM", value_delimiter = ',')]
    platform: Vec<Platform>,

    /// Use HTTP for the registry; the default for registries on this machine
    #[arg(long)]
    insecure_registry: bool,

    /// Kubeconfig [default: KUBECONFIG, or ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Kubeconfig context [default: the current context]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    /// Wait for the rollout
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(default_value_t = true, action = clap::ArgAction::Set, hide_possible_values = true)]
    wait: bool,

    /// Timeout of the rollout
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    timeout: Duration,

    /// Print the objects without pushing, loading or applying
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    options: ImageArgs,
}

/// How nodes get the image.
#[derive(Debug)]
enum Delivery {
    Push,
    Load(Cluster, Option<String>),
    /// No node pulls images.
    Archive(Nodes),
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Result<()> {
    let project = Project::find(&args.project)?;
    let mut rendered = project.rendered()?;
    // Fails before a long build.
    let manager = rendered.manager()?.clone();
    let runtime = image::runtime()?;
    if args.dry_run {
        let image = match &args.image {
            Some(image) => args.existing(image, &runtime, ui)?,
            None => args.planned(&project, ui)?,
        };
        rendered.set_image(&image)?;
        return ui.print(rendered.to_yaml().as_bytes());
    }
    let target = runtime.block_on(Target::connect(args.kubeconfig.clone(), args.context.clone()))?;
    ui.note(&format!("deploying to {}", target.shown()));
    let image = match &args.image {
        Some(image) => args.existing(image, &runtime, ui)?,
        None => args.deliver(&project, &target, &runtime, ui)?,
    };
    rendered.set_image(&image)?;
    runtime.block_on(async {
        deploy::apply(&target.client, &rendered, ui).await?;
        if args.wait {
            deploy::wait(&target.client, &manager, args.timeout, ui).await?;
        }
        ui.print(format!("deployed {image}\n").as_bytes())
    })
}

impl Args {
    /// The user's image, with the digest of its tag if its registry answers: the nodes must not pull another image
    /// when the tag moves.
    fn existing(&self, image: &str, runtime: &Runtime, ui: &Ui) -> Result<String> {
        image::parse(image).map_err(|error| error.context(format!("cannot set the image in {DEFAULT}")))?;
        if !resolve::is_resolvable(image) {
            return Ok(image.to_owned());
        }
        let resolved = runtime.block_on(resolve::by_digest(image, self.insecure_registry, ui));
        Ok(resolved.unwrap_or_else(|error| {
            ui.note(&format!("{image} is deployed by its tag: {error:#}"));
            image.to_owned()
        }))
    }

    /// Builds the image, and returns the name that it would have in the Deployment.
    fn planned(&self, project: &Project, ui: &Ui) -> Result<String> {
        let reference = self.options.reference()?;
        let built = self.options.build(project, &self.platform, ui)?;
        if self.push || registry::names_registry(&self.options.tag) {
            return Ok(by_digest(&reference, &built));
        }
        Ok(layout::familiar(&by_content(&reference, &built)))
    }

    /// Builds the image, and pushes it or loads it into the nodes. Returns the image name for the Deployment.
    fn deliver(&self, project: &Project, target: &Target, runtime: &Runtime, ui: &Ui) -> Result<String> {
        let reference = self.options.reference()?;
        let delivery = self.delivery(target, runtime)?;
        if !matches!(delivery, Delivery::Push) {
            self.options.check_archive(&self.platform)?;
        }
        let built = self.options.build(project, &self.platform, ui)?;
        if let Delivery::Push = delivery {
            return image::push(&built, &reference, self.insecure_registry, ui);
        }
        // A tag with the digest: the same name with other content would not start a rollout.
        let reference = by_content(&reference, &built);
        let archive = project.root().join("dist/image.tar");
        layout::write_archive(&built, &reference, &archive)?;
        let shown = archive.display();
        match delivery {
            Delivery::Load(cluster, name) => cluster.load(&archive, name.as_deref(), ui)?,
            Delivery::Archive(Nodes::None) => {
                ui.note(&format!("this cluster has no nodes; the archive is {shown}"));
            }
            _ => ui.note(&format!(
                "the nodes of this cluster are simulated and pull no image; the archive is {shown}"
            )),
        }
        Ok(layout::familiar(&reference))
    }

    fn delivery(&self, target: &Target, runtime: &Runtime) -> Result<Delivery> {
        let local = target.context.local.as_ref();
        if let Some(cluster) = self.load {
            let of_context = local.filter(|local| local.cluster == cluster).map(|local| local.name.clone());
            return Ok(Delivery::Load(cluster, self.name.clone().or(of_context)));
        }
        if self.push {
            return Ok(Delivery::Push);
        }
        let nodes = runtime.block_on(target.nodes());
        if nodes == Nodes::Simulated {
            return Ok(Delivery::Archive(nodes));
        }
        if registry::names_registry(&self.options.tag) {
            return Ok(Delivery::Push);
        }
        if let Some(local) = local {
            return Ok(Delivery::Load(local.cluster, Some(local.name.clone())));
        }
        if nodes == Nodes::None {
            return Ok(Delivery::Archive(nodes));
        }
        Err(anyhow!("the image {} has no registry from which the cluster can pull it", self.options.tag)).hint(
            "push it to a registry: --tag registry.example.com/NAME:TAG; or load it: --load kind|minikube|k3d|containerd",
        )
    }
}

fn by_digest(reference: &Reference, image: &Image) -> String {
    format!("{}/{}@{}", reference.registry(), reference.repository(), image.digest())
}

/// The reference with the start of the digest in its tag.
fn by_content(reference: &Reference, image: &Image) -> Reference {
    let tag = format!("{}-{}", reference.tag().unwrap_or("latest"), &image.top().hex()[..12]);
    Reference::with_tag(reference.registry().to_owned(), reference.repository().to_owned(), tag)
}
