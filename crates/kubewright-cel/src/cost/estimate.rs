//! Worst-case cost estimate at compile time.
//!
//! Walks a checked tree and uses the size limits of the schema. A value without a limit has the maximum size,
//! so expressions over it are usually too expensive.

use std::collections::HashMap;

use super::functions::{self, Node};
use super::range::Range;
use super::{LIST, MAP, PER_CHARACTER, PER_REGEX_CHARACTER, SELECT, STRUCT};
use crate::ast::{Call, Comprehension, Element, Entry, Expr, Id, Kind, Literal, Select};
use crate::program::Program;
use crate::schema::DeclType;
use crate::types::Type;

/// The minimum and maximum cost of `program`, where `self` and `oldSelf` have the type `root`.
pub(crate) fn estimate(program: &Program, root: Option<&DeclType>) -> Range {
    let mut estimator = Estimator {
        program,
        root,
        paths: HashMap::new(),
        sizes: HashMap::new(),
        entries: HashMap::new(),
        locals: Vec::new(),
    };
    estimator.cost(&program.root)
}

/// A path from a variable through fields and items.
type Path = Vec<String>;

/// The sizes of the keys and values of a list or map.
#[derive(Debug, Clone, Copy)]
struct EntrySize {
    is_list: bool,
    key: Range,
    value: Range,
}

impl EntrySize {
    fn union(self, other: Self) -> Self {
        Self { is_list: self.is_list, key: self.key.union(other.key), value: self.value.union(other.value) }
    }
}

struct Local<'a> {
    name: &'a str,
    path: Path,
    size: Option<Range>,
    entries: Option<EntrySize>,
}

pub(super) struct Estimator<'a> {
    program: &'a Program,
    root: Option<&'a DeclType>,
    paths: HashMap<Id, Path>,
    sizes: HashMap<Id, Range>,
    entries: HashMap<Id, EntrySize>,
    locals: Vec<Local<'a>>,
}

impl<'a> Estimator<'a> {
    fn cost(&mut self, expr: &'a Expr) -> Range {
        match &expr.kind {
            Kind::Literal(_) | Kind::Error => Range::default(),
            Kind::Ident(name) => {
                let path = self.local(name).map_or_else(|| vec![name.clone()], |local| local.path.clone());
                self.paths.insert(expr.id, path);
                Range::fixed(SELECT)
            }
            Kind::Select(select) => self.select(expr, select),
            Kind::Call(call) => self.call(expr, call),
            Kind::List(elements) => self.list(expr, elements),
            Kind::Map(entries) => self.map(expr, entries),
            Kind::Struct(made) => {
                made.fields.iter().fold(Range::fixed(STRUCT), |sum, field| sum + self.cost(&field.value))
            }
            Kind::Comprehension(comprehension) if is_bind(comprehension) => self.bind(expr, comprehension),
            Kind::Comprehension(comprehension) => self.comprehension(expr, comprehension),
        }
    }

    fn select(&mut self, expr: &'a Expr, select: &'a Select) -> Range {
        let operand = self.cost(&select.operand);
        // Presence tests are free in Kubernetes.
        if select.test_only {
            return operand;
        }
        let mut path = self.path(&select.operand);
        path.push(select.field.clone());
        self.paths.insert(expr.id, path);
        match self.type_of(&select.operand) {
            Type::Map(..) | Type::Object(_) | Type::Param(_) => operand + Range::fixed(SELECT),
            _ => operand,
        }
    }

    fn call(&mut self, expr: &'a Expr, call: &'a Call) -> Range {
        if call.function == "dyn" {
            let cost = self.cost(&call.args[0]) + Range::fixed(1);
            self.copy_sizes(expr, &call.args[0]);
            return cost;
        }
        let mut arg_costs = Vec::with_capacity(call.args.len());
        for arg in &call.args {
            arg_costs.push(self.cost(arg));
        }
        let overloads = self.program.checked.overloads(expr.id);
        if overloads.is_empty() {
            return Range::default();
        }
        let target_cost = call.target.as_ref().map_or(Range::default(), |target| self.cost(target));
        let mut cost = Range::NOTHING;
        let mut size: Option<Range> = None;
        for overload in overloads {
            let (of_overload, result) = self.overload(expr, call, overload, &arg_costs);
            cost = cost.union(of_overload);
            size = match (size, result) {
                (Some(size), Some(result)) => Some(size.union(result)),
                (size, result) => size.or(result),
            };
            let step = match *overload {
                "index_list" => Some("@items"),
                "index_map" => Some("@values"),
                _ => None,
            };
            if let Some(step) = step {
                size = self.entry_size(&call.args[0]).map(|entries| entries.value);
                let mut path = self.path(&call.args[0]);
                path.push(step.to_owned());
                self.paths.insert(expr.id, path);
            }
            if size.is_none() {
                size = self.size(expr);
            }
        }
        if let Some(size) = size {
            self.sizes.insert(expr.id, size);
        }
        target_cost + cost
    }

    /// The cost of a call of one overload, including its arguments, and the size of the result.
    fn overload(
        &mut self,
        expr: &'a Expr,
        call: &'a Call,
        overload: &str,
        arg_costs: &[Range],
    ) -> (Range, Option<Range>) {
        let all: Range = arg_costs.iter().fold(Range::default(), |sum, cost| sum + *cost);
        let target = call.target.as_ref().map(|target| self.node(target));
        let args: Vec<Node<'_>> = call.args.iter().map(|arg| self.node(arg)).collect();
        let known = functions::of_overload(overload, target.as_ref(), &args)
            .or_else(|| functions::of_function(self, &call.function, overload, target.as_ref(), &args));
        if let Some(known) = known {
            return (known.cost + all, known.size);
        }
        let size = |place: usize| args.get(place).and_then(|arg| arg.size).unwrap_or(Range::UNKNOWN);
        let target_size = target.as_ref().and_then(|target| target.size).unwrap_or(Range::UNKNOWN);
        let one = Range::fixed(1);
        let per_character = |size: Range| size.factor(PER_CHARACTER);
        match overload {
            "string_format" => (per_character(target_size) + all, None),
            "string_to_bytes" => {
                let from = size(0);
                let max = from.max.wrapping_mul(4);
                (per_character(from) + all, Some(Range { min: from.min, max }))
            }
            "bytes_to_string" => {
                let from = size(0);
                (per_character(from) + all, Some(Range { min: from.min / 4, max: from.max }))
            }
            "strings_quote" => {
                let from = size(0);
                let max = from.max.wrapping_mul(2).wrapping_add(2);
                (per_character(from) + all, Some(Range { min: from.min + 2, max }))
            }
            "starts_with_string" | "ends_with_string" => (per_character(size(0)) + all, None),
            "in_list" => (size(1) + all, None),
            "matches_string" => {
                let cost = per_character(target_size + one).times(size(0).factor(PER_REGEX_CHARACTER));
                (cost + all, None)
            }
            "contains_string" => (per_character(target_size).times(per_character(size(0))) + all, None),
            "logical_or" | "logical_and" => (Range { min: arg_costs[0].min, max: all.max }, None),
            "conditional" => {
                let branches = [&call.args[1], &call.args[2]].map(|branch| self.entry_size(branch));
                if let [Some(a), Some(b)] = branches {
                    self.entries.insert(expr.id, a.union(b));
                }
                (arg_costs[0] + arg_costs[1].union(arg_costs[2]), Some(size(1).union(size(2))))
            }
            "add_string" | "add_bytes" | "add_list" => {
                let sum = size(0) + size(1);
                let operands = [&call.args[0], &call.args[1]].map(|operand| self.entry_size(operand));
                if let [Some(a), Some(b)] = operands {
                    self.entries.insert(expr.id, a.union(b));
                }
                let cost = if overload == "add_list" { one } else { per_character(sum) };
                (cost + all, Some(sum))
            }
            "less_string"
            | "greater_string"
            | "less_equals_string"
            | "greater_equals_string"
            | "less_bytes"
            | "greater_bytes"
            | "less_equals_bytes"
            | "greater_equals_bytes"
            | "equals"
            | "not_equals" => {
                let max = size(0).max.min(size(1).max);
                (per_character(Range { min: max.min(1), max }) + all, None)
            }
            _ => (one + all, None),
        }
    }

    fn list(&mut self, expr: &'a Expr, elements: &'a [Element]) -> Range {
        let mut sum = Range::fixed(LIST);
        let mut value = if elements.is_empty() { Range::default() } else { Range::NOTHING };
        for element in elements {
            sum = sum + self.cost(&element.value);
            value = value.union(self.size_or_unknown(&element.value));
        }
        self.entries.insert(expr.id, EntrySize { is_list: true, key: Range::fixed(1), value });
        sum
    }

    fn map(&mut self, expr: &'a Expr, entries: &'a [Entry]) -> Range {
        let mut sum = Range::fixed(MAP);
        let empty = if entries.is_empty() { Range::default() } else { Range::NOTHING };
        let (mut key, mut value) = (empty, empty);
        for entry in entries {
            sum = sum + self.cost(&entry.key) + self.cost(&entry.value);
            key = key.union(self.size_or_unknown(&entry.key));
            value = value.union(self.size_or_unknown(&entry.value));
        }
        self.entries.insert(expr.id, EntrySize { is_list: false, key, value });
        sum
    }

    fn bind(&mut self, expr: &'a Expr, c: &'a Comprehension) -> Range {
        let mut sum = self.cost(&c.range) + self.cost(&c.init);
        self.push_value(&c.accumulator, &c.init);
        sum = sum + self.cost(&c.result);
        self.locals.pop();
        self.copy_sizes(expr, &c.result);
        sum
    }

    fn comprehension(&mut self, expr: &'a Expr, c: &'a Comprehension) -> Range {
        let mut sum = self.cost(&c.range) + self.cost(&c.init);
        self.push_value(&c.accumulator, &c.init);
        let depth = self.locals.len();
        let entries = self.entry_size(&c.range);
        let is_list = entries
            .map_or_else(|| matches!(self.type_of(&c.range), Type::List(_)), |entries| entries.is_list);
        let path = self.path(&c.range);
        let (key, value) = (entries.map(|entries| entries.key), entries.map(|entries| entries.value));
        let below = |step: &str| path.iter().cloned().chain([step.to_owned()]).collect::<Path>();
        let (keys, values) = if is_list { ("@indices", "@items") } else { ("@keys", "@values") };
        let local = |name: &'a str, step: &str, size| Local { name, path: below(step), size, entries: None };
        match &c.second_var {
            Some(second) => {
                self.locals.push(local(&c.var, keys, key));
                self.locals.push(local(second, values, value));
            }
            None if is_list => self.locals.push(local(&c.var, "@items", value)),
            None => self.locals.push(local(&c.var, "@keys", key)),
        }
        let round = self.cost(&c.condition) + self.cost(&c.step);
        self.locals.truncate(depth);
        sum = sum + self.cost(&c.result);
        self.locals.pop();
        let count = self.size_or_unknown(&c.range);
        match &c.init.kind {
            Kind::Literal(_) => {
                if let Some(size) = self.size(&c.init) {
                    self.sizes.insert(expr.id, size);
                }
            }
            Kind::List(_) | Kind::Map(_) => {
                self.sizes.insert(expr.id, count);
                if let Some(entries) = self.entry_size(&c.step) {
                    self.entries.insert(expr.id, entries);
                }
            }
            _ => {}
        }
        sum + count.times(round)
    }

    fn push_value(&mut self, name: &'a str, value: &'a Expr) {
        let (path, entries, size) = (self.path(value), self.entry_size(value), self.size(value));
        self.locals.push(Local { name, path, size, entries });
    }

    fn local(&self, name: &str) -> Option<&Local<'a>> {
        self.locals.iter().rev().find(|local| local.name == name)
    }

    fn type_of(&self, expr: &Expr) -> &'a Type {
        self.program.checked.type_of(expr.id)
    }

    fn path(&self, expr: &Expr) -> Path {
        if let Kind::Ident(name) = &expr.kind
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths.get(&expr.id).cloned().unwrap_or_default()
    }

    fn node(&mut self, expr: &'a Expr) -> Node<'a> {
        let mut path = self.path(expr);
        if path.first().is_some_and(|first| first == crate::ast::ACCUMULATOR) {
            path.clear();
        }
        let size = self.size(expr);
        Node { path, of: self.type_of(expr), expr: Some(expr), size }
    }

    fn size_or_unknown(&mut self, expr: &Expr) -> Range {
        self.size(expr).unwrap_or(Range::UNKNOWN)
    }

    fn size(&mut self, expr: &Expr) -> Option<Range> {
        if let Some(size) = self.sizes.get(&expr.id) {
            return Some(*size);
        }
        if let Some(size) = written_size(expr) {
            return Some(size);
        }
        if let Some(size) = self.declared_size(&self.path(expr)) {
            self.sizes.insert(expr.id, size);
            return Some(size);
        }
        if is_scalar(self.type_of(expr)) {
            return Some(Range::fixed(1));
        }
        match &expr.kind {
            Kind::Ident(name) => self.local(name).and_then(|local| local.size),
            _ => None,
        }
    }

    /// The size limits of the value at `path`, from the schema.
    pub(super) fn declared_size(&self, path: &[String]) -> Option<Range> {
        // The first step is the variable name. Upstream ignores it.
        let steps: Vec<&str> = path.get(1..)?.iter().map(String::as_str).collect();
        let found = self.root?.at(&steps)?;
        Some(Range { min: 0, max: u64::try_from(found.max_elements).unwrap_or(0) })
    }

    fn entry_size(&self, expr: &Expr) -> Option<EntrySize> {
        if let Some(entries) = self.entries.get(&expr.id) {
            return Some(*entries);
        }
        match &expr.kind {
            Kind::Ident(name) => self.local(name).and_then(|local| local.entries),
            _ => None,
        }
    }

    fn copy_sizes(&mut self, to: &Expr, from: &Expr) {
        if let Some(size) = self.size(from) {
            self.sizes.insert(to.id, size);
        }
        if let Some(entries) = self.entry_size(from) {
            self.entries.insert(to.id, entries);
        }
    }
}

/// Whether the comprehension never iterates and only binds a variable.
fn is_bind(c: &Comprehension) -> bool {
    matches!(&c.range.kind, Kind::List(elements) if elements.is_empty())
        && matches!(c.condition.kind, Kind::Literal(Literal::Bool(false)))
}

/// The size of a literal.
fn written_size(expr: &Expr) -> Option<Range> {
    let size = match &expr.kind {
        Kind::Literal(Literal::String(text)) => text.chars().count(),
        Kind::Literal(Literal::Bytes(bytes)) => bytes.len(),
        Kind::Literal(_) => 1,
        Kind::List(elements) => elements.len(),
        Kind::Map(entries) => entries.len(),
        _ => return None,
    };
    Some(Range::fixed(size as u64))
}

fn is_scalar(of: &Type) -> bool {
    match of {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        other => other.optional_value().is_some_and(is_scalar),
    }
}
