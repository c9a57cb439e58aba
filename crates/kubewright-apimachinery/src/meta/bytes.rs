//! Fields of type `[]byte`: base64 in JSON, possibly with PEM inside.
//!
//! Decoding has already rejected invalid base64, so these functions do not fail.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes bytes as base64.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits =
            chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            let sextet = bits >> (18 - 6 * i) & 63;
            text.push(if i > chunk.len() { '=' } else { char::from(ALPHABET[sextet as usize]) });
        }
    }
    text
}

/// Decodes base64. Skips characters outside the alphabet.
pub fn decode(text: &str) -> Vec<u8> {
    let sextets: Vec<u32> = text.bytes().filter_map(sextet).collect();
    let mut bytes = Vec::with_capacity(sextets.len() * 3 / 4);
    for chunk in sextets.chunks(4) {
        let bits = chunk.iter().fold(0, |bits, sextet| bits << 6 | sextet) << (6 * (4 - chunk.len()));
        bytes.extend_from_slice(&bits.to_be_bytes()[1..chunk.len().max(1)]);
    }
    bytes
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

fn sextet(byte: u8) -> Option<u32> {
    ALPHABET.iter().position(|letter| *letter == byte).and_then(|position| u32::try_from(position).ok())
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
