//! Writes types as Rust source that rustfmt does not change.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::idents;
use super::item::{Enum, Field, Item, Presence, Struct, has_code};
use super::marks::Mark;
use super::model::Model;

/// Attributes of the spec struct.
pub(super) struct Head<'a> {
    pub(super) about: &'a str,
    /// The name of the spec struct.
    pub(super) spec: &'a str,
    /// The arguments of `#[kube(...)]`.
    pub(super) kube: Vec<String>,
    /// The kind with its article.
    pub(super) whose: &'a str,
}

/// The source file.
pub(super) fn file(model: &Model, head: &Head<'_>) -> String {
    let mut body = String::new();
    let mut defaults = Defaults::default();
    for item in &model.items {
        match item {
            Item::Struct(made) => structure(&mut body, made, head, &mut defaults),
            Item::Enum(made) => enumeration(&mut body, made, head),
        }
    }
    for (name, (rust, expression)) in &defaults.0 {
        let head = format!("fn {name}() -> {rust} {{");
        let head = if head.len() > 100 { head.replace(" -> ", "\n-> ") } else { head };
        let _ = write!(body, "\n{head}\n    {expression}\n}}\n");
    }
    let mut text = format!("//! {}\n\n", head.about);
    text.push_str(
        "#![allow(\n    \
             clippy::doc_lazy_continuation,\n    \
             clippy::doc_overindented_list_items,\n    \
             clippy::enum_variant_names,\n    \
             reason = \"texts and names come from the CRD\"\n\
         )]\n\n",
    );
    imports(&mut text, model, &body);
    text + &body
}

fn imports(text: &mut String, model: &Model, body: &str) {
    let (std, mut others): (Vec<&str>, Vec<&str>) =
        model.uses.iter().map(String::as_str).partition(|path| path.starts_with("std::"));
    others.extend(["kubewright::prelude::*", "schemars::JsonSchema", "serde::{Deserialize, Serialize}"]);
    if body.contains("(Format::") {
        others.push("kubewright::schema::{self, Format}");
    } else if body.contains("schema::") {
        others.push("kubewright::schema");
    }
    others.sort_unstable();
    for path in &std {
        let _ = writeln!(text, "use {path};");
    }
    if !std.is_empty() {
        text.push('\n');
    }
    for path in others {
        let _ = writeln!(text, "use {path};");
    }
}

fn structure(text: &mut String, made: &Struct, head: &Head<'_>, defaults: &mut Defaults) {
    text.push('\n');
    let is_spec = made.name == head.spec;
    about(text, made.doc.as_deref(), &made.path, head);
    let custom = if is_spec { "CustomResource, " } else { "" };
    let default = if made.has_default { ", Default" } else { "" };
    let _ = writeln!(
        text,
        "#[derive({custom}JsonSchema, Serialize, Deserialize, Clone, Debug{default}, PartialEq)]"
    );
    if is_spec {
        let _ = writeln!(text, "#[kube(\n    {}\n)]", head.kube.join(",\n    "));
    }
    write_marks(text, &made.marks, "");
    text.push_str("#[serde(rename_all = \"camelCase\")]\n");
    if made.fields.is_empty() && !made.open {
        let _ = writeln!(text, "pub struct {} {{}}", made.name);
        return;
    }
    let _ = writeln!(text, "pub struct {} {{", made.name);
    for made in &made.fields {
        field(text, made, defaults);
    }
    if made.open {
        text.push_str(
            "    /// Unknown fields, which the CRD preserves.\n    #[serde(flatten)]\n    \
             pub other: BTreeMap<String, serde_json::Value>,\n",
        );
    }
    text.push_str("}\n");
}

fn field(text: &mut String, made: &Field, defaults: &mut Defaults) {
    if let Some(doc) = &made.doc {
        comment(text, doc, "    ");
    }
    write_marks(text, &made.marks, "    ");
    let mut serde = Vec::new();
    if idents::camel_case(&made.ident) != made.name {
        serde.push(format!("rename = {:?}", made.name));
    }
    let mut rust = made.rust.clone();
    match &made.presence {
        Presence::Always => {}
        Presence::OrNull => {
            text.push_str("    #[schemars(required)]\n");
            rust = format!("Option<{rust}>");
        }
        Presence::Maybe => {
            serde.extend(["default".to_owned(), "skip_serializing_if = \"Option::is_none\"".to_owned()]);
            rust = format!("Option<{rust}>");
        }
        Presence::List => {
            serde.extend(["default".to_owned(), "skip_serializing_if = \"Vec::is_empty\"".to_owned()]);
        }
        Presence::Otherwise(expression) => {
            let name = defaults.function(&made.ident, &rust, expression);
            serde.push(format!("default = {name:?}"));
        }
    }
    if !serde.is_empty() {
        attribute(text, &serde);
    }
    let line = format!("    pub {}: {rust},", made.ident);
    let line = if line.len() > 100 { line.replacen(": ", ":\n        ", 1) } else { line };
    let _ = writeln!(text, "{line}");
}

fn enumeration(text: &mut String, made: &Enum, head: &Head<'_>) {
    text.push('\n');
    about(text, made.doc.as_deref(), &made.path, head);
    text.push_str("#[derive(JsonSchema, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]\n");
    let _ = writeln!(text, "pub enum {} {{", made.name);
    for (variant, value) in &made.variants {
        if variant != value {
            attribute(text, &[format!("rename = {value:?}")]);
        }
        let _ = writeln!(text, "    {variant},");
    }
    text.push_str("}\n");
}

/// A doc comment becomes a CRD description. Types without a description get a plain comment.
fn about(text: &mut String, doc: Option<&str>, path: &str, head: &Head<'_>) {
    match doc.filter(|doc| !doc.is_empty()) {
        Some(doc) => comment(text, doc, ""),
        None => _ = writeln!(text, "// `{path}` of {}.", head.whose),
    }
}

fn comment(text: &mut String, doc: &str, indent: &str) {
    if has_code(doc) {
        // Not valid rustdoc: only the CRD gets the description.
        let description = Mark::Keyword("description".to_owned(), doc.into());
        let _ = writeln!(text, "{indent}{}", description.line());
        return;
    }
    for line in doc.lines() {
        let space = if line.is_empty() { "" } else { " " };
        let _ = writeln!(text, "{indent}///{space}{line}");
    }
}

fn write_marks(text: &mut String, marks: &[Mark], indent: &str) {
    for mark in marks {
        let _ = writeln!(text, "{indent}{}", mark.line());
    }
}

/// The `#[serde]` attribute of a field or variant, wrapped as rustfmt does.
fn attribute(text: &mut String, arguments: &[String]) {
    let line = arguments.join(", ");
    let _ = if line.len() > 70 {
        writeln!(text, "    #[serde(\n        {}\n    )]", arguments.join(",\n        "))
    } else {
        writeln!(text, "    #[serde({line})]")
    };
}

/// Default functions by name.
#[derive(Default)]
struct Defaults(BTreeMap<String, (String, String)>);

impl Defaults {
    fn function(&mut self, ident: &str, rust: &str, expression: &str) -> String {
        let value = (rust.to_owned(), expression.to_owned());
        let ident = ident.trim_matches('_');
        let names = std::iter::once(format!("default_{ident}"))
            .chain((2..).map(|number| format!("default_{ident}_{number}")));
        let is_free = |name: &String| self.0.get(name).is_none_or(|known| *known == value);
        let name = names.into_iter().find(is_free).unwrap_or_default();
        self.0.insert(name.clone(), value);
        name
    }
}
