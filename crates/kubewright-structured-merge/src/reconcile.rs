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
    let whole = walk.whole;
    if whole.is_empty() {
        return false;
    }
    set.subtract_recursively(&whole);
    set.unite(whole);
    true
}

struct Walk<'s> {
    path: Vec<&'s Element>,
    /// What is owned whole from now on.
    whole: Set,
}

impl<'s> Walk<'s> {
    /// `owned_whole`: the place is a member, with nothing below.
    fn visit(&mut self, ty: Ty<'_>, set: Option<&'s Set>, owned_whole: bool) {
        let atom = ty.atom();
        match atom.shape(if atom.map.is_some() { Which::Map } else { Which::Whole }) {
            Shape::Scalar(_) => {}
            Shape::List(list) => {
                if !owned_whole && list.is_atomic() {
                    self.own_whole();
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
                        self.own_whole();
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

    fn own_whole(&mut self) {
        let path: Vec<Element> = self.path.iter().copied().cloned().collect();
        self.whole.insert(&path);
    }

    fn descend(&mut self, ty: Ty<'_>, node: &'s super::set::Node) {
        let children = Some(&node.children).filter(|children| !children.is_empty());
        self.path.push(&node.element);
        self.visit(ty, children, node.member && children.is_none());
        self.path.pop();
    }
}
