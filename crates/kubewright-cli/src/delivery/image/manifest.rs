//! The configuration, manifests and index of an image.

use std::collections::{BTreeMap, HashMap};

use anyhow::{Context as _, Result};
use oci_spec::image::{
    Arch, Config, ConfigBuilder, Descriptor, HistoryBuilder, ImageConfigurationBuilder, ImageIndexBuilder,
    ImageManifestBuilder, MediaType, Os, PlatformBuilder, RootFsBuilder,
};

use super::blob::Blob;
use super::layer::Layer;
use super::platform::Platform;
use super::rootfs::{ENTRYPOINT, USER};
use super::sbom;

const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(crate) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const EMPTY: &str = "application/vnd.oci.empty.v1+json";
/// The version of all image specifications so far.
const SCHEMA: u32 = 2;

/// An image for one platform.
#[derive(Clone, Debug)]
pub(crate) struct PlatformImage {
    pub(crate) platform: Platform,
    pub(crate) config: Blob,
    pub(crate) layers: Vec<Layer>,
    pub(crate) manifest: Blob,
    pub(crate) sbom: Option<Sbom>,
}

/// An SBOM, attached to a manifest: its manifest has the image's manifest as its subject.
#[derive(Clone, Debug)]
pub(crate) struct Sbom {
    pub(crate) document: Blob,
    /// The empty configuration.
    pub(crate) config: Blob,
    pub(crate) manifest: Blob,
}

/// What an image is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Containers run the operator.
    Operator,
    /// Tools read the files.
    Data,
}

/// Assembles the image of a platform. `created` is a time in RFC 3339.
pub(crate) fn assemble(
    platform: Platform,
    layers: Vec<Layer>,
    labels: &BTreeMap<String, String>,
    created: &str,
    content: Content,
) -> Result<PlatformImage> {
    let failed = "cannot assemble the image";
    let labels: HashMap<String, String> = labels.clone().into_iter().collect();
    let history = layers
        .iter()
        .map(|layer| {
            HistoryBuilder::default()
                .created(created)
                .created_by("kubewright image build")
                .comment(layer.comment)
                .build()
                .context(failed)
        })
        .collect::<Result<Vec<_>>>()?;
    let diff_ids: Vec<String> = layers.iter().map(|layer| layer.diff_id.clone()).collect();
    let rootfs = RootFsBuilder::default().typ("layers").diff_ids(diff_ids).build().context(failed)?;
    let mut config = ImageConfigurationBuilder::default()
        .created(created)
        .architecture(Arch::from(platform.architecture()))
        .os(Os::Linux)
        .config(execution(labels.clone(), content)?)
        .rootfs(rootfs)
        .history(history);
    if let Some(variant) = platform.variant() {
        config = config.variant(variant);
    }
    let config = Blob::json(CONFIG, &config.build().context(failed)?)?;
    let descriptors = layers.iter().map(|layer| layer.blob.descriptor()).collect::<Result<Vec<_>>>()?;
    let manifest = ImageManifestBuilder::default()
        .schema_version(SCHEMA)
        .media_type(MediaType::ImageManifest)
        .config(config.descriptor()?)
        .layers(descriptors)
        .annotations(labels)
        .build()
        .context(failed)?;
    let manifest = Blob::json(MANIFEST, &manifest)?;
    Ok(PlatformImage { platform, config, layers, manifest, sbom: None })
}

fn execution(labels: HashMap<String, String>, content: Content) -> Result<Config> {
    let config = ConfigBuilder::default().labels(labels);
    let config = match content {
        Content::Operator => runnable(config),
        Content::Data => config,
    };
    config.build().context("cannot assemble the image")
}

fn runnable(config: ConfigBuilder) -> ConfigBuilder {
    config
        .user(format!("{USER}:{USER}"))
        .env(vec![
            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned(),
            "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt".to_owned(),
        ])
        .entrypoint(vec![ENTRYPOINT.to_owned()])
        .working_dir("/")
}

impl PlatformImage {
    /// Attaches an SBOM.
    pub(crate) fn attach(&mut self, document: Blob) -> Result<()> {
        let config = Blob::new(EMPTY, b"{}".as_slice());
        let manifest = ImageManifestBuilder::default()
            .schema_version(SCHEMA)
            .media_type(MediaType::ImageManifest)
            .artifact_type(MediaType::from(sbom::MEDIA_TYPE))
            .config(config.descriptor()?)
            .layers(vec![document.descriptor()?])
            .subject(self.manifest.descriptor()?)
            .build()
            .context("cannot assemble the manifest of the SBOM")?;
        let manifest = Blob::json(MANIFEST, &manifest)?;
        self.sbom = Some(Sbom { document, config, manifest });
        Ok(())
    }

    /// The descriptor of the manifest, with the platform.
    pub(crate) fn descriptor(&self) -> Result<Descriptor> {
        let mut platform =
            PlatformBuilder::default().architecture(Arch::from(self.platform.architecture())).os(Os::Linux);
        if let Some(variant) = self.platform.variant() {
            platform = platform.variant(variant);
        }
        let mut descriptor = self.manifest.descriptor()?;
        descriptor.set_platform(Some(platform.build().context("cannot describe the platform")?));
        Ok(descriptor)
    }
}

impl Sbom {
    /// The descriptor of the manifest, with the type of the artifact.
    pub(crate) fn descriptor(&self) -> Result<Descriptor> {
        let mut descriptor = self.manifest.descriptor()?;
        descriptor.set_artifact_type(Some(MediaType::from(sbom::MEDIA_TYPE)));
        Ok(descriptor)
    }
}

/// An index of manifests.
pub(crate) fn index(manifests: Vec<Descriptor>) -> Result<Blob> {
    let index = ImageIndexBuilder::default()
        .schema_version(SCHEMA)
        .media_type(MediaType::ImageIndex)
        .manifests(manifests)
        .build()
        .context("cannot assemble the index of the image")?;
    Blob::json(INDEX, &index)
}
