//! What can be queued.
//!
//! Owns [`Item`], the one bound of the queue, and how a [`Key`] meets it.

use std::hash::{Hash, Hasher};

use crate::Key;

/// Something that can be queued. Copying one should be cheap.
pub trait Item: Clone + Eq + Hash + Send + 'static {
    /// Who takes turns: of items with the same priority each group in turn has one handed out.
    type Group: Eq + Hash + Send + 'static;

    /// The group of this item. It never changes.
    fn group(&self) -> Self::Group;
}

/// Namespaces take turns. Objects outside of namespaces are one group.
impl Item for Key {
    type Group = Namespace;

    fn group(&self) -> Namespace {
        Namespace(self.clone())
    }
}

/// The namespace of a [`Key`], without a copy of its text.
#[derive(Debug, Clone)]
pub struct Namespace(Key);

impl PartialEq for Namespace {
    fn eq(&self, other: &Self) -> bool {
        self.0.namespace() == other.0.namespace()
    }
}

impl Eq for Namespace {}

impl Hash for Namespace {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.namespace().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_a_namespace_are_a_group_and_keys_outside_of_namespaces_are_one() {
        let key = |namespace, name| Key::new(namespace, name).group();
        assert_eq!(key(Some("a"), "x"), key(Some("a"), "y"));
        assert_ne!(key(Some("a"), "x"), key(Some("b"), "x"));
        assert_eq!(key(None, "x"), key(None, "y"));
        assert_ne!(key(None, "a"), key(Some("a"), "x"));
    }
}
