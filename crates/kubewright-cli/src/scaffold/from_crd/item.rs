//! Types that are made: structs and enums, as the code writes them.

use super::marks::Mark;

/// A type that is made.
#[derive(Debug)]
pub(super) enum Item {
    Struct(Struct),
    Enum(Enum),
}

#[derive(Debug, Default)]
pub(super) struct Struct {
    pub(super) name: String,
    /// Where it is in an object.
    pub(super) path: String,
    pub(super) doc: Option<String>,
    pub(super) marks: Vec<Mark>,
    pub(super) fields: Vec<Field>,
    /// Keeps fields that nobody knows.
    pub(super) open: bool,
    pub(super) has_default: bool,
}

#[derive(Debug)]
pub(super) struct Enum {
    pub(super) name: String,
    pub(super) path: String,
    pub(super) doc: Option<String>,
    /// The variants and their values.
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
    /// The type alone has a default.
    pub(super) type_has_default: bool,
}

impl Field {
    /// Whether `Default` says the same of it as the definition.
    pub(super) fn has_default(&self) -> bool {
        match self.presence {
            Presence::Always => self.type_has_default,
            Presence::OrNull | Presence::Maybe | Presence::List => true,
            Presence::Otherwise(_) => false,
        }
    }
}

/// Whether a field is there.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Presence {
    Always,
    /// Always, but it may be null.
    OrNull,
    Maybe,
    /// A list that is empty where the field is absent.
    List,
    /// An expression of Rust's for it where it is absent.
    Otherwise(String),
}

/// A text as a doc comment keeps it.
pub(super) fn tidy(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| line.trim_end().replace('\t', "    ")).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

/// Whether rustdoc would take a part of a text for code, and try to compile it.
pub(super) fn has_code(text: &str) -> bool {
    let fences = ["```", "~~~"];
    text.lines().any(|line| {
        line.starts_with("    ") || fences.iter().any(|fence| line.trim_start().starts_with(fence))
    })
}
