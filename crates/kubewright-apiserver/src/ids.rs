//! Random identifiers: UIDs, generated names, ports and addresses.
//!
//! Each server has one seeded source: the same seed and the same requests give the same names.

use std::sync::{Mutex, PoisonError};

use uuid::Builder;

/// Characters of generated names: no vowels and no similar characters.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Maximum length of a generated name: a DNS label, as upstream.
const MAX_NAME: usize = 63;
const SUFFIX: usize = 5;

/// A source of identifiers.
#[derive(Debug)]
pub(crate) struct Ids(Mutex<fastrand::Rng>);

impl Ids {
    pub(crate) fn new(seed: Option<u64>) -> Self {
        Self(Mutex::new(seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed)))
    }

    /// A random UUID (version 4).
    pub(crate) fn uid(&self) -> String {
        let bits = self.draw(|rng| rng.u128(..));
        Builder::from_random_bytes(bits.to_be_bytes()).into_uuid().to_string()
    }

    /// A name that starts with `prefix`, truncated to fit.
    pub(crate) fn name(&self, prefix: &str) -> String {
        let mut end = prefix.len().min(MAX_NAME - SUFFIX);
        while !prefix.is_char_boundary(end) {
            end -= 1;
        }
        let mut name = prefix[..end].to_owned();
        self.draw(|rng| {
            for _ in 0..SUFFIX {
                name.push(char::from(ALPHABET[rng.usize(..ALPHABET.len())]));
            }
        });
        name
    }

    /// A random number below `end`.
    pub(crate) fn below(&self, end: u32) -> u32 {
        self.draw(|rng| rng.u32(..end))
    }

    /// An independent source for a forked server.
    pub(crate) fn fork(&self) -> Self {
        Self(Mutex::new(self.draw(fastrand::Rng::fork)))
    }

    fn draw<T>(&self, draw: impl FnOnce(&mut fastrand::Rng) -> T) -> T {
        draw(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_is_a_random_uuid() {
        let uid = Ids::new(Some(1)).uid();
        assert_eq!(uid.len(), 36);
        assert_eq!(uid.as_bytes()[14], b'4');
        assert!(matches!(uid.as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "{uid}");
    }

    #[test]
    fn the_same_seed_gives_the_same_names() {
        let (a, b) = (Ids::new(Some(7)), Ids::new(Some(7)));
        assert_eq!((a.uid(), a.name("web-")), (b.uid(), b.name("web-")));
    }

    #[test]
    fn a_long_prefix_is_truncated() {
        assert_eq!(Ids::new(Some(1)).name(&"x".repeat(80)).len(), MAX_NAME);
    }
}
