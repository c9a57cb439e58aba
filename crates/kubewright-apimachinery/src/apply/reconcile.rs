//! Field sets that were written under an older schema.
//!
//! Where a list or an object has become atomic since, who owned something in it now owns it whole. The other
//! way there is nothing to do.

use super::path::Element;
use super::schema::{Shape, Ty, Which};
use super::set::Set;

/// Adapts a set to the schema. True if it was changed.
pub(crate) fn reconcile(ty: Ty<'_>, set: &mut Set) -> bool {
    let mut walk = Walk { path: Vec::new(), whole: Set::default() };
    walk.visit(ty, Some(set), false);
    if walk.whole.is_empty() {
        return false;
    }
    set.subtract_recursively(&walk.whole);
    set.unite(walk.whole);
    true
}

struct Walk {
    path: Vec<Element>,
    /// What is owned whole from now on.
    whole: Set,
}

impl Walk {
    /// `owned_whole`: the place is a member, with nothing below.
    fn visit(&mut self, ty: Ty<'_>, set: Option<&Set>, owned_whole: bool) {
        let atom = ty.atom();
        match atom.shape(if atom.map.is_some() { Which::Map } else { Which::Whole }) {
            Shape::Scalar(_) => {}
            Shape::List(list) => {
                if !owned_whole && list.is_atomic() {
                    self.whole.insert(&self.path);
                    return;
                }
                for node in set.into_iter().flat_map(Set::nodes) {
                    self.descend(list.element, node);
                }
            }
            Shape::Map(map) => {
                if map.is_deduced() {
                    return;
                }
                if !owned_whole && map.atomic {
                    if set.is_some_and(|set| !set.is_empty()) {
                        self.whole.insert(&self.path);
                    }
                    return;
                }
                for node in set.into_iter().flat_map(Set::nodes) {
                    let below = match &node.element {
                        Element::Field(name) => map.at(name),
                        _ => map.element,
                    };
                    if let Some(ty) = below {
                        self.descend(ty, node);
                    }
                }
            }
        }
    }

    fn descend(&mut self, ty: Ty<'_>, node: &super::set::Node) {
        let children = Some(&node.children).filter(|children| !children.is_empty());
        self.path.push(node.element.clone());
        self.visit(ty, children, node.member && children.is_none());
        self.path.pop();
    }
}
