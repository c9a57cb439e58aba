//! Queue items.
//!
//! Owns [`Item`], the trait of queue items, and its implementation for [`Key`].

use std::hash::{Hash, Hasher};

use crate::Key;

/// An item of a queue. It should be cheap to clone.
pub trait Item: Clone + Eq + Hash + Send + 'static {
    /// Items of the same priority are handed out from each group in turn.
    type Group: Eq + Hash + Send + 'static;

    /// The group of this item. It never changes.
    fn group(&self) -> Self::Group;
}

/// Grouped by namespace. Cluster-scoped objects are one group.
impl Item for Key {
    type Group = Namespace;

    fn group(&self) -> Namespace {
        Namespace(self.clone())
    }
}

/// The namespace of a [`Key`], without copying it.
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
    fn keys_are_grouped_by_namespace_and_cluster_scoped_keys_are_one_group() {
        let key = |namespace, name| Key::new(namespace, name).group();
        assert_eq!(key(Some("a"), "x"), key(Some("a"), "y"));
        assert_ne!(key(Some("a"), "x"), key(Some("b"), "x"));
        assert_eq!(key(None, "x"), key(None, "y"));
        assert_ne!(key(None, "a"), key(Some("a"), "x"));
    }
}
