//! A sorted list whose copies share their content.
//!
//! A copy costs a pointer per chunk, and a change copies one chunk. So replacing the registry costs the same with ten
//! CRDs and with thousands.

use std::cmp::Ordering;
use std::sync::Arc;

/// Maximum length of a chunk. A longer one is split.
const CHUNK: usize = 64;

/// A sorted list. No chunk is empty.
#[derive(Debug, Clone)]
pub(super) struct SharedList<T> {
    chunks: Vec<Arc<Vec<T>>>,
}

/// A position: the chunk, and the index in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Position(usize, usize);

impl<T> Default for SharedList<T> {
    fn default() -> Self {
        Self { chunks: Vec::new() }
    }
}

impl<T: Clone> SharedList<T> {
    /// A list of items that are already sorted.
    pub(super) fn of_sorted(items: &[T]) -> Self {
        Self { chunks: items.chunks(CHUNK).map(|chunk| Arc::new(chunk.to_vec())).collect() }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    pub(super) fn get(&self, at: Position) -> &T {
        &self.chunks[at.0][at.1]
    }

    /// Where the item is, or would be. `compare` is the order of an item relative to the searched one.
    pub(super) fn search(&self, compare: impl Fn(&T) -> Ordering) -> Result<Position, Position> {
        let before = |chunk: &Arc<Vec<T>>| chunk.last().is_some_and(|last| compare(last).is_lt());
        // An item after all others belongs to the last chunk.
        let last = self.chunks.len().saturating_sub(1);
        let chunk = self.chunks.partition_point(before).min(last);
        let items = self.chunks.get(chunk).map_or(&[][..], |items| items);
        let found = items.binary_search_by(compare);
        found.map(|at| Position(chunk, at)).map_err(|at| Position(chunk, at))
    }

    /// Inserts an item at a position from [`SharedList::search`].
    pub(super) fn insert(&mut self, at: Position, item: T) {
        let Position(chunk, at) = at;
        if self.chunks.is_empty() {
            self.chunks.push(Arc::default());
        }
        let items = Arc::make_mut(&mut self.chunks[chunk]);
        items.insert(at, item);
        if items.len() > CHUNK {
            let rest = items.split_off(CHUNK / 2);
            self.chunks.insert(chunk + 1, Arc::new(rest));
        }
    }

    pub(super) fn remove(&mut self, at: Position) -> T {
        let Position(chunk, at) = at;
        let items = Arc::make_mut(&mut self.chunks[chunk]);
        let item = items.remove(at);
        if items.is_empty() {
            self.chunks.remove(chunk);
        }
        item
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_changed_copy_equals_a_sorted_set(start in prop::collection::btree_set(0..400_u32, 0..300),
            changes in prop::collection::vec(0..400_u32, 0..300))
        {
            let original = SharedList::of_sorted(&start.iter().copied().collect::<Vec<_>>());
            let (mut list, mut expected): (_, BTreeSet<u32>) = (original.clone(), start.clone());
            for number in changes {
                match list.search(|item| item.cmp(&number)) {
                    Ok(at) => {
                        prop_assert_eq!(*list.get(at), number);
                        prop_assert_eq!(list.remove(at), number);
                        prop_assert!(expected.remove(&number));
                    }
                    Err(at) => {
                        list.insert(at, number);
                        prop_assert!(expected.insert(number));
                    }
                }
                prop_assert!(list.chunks.iter().all(|chunk| (1..=CHUNK).contains(&chunk.len())));
            }
            prop_assert!(list.iter().eq(&expected));
            prop_assert!(original.iter().eq(&start));
        }
    }
}
