//! Type checker: determines the type of every node and the overload candidates of every call.
//!
//! Reports the errors of cel-go's checker with the same wording and positions. It also resolves qualified
//! names: `a.b(c)` becomes a call of `a.b` if such a function exists.

use std::collections::HashMap;
use std::sync::Arc;

use super::ast::{Call, Comprehension, Expr, Id, Kind, Literal, Select, Struct};
use super::decls::{self, Overload};
use super::env::{Env, JSON_PATCH, NoField};
use super::source::Issues;
use super::types::{Mapping, Type, most_general};

/// The result of type checking.
#[derive(Debug, Clone, Default)]
pub(crate) struct Checked {
    /// Indexed by node ID.
    types: Vec<Type>,
    /// Keyed by the ID of the call.
    overloads: HashMap<Id, Vec<&'static str>>,
}

impl Checked {
    pub(crate) fn type_of(&self, id: Id) -> &Type {
        self.types.get(id).unwrap_or(&Type::Dyn)
    }

    pub(crate) fn overloads(&self, id: Id) -> &[&'static str] {
        self.overloads.get(&id).map_or(&[], Vec::as_slice)
    }
}

/// Checks the tree. `positions` holds the source offsets by node ID.
pub(crate) fn check(root: &mut Expr, positions: &[usize], env: &Env, issues: &mut Issues) -> Checked {
    let mut checker = Checker {
        env,
        positions,
        issues,
        scopes: Vec::new(),
        types: vec![Type::Dyn; positions.len()],
        overloads: HashMap::new(),
        mapping: Mapping::default(),
        free: 0,
    };
    checker.check(root);
    let types = checker.types.iter().map(|t| checker.mapping.substitute(t, true)).collect();
    Checked { types, overloads: checker.overloads }
}

struct Checker<'a> {
    env: &'a Env,
    positions: &'a [usize],
    issues: &'a mut Issues,
    /// Comprehension variables in scope, innermost last.
    scopes: Vec<(String, Type)>,
    types: Vec<Type>,
    overloads: HashMap<Id, Vec<&'static str>>,
    mapping: Mapping,
    free: usize,
}

impl Checker<'_> {
    fn check(&mut self, expr: &mut Expr) {
        let id = expr.id;
        let found = match &mut expr.kind {
            Kind::Literal(literal) => type_of_literal(literal),
            Kind::Ident(name) => {
                let found = self.find(name);
                if found.is_none() {
                    self.undeclared(id, name);
                } else if let Some(bare) = name.strip_prefix('.') {
                    *name = bare.to_owned();
                }
                found.unwrap_or(Type::Error)
            }
            Kind::Select(_) => self.select(expr),
            Kind::Call(_) => self.call(expr),
            Kind::List(elements) => {
                let mut item = None;
                for element in elements {
                    self.check(&mut element.value);
                    let found = self.element_type(&element.value, element.optional);
                    item = Some(self.join(item, found));
                }
                Type::list(item.unwrap_or_else(|| self.free_type()))
            }
            Kind::Map(entries) => {
                let (mut key, mut value) = (None, None);
                for entry in entries {
                    self.check(&mut entry.key);
                    key = Some(self.join(key, self.types[entry.key.id].clone()));
                    self.check(&mut entry.value);
                    let found = self.element_type(&entry.value, entry.optional);
                    value = Some(self.join(value, found));
                }
                let key = key.unwrap_or_else(|| self.free_type());
                Type::map(key, value.unwrap_or_else(|| self.free_type()))
            }
            Kind::Struct(made) => self.made_struct(id, made),
            Kind::Comprehension(comprehension) => self.comprehension(comprehension),
            Kind::Error => Type::Error,
        };
        self.types[id] = found;
    }

    /// The type of a list element or map value; the wrapped type if it is optional.
    fn element_type(&mut self, value: &Expr, is_optional: bool) -> Type {
        let found = self.types[value.id].clone();
        if !is_optional {
            return found;
        }
        if let Some(inner) = found.optional_value() {
            return inner.clone();
        }
        if !found.is_dyn() {
            self.mismatch(value.id, &Type::optional(found.clone()), &found);
        }
        found
    }

    /// The element type of a list that contains both types.
    fn join(&mut self, previous: Option<Type>, found: Type) -> Type {
        match previous {
            None => found,
            Some(previous) if self.mapping.is_assignable(&previous, &found) => {
                most_general(&previous, &found)
            }
            Some(_) => Type::Dyn,
        }
    }

    fn find(&self, name: &str) -> Option<Type> {
        let bare = name.strip_prefix('.');
        if bare.is_none()
            && let Some((_, found)) = self.scopes.iter().rev().find(|(local, _)| local == name)
        {
            return Some(found.clone());
        }
        let name = bare.unwrap_or(name);
        self.env
            .variable(name)
            .cloned()
            .or_else(|| decls::type_named(name).map(|named| Type::Type(Some(Box::new(named)))))
    }

    fn select(&mut self, expr: &mut Expr) -> Type {
        if let Some(name) = expr.qualified_name()
            && let Some(found) = self.find(&name)
        {
            expr.kind = Kind::Ident(name.strip_prefix('.').unwrap_or(&name).to_owned());
            return found;
        }
        let id = expr.id;
        let Kind::Select(select) = &mut expr.kind else { return Type::Error };
        let Select { operand, field, test_only } = &mut **select;
        let found = self.field(id, operand, field, false);
        if *test_only { Type::Bool } else { self.mapping.substitute(&found, false) }
    }

    fn field(&mut self, id: Id, operand: &mut Expr, field: &str, optional: bool) -> Type {
        self.check(operand);
        let operand_type = self.mapping.substitute(&self.types[operand.id], false);
        let target = operand_type.optional_value().unwrap_or(&operand_type);
        let found = match target {
            Type::Map(_, value) => (**value).clone(),
            Type::Object(name) => match self.env.field_type(name, field) {
                Ok(found) => found.clone(),
                Err(NoField::Undefined) => {
                    self.report(id, format!("undefined field '{field}'"));
                    Type::Error
                }
                Err(NoField::NoObject) => {
                    self.report(id, format!("unexpected failed resolution of '{name}'"));
                    Type::Error
                }
            },
            Type::Param(_) => {
                let target = target.clone();
                self.mapping.is_assignable(&Type::Dyn, &target);
                Type::Dyn
            }
            other => {
                if !other.is_dyn_or_error() {
                    self.report(id, format!("type '{other}' does not support field selection"));
                }
                Type::Dyn
            }
        };
        if optional || operand_type.optional_value().is_some() { Type::optional(found) } else { found }
    }

    fn call(&mut self, expr: &mut Expr) -> Type {
        let id = expr.id;
        let Kind::Call(call) = &mut expr.kind else { return Type::Error };
        let Call { function, target, args } = &mut **call;
        if function == "_?._" {
            return self.optional_select(id, args);
        }
        for arg in args.iter_mut() {
            self.check(arg);
        }
        if let Some(to) = target {
            let prefix = to.qualified_name();
            let qualified = prefix.map(|prefix| format!("{prefix}.{function}"));
            let found =
                qualified.as_deref().and_then(|name| decls::lookup(name.strip_prefix('.').unwrap_or(name)));
            if let Some((name, overloads)) = found {
                name.clone_into(function);
                *target = None;
                return self.resolve(id, name, overloads, None, args);
            }
            self.check(to);
        }
        let Some((name, overloads)) = decls::lookup(function.strip_prefix('.').unwrap_or(function)) else {
            self.undeclared(id, function);
            return Type::Error;
        };
        name.clone_into(function);
        self.resolve(id, name, overloads, target.as_ref(), args)
    }

    fn optional_select(&mut self, id: Id, args: &mut [Expr]) -> Type {
        let [operand, field] = args else { return Type::Error };
        let Kind::Literal(Literal::String(name)) = &field.kind else { return Type::Error };
        let found = self.field(id, operand, name, true);
        self.overloads.insert(id, vec!["select_optional_field"]);
        self.types[field.id] = Type::String;
        self.mapping.substitute(&found, false)
    }

    fn resolve(
        &mut self,
        id: Id,
        function: &str,
        overloads: &'static [Overload],
        target: Option<&Expr>,
        args: &[Expr],
    ) -> Type {
        let types: Vec<Type> = target.into_iter().chain(args).map(|arg| self.types[arg.id].clone()).collect();
        if matches!(function, "_&&_" | "_||_") {
            return self.logical(id, overloads, args, &types);
        }
        let mut result: Option<Type> = None;
        let mut fitting = Vec::new();
        for overload in overloads.iter().filter(|overload| overload.is_member == target.is_some()) {
            let (wanted, given) = self.instance(overload);
            if !self.mapping.are_assignable(&types, &wanted) {
                continue;
            }
            fitting.push(overload.id);
            let given = self.mapping.substitute(&given, false);
            result = Some(match result {
                None => given,
                Some(first) if first.is_dyn() || first == given => first,
                Some(_) => Type::Dyn,
            });
        }
        if let Some(result) = result {
            self.overloads.insert(id, fitting);
            return result;
        }
        let types: Vec<Type> = types.iter().map(|t| self.mapping.substitute(t, true)).collect();
        let signature = signature(&types, target.is_some());
        self.report(id, format!("found no matching overload for '{function}' applied to '{signature}'"));
        Type::Error
    }

    fn logical(&mut self, id: Id, overloads: &'static [Overload], args: &[Expr], types: &[Type]) -> Type {
        self.overloads.insert(id, vec![overloads[0].id]);
        let mut result = Type::Bool;
        for (arg, found) in args.iter().zip(types) {
            if !self.mapping.is_assignable(found, &Type::Bool) {
                self.mismatch(arg.id, &Type::Bool, found);
                result = Type::Error;
            }
        }
        result
    }

    /// The overload's types with fresh type parameters.
    fn instance(&mut self, overload: &Overload) -> (Vec<Type>, Type) {
        let mut names = HashMap::new();
        for part in overload.args.iter().chain([&overload.result]) {
            collect_params(part, &mut |name| {
                if !names.contains_key(name) {
                    let fresh = self.free_type();
                    names.insert(name.clone(), fresh);
                }
            });
        }
        if names.is_empty() {
            return (overload.args.clone(), overload.result.clone());
        }
        let args = overload.args.iter().map(|arg| arg.renamed(&names)).collect();
        (args, overload.result.renamed(&names))
    }

    fn made_struct(&mut self, id: Id, made: &mut Struct) -> Type {
        if let Some(constructed) = self.env.constructed(&made.name) {
            let is_patch = made.name == JSON_PATCH;
            for field in &mut made.fields {
                self.check(&mut field.value);
                if is_patch && !matches!(field.name.as_str(), "op" | "path" | "from" | "value") {
                    self.report(field.id, format!("undefined field '{}'", field.name));
                }
            }
            return constructed;
        }
        let Some(found) = self.find(&made.name) else {
            self.undeclared(id, &made.name);
            return Type::Error;
        };
        match &found {
            Type::Type(Some(of)) => self.report(id, format!("'{of}' is not a message type")),
            other => self.report(id, format!("'{other}' is not a type")),
        }
        for field in &mut made.fields {
            self.check(&mut field.value);
        }
        Type::Error
    }

    fn comprehension(&mut self, comprehension: &mut Comprehension) -> Type {
        let Comprehension { range, var, second_var, accumulator, init, condition, step, result } =
            comprehension;
        self.check(range);
        self.check(init);
        let folded = self.types[init.id].clone();
        let range_type = self.mapping.substitute(&self.types[range.id], false);
        let (first, second) = match &range_type {
            Type::List(item) if second_var.is_some() => (Type::Int, (**item).clone()),
            Type::List(item) => ((**item).clone(), Type::Error),
            Type::Map(key, value) => ((**key).clone(), (**value).clone()),
            Type::Dyn | Type::Error | Type::Param(_) => {
                self.mapping.is_assignable(&Type::Dyn, &range_type);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                self.report(
                    range.id,
                    format!(
                        "expression of type '{other}' cannot be range of a comprehension \
                         (must be list, map, or dynamic)"
                    ),
                );
                (Type::Error, Type::Error)
            }
        };
        let depth = self.scopes.len();
        self.scopes.push((accumulator.clone(), folded.clone()));
        self.scopes.push((var.clone(), first));
        if let Some(name) = second_var {
            self.scopes.push((name.clone(), second));
        }
        self.check(condition);
        self.assert(condition.id, &Type::Bool);
        self.check(step);
        self.assert(step.id, &folded);
        self.scopes.truncate(depth + 1);
        self.check(result);
        self.scopes.truncate(depth);
        self.mapping.substitute(&self.types[result.id], false)
    }

    fn assert(&mut self, id: Id, wanted: &Type) {
        let found = self.types[id].clone();
        if !self.mapping.is_assignable(wanted, &found) {
            self.mismatch(id, wanted, &found);
        }
    }

    fn free_type(&mut self) -> Type {
        self.free += 1;
        Type::Param(Arc::from(format!("_var{}", self.free - 1)))
    }

    fn report(&mut self, id: Id, message: String) {
        self.issues.report(self.positions[id], message);
    }

    fn mismatch(&mut self, id: Id, wanted: &Type, found: &Type) {
        self.report(id, format!("expected type '{wanted}' but found '{found}'"));
    }

    fn undeclared(&mut self, id: Id, name: &str) {
        self.report(id, format!("undeclared reference to '{name}' (in container '')"));
    }
}

fn collect_params(of: &Type, found: &mut impl FnMut(&Arc<str>)) {
    if let Type::Param(name) = of {
        found(name);
    }
    for param in of.params() {
        collect_params(param, found);
    }
}

fn type_of_literal(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}

/// `(int, string)`, or `list(int).(string)` for member functions.
fn signature(types: &[Type], is_member: bool) -> String {
    let (target, args) = if is_member { types.split_at(1) } else { types.split_at(0) };
    let args: Vec<String> = args.iter().map(ToString::to_string).collect();
    let args = args.join(", ");
    match target {
        [target] => format!("{target}.({args})"),
        _ => format!("({args})"),
    }
}
