//! A YAML tree with line numbers.
//!
//! Reads small files: kubeconfigs and the output of exec plugins. Invariant: a scalar keeps its text, so that the token
//! `0123` is not the number 123. The caller validates the fields.
//!
//! It uses the parser below serde: derived deserializers of a kubeconfig would add half a megabyte to every operator.

use std::collections::HashMap;

use granit_parser::{Event, Marker, Parser, ScalarStyle, ScanError};
use serde_json::Value;

/// A value and its first line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) content: Content,
}

/// The content of a node.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content {
    /// The text, and whether it is unquoted: only unquoted text can be a number.
    Scalar(String, bool),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

/// A syntax error.
#[derive(Debug, PartialEq)]
pub(super) struct SyntaxError {
    pub(super) line: usize,
    pub(super) what: String,
}

impl SyntaxError {
    fn at(place: &Marker, what: impl Into<String>) -> Self {
        Self { line: place.line(), what: what.into() }
    }
}

impl From<ScanError> for SyntaxError {
    fn from(error: ScanError) -> Self {
        Self::at(error.marker(), error.info())
    }
}

/// Parses all documents of a text.
pub(super) fn documents(text: &str) -> Result<Vec<Node>, SyntaxError> {
    let mut reader = Reader { open: Vec::new(), anchors: HashMap::new(), documents: Vec::new() };
    for event in Parser::new_from_str(text) {
        let (event, span) = event?;
        reader.take(event, &span.start)?;
    }
    Ok(reader.documents)
}

/// An open list or map.
struct Open {
    node: Node,
    anchor: usize,
    /// In a map: the key of the next value.
    key: Option<String>,
}

struct Reader {
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    documents: Vec<Node>,
}

impl Reader {
    fn take(&mut self, event: Event<'_>, place: &Marker) -> Result<(), SyntaxError> {
        let line = place.line();
        let begin = |content, anchor| Open { node: Node { line, content }, anchor, key: None };
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let content = Content::Scalar(text.into_owned(), style == ScalarStyle::Plain);
                self.ended(Node { line, content }, anchor, place)
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor).cloned() {
                Some(node) => self.ended(node, 0, place),
                None => Err(SyntaxError::at(place, "an alias refers to a node that contains it")),
            },
            Event::SequenceStart(_, anchor, _) => {
                self.open.push(begin(Content::List(Vec::new()), anchor));
                Ok(())
            }
            Event::MappingStart(_, anchor, _) => {
                self.open.push(begin(Content::Map(Vec::new()), anchor));
                Ok(())
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(mut open) => {
                    open.node.merge();
                    self.ended(open.node, open.anchor, place)
                }
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Adds a finished node to its parent.
    fn ended(&mut self, node: Node, anchor: usize, place: &Marker) -> Result<(), SyntaxError> {
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.documents.push(node);
            return Ok(());
        };
        match (&mut open.node.content, open.key.take()) {
            (Content::List(items), _) => items.push(node),
            (Content::Map(entries), Some(key)) => entries.push((key, node)),
            (Content::Map(entries), None) => match node.content {
                Content::Scalar(key, _) if entries.iter().any(|(other, _)| *other == key) => {
                    return Err(SyntaxError::at(place, format!("duplicate key {key:?}")));
                }
                Content::Scalar(key, _) => open.key = Some(key),
                _ => return Err(SyntaxError::at(place, "a key must be text, not a list or a map")),
            },
            (Content::Scalar(..), _) => {}
        }
        Ok(())
    }
}

impl Node {
    /// The value of a key. `null` counts as missing.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        let Content::Map(entries) = &self.content else { return None };
        entries.iter().find(|(name, _)| name == key).map(|(_, node)| node).filter(|node| !node.is_null())
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(&self.content, Content::Scalar(text, true) if matches!(&**text, "" | "~" | "null" | "Null" | "NULL"))
    }

    /// Converts to JSON. Unquoted scalars become numbers, booleans or null.
    pub(super) fn to_json(&self) -> Value {
        match &self.content {
            Content::Scalar(text, plain) => {
                let number = || text.parse().ok().or_else(|| text.strip_prefix('+')?.parse().ok());
                match &**text {
                    _ if !plain => Value::String(text.clone()),
                    _ if self.is_null() => Value::Null,
                    "true" | "True" | "TRUE" => Value::Bool(true),
                    "false" | "False" | "FALSE" => Value::Bool(false),
                    _ => number().map_or_else(|| Value::String(text.clone()), Value::Number),
                }
            }
            Content::List(items) => Value::Array(items.iter().map(Self::to_json).collect()),
            Content::Map(entries) => {
                Value::Object(entries.iter().map(|(key, node)| (key.clone(), node.to_json())).collect())
            }
        }
    }

    /// Resolves merge keys: `<<: *base` adds the entries of `base` that are not set here.
    fn merge(&mut self) {
        let Content::Map(entries) = &mut self.content else { return };
        let Some(at) = entries.iter().position(|(key, _)| key == "<<") else { return };
        let (_, base) = entries.remove(at);
        let bases = match base.content {
            Content::List(bases) => bases,
            _ => vec![base],
        };
        for base in bases {
            let Content::Map(base) = base.content else { continue };
            for (key, node) in base {
                if !entries.iter().any(|(name, _)| *name == key) {
                    entries.push((key, node));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Vec<Value> {
        documents(text).unwrap().iter().map(Node::to_json).collect()
    }

    #[test]
    fn yaml_and_json_are_read_alike() {
        let yaml =
            "# a comment\na:\n- 1\n- x: 'y'\n  z: \"1\"\nb: {c: true, d: ~, e: }\nf: |\n  two\n  lines\n";
        let json = r#"{"a": [1, {"x": "y", "z": "1"}], "b": {"c": true, "d": null, "e": null}, "f": "two\nlines\n"}"#;
        assert_eq!(read(yaml), [serde_json::from_str::<Value>(json).unwrap()]);
        assert_eq!(read(json), read(yaml));
        assert_eq!(read(""), Vec::<Value>::new());
        assert_eq!(read("a: 1\n---\nb: 1.5\n"), [json!({"a": 1}), json!({"b": 1.5})]);
    }

    #[test]
    fn a_scalar_keeps_its_text() {
        let node = &documents("a: 0123\nb: '~'\nc: ~\n").unwrap()[0];
        assert_eq!(node.get("a").unwrap().content, Content::Scalar("0123".to_owned(), true));
        assert_eq!(node.get("b").unwrap().line, 2);
        assert_eq!(node.get("c"), None);
        assert_eq!(node.get("d"), None);
    }

    #[test]
    fn aliases_and_merges_are_followed() {
        let text =
            "base: &base {a: 1, b: 2}\none: *base\ntwo: {b: 3, <<: *base}\nthree: {<<: [*base, {c: 4}]}\n";
        let base = json!({"a": 1, "b": 2});
        let merged =
            json!({"base": base, "one": base, "two": {"a": 1, "b": 3}, "three": {"a": 1, "b": 2, "c": 4}});
        assert_eq!(read(text), [merged]);
    }

    #[test]
    fn a_syntax_error_has_its_line() {
        for (text, line) in [("a: 1\nb: [\n", 2), ("a: 1\na: 2\n", 2), ("a: &x [*x]\n", 1), ("a: *y\n", 1)] {
            let mistake = documents(text).unwrap_err();
            assert_eq!(mistake.line, line, "{text:?}: {mistake:?}");
            assert!(!mistake.what.is_empty());
        }
    }
}
