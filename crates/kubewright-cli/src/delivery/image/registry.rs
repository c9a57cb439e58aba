//! Registries: pushes images, resolves tags, and reads the platforms of images.
//!
//! Blobs that the registry has are not uploaded again. Manifests come last, so that a tag never refers to
//! missing blobs. SBOMs are attached as referrers; registries without the referrers API get the tag
//! `sha256-DIGEST` of the specification.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use bytes::Bytes;
use futures_util::stream;
use http::HeaderValue;
use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::errors::OciDistributionError;
use oci_client::manifest::OciManifest;
use oci_client::secrets::RegistryAuth;
use oci_client::{Client, Reference, RegistryOperation};
use oci_spec::image::Descriptor;
use serde_json::Value;

use super::blob::Blob;
use super::manifest::{self, Sbom};
use super::{Image, credentials};
use crate::error::Hint as _;
use crate::ui::{Progress, Ui};

/// Size of the parts of a blob, for progress.
const PART: usize = 256 * 1024;
/// Timeout for a connection, and for a registry that stops responding.
const CONNECT: Duration = Duration::from_secs(30);
const READ: Duration = Duration::from_mins(2);
/// Attempts to upload a blob if the connection fails.
const ATTEMPTS: u32 = 3;

/// What a push did.
#[derive(Debug, Default)]
pub(crate) struct Pushed {
    /// Blobs that were uploaded.
    pub(crate) uploaded: usize,
    /// Blobs that the registry had.
    pub(crate) present: usize,
}

/// A repository in a registry.
pub(crate) struct Repository<'a> {
    client: Client,
    reference: Reference,
    authentication: RegistryAuth,
    ui: &'a Ui,
}

impl<'a> Repository<'a> {
    /// Connects with the user's credentials. `insecure` allows plain HTTP, which is always used for
    /// registries on this machine.
    pub(crate) async fn connect(reference: &Reference, insecure: bool, ui: &'a Ui) -> Result<Self> {
        let operations = [RegistryOperation::Push, RegistryOperation::Pull];
        Self::connect_for(&operations, reference, insecure, ui).await
    }

    /// The same for users who may not push.
    pub(crate) async fn connect_to_read(reference: &Reference, insecure: bool, ui: &'a Ui) -> Result<Self> {
        Self::connect_for(&[RegistryOperation::Pull], reference, insecure, ui).await
    }

    async fn connect_for(
        operations: &[RegistryOperation],
        reference: &Reference,
        insecure: bool,
        ui: &'a Ui,
    ) -> Result<Self> {
        // Fails only if a provider is installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let registry = reference.resolve_registry();
        let protocol = if insecure || is_local(registry) {
            ClientProtocol::HttpsExcept(vec![registry.to_owned()])
        } else {
            ClientProtocol::Https
        };
        let config = ClientConfig {
            protocol,
            use_monolithic_push: true,
            connect_timeout: Some(CONNECT),
            read_timeout: Some(READ),
            user_agent: concat!("kubewright/", env!("CARGO_PKG_VERSION")),
            ..ClientConfig::default()
        };
        let client = Client::try_from(config).map_err(|error| readable(&error, reference))?;
        let authentication = credentials::of(reference)?;
        let repository = Self { client, reference: reference.clone(), authentication, ui };
        for operation in operations {
            repository.authenticate(*operation).await?;
        }
        Ok(repository)
    }

    async fn authenticate(&self, operation: RegistryOperation) -> Result<()> {
        let registry = self.reference.registry();
        self.client.auth(&self.reference, &self.authentication, operation).await.map_err(|error| {
            let advice = match (&error, &self.authentication) {
                (OciDistributionError::AuthenticationFailure(_), RegistryAuth::Anonymous) => {
                    format!("there are no credentials for {registry}: run `docker login {registry}`")
                }
                (OciDistributionError::AuthenticationFailure(_), _) => {
                    format!("the credentials for {registry} were rejected: run `docker login {registry}`")
                }
                (OciDistributionError::RequestError(_), _) => {
                    "check the registry's name; for a registry without TLS add --insecure-registry".to_owned()
                }
                _ => {
                    return readable(&error, &self.reference).context(format!("cannot log in to {registry}"));
                }
            };
            readable(&error, &self.reference).context(format!("cannot log in to {registry}")).hint(advice)
        })?;
        Ok(())
    }

    /// The digest of the tag.
    pub(crate) async fn digest(&self) -> Result<String> {
        self.client
            .fetch_manifest_digest(&self.reference, &self.authentication)
            .await
            .map_err(|error| readable(&error, &self.reference))
            .with_context(|| format!("cannot resolve {}", self.reference))
    }

    /// The architectures of the image on Linux: those of its index, or that of its configuration.
    pub(crate) async fn architectures(&self) -> Result<BTreeSet<String>> {
        let failed = || format!("cannot read the platforms of {}", self.reference);
        let manifest = self.client.pull_manifest(&self.reference, &self.authentication).await;
        let (manifest, _) =
            manifest.map_err(|error| readable(&error, &self.reference)).with_context(failed)?;
        let platforms: Vec<Value> = match manifest {
            OciManifest::ImageIndex(index) => {
                let platforms = index.manifests.iter().filter_map(|entry| entry.platform.as_ref());
                platforms.map(serde_json::to_value).collect::<Result<_, _>>().with_context(failed)?
            }
            OciManifest::Image(manifest) => {
                let mut config = Vec::new();
                let pulled = self.client.pull_blob(&self.reference, &manifest.config, &mut config).await;
                pulled.map_err(|error| readable(&error, &self.reference)).with_context(failed)?;
                vec![serde_json::from_slice(&config).with_context(failed)?]
            }
        };
        let linux = platforms.iter().filter(|platform| platform["os"] == "linux");
        Ok(linux.filter_map(|platform| platform["architecture"].as_str().map(str::to_owned)).collect())
    }

    /// Pushes the image under its tag.
    pub(crate) async fn push(&self, image: &Image) -> Result<Pushed> {
        let mut pushed = Pushed::default();
        for platform in &image.platforms {
            let layers = platform.layers.iter().map(|layer| &layer.blob);
            for blob in layers.chain([&platform.config]) {
                self.push_blob(blob, &mut pushed).await?;
            }
            if image.index.is_some() {
                self.push_manifest(&platform.manifest, &self.by_digest(&platform.manifest)).await?;
            }
        }
        self.push_manifest(image.top(), &self.reference).await?;
        for platform in &image.platforms {
            if let Some(sbom) = &platform.sbom {
                self.push_sbom(&platform.manifest, sbom, &mut pushed)
                    .await
                    .context("the image was pushed, but not its SBOM")
                    .hint("push the image without it: --sbom=false")?;
            }
        }
        Ok(pushed)
    }

    fn by_digest(&self, manifest: &Blob) -> Reference {
        self.reference.clone_with_digest(manifest.digest().to_owned())
    }

    /// Uploads a blob, unless the registry has it.
    async fn push_blob(&self, blob: &Blob, pushed: &mut Pushed) -> Result<()> {
        let failed = || format!("cannot push {} to {}", short(blob), self.reference.registry());
        let exists = self.client.blob_exists(&self.reference, blob.digest()).await;
        if exists.map_err(|error| readable(&error, &self.reference)).with_context(failed)? {
            pushed.present += 1;
            return Ok(());
        }
        let mut attempt = 1;
        loop {
            match self.upload(blob).await {
                Ok(()) => break,
                Err(error) if attempt < ATTEMPTS && is_temporary(&error) => {
                    self.ui.warn(&format!("{}: {error}; trying again", failed()));
                    tokio::time::sleep(Duration::from_secs(1 << attempt)).await;
                    attempt += 1;
                }
                Err(error) => return Err(readable(&error, &self.reference)).with_context(failed),
            }
        }
        pushed.uploaded += 1;
        Ok(())
    }

    async fn upload(&self, blob: &Blob) -> Result<(), OciDistributionError> {
        let progress = Progress::start(self.ui, &format!("pushing {}", short(blob)), blob.size());
        let progress = Arc::new(Mutex::new(progress));
        let parts = {
            let progress = Arc::clone(&progress);
            let parts = parts(blob.bytes());
            stream::iter(parts.into_iter().map(move |part| {
                if let Ok(mut progress) = progress.lock() {
                    progress.advance(part.len() as u64);
                }
                Ok(part)
            }))
        };
        self.client.push_blob_stream(&self.reference, parts, blob.digest(), Some(blob.size())).await?;
        if let Ok(mut progress) = progress.lock() {
            progress.end();
        }
        Ok(())
    }

    async fn push_manifest(&self, manifest: &Blob, reference: &Reference) -> Result<()> {
        let media_type = HeaderValue::from_str(manifest.media_type()).context("invalid media type")?;
        self.client
            .push_manifest_raw(reference, manifest.bytes(), media_type)
            .await
            .map_err(|error| readable(&error, reference))
            .with_context(|| format!("cannot push the manifest of {reference}"))?;
        Ok(())
    }

    /// Attaches an SBOM to a manifest.
    async fn push_sbom(&self, subject: &Blob, sbom: &Sbom, pushed: &mut Pushed) -> Result<()> {
        self.push_blob(&sbom.document, pushed).await?;
        self.push_blob(&sbom.config, pushed).await?;
        self.push_manifest(&sbom.manifest, &self.by_digest(&sbom.manifest)).await?;
        let failed = || format!("cannot list the referrers of {}", short(subject));
        let referrers = self.client.pull_referrers(&self.by_digest(subject), None).await;
        let referrers = referrers.map_err(|error| readable(&error, &self.reference)).with_context(failed)?;
        if referrers.manifests.iter().any(|entry| entry.digest == sbom.manifest.digest()) {
            return Ok(());
        }
        // The registry has no referrers API: keep their list under a tag, as the specification requires.
        let mut manifests: Vec<Descriptor> = Vec::new();
        for entry in &referrers.manifests {
            let entry = serde_json::to_value(entry).and_then(serde_json::from_value);
            manifests.push(entry.context("cannot read the list of referrers")?);
        }
        manifests.push(sbom.descriptor()?);
        let tag = Reference::with_tag(
            self.reference.registry().to_owned(),
            self.reference.repository().to_owned(),
            subject.digest().replace(':', "-"),
        );
        self.push_manifest(&manifest::index(manifests)?, &tag).await
    }
}

/// Whether a registry is on this machine; Docker uses HTTP for these as well.
pub(crate) fn is_local(registry: &str) -> bool {
    let host = registry.rsplit_once(':').map_or(registry, |(host, _)| host);
    host == "localhost" || host == "[::1]" || host.starts_with("127.")
}

/// Whether a reference names a registry, instead of Docker's default.
pub(crate) fn names_registry(text: &str) -> bool {
    text.split_once('/').is_some_and(|(first, _)| first.contains(['.', ':']) || first == "localhost")
}

fn parts(mut data: Bytes) -> Vec<Bytes> {
    let mut parts = Vec::new();
    while !data.is_empty() {
        let part = data.split_to(data.len().min(PART));
        parts.push(part);
    }
    parts
}

/// Whether another attempt can succeed.
fn is_temporary(error: &OciDistributionError) -> bool {
    match error {
        OciDistributionError::RequestError(error) => error.status().is_none_or(|it| it.is_server_error()),
        OciDistributionError::ServerError { code, .. } => *code >= 500,
        _ => false,
    }
}

/// Whether the registry rejects the user.
fn is_forbidden(error: &OciDistributionError) -> bool {
    match error {
        OciDistributionError::UnauthorizedError { .. } => true,
        OciDistributionError::RequestError(error) => {
            error.status().is_some_and(|status| matches!(status.as_u16(), 401 | 403))
        }
        OciDistributionError::ServerError { code, .. } => matches!(code, 401 | 403),
        _ => false,
    }
}

fn short(blob: &Blob) -> String {
    format!("sha256:{}", &blob.hex()[..12])
}

/// An error with all its causes, since some are only in the chain, and advice.
fn readable(error: &OciDistributionError, reference: &Reference) -> anyhow::Error {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        let message = next.to_string();
        if !text.contains(&message) {
            text = format!("{text}: {message}");
        }
        cause = next.source();
    }
    let readable = anyhow!(text);
    if !is_forbidden(error) {
        return readable;
    }
    readable.hint(format!(
        "run `docker login {}` with an account that has access to {}",
        reference.registry(),
        reference.repository()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registries_on_this_machine_use_http() {
        for local in ["localhost", "localhost:5000", "127.0.0.1:5000", "[::1]:5000"] {
            assert!(is_local(local), "{local}");
        }
        for remote in ["docker.io", "registry.example.com:5000", "localhost.example.com"] {
            assert!(!is_local(remote), "{remote}");
        }
    }

    #[test]
    fn only_a_host_name_is_a_registry() {
        for named in ["localhost/shop", "localhost:5000/shop", "ghcr.io/shop/operator:v1"] {
            assert!(names_registry(named), "{named}");
        }
        for plain in ["controller:latest", "shop/operator:v1"] {
            assert!(!names_registry(plain), "{plain}");
        }
    }

    #[test]
    fn parts_are_the_whole_blob() {
        let data = Bytes::from(vec![7; PART * 2 + 1]);
        let sizes: Vec<usize> = parts(data).iter().map(Bytes::len).collect();
        assert_eq!(sizes, [PART, PART, 1]);
        assert!(parts(Bytes::new()).is_empty());
    }
}
