//! PEM as Go's `encoding/pem` reads it.

use kubewright_apimachinery::meta::bytes;

/// A PEM block.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) label: String,
    pub(super) has_headers: bool,
    pub(super) bytes: Vec<u8>,
}

/// The blocks of a text, in order. What is around them, and a block that is not well-formed, is skipped.
pub(super) fn blocks(text: &[u8]) -> Vec<Block> {
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let mut blocks = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let label = lines[at].strip_prefix("-----BEGIN ").and_then(|line| line.strip_suffix("-----"));
        at += 1;
        let Some(label) = label else { continue };
        let Some(length) = lines[at..].iter().position(|line| line.starts_with("-----")) else { continue };
        let body = &lines[at..at + length];
        if lines[at + length] != format!("-----END {label}-----") {
            continue;
        }
        let headers = body.iter().take_while(|line| line.contains(':')).count();
        let encoded: String = body[headers..].concat().split_whitespace().collect();
        let Some(decoded) = decode(&encoded) else { continue };
        at += length + 1;
        blocks.push(Block { label: label.to_owned(), has_headers: headers > 0, bytes: decoded });
    }
    blocks
}

/// Base64 that is whole: encoding what comes out gives what went in.
fn decode(encoded: &str) -> Option<Vec<u8>> {
    let decoded = bytes::decode(encoded);
    (bytes::encode(&decoded) == encoded).then_some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_between_other_text_and_know_of_headers() {
        let text = b"x\n-----BEGIN A B-----\nk: v\n\nZm9v\n-----END A B-----\n-----BEGIN C-----\nZm\n9v\n-----END C-----\n\
                     -----BEGIN D-----\n!\n-----END D-----\n-----BEGIN E-----\nZm9v\n";
        let found = blocks(text);
        assert_eq!(found.iter().map(|block| block.label.as_str()).collect::<Vec<_>>(), ["A B", "C"]);
        assert_eq!((found[0].has_headers, found[1].has_headers), (true, false));
        assert!(found.iter().all(|block| block.bytes == b"foo"));
    }
}
