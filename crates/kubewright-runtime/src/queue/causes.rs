//! Why an item is in the queue.
//!
//! Owns [`Causes`]: the first few different ones, and how many more there were. One cause, the common case, needs
//! no allocation, and no number of adds needs more than one.

/// How many different causes are kept.
const KEPT: usize = 4;

/// Why an item was added, for logs and debug pages: the first four different causes in their order, and how many
/// adds there were in all.
///
/// An item that is added often while it waits must not grow, so later causes are only counted. Do not decide
/// anything by them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Causes<C> {
    first: Option<C>,
    others: Option<Box<[Option<C>; KEPT - 1]>>,
    adds: u32,
}

impl<C> Causes<C> {
    /// The causes that were kept, in the order of their first add.
    pub fn iter(&self) -> impl Iterator<Item = &C> {
        self.first.iter().chain(self.others.iter().flat_map(|others| others.iter().flatten()))
    }

    /// How many adds were merged, those with a cause that is kept among them.
    pub fn adds(&self) -> u32 {
        self.adds
    }
}

impl<C: PartialEq> Causes<C> {
    pub(super) fn push(&mut self, cause: C) {
        self.adds = self.adds.saturating_add(1);
        self.keep(cause);
    }

    /// Appends causes that came later.
    pub(super) fn merge(&mut self, later: Self) {
        self.adds = self.adds.saturating_add(later.adds);
        let others = later.others.map(|others| *others).into_iter().flatten().flatten();
        later.first.into_iter().chain(others).for_each(|cause| self.keep(cause));
    }

    fn keep(&mut self, cause: C) {
        if self.iter().any(|kept| *kept == cause) {
            return;
        }
        if self.first.is_none() {
            self.first = Some(cause);
            return;
        }
        let others = self.others.get_or_insert_default();
        if let Some(free) = others.iter_mut().find(|other| other.is_none()) {
            *free = Some(cause);
        }
    }
}

impl<C> Default for Causes<C> {
    fn default() -> Self {
        Self { first: None, others: None, adds: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(causes: &[u8]) -> Causes<u8> {
        let mut all = Causes::default();
        for cause in causes {
            all.push(*cause);
        }
        all
    }

    #[test]
    fn the_first_four_different_causes_are_kept_and_every_add_is_counted() {
        let causes = of(&[3, 3, 1, 2, 3, 9, 8, 7]);
        assert_eq!(causes.iter().collect::<Vec<_>>(), [&3, &1, &2, &9]);
        assert_eq!(causes.adds(), 8);
    }

    #[test]
    fn merging_is_adding_one_after_the_other() {
        let mut merged = of(&[1, 2]);
        merged.merge(of(&[2, 3, 4, 5]));
        assert_eq!(merged, of(&[1, 2, 2, 3, 4, 5]));
    }

    #[test]
    fn a_repeated_cause_allocates_nothing() {
        assert!(of(&[5; 1000]).others.is_none());
    }

    #[test]
    fn one_cause_of_eight_bytes_takes_thirty_two() {
        assert!(size_of::<Causes<u64>>() <= 32);
    }
}
