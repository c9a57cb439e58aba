//! Container images of an operator, without a container runtime.
//!
//! An image has two layers: the files that seldom change (CA certificates, user, shared libraries) and the
//! binary. It depends only on the binary, Cargo.toml, Cargo.lock and the commit: the same source gives the
//! same digest.

pub(crate) mod blob;
mod compile;
mod credentials;
pub(crate) mod layer;
pub(crate) mod layout;
mod libraries;
pub(crate) mod load;
mod manifest;
mod package;
mod paths;
pub(crate) mod platform;
pub(crate) mod registry;
pub(crate) mod resolve;
mod rootfs;
mod sbom;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use k8s_openapi::jiff::Timestamp;
use oci_spec::image::Descriptor;

use crate::error::Hint as _;
use crate::project::Project;
use crate::ui::Ui;

use blob::Blob;
use layer::{Files, Layer};
use libraries::Elf;
use manifest::{Content, PlatformImage};
use package::Dependencies;
use platform::{Libc, Platform};

/// What to build.
#[derive(Debug, Default)]
pub(crate) struct Options {
    /// Empty for the platform of this machine, or those of `binaries`.
    pub(crate) platforms: Vec<Platform>,
    /// Compiled operators, one for each platform. If empty, the operator is compiled.
    pub(crate) binaries: Vec<PathBuf>,
    pub(crate) bin: Option<String>,
    pub(crate) profile: String,
    pub(crate) libc: Libc,
    pub(crate) labels: Vec<(String, String)>,
    /// PEM files with further CA certificates.
    pub(crate) certificates: Vec<PathBuf>,
    pub(crate) sbom: bool,
    /// Further arguments for cargo.
    pub(crate) cargo: Vec<String>,
}

/// An image for one or several platforms.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    pub(crate) platforms: Vec<PlatformImage>,
    /// The index of an image for several platforms.
    pub(crate) index: Option<Blob>,
}

/// Compiles the operator and builds its image.
pub(crate) fn build(project: &Project, options: &Options, ui: &Ui) -> Result<Image> {
    let (seconds, created) = time()?;
    let mut platforms = Vec::new();
    for (platform, binary) in binaries(project, options, ui)? {
        platforms.push(of_platform(project, options, platform, &binary, seconds, &created)?);
    }
    let index = match &platforms[..] {
        [_] => None,
        several => {
            let manifests = several.iter().map(PlatformImage::descriptor).collect::<Result<Vec<_>>>()?;
            Some(manifest::index(manifests)?)
        }
    };
    Ok(Image { platforms, index })
}

/// The binaries by platform, sorted: the order of the flags must not change the digest.
fn binaries(project: &Project, options: &Options, ui: &Ui) -> Result<BTreeMap<Platform, PathBuf>> {
    let mut asked = BTreeSet::new();
    for platform in &options.platforms {
        if !asked.insert(*platform) {
            return Err(anyhow!("--platform contains {platform} twice")).hint("list each platform once");
        }
    }
    if !options.binaries.is_empty() {
        return compiled(&options.binaries, &asked);
    }
    if asked.is_empty() {
        let host = Platform::host()
            .context("images for this machine's architecture are not supported")
            .hint("select one with --platform linux/amd64")?;
        asked.insert(host);
    }
    let compile = compile::Options {
        bin: options.bin.as_deref(),
        profile: &options.profile,
        libc: options.libc,
        cargo: &options.cargo,
    };
    let compiled = asked.into_iter().map(|platform| {
        let binary = compile::compile(project, platform, &compile, ui)?;
        Ok((platform, binary))
    });
    compiled.collect()
}

/// Compiled binaries by the platform in their ELF header. `asked` restricts the platforms, unless it is empty.
fn compiled(binaries: &[PathBuf], asked: &BTreeSet<Platform>) -> Result<BTreeMap<Platform, PathBuf>> {
    let mut found: BTreeMap<Platform, PathBuf> = BTreeMap::new();
    for binary in binaries {
        let platform = Elf::parse(&read(binary)?).and_then(|elf| elf.platform());
        let platform = platform
            .with_context(|| format!("cannot use {}", binary.display()))
            .hint("pass a Linux binary, or let kubewright compile it")?;
        if !asked.is_empty() && !asked.contains(&platform) {
            return Err(anyhow!("{} is a binary for {platform} only", binary.display()))
                .hint("drop --platform, or let kubewright compile for the platforms");
        }
        if let Some(other) = found.insert(platform, binary.clone()) {
            return Err(anyhow!("{} and {} are both for {platform}", other.display(), binary.display()))
                .hint("pass one --binary for each platform");
        }
    }
    if let Some(missing) = asked.iter().find(|platform| !found.contains_key(platform)) {
        return Err(anyhow!("no --binary is for {missing}")).hint("pass one --binary for each platform");
    }
    Ok(found)
}

fn of_platform(
    project: &Project,
    options: &Options,
    platform: Platform,
    binary: &Path,
    seconds: u64,
    created: &str,
) -> Result<PlatformImage> {
    let data = read(binary)?;
    let elf = Elf::parse(&data).with_context(|| format!("cannot use {}", binary.display()))?;
    let target = platform.target(if elf.is_dynamic() { Libc::Glibc } else { Libc::Musl });
    let packages = if options.sbom {
        project.dependencies(Dependencies { target, cargo: &options.cargo, locked: true })?
    } else {
        project.packages()?
    };
    let operator = packages.operator(project)?;
    let mut labels: BTreeMap<String, String> = package::labels(project, operator);
    labels.extend(options.labels.iter().cloned());
    let layers: Vec<Layer> = vec![
        rootfs::base(&elf, platform, &options.certificates)?.layer(seconds, "CA certificates and user")?,
        rootfs::operator(data).layer(seconds, "operator")?,
    ];
    let mut image = manifest::assemble(platform, layers, &labels, created, Content::Operator)?;
    if options.sbom {
        image.attach(sbom::of(&packages, operator)?)?;
    }
    Ok(image)
}

fn read(binary: &Path) -> Result<Vec<u8>> {
    fs::read(binary).with_context(|| format!("cannot read the binary {}", binary.display()))
}

/// An image of files that nothing runs, such as an OLM bundle. By convention such images are for linux/amd64.
pub(crate) fn of_data(
    files: &Files,
    comment: &'static str,
    labels: &BTreeMap<String, String>,
) -> Result<Image> {
    let (seconds, created) = time()?;
    let platform: Platform = "linux/amd64".parse().map_err(|error: String| anyhow!(error))?;
    let layers = vec![files.layer(seconds, comment)?];
    let image = manifest::assemble(platform, layers, labels, &created, Content::Data)?;
    Ok(Image { platforms: vec![image], index: None })
}

const EPOCH_HINT: &str = "set it to a number of seconds since 1970, or unset it";

/// The time of images, as seconds and in RFC 3339.
fn time() -> Result<(u64, String)> {
    let seconds = source_date_epoch()?;
    let created = i64::try_from(seconds).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    let created = created.context("SOURCE_DATE_EPOCH is out of range").hint(EPOCH_HINT)?;
    Ok((seconds, created.to_string()))
}

/// The time of all files and of the image, by the convention of reproducible builds; 1970 by default.
fn source_date_epoch() -> Result<u64> {
    match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) if !text.is_empty() => {
            let seconds = text.parse();
            seconds
                .with_context(|| format!("SOURCE_DATE_EPOCH is not a number of seconds: {text}"))
                .hint(EPOCH_HINT)
        }
        _ => Ok(0),
    }
}

impl Image {
    /// What a tag refers to: the index, or the only manifest.
    pub(crate) fn top(&self) -> &Blob {
        self.index.as_ref().unwrap_or(&self.platforms[0].manifest)
    }

    pub(crate) fn digest(&self) -> &str {
        self.top().digest()
    }

    pub(crate) fn descriptor(&self) -> Result<Descriptor> {
        match &self.index {
            Some(index) => index.descriptor(),
            None => self.platforms[0].descriptor(),
        }
    }

    /// All blobs once, including manifests; SBOMs on request.
    pub(crate) fn blobs(&self, with_sboms: bool) -> Vec<&Blob> {
        let mut blobs: BTreeMap<&str, &Blob> = BTreeMap::new();
        let mut add = |blob| _ = blobs.insert(Blob::digest(blob), blob);
        for platform in &self.platforms {
            platform.layers.iter().for_each(|layer| add(&layer.blob));
            add(&platform.config);
            add(&platform.manifest);
            if let Some(sbom) = platform.sbom.as_ref().filter(|_| with_sboms) {
                [&sbom.document, &sbom.config, &sbom.manifest].into_iter().for_each(&mut add);
            }
        }
        self.index.iter().for_each(&mut add);
        blobs.into_values().collect()
    }

    /// The compressed size of the layers of all platforms, as registries show it.
    pub(crate) fn size(&self) -> u64 {
        let layers = self.platforms.iter().flat_map(|platform| &platform.layers);
        layers.map(|layer| layer.blob.size()).sum()
    }
}
