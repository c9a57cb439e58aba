//! `kubewright bundle`: generates an OLM bundle from config/default and the compiled operator.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Result;
use oci_client::Reference;
use serde_json::Value;

use super::image;
use crate::cli::examples::examples;
use crate::delivery::bundle::pins::{self, Pins};
use crate::delivery::bundle::{self, Options, Previous, Source};
use crate::delivery::generated::{How, Tree};
use crate::delivery::image::{layout, registry, resolve};
use crate::delivery::package::Package;
use crate::delivery::rendered::{Object, Rendered};
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
    ("Push the bundle's image, without Docker", "kubewright bundle --push example.com/shop-bundle:v1.1.0"),
    (
        "Use the image of a release, by the digest of its tag",
        "kubewright bundle --image example.com/shop:v1.1.0",
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

    /// Image of the manager [default: the image in config/default, or of the bundle on disk]
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,

    /// Replace the tags of all images by their digests, from the registry
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(default_value_t = true, action = clap::ArgAction::Set, hide_possible_values = true)]
    pin_images: bool,

    /// Use HTTP for registries; the default for registries on this machine
    #[arg(long)]
    insecure_registry: bool,

    /// Also build the bundle's image with this name, as an OCI layout in dist/bundle
    #[arg(long, value_name = "IMAGE", conflicts_with_all = ["check", "dry_run", "push"])]
    build: Option<String>,

    /// Also build the bundle's image and push it under this name
    #[arg(long, value_name = "IMAGE", conflicts_with_all = ["check", "dry_run"])]
    push: Option<String>,

    /// Operator binary, if the package has several
    #[arg(long, value_name = "NAME")]
    bin: Option<String>,

    /// Arguments for cargo, after `--`
    #[arg(value_name = "CARGO_ARGS", last = true)]
    cargo: Vec<String>,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Result<()> {
    let project = Project::find(&args.project)?;
    // Fails before a long build.
    let name = args.push.as_ref().or(args.build.as_ref()).map(|name| image::parse(name)).transpose()?;
    let file = ProjectFile::load(project.root())?;
    let inventory = project.inventory(args.bin.as_deref(), &args.cargo, ui)?;
    let manifests = project.manifests(&inventory, &manifests::Options::default())?;
    manifests.print_findings(ui)?;
    if !manifests.changes.is_empty() {
        ui.warn("config/ differs from the compiled operator; run `kubewright manifests` first");
    }
    let previous = Previous::read(project.root(), &file.project_name)?;
    let mut objects = project.rendered()?;
    let placeholder = objects.manager()?.containers().any(|container| {
        container["image"].as_str().is_some_and(|image| image.split([':', '@']).next() == Some("controller"))
    });
    let manager = args.image.clone().or_else(|| previous.image.clone().filter(|_| placeholder));
    if let Some(manager) = &manager {
        objects.set_image(manager)?;
    }
    let pins = if args.pin_images { args.pin(&mut objects, &previous.pins, ui)? } else { Pins::default() };
    let left_out = bundle::left_out(&objects)?;
    if !left_out.is_empty() {
        ui.warn(&format!(
            "OLM creates no roles in other namespaces than the operator's; apply them after the installation: {}",
            left_out.join(", ")
        ));
    }
    let architectures = args.architectures(&objects, &previous, ui)?;
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
        inventory: &inventory,
        readme: read(project.root(), "README.md")?,
        samples,
        icon: bundle::olm::icon(project.root(), &inventory)?,
        pins,
        architectures,
    };
    let files = bundle::files(&source, &options)?;
    Tree { command: "bundle", record: bundle::RECORD, files }.carry_out(&project, args.how, ui)?;
    match name {
        Some(name) => args.deliver(&project, &name, ui),
        None => Ok(()),
    }
}

impl Args {
    /// Builds the image of the bundle on disk, with the user's changes.
    fn deliver(&self, project: &Project, name: &Reference, ui: &Ui) -> Result<()> {
        let built = bundle::image::build(project.root())?;
        let result = if self.push.is_some() {
            image::push(&built, name, self.insecure_registry, ui)?
        } else {
            let folder = project.root().join("dist/bundle");
            layout::write_directory(&built, name, &folder)?;
            format!("{} {}", folder.display(), built.digest())
        };
        ui.print(format!("{result}\n").as_bytes())
    }

    /// The architectures of the manager's image, from the registry. Without an answer, those of the bundle on disk, else
    /// amd64.
    fn architectures(&self, objects: &Rendered, previous: &Previous, ui: &Ui) -> Result<BTreeSet<String>> {
        let known = || match &previous.architectures {
            known if known.is_empty() => BTreeSet::from(["amd64".to_owned()]),
            known => known.clone(),
        };
        let manager =
            objects.manager().map(Object::containers)?.find(|container| container["name"] == "manager");
        let image = manager.and_then(|container| container["image"].as_str()).unwrap_or_default();
        let is_known = resolve::is_pinned(image)
            && previous.image.as_deref() == Some(image)
            && !previous.architectures.is_empty();
        if self.how.check || !self.pin_images || is_known || !registry::names_registry(image) {
            return Ok(known());
        }
        let found = image::runtime()?.block_on(resolve::architectures(image, self.insecure_registry, ui));
        Ok(match found {
            Ok(found) if !found.is_empty() => found,
            Ok(_) => known(),
            Err(error) => {
                let known = known();
                let shown: Vec<&str> = known.iter().map(String::as_str).collect();
                ui.note(&format!("the bundle is for {}: {error:#}", shown.join(", ")));
                known
            }
        })
    }

    /// Pins all images. `--check` uses the recorded digests, so that it gives the same result without a registry
    /// and after a tag was moved.
    fn pin(&self, objects: &mut Rendered, recorded: &Pins, ui: &Ui) -> Result<Pins> {
        let runtime = image::runtime()?;
        let found = Pins::pin(objects, recorded, |image| {
            let known = || recorded.get(image).map(str::to_owned);
            if self.how.check || !resolve::is_resolvable(image) {
                return known();
            }
            let resolved = runtime.block_on(resolve::by_digest(image, self.insecure_registry, ui));
            resolved.map_or_else(
                |error| {
                    ui.note(&format!("{error:#}"));
                    known()
                },
                Some,
            )
        });
        let unpinned: Vec<String> = pins::unpinned(objects).into_iter().collect();
        if !unpinned.is_empty() {
            ui.warn(&format!(
                "images without a digest: {}; push them, and pass the manager's with --image, or allow tags with --pin-images=false",
                unpinned.join(", ")
            ));
        }
        Ok(found)
    }
}
