//! Intrusive linked lists over slots that are stored elsewhere.
//!
//! All operations of [`List`] take constant time and do not allocate. A slot is in at most one list per [`Links`].

use slab::Slab;

/// No slot.
const NONE: u32 = u32::MAX;

/// The neighbours of a slot in one list. Meaningless while the slot is not in a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Links {
    previous: u32,
    next: u32,
}

impl Default for Links {
    fn default() -> Self {
        Self { previous: NONE, next: NONE }
    }
}

/// Selects the links of a slot that a list uses.
pub(super) type Through<N> = fn(&mut N) -> &mut Links;

/// The ends of a list.
#[derive(Debug)]
pub(super) struct List {
    first: u32,
    last: u32,
}

impl Default for List {
    fn default() -> Self {
        Self { first: NONE, last: NONE }
    }
}

impl List {
    pub(super) fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    pub(super) fn push_back<N>(&mut self, nodes: &mut Slab<N>, at: u32, through: Through<N>) {
        *through(&mut nodes[at as usize]) = Links { previous: self.last, next: NONE };
        match self.last {
            NONE => self.first = at,
            last => through(&mut nodes[last as usize]).next = at,
        }
        self.last = at;
    }

    pub(super) fn push_front<N>(&mut self, nodes: &mut Slab<N>, at: u32, through: Through<N>) {
        *through(&mut nodes[at as usize]) = Links { previous: NONE, next: self.first };
        match self.first {
            NONE => self.last = at,
            first => through(&mut nodes[first as usize]).previous = at,
        }
        self.first = at;
    }

    /// Removes a slot of this list.
    pub(super) fn remove<N>(&mut self, nodes: &mut Slab<N>, at: u32, through: Through<N>) {
        let Links { previous, next } = std::mem::take(through(&mut nodes[at as usize]));
        match previous {
            NONE => self.first = next,
            previous => through(&mut nodes[previous as usize]).next = next,
        }
        match next {
            NONE => self.last = previous,
            next => through(&mut nodes[next as usize]).previous = previous,
        }
    }

    /// Iterates from first to last.
    pub(super) fn iter<'a, N>(
        &self,
        nodes: &'a Slab<N>,
        through: fn(&N) -> Links,
    ) -> impl Iterator<Item = &'a N> + use<'a, N> {
        std::iter::successors(nodes.get(self.first as usize), move |node| {
            nodes.get(through(node).next as usize)
        })
    }
}

/// The index of a slot. Four bytes are enough for every queue that fits into memory.
pub(super) fn number(index: usize) -> u32 {
    u32::try_from(index)
        .ok()
        .filter(|&number| number != NONE)
        .expect("a queue holds fewer than 2^32 - 1 items")
}
