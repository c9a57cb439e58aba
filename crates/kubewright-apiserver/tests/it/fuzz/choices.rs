//! Decisions out of bytes: whoever invents the bytes decides. When they are used up, the plainest choice is
//! made, so that every input comes to an end.

/// A source of decisions.
pub(crate) struct Choices<'a> {
    bytes: std::slice::Iter<'a, u8>,
}

impl<'a> Choices<'a> {
    /// Decisions from these bytes.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes: bytes.iter() }
    }

    /// A number below `end`, which is at most 65,536; 0 when the bytes are used up.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let mut byte = || usize::from(self.bytes.next().copied().unwrap_or_default());
        if end <= 256 { byte() % end.max(1) } else { (byte() << 8 | byte()) % end }
    }

    /// True once in `times`, but not when the bytes are used up.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    /// One of these.
    pub(crate) fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}
