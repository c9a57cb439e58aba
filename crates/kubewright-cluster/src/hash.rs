//! Hashes for names and labels, in Kubernetes' safe alphabet.
//!
//! Kubernetes uses 32-bit FNV-1 and FNV-1a. The crate `fnv` has 64-bit FNV-1a only.

/// The alphabet of generated names: no vowels and no similar characters.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// 32-bit FNV-1a.
pub(crate) fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// 32-bit FNV-1.
pub(crate) fn fnv1(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5_u32, |hash, byte| hash.wrapping_mul(0x0100_0193) ^ u32::from(*byte))
}

/// Encodes a hash for names: each decimal digit is replaced by a safe character.
pub(crate) fn encode(hash: u32) -> String {
    hash.to_string().bytes().map(|digit| char::from(LETTERS[usize::from(digit) % LETTERS.len()])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_and_their_encoding_match_kubernetes() {
        assert_eq!(fnv1a(b""), 0x811c_9dc5);
        assert_eq!(fnv1a(b"a"), 0xe40c_292c);
        assert_eq!(fnv1(b"a"), 0x050c_5d7e);
        assert_eq!(encode(1_234_567_890), "56789bcdf4");
    }
}
