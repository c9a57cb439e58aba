//! Finds validators in Rust sources that schemars silently drops.
//!
//! `#[schemars(length(min = 1))]` on a map and `#[schemars(range(min = 1))]` on a string compile but do not
//! appear in the schema. Types are identified by name; unknown types, such as aliases, are skipped.

use proc_macro2::Span;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned as _;
use syn::{Attribute, Field, Fields, GenericArgument, Item, Meta, PathArguments, Token, Type};

use crate::declare;
use crate::lint::{Finding, Level};

/// The dropped validators of one source file. `file` is its name in findings.
pub fn dropped_validators(file: &str, source: &str) -> Result<Vec<Finding>, syn::Error> {
    let mut search = Search { file, findings: Vec::new() };
    search.items(&syn::parse_file(source)?.items, "");
    Ok(search.findings)
}

struct Search<'a> {
    file: &'a str,
    findings: Vec<Finding>,
}

/// The schema type of a Rust type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    String,
    Number,
    Boolean,
    List,
    Map,
}

impl Kind {
    fn words(self) -> &'static str {
        match self {
            Self::String => "a string",
            Self::Number => "a number",
            Self::Boolean => "a boolean",
            Self::List => "a list",
            Self::Map => "a map",
        }
    }
}

impl Search<'_> {
    fn items(&mut self, items: &[Item], path: &str) {
        for item in items {
            match item {
                Item::Struct(item) => self.fields(&item.fields, &below(path, &item.ident.to_string())),
                Item::Enum(item) => {
                    let path = below(path, &item.ident.to_string());
                    for variant in &item.variants {
                        self.fields(&variant.fields, &below(&path, &variant.ident.to_string()));
                    }
                }
                Item::Mod(item) => {
                    if let Some((_, items)) = &item.content {
                        self.items(items, &below(path, &item.ident.to_string()));
                    }
                }
                _ => {}
            }
        }
    }

    fn fields(&mut self, fields: &Fields, path: &str) {
        for field in fields {
            let validators: Vec<Meta> = field.attrs.iter().flat_map(arguments).collect();
            let is = |name: &str| validators.iter().any(|meta| meta.path().is_ident(name));
            // These attributes replace the schema.
            if !is("with") && !is("schema_with") {
                self.validators(&validators, &field.ty, field, path);
            }
        }
    }

    fn validators(&mut self, validators: &[Meta], ty: &Type, field: &Field, path: &str) {
        let Some((kind, inner)) = kind_of(ty) else { return };
        for validator in validators {
            let Some(name) = validator.path().get_ident().map(ToString::to_string) else { continue };
            let (fits, help) = match name.as_str() {
                "length" => (matches!(kind, Kind::String | Kind::List), bounds(kind)),
                "range" => (kind == Kind::Number, "remove it, or give the field a numeric type"),
                "regex" | "pattern" | "contains" => {
                    (kind == Kind::String, "remove it, or give the field a string type")
                }
                "inner" => {
                    let nested = nested(validator);
                    match inner {
                        Some(inner) if kind == Kind::List => self.validators(&nested, inner, field, path),
                        _ => {}
                    }
                    (
                        kind == Kind::List,
                        "for map values, write `#[schemars(transform = schema::values(...))]`",
                    )
                }
                _ => continue,
            };
            if !fits {
                self.report(&name, kind, help, field, validator.span(), path);
            }
        }
    }

    fn report(&mut self, name: &str, kind: Kind, help: &str, field: &Field, at: Span, path: &str) {
        self.findings.push(Finding {
            code: "KW110".to_owned(),
            level: Level::Error,
            item: declare::Item {
                file: self.file.to_owned(),
                line: u32::try_from(at.start().line).unwrap_or_default(),
                path: path.to_owned(),
            },
            field: field.ident.as_ref().map(ToString::to_string).unwrap_or_default(),
            message: format!("schemars silently drops `{name}` here, because this is {}", kind.words()),
            help: help.to_owned(),
        });
    }
}

fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}::{name}") }
}

fn bounds(kind: Kind) -> &'static str {
    match kind {
        Kind::Map => "write `#[schemars(transform = schema::min_properties(...))]`, or `max_properties`",
        Kind::Number => "write `#[schemars(range(...))]`",
        _ => "remove it",
    }
}

/// The arguments of an attribute that schemars reads.
fn arguments(attribute: &Attribute) -> Vec<Meta> {
    let read = ["schemars", "validate", "garde"].iter().any(|name| attribute.path().is_ident(name));
    if read { nested(&attribute.meta) } else { Vec::new() }
}

fn nested(meta: &Meta) -> Vec<Meta> {
    let Meta::List(list) = meta else { return Vec::new() };
    let parsed = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
    parsed.map(|metas| metas.into_iter().collect()).unwrap_or_default()
}

/// The schema type of a Rust type, and its item type.
fn kind_of(ty: &Type) -> Option<(Kind, Option<&Type>)> {
    let path = match ty {
        Type::Path(path) => path.path.segments.last()?,
        Type::Array(array) => return Some((Kind::List, Some(&array.elem))),
        Type::Reference(reference) => return kind_of(&reference.elem),
        _ => return None,
    };
    let first = match &path.arguments {
        PathArguments::AngleBracketed(arguments) => {
            arguments.args.iter().find_map(|argument| match argument {
                GenericArgument::Type(ty) => Some(ty),
                _ => None,
            })
        }
        _ => None,
    };
    Some(match path.ident.to_string().as_str() {
        "Option" | "Box" | "Arc" | "Rc" | "Cow" => return kind_of(first?),
        "String" | "str" | "char" | "PathBuf" | "Ipv4Addr" | "Ipv6Addr" | "IpAddr" => (Kind::String, None),
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" | "u8" | "u16" | "u32" | "u64" | "u128" | "usize"
        | "f32" | "f64" => (Kind::Number, None),
        "bool" => (Kind::Boolean, None),
        "Vec" | "VecDeque" | "LinkedList" | "BTreeSet" | "HashSet" | "IndexSet" => (Kind::List, first),
        "BTreeMap" | "HashMap" | "IndexMap" => (Kind::Map, None),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
