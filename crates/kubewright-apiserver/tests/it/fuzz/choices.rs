//! Choices from fuzz input. When the bytes are used up, the first choice is taken, so that every input
//! terminates.

/// A source of choices.
pub(crate) struct Choices<'a> {
    bytes: std::slice::Iter<'a, u8>,
}

impl<'a> Choices<'a> {
    /// Takes choices from these bytes.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes: bytes.iter() }
    }

    /// A number below `end`, which is at most 65,536; 0 when the bytes are used up.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let mut byte = || usize::from(self.bytes.next().copied().unwrap_or_default());
        if end <= 256 { byte() % end.max(1) } else { (byte() << 8 | byte()) % end }
    }

    /// True once in `times`; false when the bytes are used up.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    /// One of these values.
    pub(crate) fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}
