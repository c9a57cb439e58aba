//! Field sets, as a tree that follows the structure of the object.
//!
//! A [`Set`] contains paths, not values. Its nodes are sorted, and every node is a member or has members
//! below it. So an empty set has no nodes, and equal sets are equal trees. Operations modify the set in
//! place, because most writes touch only a few fields.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::path::{Element, ElementError, Name};
use super::schema::Ty;
use kubewright_apimachinery::json;

/// A set of fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Set {
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) element: Element,
    /// Whether the field itself is in the set, and not only fields below it.
    pub(crate) member: bool,
    pub(crate) children: Set,
}

impl Set {
    /// Creates a set from paths of field names.
    pub fn of_fields(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            set.insert(&path.iter().map(|name| Element::field(name)).collect::<Vec<_>>());
        }
        set
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The number of fields in the set.
    pub fn len(&self) -> usize {
        self.nodes.iter().map(|node| usize::from(node.member) + node.children.len()).sum()
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Adds a field, without its parents. Ignores the empty path: the root object has no owner.
    pub fn insert(&mut self, path: &[Element]) {
        let Some((last, parents)) = path.split_last() else {
            return;
        };
        let mut set = self;
        for element in parents {
            set = &mut set.entry(element).children;
        }
        set.entry(last).member = true;
    }

    /// Whether the field is in the set.
    pub fn has(&self, path: &[Element]) -> bool {
        let Some((last, parents)) = path.split_last() else {
            return false;
        };
        let mut set = self;
        for element in parents {
            match set.node(element) {
                Some(node) => set = &node.children,
                None => return false,
            }
        }
        set.node(last).is_some_and(|node| node.member)
    }

    pub(crate) fn node(&self, element: &Element) -> Option<&Node> {
        let at = self.nodes.binary_search_by(|node| node.element.cmp(element)).ok()?;
        Some(&self.nodes[at])
    }

    pub(crate) fn node_of_field(&self, name: &str) -> Option<&Node> {
        let at = self.nodes.binary_search_by(|node| node.element.cmp_field(name)).ok()?;
        Some(&self.nodes[at])
    }

    fn entry(&mut self, element: &Element) -> &mut Node {
        let at = match self.nodes.binary_search_by(|node| node.element.cmp(element)) {
            Ok(at) => at,
            Err(at) => {
                let node = Node { element: element.clone(), member: false, children: Self::default() };
                self.nodes.insert(at, node);
                at
            }
        };
        &mut self.nodes[at]
    }

    /// Adds a field and its children, unless the result is empty. Fast if fields are added in order.
    pub(crate) fn push(&mut self, element: Element, member: bool, children: Set) {
        if !member && children.is_empty() {
            return;
        }
        if self.nodes.last().is_none_or(|last| last.element < element) {
            self.nodes.push(Node { element, member, children });
            return;
        }
        let node = self.entry(&element);
        node.member |= member;
        node.children.unite(children);
    }

    /// Adds all fields of `other`.
    pub fn unite(&mut self, other: Set) {
        if self.nodes.is_empty() {
            *self = other;
            return;
        }
        if other.nodes.is_empty() {
            return;
        }
        let mut left = std::mem::take(&mut self.nodes).into_iter().peekable();
        let mut right = other.nodes.into_iter().peekable();
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            match a.element.cmp(&b.element) {
                Ordering::Less => self.nodes.extend(left.next()),
                Ordering::Greater => self.nodes.extend(right.next()),
                Ordering::Equal => {
                    if let (Some(mut a), Some(b)) = (left.next(), right.next()) {
                        a.member |= b.member;
                        a.children.unite(b.children);
                        self.nodes.push(a);
                    }
                }
            }
        }
        self.nodes.extend(left);
        self.nodes.extend(right);
    }

    /// The fields in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Set) -> Self {
        let mut both = Self::default();
        let mut rest = other.nodes.as_slice();
        for node in &self.nodes {
            while let Some((first, after)) = rest.split_first() {
                match first.element.cmp(&node.element) {
                    Ordering::Less => rest = after,
                    Ordering::Greater => break,
                    Ordering::Equal => {
                        let children = node.children.intersection(&first.children);
                        let member = node.member && first.member;
                        if member || !children.is_empty() {
                            both.nodes.push(Node { element: node.element.clone(), member, children });
                        }
                        rest = after;
                        break;
                    }
                }
            }
        }
        both
    }

    /// Whether `other` contains all fields of this set.
    pub fn is_subset(&self, other: &Set) -> bool {
        let mut rest = other.nodes.iter();
        self.nodes.iter().all(|node| {
            let same = rest.by_ref().find(|other| other.element >= node.element);
            same.is_some_and(|other| {
                other.element == node.element
                    && (!node.member || other.member)
                    && node.children.is_subset(&other.children)
            })
        })
    }

    /// Removes the fields of `other`, but not those below them. Returns whether the set changed.
    pub fn subtract(&mut self, other: &Set) -> bool {
        self.pair(other, |node, other| {
            let Some(other) = other else { return false };
            let lost = node.member && other.member;
            node.member &= !other.member;
            node.children.subtract(&other.children) | lost
        })
    }

    /// Removes the fields of `other` and everything below them. Returns whether the set changed.
    pub fn subtract_recursively(&mut self, other: &Set) -> bool {
        self.pair(other, |node, other| match other {
            None => false,
            Some(other) if other.member => {
                node.member = false;
                node.children = Self::default();
                true
            }
            Some(other) => node.children.subtract_recursively(&other.children),
        })
    }

    /// Walks both sets in order, and drops nodes that become empty.
    fn pair(&mut self, other: &Set, mut visit: impl FnMut(&mut Node, Option<&Node>) -> bool) -> bool {
        let mut rest = other.nodes.as_slice();
        let mut changed = false;
        self.nodes.retain_mut(|node| {
            let mut same = None;
            while let Some((first, after)) = rest.split_first() {
                match first.element.cmp(&node.element) {
                    Ordering::Less => rest = after,
                    Ordering::Equal => {
                        same = Some(first);
                        rest = after;
                        break;
                    }
                    Ordering::Greater => break,
                }
            }
            changed |= visit(node, same);
            node.member || !node.children.is_empty()
        });
        changed
    }

    /// Adds every declared field that has a member below it. Does not add map entries and list items.
    pub(crate) fn ensure_named_fields(&mut self, ty: Option<Ty<'_>>) {
        let atom = ty.map(Ty::atom).unwrap_or_default();
        for node in &mut self.nodes {
            if node.children.is_empty() {
                continue;
            }
            let below = match &node.element {
                Element::Field(name) => atom.map.and_then(|map| {
                    let field = map.field(name);
                    node.member |= field.is_some();
                    field.or(map.element)
                }),
                Element::Key(_) => atom.list.map(|list| list.element),
                _ => None,
            };
            node.children.ensure_named_fields(below);
        }
    }

    /// Keeps only the fields without children.
    pub fn keep_leaves(&mut self) {
        for node in &mut self.nodes {
            if !node.children.is_empty() {
                node.member = false;
                node.children.keep_leaves();
            }
        }
    }

    /// Keeps only the fields at or below one of the patterns.
    pub(crate) fn keep_matching(&mut self, patterns: &[&[Pattern]]) {
        if patterns.iter().any(|pattern| pattern.is_empty()) {
            return;
        }
        self.nodes.retain_mut(|node| {
            let below: Vec<&[Pattern]> = patterns
                .iter()
                .filter(|pattern| pattern[0].matches(&node.element))
                .map(|pattern| &pattern[1..])
                .collect();
            if below.is_empty() {
                return false;
            }
            node.children.keep_matching(&below);
            node.member || !node.children.is_empty()
        });
    }

    /// Calls `visit` for every path: first the members of an object, then their children.
    pub fn each_path(&self, visit: &mut impl FnMut(&[Element])) {
        self.each_below(&mut Vec::new(), visit);
    }

    fn each_below(&self, path: &mut Vec<Element>, visit: &mut impl FnMut(&[Element])) {
        for node in self.nodes.iter().filter(|node| node.member) {
            path.push(node.element.clone());
            visit(path);
            path.pop();
        }
        for node in self.nodes.iter().filter(|node| !node.children.is_empty()) {
            path.push(node.element.clone());
            node.children.each_below(path, visit);
            path.pop();
        }
    }

    /// Decodes `fieldsV1`. Skips elements with an unknown prefix.
    pub fn decode(fields: &Value) -> Result<Self, ElementError> {
        match fields {
            Value::Object(map) => Ok(Self::decode_map(map)?.0),
            _ => Ok(Self::default()),
        }
    }

    /// The set, and whether its parent field is a member (`.`).
    fn decode_map(map: &Map<String, Value>) -> Result<(Self, bool), ElementError> {
        let mut set = Self { nodes: Vec::with_capacity(map.len()) };
        let mut own = false;
        for (key, below) in map {
            if key == "." {
                own = true;
                continue;
            }
            let element = match Element::parse(key) {
                Ok(element) => element,
                Err(ElementError::Unknown) => continue,
                Err(error) => return Err(error),
            };
            let (children, member) = match below {
                Value::Object(below) if !below.is_empty() => Self::decode_map(below)?,
                _ => (Self::default(), true),
            };
            set.push(element, member, children);
        }
        // Without children, the entry can only denote the field itself.
        let member = own || set.is_empty();
        Ok((set, member))
    }

    /// Encodes as `fieldsV1`.
    pub fn encode(&self) -> Value {
        let mut map = Map::new();
        for node in &self.nodes {
            let mut below = node.children.encode();
            if node.member
                && let Value::Object(below) = &mut below
                && !below.is_empty()
            {
                below.insert(".".to_owned(), Value::Object(Map::new()));
            }
            map.insert(node.element.encode(), below);
        }
        Value::Object(map)
    }
}

impl Set {
    /// Writes `fieldsV1` as text, equal to [`json::to_string`] of [`Set::encode`].
    pub(crate) fn write_text(&self, out: &mut Vec<u8>) {
        self.write_below(out, false);
    }

    /// `member`: the parent field is in the set (`.`).
    fn write_below(&self, out: &mut Vec<u8>, member: bool) {
        out.push(b'{');
        if member && !self.is_empty() {
            out.extend_from_slice(br#"".":{}"#);
        }
        let mut first = self.is_empty() || !member;
        let mut comma = |out: &mut Vec<u8>| {
            if !std::mem::take(&mut first) {
                out.push(b',');
            }
        };
        if self.nodes.iter().all(|node| matches!(node.element, Element::Field(_))) {
            for node in &self.nodes {
                comma(out);
                out.extend_from_slice(b"\"f:");
                match &node.element {
                    Element::Field(Name::Known(name)) => out.extend_from_slice(name.as_bytes()),
                    Element::Field(name) => json::write_escaped(out, name),
                    _ => {}
                }
                out.extend_from_slice(b"\":");
                node.children.write_below(out, node.member);
            }
        } else {
            // The encoded keys sort differently from the elements.
            let mut texts: Vec<(String, &Node)> =
                self.nodes.iter().map(|node| (node.element.encode(), node)).collect();
            texts.sort_unstable_by(|a, b| a.0.cmp(&b.0));
            for (text, node) in texts {
                comma(out);
                json::write_string(out, &text);
                out.push(b':');
                node.children.write_below(out, node.member);
            }
        }
        out.push(b'}');
    }
}

/// One step of a path pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// Any element.
    Any,
    /// The field with this name.
    Field(&'static str),
}

impl Pattern {
    fn matches(&self, element: &Element) -> bool {
        match self {
            Self::Any => true,
            Self::Field(name) => element.cmp_field(name).is_eq(),
        }
    }
}

/// A path in the notation of messages: `.spec.containers[name="a"].image`.
pub fn path_text(path: &[Element]) -> String {
    path.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests;
