//! Short hashes for names and labels, in the letters that Kubernetes uses for them.

/// The letters of generated names: none that looks like another, and no vowels that could make words.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// FNV-1a of 32 bits.
pub(crate) fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// FNV-1 of 32 bits, which is older: it multiplies first.
pub(crate) fn fnv1(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5_u32, |hash, byte| hash.wrapping_mul(0x0100_0193) ^ u32::from(*byte))
}

/// A hash as text for names: its decimal digits, each replaced by a letter.
pub(crate) fn encode(hash: u32) -> String {
    hash.to_string().bytes().map(|digit| char::from(LETTERS[usize::from(digit) % LETTERS.len()])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_and_the_letters_are_those_of_kubernetes() {
        assert_eq!(fnv1a(b""), 0x811c_9dc5);
        assert_eq!(fnv1a(b"a"), 0xe40c_292c);
        assert_eq!(fnv1(b"a"), 0x050c_5d7e);
        assert_eq!(encode(1_234_567_890), "56789bcdf4");
    }
}
