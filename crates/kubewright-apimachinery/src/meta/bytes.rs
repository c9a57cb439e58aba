//! Fields of type `[]byte`: base64 in JSON, possibly with PEM inside.
//!
//! Decoding has already rejected invalid base64, so these functions do not fail.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Like Go, accepts trailing bits that are not zero.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Encodes bytes as base64.
pub fn encode(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// Decodes base64; empty if it is invalid.
pub fn decode(text: &str) -> Vec<u8> {
    BASE64.decode(text).unwrap_or_default()
}

/// The decoded length.
pub fn length(text: &str) -> usize {
    text.trim_end_matches('=').len() * 3 / 4
}

/// The types of the PEM blocks, such as `CERTIFICATE`. Ignores text around the blocks.
pub fn pem_labels(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let mut labels = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let begin = line.strip_prefix("-----BEGIN ").and_then(|line| line.trim_end().strip_suffix("-----"));
        let Some(label) = begin else { continue };
        // Ignore blocks without an end line.
        let next_mark = lines.clone().find(|line| line.starts_with("-----")).unwrap_or_default();
        if next_mark.trim_end() == format!("-----END {label}-----") {
            labels.push(label.to_owned());
        }
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_round_trips() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text), bytes.as_bytes());
            assert_eq!(length(text), bytes.len());
        }
        assert_eq!(decode(&encode(&[0, 255, 128, 7])), [0, 255, 128, 7]);
    }

    #[test]
    fn pem_blocks_are_found_between_other_text() {
        let text = b"x\n-----BEGIN A B-----\nk: v\n\nZm9v\n-----END A B-----\n-----BEGIN C-----\nZm9v\n";
        assert_eq!(pem_labels(text), ["A B"]);
    }
}
