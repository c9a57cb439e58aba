//! Abstract syntax tree.
//!
//! Every node has an ID, which indexes its source position, its type and its overloads. Macros are already
//! expanded: `all` and `map` appear as a [`Comprehension`].

use std::sync::Arc;

/// Node ID.
pub(crate) type Id = usize;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Expr {
    pub(crate) id: Id,
    pub(crate) kind: Kind,
}

/// The kind of a node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Literal(Literal),
    Ident(String),
    Select(Box<Select>),
    Call(Box<Call>),
    List(Vec<Element>),
    Map(Vec<Entry>),
    Struct(Box<Struct>),
    Comprehension(Box<Comprehension>),
    /// Placeholder for a node with a reported error.
    Error,
}

/// A literal value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Arc<[u8]>),
}

/// `operand.field`, or `has(operand.field)`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Select {
    pub(crate) operand: Expr,
    pub(crate) field: String,
    pub(crate) test_only: bool,
}

/// `function(args)` or `target.function(args)`; operators have names such as `_+_`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) function: String,
    pub(crate) target: Option<Expr>,
    pub(crate) args: Vec<Expr>,
}

/// `[value]` or `[?value]`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Element {
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

/// `{key: value}` or `{?key: value}`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: Expr,
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

/// `name{field: value}`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Struct {
    pub(crate) name: String,
    pub(crate) fields: Vec<Field>,
}

/// A field of a [`Struct`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    pub(crate) id: Id,
    pub(crate) name: String,
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

/// A loop over a range that folds into an accumulator.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Comprehension {
    pub(crate) range: Expr,
    pub(crate) var: String,
    /// The second iteration variable of two-variable comprehensions.
    pub(crate) second_var: Option<String>,
    pub(crate) accumulator: String,
    pub(crate) init: Expr,
    pub(crate) condition: Expr,
    pub(crate) step: Expr,
    pub(crate) result: Expr,
}

/// Name of the accumulator variable of most macros. Not a valid identifier, so expressions cannot use it.
pub(crate) const ACCUMULATOR: &str = "@result";

impl Expr {
    /// `a.b.c` as a qualified name, including a leading dot.
    pub(crate) fn qualified_name(&self) -> Option<String> {
        match &self.kind {
            Kind::Ident(name) => Some(name.clone()),
            Kind::Select(select) if !select.test_only => {
                let prefix = select.operand.qualified_name()?;
                Some(format!("{prefix}.{}", select.field))
            }
            _ => None,
        }
    }

    /// Calls `visit` for this node and its descendants, parents first.
    pub(crate) fn walk<'a>(&'a self, visit: &mut impl FnMut(&'a Expr)) {
        visit(self);
        self.each_child(&mut |child| child.walk(visit));
    }

    /// Calls `visit` for the direct children, in source order.
    pub(crate) fn each_child<'a>(&'a self, visit: &mut impl FnMut(&'a Expr)) {
        match &self.kind {
            Kind::Literal(_) | Kind::Ident(_) | Kind::Error => {}
            Kind::Select(select) => visit(&select.operand),
            Kind::Call(call) => {
                call.target.iter().for_each(&mut *visit);
                call.args.iter().for_each(visit);
            }
            Kind::List(elements) => elements.iter().for_each(|element| visit(&element.value)),
            Kind::Map(entries) => entries.iter().for_each(|entry| {
                visit(&entry.key);
                visit(&entry.value);
            }),
            Kind::Struct(made) => made.fields.iter().for_each(|field| visit(&field.value)),
            Kind::Comprehension(c) => {
                [&c.range, &c.init, &c.condition, &c.step, &c.result].into_iter().for_each(visit);
            }
        }
    }
}
