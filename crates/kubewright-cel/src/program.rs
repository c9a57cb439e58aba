//! Compiled programs.
//!
//! [`Program::compile`] parses, type-checks and plans an expression; afterwards only evaluation errors can
//! occur. A program is immutable and can be shared between threads.

use super::ast::{Call, Expr, Id, Kind, Literal};
use super::checker::{self, Checked};
use super::env::Env;
use super::error::{CompileError, EvalError};
use super::eval::{self, Evaluation};
use super::go_regex::{self, Matcher};
use super::library::{self, Function, convert, formats};
use super::parser;
use super::source::{Issues, Source};
use super::types::Type;
use super::validators;
use super::value::Value;

/// The variable that holds the composed variables of an admission policy.
pub(super) const VARIABLES: &str = "variables";

/// A compiled expression.
#[derive(Debug)]
pub struct Program {
    pub(super) root: Expr,
    pub(super) checked: Checked,
    /// Indexed by the ID of the call.
    operations: Vec<Option<Prepared>>,
}

/// A planned call.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) operation: Operation,
    /// The resolved overload, if it is unambiguous; empty otherwise. Selects the cost function.
    pub(super) overload: &'static str,
}

/// The operation that a call performs.
#[derive(Debug)]
pub(super) enum Operation {
    And,
    Or,
    Conditional,
    NotStrictlyFalse,
    Equals,
    NotEquals,
    Add,
    In,
    Index,
    OptionalIndex,
    OptionalSelect,
    OptionalOr,
    OptionalOrValue,
    /// `matches`, `find` or `findAll` with a constant pattern, compiled in advance.
    Regex(Box<Matcher>),
    /// A named format.
    Format,
    Function(Function),
}

/// Values for the variables of an [`Env`].
#[derive(Debug, Clone, Default)]
pub struct Bindings<'a> {
    values: Vec<(&'a str, Value<'a>)>,
    /// Fields of the variable `variables` whose evaluation failed.
    failed: Vec<(&'a str, EvalError)>,
}

impl<'a> Bindings<'a> {
    /// Creates bindings without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds the variable `name`.
    #[must_use]
    pub fn with(mut self, name: &'a str, value: Value<'a>) -> Self {
        self.values.push((name, value));
        self
    }

    /// Binds the composed variables of an admission policy. Accessing a failed variable returns its error.
    #[must_use]
    pub fn with_composed(mut self, variables: Vec<(&'a str, Result<Value<'a>, EvalError>)>) -> Self {
        let mut values = Vec::with_capacity(variables.len());
        for (name, value) in variables {
            match value {
                Ok(value) => values.push((Value::string(name), value)),
                Err(error) => self.failed.push((name, error)),
            }
        }
        // Cannot fail: the names are unique.
        let composed = super::value::Map::built(values).map_or(Value::Null, Value::Map);
        self.with(VARIABLES, composed)
    }

    /// The error of a composed variable.
    pub(super) fn failure(&self, variable: &str) -> Option<&EvalError> {
        self.failed.iter().find(|(name, _)| *name == variable).map(|(_, error)| error)
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value<'a>> {
        self.values.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| value)
    }
}

impl Program {
    /// Compiles `text`. If `wanted` is set, the result must have that type.
    pub fn compile(env: &Env, text: &str, wanted: Option<&Type>) -> Result<Self, CompileError> {
        let parsed = parser::parse(text).map_err(|issues| CompileError::Invalid(issues.to_string()))?;
        let mut root = parsed.root;
        let mut issues = Issues::new(Source::new(text));
        let checked = checker::check(&mut root, &parsed.positions, env, &mut issues);
        if issues.is_empty() {
            validators::validate(&root, &parsed.positions, &checked, &mut issues);
        }
        if !issues.is_empty() {
            return Err(CompileError::Invalid(issues.to_string()));
        }
        let found = checked.type_of(root.id);
        if let Some(wanted) = wanted
            && found != wanted
        {
            return Err(CompileError::ResultType { wanted: wanted.clone(), found: found.clone() });
        }
        let operations = operations(&root, &checked, parsed.positions.len())?;
        Ok(Self { root, checked, operations })
    }

    pub(super) fn prepared(&self, call: Id) -> Option<&Prepared> {
        self.operations.get(call)?.as_ref()
    }

    /// The result type.
    pub fn result_type(&self) -> &Type {
        self.checked.type_of(self.root.id)
    }

    /// Whether the expression references the variable `name`.
    pub fn uses(&self, name: &str) -> bool {
        uses(&self.root, name)
    }

    /// The composed variables of an admission policy that the expression references.
    pub fn composed_variables(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.root.walk(&mut |expr| {
            if let Kind::Select(select) = &expr.kind
                && matches!(&select.operand.kind, Kind::Ident(name) if name == VARIABLES)
            {
                names.push(select.field.as_str());
            }
        });
        names
    }

    /// Evaluates the program. Fails if the cost exceeds `budget`.
    pub fn eval<'a>(&'a self, bindings: &Bindings<'a>, budget: u64) -> Evaluation<'a> {
        eval::run(self, bindings, budget)
    }

    /// As [`Program::eval`], for callers that must not use much CPU time: patterns that may need it exceed the budget.
    pub(crate) fn eval_cheaply<'a>(&'a self, bindings: &Bindings<'a>, budget: u64) -> Evaluation<'a> {
        eval::run_cheaply(self, bindings, budget)
    }
}

/// Whether `expr` references the variable `name` outside comprehensions that shadow it.
fn uses(expr: &Expr, name: &str) -> bool {
    match &expr.kind {
        Kind::Ident(found) => found == name,
        Kind::Comprehension(c) => {
            let hides = |var: &str| var == name;
            let hidden = hides(&c.var) || c.second_var.as_deref().is_some_and(hides);
            uses(&c.range, name)
                || uses(&c.init, name)
                || !hidden && (uses(&c.condition, name) || uses(&c.step, name))
                || c.accumulator != name && uses(&c.result, name)
        }
        _ => {
            let mut found = false;
            expr.each_child(&mut |child| found = found || uses(child, name));
            found
        }
    }
}

fn operations(root: &Expr, checked: &Checked, nodes: usize) -> Result<Vec<Option<Prepared>>, CompileError> {
    let mut operations: Vec<Option<Prepared>> = Vec::new();
    operations.resize_with(nodes, || None);
    let mut failed = None;
    root.walk(&mut |expr| {
        let Kind::Call(call) = &expr.kind else { return };
        let overload = if let [only] = checked.overloads(expr.id) { *only } else { "" };
        match operation(call, overload) {
            Ok(found) => operations[expr.id] = found.map(|operation| Prepared { operation, overload }),
            Err(error) => failed = failed.take().or(Some(error)),
        }
    });
    failed.map_or(Ok(operations), Err)
}

fn operation(call: &Call, overload: &str) -> Result<Option<Operation>, CompileError> {
    let name = call.function.as_str();
    Ok(Some(match name {
        "_&&_" => Operation::And,
        "_||_" => Operation::Or,
        "_?_:_" => Operation::Conditional,
        "@not_strictly_false" => Operation::NotStrictlyFalse,
        "_==_" => Operation::Equals,
        "_!=_" => Operation::NotEquals,
        "_+_" => Operation::Add,
        "@in" => Operation::In,
        "_[_]" => Operation::Index,
        "_[?_]" => Operation::OptionalIndex,
        "_?._" => Operation::OptionalSelect,
        "or" => Operation::OptionalOr,
        "orValue" => Operation::OptionalOrValue,
        _ if library::regex::takes_pattern(name) => match pattern(call) {
            Some(pattern) => Operation::Regex(
                go_regex::compile(pattern)
                    .map(Box::new)
                    .map_err(|error| CompileError::Constant(error.to_string()))?,
            ),
            None => return Ok(library::lookup(name).map(Operation::Function)),
        },
        "sum" => match library::lookup(overload).or_else(|| library::lookup(name)) {
            Some(function) => Operation::Function(function),
            None => return Ok(None),
        },
        _ if formats::constant(name).is_some() => Operation::Format,
        _ => {
            let Some(function) = library::lookup(name) else { return Ok(None) };
            constant_conversion(call, function)?;
            Operation::Function(function)
        }
    }))
}

/// The pattern of `matches`, `find` or `findAll`, if it is constant.
fn pattern(call: &Call) -> Option<&str> {
    let place = usize::from(call.target.is_none());
    match &call.args.get(place)?.kind {
        Kind::Literal(Literal::String(pattern)) => Some(pattern),
        _ => None,
    }
}

/// Evaluates a conversion of a constant at compile time, as upstream does. A failure is a compile error.
fn constant_conversion(call: &Call, function: Function) -> Result<(), CompileError> {
    if !convert::is_conversion(&call.function) {
        return Ok(());
    }
    let [Expr { kind: Kind::Literal(literal), .. }] = call.args.as_slice() else { return Ok(()) };
    match library::call(&call.function, function, &[eval::literal(literal)]) {
        Err(EvalError::Failed(problem)) => Err(CompileError::Constant(problem.into_owned())),
        _ => Ok(()),
    }
}
