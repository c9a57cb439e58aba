//! Content-addressed data: layers, configurations, manifests and SBOMs.

use anyhow::{Context as _, Result};
use bytes::Bytes;
use oci_spec::image::{Descriptor, Digest, MediaType};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// Data with its media type and digest. Clones share the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Blob {
    media_type: String,
    digest: String,
    data: Bytes,
}

impl Blob {
    pub(crate) fn new(media_type: &str, data: impl Into<Bytes>) -> Self {
        let data = data.into();
        Self { media_type: media_type.to_owned(), digest: digest(&data), data }
    }

    /// A JSON document. Keys are sorted: the maps of oci-spec have no fixed order.
    pub(crate) fn json(media_type: &str, value: &impl Serialize) -> Result<Self> {
        let sorted = serde_json::to_value(value).context("cannot serialize a part of the image")?;
        Ok(Self::new(media_type, sorted.to_string().into_bytes()))
    }

    pub(crate) fn media_type(&self) -> &str {
        &self.media_type
    }

    /// The digest, with its algorithm: `sha256:...`.
    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }

    /// The digest without its algorithm.
    pub(crate) fn hex(&self) -> &str {
        self.digest.trim_start_matches("sha256:")
    }

    pub(crate) fn data(&self) -> &[u8] {
        &self.data
    }

    pub(crate) fn bytes(&self) -> Bytes {
        self.data.clone()
    }

    pub(crate) fn size(&self) -> u64 {
        self.data.len() as u64
    }

    pub(crate) fn descriptor(&self) -> Result<Descriptor> {
        let digest: Digest = self.digest.parse().context("invalid digest")?;
        Ok(Descriptor::new(MediaType::from(self.media_type.as_str()), self.size(), digest))
    }
}

/// The SHA-256 digest of data, with its algorithm.
pub(crate) fn digest(data: &[u8]) -> String {
    let hash = Sha256::digest(data);
    hash.iter().fold("sha256:".to_owned(), |mut text, byte| {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_an_empty_object_is_the_one_of_the_specification() {
        let blob = Blob::json("application/vnd.oci.empty.v1+json", &serde_json::json!({})).unwrap();
        assert_eq!(blob.digest(), "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
        assert_eq!(blob.descriptor().unwrap().size(), 2);
    }

    #[test]
    fn keys_are_sorted() {
        let map: std::collections::HashMap<String, u32> =
            (0..50).map(|number| (format!("key{number:02}"), number)).collect();
        let blob = Blob::json("application/json", &map).unwrap();
        let text = String::from_utf8(blob.data().to_vec()).unwrap();
        assert!(text.starts_with(r#"{"key00":0,"key01":1,"key02":2,"#), "{text}");
    }
}
