//! Checks the input of `object!` against the built-in types.
//!
//! Literals become JSON. An expression becomes a placeholder with an expected type, which rustc checks.
//! Reports every error at its own token.

use std::collections::BTreeSet;

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use serde_json::{Map, Value};
use syn::spanned::Spanned as _;
use syn::{Error, Expr};

use super::kind::Kind;
use super::literal::{is_base64, is_quantity};
use super::syntax::{Body, Entry, Key, Node};
use super::table::{self, Field, FieldType, OBJECT_META, Type};
use crate::nearest::nearest;

/// The expansion of an object.
#[derive(Default)]
pub(super) struct Checked {
    /// Calls that insert the values of expressions.
    pub(super) holes: Vec<TokenStream>,
    /// Calls that insert computed keys. They run last, because the pointers of values contain the placeholder
    /// keys.
    pub(super) keys: Vec<TokenStream>,
    pub(super) errors: Option<Error>,
    /// A custom resource. Its fields are not known at compile time.
    custom: bool,
}

/// The location of a value.
struct Place<'a> {
    /// RFC 6901 pointer.
    pointer: String,
    /// The field name in messages.
    field: &'a str,
    /// The span of the key, or of the value in a list.
    span: Span,
}

impl Checked {
    /// Checks a whole object and returns its JSON, with null in place of expressions.
    pub(super) fn object(&mut self, kind: &Kind, body: &Body) -> Value {
        self.custom = kind.builtin.is_none();
        let place = Place { pointer: String::new(), field: &kind.name, span: kind.span };
        if let Some(ty) = &kind.builtin {
            return self.typed(ty, body, &place);
        }
        let fields = [("metadata", FieldType::Object(OBJECT_META.to_owned()))];
        self.body(body, &place, |name| {
            let known = fields.iter().find(|(field, _)| *field == name);
            Ok(known.map_or(FieldType::Any, |(_, ty)| ty.clone()))
        })
    }

    /// An object with known fields.
    fn typed(&mut self, ty: &Type, body: &Body, place: &Place<'_>) -> Value {
        if ty.any {
            return self.body(body, place, |_| Ok(FieldType::Any));
        }
        let mut missing: Vec<&Field> = ty.fields.iter().filter(|field| field.required).collect();
        let value = self.body(body, place, |name| {
            if let Some(field) = ty.field(name) {
                missing.retain(|other| other.name != name);
                return Ok(field.ty.clone());
            }
            // A misspelled field is not also reported as missing.
            let meant = meant(ty, name);
            missing.retain(|field| Some(field.name) != meant.as_deref());
            Err(unknown(ty, name, meant.as_deref()))
        });
        let names: Vec<String> = missing.iter().map(|field| format!("`{}`", field.name)).collect();
        if body.open.is_none() && !names.is_empty() {
            let what = format!(
                "`{}` ({}) needs {}; if another field manager owns the rest, end the object with `..`",
                place.field,
                ty.short(),
                names.join(" and "),
            );
            self.wrong(place.span, what);
        }
        value
    }

    fn body(
        &mut self,
        body: &Body,
        place: &Place<'_>,
        mut field: impl FnMut(&str) -> Result<FieldType, String>,
    ) -> Value {
        let (mut map, mut seen) = (Map::new(), BTreeSet::new());
        if let (Some(span), true) = (body.open, self.custom) {
            let what = "a custom resource is checked by decoding the whole object; for a partial object, \
                        derive `ApplyConfiguration`";
            self.wrong(span, what);
        }
        for entry in &body.entries {
            let (name, span) = match &entry.key {
                Key::Name(name, span) => (name.clone(), *span),
                Key::Computed(key) => (self.computed(key, &place.pointer), key.span()),
            };
            if place.pointer.is_empty() && matches!(&*name, "apiVersion" | "kind") {
                self.wrong(span, format!("the macro sets `{name}`; remove it"));
                continue;
            }
            if !seen.insert(name.clone()) {
                self.wrong(span, format!("duplicate field `{name}`"));
                continue;
            }
            let ty = match (&entry.key, field(&name)) {
                (_, Ok(ty)) => ty,
                (Key::Computed(_), Err(_)) => {
                    let what = format!("`{}` is not a map; write a field name", place.field);
                    self.wrong(span, what);
                    continue;
                }
                (Key::Name(..), Err(what)) => {
                    self.wrong(span, what);
                    continue;
                }
            };
            let pointer = format!("{}/{}", place.pointer, name.replace('~', "~0").replace('/', "~1"));
            let shown = if matches!(entry.key, Key::Computed(_)) { place.field } else { &name };
            let value = self.entry(entry, &ty, &Place { pointer, field: shown, span });
            map.insert(name, value);
        }
        Value::Object(map)
    }

    fn entry(&mut self, entry: &Entry, ty: &FieldType, place: &Place<'_>) -> Value {
        match (&entry.optional, &entry.value) {
            (Some(_), Node::Expression(option)) => {
                self.hole("optional", option, ty, &place.pointer);
                Value::Null
            }
            (Some(mark), _) => {
                self.wrong(*mark, "`?` is only allowed with an expression of type Option");
                Value::Null
            }
            (None, value) => self.value(value, ty, place),
        }
    }

    fn value(&mut self, node: &Node, ty: &FieldType, place: &Place<'_>) -> Value {
        match (node, ty) {
            (Node::Expression(expression), ty) => {
                self.hole("value", expression, ty, &place.pointer);
                Value::Null
            }
            (Node::Object(body), FieldType::Object(name)) => match table::find(name) {
                Some(ty) => self.typed(&ty, body, place),
                None => Value::Null,
            },
            (Node::Object(body), FieldType::Map(of)) => {
                if let Some(span) = body.open {
                    self.wrong(
                        span,
                        format!("`{}` is a map without required fields; remove `..`", place.field),
                    );
                }
                self.body(body, place, |_| Ok((**of).clone()))
            }
            (Node::Object(body), FieldType::Any) => self.body(body, place, |_| Ok(FieldType::Any)),
            (Node::List(items, _), FieldType::List(of)) => self.list(items, of, place),
            (Node::List(items, _), FieldType::Any) => self.list(items, &FieldType::Any, place),
            (Node::Text(text), FieldType::Text(values)) => {
                let text = text.value();
                if !values.is_empty() && !text.is_empty() && !values.contains(&text.as_str()) {
                    self.wrong(node.span(), no_such_value(&text, place.field, values));
                }
                Value::String(text)
            }
            (Node::Text(text), FieldType::Quantity) if !is_quantity(&text.value()) => {
                let what = format!("`{}` is not a quantity such as `100m` or `1.5Gi`", text.value());
                self.wrong(node.span(), what);
                Value::Null
            }
            (Node::Text(text), FieldType::Bytes) if !is_base64(&text.value()) => {
                self.wrong(node.span(), format!("the value of `{}` must be base64", place.field));
                Value::Null
            }
            (
                Node::Text(text),
                FieldType::Quantity
                | FieldType::Bytes
                | FieldType::IntOrString
                | FieldType::Time
                | FieldType::MicroTime
                | FieldType::Any,
            ) => Value::String(text.value()),
            (
                Node::Integer(number, _),
                FieldType::Int32
                | FieldType::Int64
                | FieldType::Number
                | FieldType::IntOrString
                | FieldType::Quantity
                | FieldType::Any,
            ) => self.integer(*number, ty, node.span()),
            (Node::Float(number, _), FieldType::Number | FieldType::Quantity | FieldType::Any) => {
                Value::from(*number)
            }
            (Node::Bool(flag), FieldType::Bool | FieldType::Any) => Value::Bool(flag.value),
            (Node::Null(_), FieldType::Any) => Value::Null,
            (Node::Null(span), _) => {
                let what = "null is not allowed; remove the field, or write `key?: option`";
                self.wrong(*span, what);
                Value::Null
            }
            (node, ty) => {
                let what = format!("`{}` is {}, not {}", place.field, described(ty), form(node));
                self.wrong(node.span(), what);
                Value::Null
            }
        }
    }

    fn list(&mut self, items: &[Node], of: &FieldType, place: &Place<'_>) -> Value {
        let items = items.iter().enumerate().map(|(index, item)| {
            let (pointer, field) =
                (format!("{}/{index}", place.pointer), format!("{}[{index}]", place.field));
            self.value(item, of, &Place { pointer, field: &field, span: item.span() })
        });
        Value::Array(items.collect())
    }

    fn integer(&mut self, number: i128, ty: &FieldType, span: Span) -> Value {
        let fits = match ty {
            FieldType::Int32 | FieldType::IntOrString => i32::try_from(number).is_ok(),
            _ => i64::try_from(number).is_ok(),
        };
        if !fits {
            self.wrong(span, format!("{number} does not fit {}", described(ty)));
        }
        i64::try_from(number).map_or(Value::Null, Value::from)
    }

    /// An expression. rustc checks its type.
    fn hole(&mut self, function: &str, expression: &Expr, ty: &FieldType, pointer: &str) {
        let function = syn::Ident::new(function, Span::call_site());
        let shape = shape(ty);
        // Type errors point at the expression.
        let span = expression.span().resolved_at(Span::mixed_site());
        self.holes.push(quote_spanned! {span=>
            ::kubewright::object::template::#function::<#shape, _>(#pointer, &(#expression))
        });
    }

    /// A computed key. Returns its placeholder in the JSON, which contains NUL, unlike any Kubernetes key.
    fn computed(&mut self, key: &Expr, pointer: &str) -> String {
        let name = format!("\0{}", self.keys.len());
        let span = key.span().resolved_at(Span::mixed_site());
        self.keys.push(quote_spanned! {span=>
            ::kubewright::object::template::key(#pointer, #name, &(#key))
        });
        name
    }

    fn wrong(&mut self, span: Span, what: impl std::fmt::Display) {
        let error = Error::new(span, what);
        match &mut self.errors {
            Some(errors) => errors.combine(error),
            None => self.errors = Some(error),
        }
    }
}

/// The likely intended field: one with a similar name, or one with this name in a nested object.
fn meant(ty: &Type, name: &str) -> Option<String> {
    let near = nearest(name, ty.fields.iter().map(|field| field.name));
    near.map(str::to_owned).or_else(|| below(ty, name, 2))
}

fn below(ty: &Type, name: &str, depth: usize) -> Option<String> {
    let inner = |field: &Field| match &field.ty {
        FieldType::Object(of) => Some((field.name, table::find(of)?)),
        _ => None,
    };
    let inner: Vec<(&str, Type)> =
        ty.fields.iter().filter(|field| field.name != "status").filter_map(inner).collect();
    let here = inner.iter().find(|(_, ty)| ty.field(name).is_some());
    here.map(|(field, _)| format!("{field}.{name}")).or_else(|| {
        let deeper = |(field, ty): &(&str, Type)| Some(format!("{field}.{}", below(ty, name, depth - 1)?));
        if depth > 1 { inner.iter().find_map(deeper) } else { None }
    })
}

fn unknown(ty: &Type, name: &str, meant: Option<&str>) -> String {
    let what = format!("`{}` has no field `{name}`", ty.short());
    let names = || ty.fields.iter().map(|field| field.name).collect::<Vec<_>>().join(", ");
    match meant {
        Some(meant) => format!("{what}; did you mean `{meant}`?"),
        None => format!("{what}; its fields are {}", names()),
    }
}

fn no_such_value(text: &str, field: &str, values: &[&'static str]) -> String {
    let what = format!("`{text}` is not a value of `{field}`");
    match nearest(text, values.iter().copied()) {
        Some(near) => format!("{what}; did you mean `{near}`?"),
        None => format!("{what}; expected one of {}", values.join(", ")),
    }
}

/// The type of a field in messages, with its article.
fn described(ty: &FieldType) -> String {
    match ty {
        FieldType::Text(_) => "a string".to_owned(),
        FieldType::Bool => "a boolean".to_owned(),
        FieldType::Int32 => "a 32-bit integer".to_owned(),
        FieldType::Int64 => "a 64-bit integer".to_owned(),
        FieldType::Number => "a number".to_owned(),
        FieldType::Bytes => "a base64 string".to_owned(),
        FieldType::Quantity => "a quantity".to_owned(),
        FieldType::IntOrString => "a 32-bit integer or a string".to_owned(),
        FieldType::Time | FieldType::MicroTime => "a time string".to_owned(),
        FieldType::List(_) => "a list".to_owned(),
        FieldType::Map(_) => "a map".to_owned(),
        FieldType::Object(name) => format!("an object ({})", name.rsplit('.').next().unwrap_or_default()),
        FieldType::Any => "any JSON".to_owned(),
    }
}

/// The type of the input in messages.
fn form(node: &Node) -> &'static str {
    match node {
        Node::Text(_) => "a string",
        Node::Integer(..) => "an integer",
        Node::Float(..) => "a number with a fraction",
        Node::Bool(_) => "a boolean",
        Node::Null(_) => "null",
        Node::Object(_) => "an object",
        Node::List(..) => "a list",
        Node::Expression(_) => "an expression",
    }
}

/// The Rust type that represents a field type.
fn shape(ty: &FieldType) -> TokenStream {
    let shape = match ty {
        FieldType::List(of) => {
            let of = shape(of);
            quote!(List<#of>)
        }
        FieldType::Map(of) => {
            let of = shape(of);
            quote!(Map<#of>)
        }
        FieldType::Text(_) => quote!(Text),
        FieldType::Bool => quote!(Bool),
        FieldType::Int32 => quote!(Int32),
        FieldType::Int64 => quote!(Int64),
        FieldType::Number => quote!(Number),
        FieldType::Bytes => quote!(Bytes),
        FieldType::Quantity => quote!(Quantity),
        FieldType::IntOrString => quote!(IntOrString),
        FieldType::Time => quote!(Time),
        FieldType::MicroTime => quote!(MicroTime),
        FieldType::Object(_) => quote!(Struct),
        FieldType::Any => quote!(Json),
    };
    quote!(::kubewright::object::shape::#shape)
}
