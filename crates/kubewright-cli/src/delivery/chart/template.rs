//! YAML documents with Helm actions, as a tree.
//!
//! Data and actions are separate nodes, so data can never be evaluated: `{{` in data, such as in the
//! description of a CRD field, is escaped when the document is printed.

use std::fmt::Write as _;

use kubewright_manifests::yaml;
use serde_json::{Map, Value};

/// A value in a document.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    /// Data without actions.
    Data(Value),
    /// A string of data and actions. Always printed as a string.
    Text(Vec<Part>),
    /// An action that returns a number or a boolean.
    Action(String),
    Map(Vec<Entry>),
    List(Vec<Item>),
}

/// A part of a string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Data(String),
    /// The action without braces: `.Release.Namespace`.
    Action(String),
}

/// An entry of a map.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Entry {
    Field(String, Node),
    /// Entries that exist if a condition is true.
    If(String, Vec<Entry>),
    /// Fields that a named template returns, such as labels.
    Include(String),
    /// A field that is omitted if the value is empty.
    With(String, String),
    /// The fields of a map in the values, if it is not empty.
    Spread(String),
}

/// An item of a list.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Item {
    Node(Node),
    /// Items that exist if a condition is true.
    If(String, Vec<Item>),
    /// The items of a list in the values, if it is not empty.
    Spread(String),
}

impl Node {
    /// A string that an action returns.
    pub(super) fn text(action: impl Into<String>) -> Self {
        Self::Text(vec![Part::Action(action.into())])
    }

    /// The field of a map.
    pub(super) fn field_mut(&mut self, name: &str) -> Option<&mut Self> {
        if !matches!(self, Self::Map(_) | Self::Data(Value::Object(_))) {
            return None;
        }
        self.entries().iter_mut().find_map(|entry| match entry {
            Entry::Field(key, node) if key == name => Some(node),
            _ => None,
        })
    }

    /// The entries of a map. Replaces anything else by an empty map.
    pub(super) fn entries(&mut self) -> &mut Vec<Entry> {
        if let Self::Data(Value::Object(fields)) = self {
            let fields = std::mem::take(fields);
            *self =
                Self::Map(fields.into_iter().map(|(key, value)| Entry::Field(key, value.into())).collect());
        }
        if !matches!(self, Self::Map(_)) {
            *self = Self::Map(Vec::new());
        }
        match self {
            Self::Map(entries) => entries,
            _ => unreachable!("set to a map above"),
        }
    }

    /// Sets or replaces a field.
    pub(super) fn set(&mut self, name: &str, node: Self) {
        if let Some(there) = self.field_mut(name) {
            *there = node;
            return;
        }
        self.entries().push(Entry::Field(name.to_owned(), node));
    }

    /// Sets the name of an object.
    pub(super) fn rename(&mut self, action: String) {
        if let Some(metadata) = self.field_mut("metadata") {
            metadata.set("name", Self::text(action));
        }
    }

    /// Prints a document of which all parts depend on `when`, if set.
    pub(super) fn document(&self, when: Option<&str>) -> String {
        let mut text = String::new();
        if let Some(when) = when {
            action(&mut text, &format!("if {when}"), 0);
        }
        match self {
            Self::Map(entries) => print_entries(&mut text, entries, 0, false),
            Self::Data(value) => text.push_str(&data(value)),
            other => print_items(&mut text, std::slice::from_ref(&Item::Node(other.clone())), 0),
        }
        if when.is_some() {
            action(&mut text, "end", 0);
        }
        text
    }
}

impl From<Value> for Node {
    fn from(value: Value) -> Self {
        Self::Data(value)
    }
}

/// Data as YAML, with escaped braces.
fn data(value: &Value) -> String {
    yaml::document(value).trim_start_matches("---\n").replace("{{", "{{ \"{{\" }}")
}

fn key(name: &str) -> String {
    data(&Value::from(name)).trim_end().to_owned()
}

fn pad(text: &mut String, indent: usize) {
    text.extend(std::iter::repeat_n(' ', indent));
}

/// Appends lines with an indentation. With `started`, the first line is already indented.
fn indented(text: &mut String, lines: &str, indent: usize, started: bool) {
    for (at, line) in lines.lines().enumerate() {
        if !line.is_empty() && (at > 0 || !started) {
            pad(text, indent);
        }
        text.push_str(line);
        text.push('\n');
    }
}

fn print_entries(text: &mut String, entries: &[Entry], indent: usize, started: bool) {
    // After `- ` comes a field. The order of fields has no meaning.
    let first =
        if started { entries.iter().position(|entry| matches!(entry, Entry::Field(..))) } else { None };
    let rest = entries.iter().enumerate().filter(|(at, _)| Some(*at) != first).map(|(_, entry)| entry);
    for (at, entry) in first.map(|first| &entries[first]).into_iter().chain(rest).enumerate() {
        print_entry(text, entry, indent, started && at == 0);
    }
}

fn print_entry(text: &mut String, entry: &Entry, indent: usize, started: bool) {
    match entry {
        Entry::Field(name, Node::Data(value)) => {
            let field = Map::from_iter([(name.clone(), value.clone())]);
            indented(text, &data(&field.into()), indent, started);
        }
        Entry::Field(name, node) => {
            if !started {
                pad(text, indent);
            }
            text.push_str(&key(name));
            text.push(':');
            match node {
                Node::Map(entries) if !entries.is_empty() => {
                    text.push('\n');
                    print_entries(text, entries, indent + 2, false);
                }
                Node::List(items) if !items.is_empty() => {
                    text.push('\n');
                    print_items(text, items, indent);
                }
                scalar => {
                    let _ = writeln!(text, " {}", inline(scalar));
                }
            }
        }
        Entry::If(when, entries) => {
            action(text, &format!("if {when}"), indent);
            print_entries(text, entries, indent, false);
            action(text, "end", indent);
        }
        Entry::Include(template) => {
            action(text, &format!("include \"{template}\" . | nindent {indent}"), indent);
        }
        Entry::With(name, value) => {
            action(text, &format!("with {value}"), indent);
            indented(text, &format!("{}:", key(name)), indent, false);
            action(text, &format!("toYaml . | nindent {}", indent + 2), indent + 2);
            action(text, "end", indent);
        }
        Entry::Spread(value) => spread(text, value, indent),
    }
}

fn print_items(text: &mut String, items: &[Item], indent: usize) {
    for item in items {
        match item {
            Item::Node(Node::Data(value)) => {
                indented(text, &data(&Value::Array(vec![value.clone()])), indent, false);
            }
            Item::Node(Node::Map(entries)) if !entries.is_empty() => {
                pad(text, indent);
                text.push_str("- ");
                print_entries(text, entries, indent + 2, true);
            }
            Item::Node(node) => {
                pad(text, indent);
                let _ = writeln!(text, "- {}", inline(node));
            }
            Item::If(when, items) => {
                action(text, &format!("if {when}"), indent);
                print_items(text, items, indent);
                action(text, "end", indent);
            }
            Item::Spread(value) => spread(text, value, indent),
        }
    }
}

/// Prints an action on its own line. The indentation is for readability; the action trims it.
fn action(text: &mut String, action: &str, indent: usize) {
    pad(text, indent);
    let _ = writeln!(text, "{{{{- {action} }}}}");
}

fn spread(text: &mut String, value: &str, indent: usize) {
    action(text, &format!("with {value}"), indent);
    action(text, &format!("toYaml . | nindent {indent}"), indent);
    action(text, "end", indent);
}

/// A scalar or an empty collection on one line.
fn inline(node: &Node) -> String {
    match node {
        Node::Data(value) => data(value).trim_end().to_owned(),
        Node::Action(action) => format!("{{{{ {action} }}}}"),
        Node::Map(_) => "{}".to_owned(),
        Node::List(_) => "[]".to_owned(),
        Node::Text(parts) => match &parts[..] {
            [Part::Action(action)] => format!("{{{{ {action} | quote }}}}"),
            parts => {
                let parts = parts.iter().map(|part| match part {
                    // JSON strings are double-quoted YAML strings.
                    Part::Data(text) => {
                        let quoted = Value::from(text.as_str()).to_string().replace("{{", "{{ \"{{\" }}");
                        quoted[1..quoted.len() - 1].to_owned()
                    }
                    Part::Action(action) => format!("{{{{ {action} }}}}"),
                });
                format!("\"{}\"", parts.collect::<String>())
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn data_cannot_contain_actions() {
        let node = Node::Data(json!({ "a": "{{ .Values.secret }}", "b": ["x\n{{ end }}\n"] }));
        insta::assert_snapshot!(node.document(None), @r#"
        a: '{{ "{{" }} .Values.secret }}'
        b:
        - |
          x
          {{ "{{" }} end }}
        "#);
        let text = Node::Text(vec![Part::Data("a\"{{".into()), Part::Action(".Release.Name".into())]);
        assert_eq!(inline(&text), r#""a\"{{ "{{" }}{{ .Release.Name }}""#);
    }

    #[test]
    fn actions_are_printed_on_lines_of_their_own() {
        let mut node = Node::Data(json!({ "kind": "Service" }));
        node.set(
            "metadata",
            Node::Map(vec![
                Entry::Field("name".into(), Node::text(".Release.Name")),
                Entry::Field("labels".into(), Node::Map(vec![Entry::Include("shop.labels".into())])),
            ]),
        );
        let port = Node::Map(vec![
            Entry::If(".Values.named".into(), vec![Entry::Field("name".into(), json!("https").into())]),
            Entry::Field("port".into(), Node::Action(".Values.port".into())),
        ]);
        node.set("ports", Node::List(vec![Item::Node(port), Item::Spread(".Values.ports".into())]));
        node.entries().push(Entry::With("affinity".into(), ".Values.affinity".into()));
        insta::assert_snapshot!(node.document(Some(".Values.enable")), @r#"
        {{- if .Values.enable }}
        kind: Service
        metadata:
          name: {{ .Release.Name | quote }}
          labels:
            {{- include "shop.labels" . | nindent 4 }}
        ports:
        - port: {{ .Values.port }}
          {{- if .Values.named }}
          name: https
          {{- end }}
        {{- with .Values.ports }}
        {{- toYaml . | nindent 0 }}
        {{- end }}
        {{- with .Values.affinity }}
        affinity:
          {{- toYaml . | nindent 2 }}
        {{- end }}
        {{- end }}
        "#);
    }
}
