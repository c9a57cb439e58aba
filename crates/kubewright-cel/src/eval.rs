//! Evaluator.
//!
//! `&&` and `||` drop the error of one side if the other side determines the result. Exceeding the cost limit
//! is never dropped. Costs are tracked like cel-go does; see [`super::cost::runtime`].

use std::borrow::Cow;

use super::ast::{Call, Comprehension, Element, Entry, Expr, Kind, Literal, Select, Struct};
use super::cost::runtime;
use super::error::EvalError;
use super::library::{self, regex::Patterns};
use super::program::{Bindings, Operation, Prepared, Program, VARIABLES};
use super::value::{Evaluated, List, Map, Value};

/// The result of evaluating a program.
#[derive(Debug)]
pub struct Evaluation<'a> {
    /// The value or the error.
    pub value: Result<Value<'a>, EvalError>,
    /// The actual cost, in cel-go's units.
    pub cost: u64,
}

pub(super) fn run<'a>(program: &'a Program, bindings: &Bindings<'a>, budget: u64) -> Evaluation<'a> {
    Run::new(program, bindings, budget, false).finish()
}

pub(super) fn run_cheaply<'a>(program: &'a Program, bindings: &Bindings<'a>, budget: u64) -> Evaluation<'a> {
    Run::new(program, bindings, budget, true).finish()
}

pub(super) fn literal(literal: &Literal) -> Value<'_> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Int(value) => Value::Int(*value),
        Literal::Uint(value) => Value::Uint(*value),
        Literal::Double(value) => Value::Double(*value),
        Literal::String(text) => Value::string(text.as_str()),
        Literal::Bytes(bytes) => Value::Bytes(bytes.clone()),
    }
}

struct Run<'a, 'b> {
    program: &'a Program,
    bindings: &'b Bindings<'a>,
    /// Comprehension variables in scope, innermost last. The accumulator may hold an error, because a later
    /// iteration of `all` or `exists` can still determine the result.
    scopes: Vec<(&'a str, Evaluated<'a>)>,
    cost: u64,
    budget: u64,
    /// Patterns that may need much CPU time exceed the budget.
    is_cheap: bool,
    patterns: Patterns,
}

impl<'a, 'b> Run<'a, 'b> {
    fn new(program: &'a Program, bindings: &'b Bindings<'a>, budget: u64, is_cheap: bool) -> Self {
        let patterns = Patterns::default();
        Self { program, bindings, scopes: Vec::new(), cost: 0, budget, is_cheap, patterns }
    }

    fn finish(mut self) -> Evaluation<'a> {
        let value = self.eval(&self.program.root);
        Evaluation { value, cost: self.cost }
    }

    fn charge(&mut self, cost: u64) -> Result<(), EvalError> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.budget { Err(EvalError::CostLimitExceeded) } else { Ok(()) }
    }

    fn eval(&mut self, expr: &'a Expr) -> Evaluated<'a> {
        match &expr.kind {
            Kind::Literal(value) => Ok(literal(value)),
            Kind::Ident(name) => self.variable(name),
            Kind::Select(select) => self.select(select),
            Kind::Call(call) => self.call(expr, call),
            Kind::List(elements) => self.list(elements),
            Kind::Map(entries) => self.map(entries),
            Kind::Comprehension(comprehension) => self.comprehension(comprehension),
            Kind::Struct(made) => self.construct(made),
            Kind::Error => Err(EvalError::no_overload()),
        }
    }

    /// Constructs an object. Skips fields whose optional value is absent.
    fn construct(&mut self, made: &'a Struct) -> Evaluated<'a> {
        let mut fields = Vec::with_capacity(made.fields.len());
        for field in &made.fields {
            let value = match self.eval(&field.value)? {
                Value::Optional(None) if field.optional => continue,
                Value::Optional(Some(value)) if field.optional => (*value).clone(),
                value => value,
            };
            fields.push((Value::string(field.name.as_str()), value));
        }
        self.charge(runtime::STRUCT)?;
        Map::object(&made.name, fields).map(Value::Map)
    }

    fn variable(&mut self, name: &'a str) -> Evaluated<'a> {
        let found =
            self.scopes.iter().rev().find(|(local, _)| *local == name).map(|(_, value)| value.clone());
        if let Some(value) = found.or_else(|| self.bindings.get(name).cloned().map(Ok)) {
            self.charge(runtime::SELECT)?;
            return value;
        }
        match super::decls::type_named(name) {
            Some(_) => Ok(Value::Type(Cow::Borrowed(name))),
            None => Err(EvalError::new(format!("no such attribute(s): {name}"))),
        }
    }

    fn select(&mut self, select: &'a Select) -> Evaluated<'a> {
        if select.test_only {
            let operand = self.eval(&select.operand)?;
            return field_of(&operand, &select.field).map(|found| Value::Bool(found.is_some()));
        }
        let operand = self.operand(&select.operand)?;
        self.charge(runtime::SELECT)?;
        if let Kind::Ident(name) = &select.operand.kind
            && name == VARIABLES
            && let Some(error) = self.bindings.failure(&select.field)
        {
            return Err(error.clone());
        }
        match operand {
            // A field of an optional value is optional.
            Value::Optional(inner) => optional_field(inner.as_deref(), &select.field),
            operand => field_of(&operand, &select.field)?.ok_or_else(|| EvalError::no_key(&select.field)),
        }
    }

    fn call(&mut self, expr: &'a Expr, call: &'a Call) -> Evaluated<'a> {
        let program = self.program;
        let Some(prepared) = program.prepared(expr.id) else { return Err(EvalError::no_overload()) };
        match &prepared.operation {
            Operation::And => self.logical(&call.args, false),
            Operation::Or => self.logical(&call.args, true),
            Operation::Conditional => {
                let branch = match self.eval(&call.args[0])? {
                    Value::Bool(true) => &call.args[1],
                    Value::Bool(false) => &call.args[2],
                    _ => return Err(EvalError::no_overload()),
                };
                self.within_attribute(branch)
            }
            Operation::NotStrictlyFalse => {
                let found = match self.eval(&call.args[0]) {
                    Ok(Value::Bool(value)) => value,
                    Err(EvalError::CostLimitExceeded) => return Err(EvalError::CostLimitExceeded),
                    _ => true,
                };
                self.charge(1)?;
                Ok(Value::Bool(found))
            }
            Operation::OptionalOr => match self.eval(target(call)?)? {
                found @ Value::Optional(Some(_)) => Ok(found),
                Value::Optional(None) => self.eval(&call.args[0]),
                other => Ok(other),
            },
            Operation::OptionalOrValue => match self.eval(target(call)?)? {
                Value::Optional(Some(value)) => Ok((*value).clone()),
                Value::Optional(None) => self.eval(&call.args[0]),
                other => Ok(other),
            },
            Operation::Index => self.index(&call.args),
            Operation::OptionalIndex => self.optional_index(&call.args),
            Operation::OptionalSelect => self.optional_select(&call.args),
            Operation::In => self.contains(prepared, &call.args),
            Operation::Add => self.add(prepared, call),
            operation @ (Operation::Equals | Operation::NotEquals) => {
                let (a, b) = (self.eval(&call.args[0])?, self.eval(&call.args[1])?);
                self.charge(runtime::equality(&a, &b))?;
                let is_equal = a.equals(&b)?;
                Ok(Value::Bool(is_equal == matches!(operation, Operation::Equals)))
            }
            Operation::Regex(_) | Operation::Format | Operation::Function(_) => {
                self.function(expr, call, prepared)
            }
        }
    }

    fn function(&mut self, expr: &'a Expr, call: &'a Call, prepared: &Prepared) -> Evaluated<'a> {
        let mut args = Vec::with_capacity(call.args.len() + 1);
        let mut failed = None;
        for arg in call.target.iter().chain(&call.args) {
            match self.tried(arg)? {
                Ok(value) => args.push(value),
                // With more than two arguments, the first error ends the call.
                Err(error) if call.args.len() + usize::from(call.target.is_some()) > 2 => return Err(error),
                // With up to two arguments, the remaining ones are evaluated and the cost is added before the
                // error is returned.
                Err(error) => {
                    args.push(Value::Null);
                    failed = failed.or(Some(error));
                }
            }
        }
        let name = call.function.as_str();
        // The cost of a match does not depend on its result, and the match may be expensive.
        let is_charged = is_constant(expr) || library::regex::takes_pattern(name);
        if is_charged && !is_constant(expr) {
            self.charge(runtime::call(name, prepared.overload, &args, None))?;
            self.check_pattern(prepared)?;
        }
        let result = match &prepared.operation {
            _ if failed.is_some() => Err(failed.unwrap_or_else(EvalError::no_overload)),
            Operation::Regex(regex) => {
                library::regex::call(name, regex, &args).unwrap_or(Err(EvalError::no_overload()))
            }
            Operation::Format => library::formats::constant(name).unwrap_or(Err(EvalError::no_overload())),
            Operation::Function(function) => match args.as_slice() {
                [Value::String(_), Value::String(pattern), ..] if library::regex::takes_pattern(name) => self
                    .search(name, pattern, &args)?
                    .unwrap_or_else(|| library::call(name, *function, &args)),
                _ => library::call(name, *function, &args),
            },
            _ => Err(EvalError::no_overload()),
        };
        if !is_charged {
            self.charge(runtime::call(name, prepared.overload, &args, result.as_ref().ok()))?;
        }
        result
    }

    /// Calls a function with a pattern that is not constant. `None` if no overload matches the arguments.
    fn search(
        &mut self,
        name: &str,
        pattern: &str,
        args: &[Value<'a>],
    ) -> Result<Option<Evaluated<'a>>, EvalError> {
        let cost = self.patterns.compile(pattern).map_err(|error| library::regex::invalid(name, &error))?;
        self.charge(cost)?;
        Ok(self.patterns.get(pattern).and_then(|regex| library::regex::call(name, regex, args)))
    }

    /// A pattern that is not constant has to be compiled first, which may need much CPU time as well.
    fn check_pattern(&self, prepared: &Prepared) -> Result<(), EvalError> {
        let is_costly = match &prepared.operation {
            Operation::Regex(regex) => regex.is_costly(),
            _ => true,
        };
        if self.is_cheap && is_costly { Err(EvalError::CostLimitExceeded) } else { Ok(()) }
    }

    /// `&&` and `||`: an operand equal to `deciding` determines the result, even if the other one fails.
    fn logical(&mut self, args: &'a [Expr], deciding: bool) -> Evaluated<'a> {
        let mut failed = None;
        for arg in args {
            match self.eval(arg) {
                Ok(Value::Bool(value)) if value == deciding => return Ok(Value::Bool(deciding)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => failed = failed.or(Some(EvalError::no_overload())),
                Err(EvalError::CostLimitExceeded) => return Err(EvalError::CostLimitExceeded),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(Value::Bool(!deciding)), Err)
    }

    fn add(&mut self, prepared: &Prepared, call: &'a Call) -> Evaluated<'a> {
        let left = &call.args[0];
        // Move the accumulator out of its variable, so that the list can grow in place.
        let a = match &left.kind {
            Kind::Ident(name) if name == super::ast::ACCUMULATOR => {
                let found = self.scopes.iter_mut().rev().find(|(local, _)| *local == name);
                let taken = found.map(|(_, value)| std::mem::replace(value, Ok(Value::Null)));
                self.charge(runtime::SELECT)?;
                taken.ok_or_else(EvalError::no_overload)?
            }
            _ => self.tried(left)?,
        };
        let b = self.tried(&call.args[1])?;
        self.charge(runtime::addition(prepared.overload, valued(&a), valued(&b)))?;
        library::add(a?, b?)
    }

    fn contains(&mut self, prepared: &Prepared, args: &'a [Expr]) -> Evaluated<'a> {
        let item = self.eval(&args[0])?;
        if is_constant(&args[1])
            && let Kind::List(elements) = &args[1].kind
        {
            // Upstream evaluates `in` over constants with a set lookup, which is free.
            let cost = self.cost;
            let mut found = false;
            for element in elements {
                found = found || self.eval(&element.value)?.equals(&item)?;
            }
            self.cost = cost;
            return Ok(Value::Bool(found));
        }
        let container = self.eval(&args[1])?;
        self.charge(if prepared.overload == "in_list" { runtime::size(&container) } else { 1 })?;
        match &container {
            Value::List(list) => list.contains(&item).map(Value::Bool),
            Value::Map(map) => map.find(&item).map(|found| Value::Bool(found.is_some())),
            _ => Err(EvalError::new("no such overload: @in")),
        }
    }

    fn index(&mut self, args: &'a [Expr]) -> Evaluated<'a> {
        let operand = self.operand(&args[0])?;
        let index = self.within_attribute(&args[1])?;
        self.charge(runtime::SELECT)?;
        match operand {
            Value::Optional(None) => Ok(Value::Optional(None)),
            Value::Optional(Some(inner)) => {
                item_of(&inner, &index).map(|found| found.map_or(Value::Optional(None), Value::some))
            }
            operand => item_of(&operand, &index)?.ok_or_else(|| match operand {
                Value::List(_) => EvalError::new(format!("index out of bounds: {}", index.shown())),
                _ => EvalError::no_key(&index.shown()),
            }),
        }
    }

    fn optional_index(&mut self, args: &'a [Expr]) -> Evaluated<'a> {
        let operand = self.operand(&args[0])?;
        let index = self.within_attribute(&args[1])?;
        let operand = match operand {
            Value::Optional(None) => return Ok(Value::Optional(None)),
            Value::Optional(Some(inner)) => (*inner).clone(),
            operand => operand,
        };
        let found = item_of(&operand, &index)?;
        self.present(found)
    }

    fn optional_select(&mut self, args: &'a [Expr]) -> Evaluated<'a> {
        let operand = self.operand(&args[0])?;
        let Kind::Literal(Literal::String(field)) = &args[1].kind else {
            return Err(EvalError::no_overload());
        };
        let found = match operand {
            Value::Optional(None) => None,
            Value::Optional(Some(inner)) => field_of(&inner, field)?,
            operand => field_of(&operand, field)?,
        };
        self.present(found)
    }

    /// Adds the cost of a lookup only if the value is present.
    fn present(&mut self, found: Option<Value<'a>>) -> Evaluated<'a> {
        match found {
            Some(value) => {
                self.charge(runtime::SELECT)?;
                Ok(Value::some(value))
            }
            None => Ok(Value::Optional(None)),
        }
    }

    /// Evaluates the operand of a selection. If the operand is not an attribute, the selection starts one and
    /// adds its cost.
    fn operand(&mut self, expr: &'a Expr) -> Evaluated<'a> {
        let value = self.eval(expr)?;
        if !is_attribute(expr) {
            self.charge(runtime::SELECT)?;
        }
        Ok(value)
    }

    /// Evaluates an expression that is part of an attribute whose cost is already counted.
    fn within_attribute(&mut self, expr: &'a Expr) -> Evaluated<'a> {
        let value = self.eval(expr);
        if is_attribute(expr) {
            self.cost = self.cost.saturating_sub(runtime::SELECT);
        }
        value
    }

    fn list(&mut self, elements: &'a [Element]) -> Evaluated<'a> {
        let mut items = Vec::with_capacity(elements.len());
        let mut is_folded = true;
        for element in elements {
            is_folded = is_folded && !element.optional && is_constant(&element.value);
            match self.eval(&element.value)? {
                Value::Optional(inner) if element.optional => {
                    items.extend(inner.map(|value| (*value).clone()));
                }
                _ if element.optional => {
                    return Err(EvalError::new(
                        "cannot initialize optional list element from non-optional value",
                    ));
                }
                value => items.push(value),
            }
        }
        if !is_folded {
            self.charge(runtime::LIST)?;
        }
        Ok(Value::List(List::built(items)))
    }

    fn map(&mut self, entries: &'a [Entry]) -> Evaluated<'a> {
        let mut made = Vec::with_capacity(entries.len());
        let mut is_folded = true;
        for entry in entries {
            is_folded = is_folded && !entry.optional && is_constant(&entry.key) && is_constant(&entry.value);
            let key = self.eval(&entry.key)?;
            match self.eval(&entry.value)? {
                Value::Optional(Some(value)) if entry.optional => made.push((key, (*value).clone())),
                Value::Optional(None) if entry.optional => {}
                _ if entry.optional => {
                    return Err(EvalError::new("cannot initialize optional entry from non-optional value"));
                }
                value => made.push((key, value)),
            }
        }
        if !is_folded {
            self.charge(runtime::MAP)?;
        }
        Map::built(made).map(Value::Map)
    }

    fn comprehension(&mut self, c: &'a Comprehension) -> Evaluated<'a> {
        let range = self.eval(&c.range)?;
        let init = self.tried(&c.init)?;
        let depth = self.scopes.len();
        self.scopes.push((&c.accumulator, init));
        let folded = self.fold(c, &range, depth);
        self.scopes.truncate(depth + 1);
        let result = folded.and_then(|()| self.eval(&c.result));
        self.scopes.truncate(depth);
        result
    }

    /// Evaluates `expr`; the caller may drop the inner error. The outer error ends the evaluation.
    fn tried(&mut self, expr: &'a Expr) -> Result<Evaluated<'a>, EvalError> {
        match self.eval(expr) {
            Err(EvalError::CostLimitExceeded) => Err(EvalError::CostLimitExceeded),
            other => Ok(other),
        }
    }

    fn fold(&mut self, c: &'a Comprehension, range: &Value<'a>, depth: usize) -> Result<(), EvalError> {
        match range {
            Value::List(list) => {
                for (at, item) in list.iter().enumerate() {
                    let index = Ok(Value::Int(i64::try_from(at).unwrap_or(i64::MAX)));
                    let (first, second) =
                        if c.second_var.is_some() { (index, Some(item)) } else { (item, None) };
                    if !self.step(c, depth, first, second)? {
                        break;
                    }
                }
            }
            Value::Map(map) => {
                for key in map.keys() {
                    let second = c
                        .second_var
                        .as_ref()
                        .map(|_| map.find(&key).map(|found| found.unwrap_or(Value::Null)));
                    if !self.step(c, depth, Ok(key), second)? {
                        break;
                    }
                }
            }
            _ => return Err(EvalError::new(format!("got '{}', expected iterable type", range.type_name()))),
        }
        Ok(())
    }

    /// Runs one iteration. Returns whether to continue.
    fn step(
        &mut self,
        c: &'a Comprehension,
        depth: usize,
        first: Evaluated<'a>,
        second: Option<Evaluated<'a>>,
    ) -> Result<bool, EvalError> {
        self.scopes.truncate(depth + 1);
        self.scopes.push((&c.var, first));
        if let (Some(name), Some(second)) = (&c.second_var, second) {
            self.scopes.push((name, second));
        }
        if !matches!(self.tried(&c.condition)?, Ok(Value::Bool(true))) {
            return Ok(false);
        }
        self.scopes[depth].1 = self.tried(&c.step)?;
        Ok(true)
    }
}

fn target(call: &Call) -> Result<&Expr, EvalError> {
    call.target.as_ref().ok_or_else(EvalError::no_overload)
}

/// Whether upstream folds the expression to a constant at compile time.
pub(super) fn is_constant(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Literal(_) => true,
        Kind::List(elements) => {
            elements.iter().all(|element| !element.optional && is_constant(&element.value))
        }
        Kind::Map(entries) => {
            entries.iter().all(|e| !e.optional && is_constant(&e.key) && is_constant(&e.value))
        }
        Kind::Call(call) => {
            (library::convert::is_conversion(&call.function) || call.function == "dyn")
                && call.target.is_none()
                && call.args.iter().all(is_constant)
        }
        _ => false,
    }
}

/// Whether upstream evaluates the expression as an attribute: a path from a variable or a value.
fn is_attribute(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Ident(_) => true,
        Kind::Select(select) => !select.test_only,
        Kind::Call(call) => matches!(call.function.as_str(), "_[_]" | "_[?_]" | "_?._"),
        _ => false,
    }
}

/// The value used for cost tracking; a placeholder if the evaluation failed.
fn valued<'b, 'a>(value: &'b Evaluated<'a>) -> &'b Value<'a> {
    value.as_ref().unwrap_or(&Value::Null)
}

fn field_of<'a>(operand: &Value<'a>, field: &str) -> Result<Option<Value<'a>>, EvalError> {
    match operand {
        Value::Map(map) => map.field(field).transpose(),
        // As in cel-go, null has no fields.
        Value::Optional(None) | Value::Null => Ok(None),
        Value::Optional(Some(inner)) => field_of(inner, field),
        Value::Authorization(value) => Ok(value.field(field).map(Value::Authorization)),
        _ => Err(EvalError::no_overload()),
    }
}

fn optional_field<'a>(operand: Option<&Value<'a>>, field: &str) -> Evaluated<'a> {
    match operand {
        Some(operand) => {
            field_of(operand, field).map(|found| found.map_or(Value::Optional(None), Value::some))
        }
        None => Ok(Value::Optional(None)),
    }
}

/// The item at `index`, if present. Fails if the index has an invalid type.
fn item_of<'a>(operand: &Value<'a>, index: &Value<'a>) -> Result<Option<Value<'a>>, EvalError> {
    match operand {
        Value::List(list) => match place(index) {
            Place::At(at) => list.get(at).transpose(),
            Place::Outside => Ok(None),
            Place::NoNumber => {
                Err(EvalError::new(format!("unsupported index type '{}' in list", index.type_name())))
            }
        },
        Value::Map(map) => map.find(index),
        _ => Err(EvalError::new("no such overload")),
    }
}

/// An index converted to a list position.
enum Place {
    At(usize),
    /// Out of range for every list.
    Outside,
    NoNumber,
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the value is whole and not negative"
)]
fn place(index: &Value<'_>) -> Place {
    let at = match index {
        Value::Int(at) => usize::try_from(*at).ok(),
        Value::Uint(at) => usize::try_from(*at).ok(),
        Value::Double(at) if at.fract() == 0.0 => (*at >= 0.0).then_some(*at as usize),
        _ => return Place::NoNumber,
    };
    at.map_or(Place::Outside, Place::At)
}
