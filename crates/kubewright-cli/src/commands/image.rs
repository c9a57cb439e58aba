//! `kubewright image`: container images without a container runtime.

mod build;
mod load;

pub(crate) use build::push;

use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow};
use oci_client::Reference;

use crate::cli::examples::examples;
use crate::delivery::image::platform::{Libc, Platform};
use crate::delivery::image::{self, Image, layout};
use crate::error::Hint as _;
use crate::project::Project;
use crate::ui::{Ui, megabytes};

const EXAMPLES: &[(&str, &str)] = &[
    ("Push an image", "kubewright image build --tag registry.example.com/shop:v1 --output push"),
    ("Load an image into a kind cluster", "kubewright image load kind"),
];

/// Build container images without Docker
#[derive(Debug, clap::Args)]
#[command(after_help = examples(EXAMPLES))]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Build(Box<build::Args>),
    Load(Box<load::Args>),
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Result<()> {
    match &args.command {
        Command::Build(args) => build::run(args, ui),
        Command::Load(args) => load::run(args, ui),
    }
}

/// Arguments of all commands that build an image.
#[derive(Debug, clap::Args)]
pub(crate) struct ImageArgs {
    /// Name and tag of the image
    #[arg(short, long, value_name = "IMG", default_value = "controller:latest")]
    pub(crate) tag: String,

    /// C library: musl (static) or glibc (a copy of this machine's)
    #[arg(long, value_name = "LIBC", default_value = "musl", hide_possible_values = true)]
    libc: Libc,

    /// Use this compiled binary instead of compiling (one per platform)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["bin", "profile", "libc", "cargo"])]
    binary: Vec<PathBuf>,

    /// Operator binary, if the package has several
    #[arg(long, value_name = "NAME")]
    bin: Option<String>,

    /// Cargo profile
    #[arg(long, value_name = "NAME", default_value = "release")]
    profile: String,

    /// Label, in addition to those from Cargo.toml and git (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = label)]
    label: Vec<(String, String)>,

    /// PEM file with further CA certificates (repeatable)
    #[arg(long, value_name = "FILE")]
    ca_file: Vec<PathBuf>,

    /// Attach an SBOM (CycloneDX)
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(default_value_t = true, action = clap::ArgAction::Set, hide_possible_values = true)]
    sbom: bool,

    /// Arguments for cargo, after `--`
    #[arg(value_name = "CARGO_ARGS", last = true)]
    cargo: Vec<String>,
}

impl ImageArgs {
    /// The reference that the image gets.
    pub(crate) fn reference(&self) -> Result<Reference> {
        let reference = parse(&self.tag)?;
        if reference.digest().is_some() {
            return Err(anyhow!("{} contains a digest; the digest is known only after the build", self.tag))
                .hint("pass a name and a tag: --tag registry.example.com/shop:v1");
        }
        Ok(reference)
    }

    /// Fails before a long build if the image does not fit into an archive.
    pub(crate) fn check_archive(&self, platforms: &[Platform]) -> Result<()> {
        layout::check_archive(platforms.len().max(self.binary.len()))
    }

    /// Compiles the operator and builds the image.
    pub(crate) fn build(&self, project: &Project, platforms: &[Platform], ui: &Ui) -> Result<Image> {
        let options = image::Options {
            platforms: platforms.to_vec(),
            binaries: self.binary.clone(),
            bin: self.bin.clone(),
            profile: self.profile.clone(),
            libc: self.libc,
            labels: self.label.clone(),
            certificates: self.ca_file.clone(),
            sbom: self.sbom,
            cargo: self.cargo.clone(),
        };
        let image = image::build(project, &options, ui)?;
        let platforms: Vec<String> = image.platforms.iter().map(|it| it.platform.to_string()).collect();
        ui.note(&format!("built {} ({}, {})", image.digest(), platforms.join(", "), megabytes(image.size())));
        Ok(image)
    }
}

/// Parses an image reference.
pub(crate) fn parse(text: &str) -> Result<Reference> {
    text.parse::<Reference>()
        .with_context(|| format!("invalid image reference {text}"))
        .hint("use for example registry.example.com/shop:v1, in lowercase")
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

/// A runtime for the registry and the cluster.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start the runtime")
}
