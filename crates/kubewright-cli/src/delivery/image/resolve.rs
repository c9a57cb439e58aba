//! Resolves tags to digests, by asking the registry.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use oci_client::Reference;

use super::registry::{Repository, names_registry};
use crate::error::Hint as _;
use crate::ui::Ui;

/// Timeout for an answer. Resolving is optional, so an unreachable registry must not block for long.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Whether a registry can resolve an image: it has a tag, and its name has a registry.
pub(crate) fn is_resolvable(image: &str) -> bool {
    !is_pinned(image) && names_registry(image)
}

/// Whether an image has a digest.
pub(crate) fn is_pinned(image: &str) -> bool {
    image.contains('@')
}

/// The image with the digest of its tag: of the index, if it is for several platforms.
pub(crate) async fn by_digest(image: &str, insecure: bool, ui: &Ui) -> Result<String> {
    let reference: Reference = image.parse().with_context(|| format!("invalid image reference {image}"))?;
    let resolve = async {
        let repository = Repository::connect_to_read(&reference, insecure, ui).await?;
        repository.digest().await
    };
    let digest = tokio::time::timeout(TIMEOUT, resolve)
        .await
        .map_err(|_| anyhow!("{} did not answer within {TIMEOUT:?}", reference.registry()))
        .hint("check the registry's name and the network")??;
    Ok(format!("{}/{}@{digest}", reference.registry(), reference.repository()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tags_in_a_registry_are_resolved() {
        assert!(is_resolvable("registry.example.com/shop:v1"));
        for other in ["shop:v1", "shop/operator:v1", "registry.example.com/shop@sha256:00"] {
            assert!(!is_resolvable(other), "{other}");
        }
    }
}
