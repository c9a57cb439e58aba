//! Adapts field sets that were written under an older schema.
//!
//! If a list or an object became atomic, the owner of any part of it now owns all of it. The opposite change
//! needs no adaptation.

use super::path::Element;
use super::schema::{Shape, Ty, Which};
use super::set::Set;

/// Adapts a set to the schema. Returns whether it changed.
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
    /// Fields that are now owned as a whole.
    whole: Set,
}

impl<'s> Walk<'s> {
    /// `owned_whole`: the field is a member without children.
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
