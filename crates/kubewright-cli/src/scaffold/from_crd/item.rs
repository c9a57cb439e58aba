//! Generated types: structs and enums.

use super::marks::Mark;

/// A generated type.
#[derive(Debug)]
pub(super) enum Item {
    Struct(Struct),
    Enum(Enum),
}

#[derive(Debug, Default)]
pub(super) struct Struct {
    pub(super) name: String,
    /// Path in the object.
    pub(super) path: String,
    pub(super) doc: Option<String>,
    pub(super) marks: Vec<Mark>,
    pub(super) fields: Vec<Field>,
    /// Keeps unknown fields.
    pub(super) open: bool,
    pub(super) has_default: bool,
}

#[derive(Debug)]
pub(super) struct Enum {
    pub(super) name: String,
    pub(super) path: String,
    pub(super) doc: Option<String>,
    /// Variants with their values.
    pub(super) variants: Vec<(String, String)>,
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) ident: String,
    pub(super) name: String,
    pub(super) doc: Option<String>,
    pub(super) rust: String,
    pub(super) presence: Presence,
    pub(super) marks: Vec<Mark>,
    /// Whether the Rust type has a default.
    pub(super) type_has_default: bool,
}

impl Field {
    /// Whether `Default` matches the CRD's default.
    pub(super) fn has_default(&self) -> bool {
        match self.presence {
            Presence::Always => self.type_has_default,
            Presence::OrNull | Presence::Maybe | Presence::List => true,
            Presence::Otherwise(_) => false,
        }
    }
}

/// Whether a field is present.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Presence {
    Always,
    /// Required, but nullable.
    OrNull,
    Maybe,
    /// A list that is empty if absent.
    List,
    /// Defaults to a Rust expression.
    Otherwise(String),
}

/// Normalizes a text as a doc comment preserves it.
pub(super) fn tidy(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| line.trim_end().replace('\t', "    ")).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

/// Whether rustdoc would treat a part of the text as code.
pub(super) fn has_code(text: &str) -> bool {
    let fences = ["```", "~~~"];
    text.lines().any(|line| {
        line.starts_with("    ") || fences.iter().any(|fence| line.trim_start().starts_with(fence))
    })
}
