//! Go's limits of counted repetitions and of nesting.

use super::Count;

/// Maximum product of nested repetition counts.
const MAX_REPEAT: u64 = super::MAX_REPEAT as u64;
/// Maximum height of the syntax tree.
const MAX_HEIGHT: usize = 1000;

/// The parsed part of an expression.
#[derive(Default)]
pub(super) struct Limits {
    /// The groups around `current`, outermost first.
    outer: Vec<Group>,
    current: Group,
}

/// An open group, or the whole expression.
#[derive(Default)]
struct Group {
    captures: bool,
    /// Completed alternatives.
    alternatives: usize,
    /// The largest values of the completed alternatives.
    done: Node,
    sequence: Sequence,
}

/// A sequence of items.
#[derive(Default)]
struct Sequence {
    items: usize,
    /// The largest values of the items before the last one.
    done: Node,
    last: Node,
    /// Length of the literal text at the end, which is a single node.
    literals: usize,
}

/// What the limits need of a node of the syntax tree.
#[derive(Default, Clone, Copy)]
struct Node {
    height: usize,
    /// The largest product of nested counts.
    repeats: u64,
    /// The node is `*`, `+` or `?`. Go merges such nodes if they are nested.
    is_star: bool,
}

impl Node {
    const LEAF: Self = Self { height: 1, repeats: 1, is_star: false };

    fn max(self, other: Self) -> Self {
        Self {
            height: self.height.max(other.height),
            repeats: self.repeats.max(other.repeats),
            is_star: false,
        }
    }
}

impl Sequence {
    fn push(&mut self, node: Node) {
        self.done = self.done.max(self.last);
        self.last = node;
        self.items += 1;
        self.literals = 0;
    }

    fn node(&self) -> Node {
        match self.items {
            0 => Node::LEAF,
            1 => self.last,
            _ => {
                let items = self.done.max(self.last);
                Node { height: items.height + 1, ..items }
            }
        }
    }
}

impl Group {
    fn node(&self) -> Node {
        let last = self.sequence.node();
        let node = if self.alternatives == 0 {
            last
        } else {
            let all = self.done.max(last);
            Node { height: all.height + 1, ..all }
        };
        if self.captures { Node { height: node.height + 1, is_star: false, ..node } } else { node }
    }
}

impl Limits {
    pub(super) fn literal(&mut self) {
        let sequence = &mut self.current.sequence;
        if sequence.literals == 0 {
            sequence.push(Node::LEAF);
        }
        sequence.literals += 1;
    }

    /// Adds an item that is not a literal, such as a class.
    pub(super) fn item(&mut self) {
        self.current.sequence.push(Node::LEAF);
    }

    pub(super) fn open(&mut self, captures: bool) {
        let group = Group { captures, ..Group::default() };
        self.outer.push(std::mem::replace(&mut self.current, group));
    }

    pub(super) fn close(&mut self) {
        let node = self.current.node();
        self.current = self.outer.pop().unwrap_or_default();
        self.current.sequence.push(node);
    }

    pub(super) fn alternative(&mut self) {
        let group = &mut self.current;
        group.done = group.done.max(std::mem::take(&mut group.sequence).node());
        group.alternatives += 1;
    }

    /// Applies `*`, `+` or `?` to the last item.
    pub(super) fn star(&mut self) {
        let node = self.operand();
        if !node.is_star {
            *node = Node { height: node.height + 1, is_star: true, ..*node };
        }
    }

    /// Applies a count to the last item. Returns whether it is valid with the counts inside.
    pub(super) fn repeat(&mut self, count: &Count) -> bool {
        let node = self.operand();
        let repeats = match (count.max, count.min) {
            (Some(0), _) => 1,
            (Some(max), _) => node.repeats.saturating_mul(max.into()),
            (None, min) => node.repeats.saturating_mul(min.max(1).into()),
        };
        *node = Node { height: node.height + 1, repeats, is_star: false };
        let counts = count.min >= 2 || count.max.is_some_and(|max| max >= 2);
        !counts || repeats <= MAX_REPEAT
    }

    pub(super) fn nests_too_deeply(&self) -> bool {
        self.current.node().height > MAX_HEIGHT
    }

    /// The last item. Of a literal text the last character, which thereby becomes an item.
    fn operand(&mut self) -> &mut Node {
        let sequence = &mut self.current.sequence;
        if sequence.literals > 1 {
            sequence.push(Node::LEAF);
        }
        sequence.literals = 0;
        &mut sequence.last
    }
}
