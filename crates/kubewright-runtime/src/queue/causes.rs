//! Why an item is in the queue.
//!
//! [`Causes`] has the first few distinct causes and the number of the others. One cause, the common case, needs no
//! allocation; any number of adds needs at most one.

use std::fmt;

/// The number of distinct causes to keep.
const KEPT: usize = 8;

/// The number of causes to display.
const SHOWN: usize = 3;

/// Why an item was added, for logs and debug pages: the first eight distinct causes in order, and the number of adds.
///
/// The memory per item is bounded, so later causes are only counted. Do not base decisions on them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Causes<C> {
    first: Option<C>,
    others: Option<Box<[Option<C>; KEPT - 1]>>,
    adds: u32,
    /// The number of adds whose cause is not kept.
    left_out: u32,
}

impl<C> Causes<C> {
    /// The kept causes, in the order of their first add.
    pub fn iter(&self) -> impl Iterator<Item = &C> {
        self.first.iter().chain(self.others.iter().flat_map(|others| others.iter().flatten()))
    }

    /// The total number of merged adds.
    pub fn adds(&self) -> u32 {
        self.adds
    }

    /// The number of adds whose cause is not kept.
    pub fn left_out(&self) -> u32 {
        self.left_out
    }
}

impl<C: PartialEq> Causes<C> {
    pub(super) fn push(&mut self, cause: C) {
        self.adds = self.adds.saturating_add(1);
        self.keep(cause);
    }

    /// Appends later causes.
    pub(super) fn merge(&mut self, later: Self) {
        self.adds = self.adds.saturating_add(later.adds);
        self.left_out = self.left_out.saturating_add(later.left_out);
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
        } else {
            self.left_out = self.left_out.saturating_add(1);
        }
    }
}

/// Displays the first few and the number of the others: `a; b; c; 2 more`.
impl<C: fmt::Display> fmt::Display for Causes<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, cause) in self.iter().take(SHOWN).enumerate() {
            write!(f, "{}{cause}", if at > 0 { "; " } else { "" })?;
        }
        match self.iter().skip(SHOWN).count() + self.left_out as usize {
            0 => Ok(()),
            more => write!(f, "; {more} more"),
        }
    }
}

impl<C> Default for Causes<C> {
    fn default() -> Self {
        Self { first: None, others: None, adds: 0, left_out: 0 }
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
    fn the_first_eight_distinct_causes_are_kept_and_every_add_is_counted() {
        let causes = of(&[3, 3, 1, 2, 3, 9, 8, 7, 6, 5, 4, 4, 1]);
        assert_eq!(causes.iter().collect::<Vec<_>>(), [&3, &1, &2, &9, &8, &7, &6, &5]);
        assert_eq!((causes.adds(), causes.left_out()), (13, 2));
    }

    #[test]
    fn display_has_the_first_three_and_counts_the_others() {
        assert_eq!(of(&[]).to_string(), "");
        assert_eq!(of(&[3, 3, 1]).to_string(), "3; 1");
        assert_eq!(of(&[3, 1, 2]).to_string(), "3; 1; 2");
        assert_eq!(of(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 9]).to_string(), "1; 2; 3; 7 more");
    }

    #[test]
    fn merging_equals_adding_one_after_the_other() {
        let mut merged = of(&[1, 2]);
        merged.merge(of(&[2, 3, 4, 5, 6, 7, 8, 9]));
        assert_eq!(merged, of(&[1, 2, 2, 3, 4, 5, 6, 7, 8, 9]));
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
