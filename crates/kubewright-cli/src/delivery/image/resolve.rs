//! Resolves tags to digests, and images to their architectures, by asking the registry.

use std::collections::BTreeSet;
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
    let reference = parse(image)?;
    let digest = ask(&reference, async {
        Repository::connect_to_read(&reference, insecure, ui).await?.digest().await
    });
    Ok(format!("{}/{}@{}", reference.registry(), reference.repository(), digest.await?))
}

/// The architectures that an image is for on Linux, in Go's notation.
pub(crate) async fn architectures(image: &str, insecure: bool, ui: &Ui) -> Result<BTreeSet<String>> {
    let reference = parse(image)?;
    let architectures = ask(&reference, async {
        Repository::connect_to_read(&reference, insecure, ui).await?.architectures().await
    });
    architectures.await
}

fn parse(image: &str) -> Result<Reference> {
    image.parse().with_context(|| format!("invalid image reference {image}"))
}

async fn ask<T>(reference: &Reference, question: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::time::timeout(TIMEOUT, question)
        .await
        .map_err(|_| anyhow!("{} did not answer within {TIMEOUT:?}", reference.registry()))
        .hint("check the registry's name and the network")?
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
