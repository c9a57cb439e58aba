//! Comparison of two typed values: the added, modified and removed fields.
//!
//! Both values must be valid for the schema. Equal parts cause no allocations.

use serde_json::Value;

use super::path::{Element, equal};
use super::schema::{Fields, List, Map, Schema, Shape, Ty};
use super::set::Set;
use super::typed::{element, named_items};
use kubewright_apimachinery::types::FieldType;

/// The differences between two values. The sets are disjoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Fields that only the second value has.
    pub added: Set,
    /// Fields with different values.
    pub modified: Set,
    /// Fields that only the first value has.
    pub removed: Set,
}

impl Comparison {
    /// Whether there are no differences.
    pub fn is_same(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    pub(crate) fn each_mut(&mut self) -> [&mut Set; 3] {
        [&mut self.added, &mut self.modified, &mut self.removed]
    }
}

/// Compares two objects that are valid for the schema.
pub fn compare(schema: Schema<'_>, before: &Value, after: &Value) -> Comparison {
    Comparer { structured: false }.walk(schema.ty(), Some(before), Some(after)).below
}

/// Like [`compare`], for objects that upstream decodes to Go structs: empty lists and maps with `omitempty`
/// count as absent.
pub(crate) fn compare_structured(schema: Schema<'_>, before: &Value, after: &Value) -> Comparison {
    Comparer { structured: schema.is_built_in() }.walk(schema.ty(), Some(before), Some(after)).below
}

/// The change of a field and of its children.
#[derive(Default)]
struct Change {
    added: bool,
    modified: bool,
    removed: bool,
    below: Comparison,
}

impl Change {
    fn is_none(&self) -> bool {
        !(self.added || self.modified || self.removed) && self.below.is_same()
    }

    fn push_to(self, sets: &mut Comparison, element: Element) {
        // Most changes are of one kind only.
        if self.removed || !self.below.removed.is_empty() {
            sets.removed.push(element.clone(), self.removed, self.below.removed);
        }
        if self.modified || !self.below.modified.is_empty() {
            sets.modified.push(element.clone(), self.modified, self.below.modified);
        }
        sets.added.push(element, self.added, self.below.added);
    }
}

#[derive(Clone, Copy)]
struct Comparer {
    structured: bool,
}

impl Comparer {
    /// At least one of the values must be present.
    fn walk(self, ty: Ty<'_>, before: Option<&Value>, after: Option<&Value>) -> Change {
        if before == after { Change::default() } else { self.differing(ty, before, after) }
    }

    /// Like [`Comparer::walk`], for values that differ.
    fn differing(self, ty: Ty<'_>, before: Option<&Value>, after: Option<&Value>) -> Change {
        let (before, after) = match (before, after) {
            (Some(before), Some(after)) => (before, after),
            // Added or removed as a whole: nothing to compare.
            (None, after) => {
                let added = after.map(|after| self.fields(ty, after)).unwrap_or_default();
                let below = Comparison { added, ..Comparison::default() };
                return Change { added: true, below, ..Change::default() };
            }
            (Some(before), None) => {
                let below = Comparison { removed: self.fields(ty, before), ..Comparison::default() };
                return Change { removed: true, below, ..Change::default() };
            }
        };
        let atom = ty.atom();
        let (left, right) = (atom.which(Some(before)), atom.which(Some(after)));
        let mut change = self.shape(atom.shape(right), before, after);
        if left != right {
            // The shape changed, for example from a list to a map: compare with both shapes.
            let other = self.shape(atom.shape(left), before, after);
            change.modified |= other.modified;
            change.below.added.unite(other.below.added);
            change.below.modified.unite(other.below.modified);
            change.below.removed.unite(other.below.removed);
        }
        change
    }

    fn shape(self, shape: Shape<'_>, before: &Value, after: &Value) -> Change {
        let leaf = || Change { modified: !equal(before, after), ..Change::default() };
        match shape {
            Shape::Scalar(_) => leaf(),
            Shape::List(list) => {
                let (left, right) = (items(before), items(after));
                // Empty values are compared as atoms: null is not the empty list.
                if list.is_atomic() || (left.is_empty() && right.is_empty()) {
                    return leaf();
                }
                Change { below: self.lists(&list, left, right), ..Change::default() }
            }
            Shape::Map(map) => {
                let (left, right) = (before.as_object(), after.as_object());
                let empty = |map: Option<&serde_json::Map<_, _>>| map.is_none_or(serde_json::Map::is_empty);
                if map.atomic || (empty(left) && empty(right)) {
                    return leaf();
                }
                Change { below: self.maps(&map, left, right), ..Change::default() }
            }
        }
    }

    /// All fields below a value, including those with children.
    fn fields(self, ty: Ty<'_>, value: &Value) -> Set {
        let mut set = Set::default();
        match ty.shape_of(value) {
            Shape::Map(map) if !map.atomic => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    if self.is_there(&map, name, value) {
                        let (element, ty) = map.entry(name);
                        set.push(element, true, self.fields(ty.unwrap_or(Ty::Untyped), value));
                    }
                }
            }
            Shape::List(list) if !list.is_atomic() => {
                for same in named_items(&list, value).chunk_by(|a, b| a.0 == b.0) {
                    // Duplicate items are owned as one element, without their fields.
                    let below =
                        if let [(_, item)] = same { self.fields(list.element, item) } else { Set::default() };
                    set.push(same[0].0.clone(), true, below);
                }
            }
            _ => {}
        }
        set
    }

    fn maps(
        self,
        map: &Map<'_>,
        before: Option<&serde_json::Map<String, Value>>,
        after: Option<&serde_json::Map<String, Value>>,
    ) -> Comparison {
        let mut sets = Comparison::default();
        let mut visit = |name: &str, before: Option<&Value>, after: Option<&Value>| {
            let before = before.filter(|value| self.is_there(map, name, value));
            let after = after.filter(|value| self.is_there(map, name, value));
            // Fast path: equal values need no schema lookup.
            if before == after {
                return;
            }
            let (element, ty) = map.entry(name);
            let change = self.differing(ty.unwrap_or(Ty::Untyped), before, after);
            if !change.is_none() {
                change.push_to(&mut sets, element);
            }
        };
        for (name, value) in before.into_iter().flatten() {
            visit(name, Some(value), after.and_then(|after| after.get(name)));
        }
        for (name, value) in after.into_iter().flatten() {
            if before.is_none_or(|before| !before.contains_key(name)) {
                visit(name, None, Some(value));
            }
        }
        sets
    }

    /// Whether Go would serialize the field: `omitempty` drops empty lists and maps.
    fn is_there(self, map: &Map<'_>, name: &str, value: &Value) -> bool {
        let empty = match value {
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            _ => false,
        };
        if !self.structured || !empty {
            return true;
        }
        let Fields::Known(ty) = map.fields else { return true };
        let Some(field) = ty.field(name) else { return true };
        field.pointer || field.always || !matches!(field.ty, FieldType::List(_) | FieldType::Map(_))
    }

    fn lists(self, list: &List<'_>, before: &[Value], after: &[Value]) -> Comparison {
        let mut pairs: Vec<(Element, Vec<&Value>, Vec<&Value>)> =
            Vec::with_capacity(before.len().max(after.len()));
        for (items, second) in [(before, false), (after, true)] {
            for item in items {
                let Ok(found) = element(list, item) else { continue };
                let at = pairs.binary_search_by(|pair| pair.0.cmp(&found)).unwrap_or_else(|at| {
                    pairs.insert(at, (found, Vec::new(), Vec::new()));
                    at
                });
                if second { pairs[at].2.push(item) } else { pairs[at].1.push(item) }
            }
        }
        let mut sets = Comparison::default();
        for (name, left, right) in pairs {
            let change = match (left.as_slice(), right.as_slice()) {
                (left @ ([] | [_]), right @ ([] | [_])) => {
                    self.walk(list.element, left.first().copied(), right.first().copied())
                }
                // Duplicate items are compared together, as one value.
                ([_, _, ..], [_, _, ..]) => {
                    let same = left.len() == right.len() && left.iter().zip(&right).all(|(a, b)| equal(a, b));
                    Change { modified: !same, ..Change::default() }
                }
                ([_, _, ..], right) => {
                    let mut change = match right.first() {
                        Some(item) => self.walk(list.element, None, Some(item)),
                        None => Change::default(),
                    };
                    change.removed = true;
                    change
                }
                (left, _) => {
                    let mut change = match left.first() {
                        Some(item) => self.walk(list.element, Some(item), None),
                        None => Change::default(),
                    };
                    change.added = true;
                    change
                }
            };
            if !change.is_none() {
                change.push_to(&mut sets, name);
            }
        }
        sets
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
