//! Compilation of the rules of a schema and its subschemas.

use std::collections::BTreeMap;

use crate::cost::estimate::estimate;
use crate::env::Env;
use crate::error::CompileError;
use crate::program::Program;
use crate::rules::CompiledRule;
use crate::schema::{DeclType, Rule, Schema};
use crate::types::Type;

/// The type name of `self`. Upstream generates a new name each time, so that expressions cannot depend on it.
const SELF_TYPE: &str = "selfType";

/// The rules of a schema node and its descendants.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) rules: Vec<Compiled>,
    pub(super) items: Option<Box<Node>>,
    pub(super) properties: BTreeMap<String, Node>,
    pub(super) additional: Option<Box<Node>>,
    pub(super) all_of: Vec<Node>,
}

/// A rule and its compilation result.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) rule: Rule,
    /// `None` for an empty rule.
    pub(super) program: Option<Result<Program, String>>,
    pub(super) uses_old_self: bool,
    pub(super) message: Option<Result<Program, String>>,
    /// Overrides the path of errors, relative to the value.
    pub(super) field_path: Option<String>,
}

impl Node {
    /// Compiles the rules in `rules` for values of the schema `of`; `None` if there are none. The two differ
    /// only for the branches of `allOf`.
    pub(super) fn compile(rules: &Schema, of: &Schema) -> Option<Self> {
        let mut node = Self { rules: compile_all(rules, of), ..Self::default() };
        if let (Some(rules), Some(of)) = (&rules.items, &of.items) {
            node.items = Self::compile(rules, of).map(Box::new);
        }
        for (name, rules) in rules.declared().into_iter().flatten() {
            let Some(of) = of.declared().and_then(|declared| declared.get(name)) else { continue };
            // Properties with a type that CEL does not support are skipped with their subschemas.
            if DeclType::of(of).is_none() {
                continue;
            }
            if let Some(found) = Self::compile(rules, of) {
                node.properties.insert(name.clone(), found);
            }
        }
        if let (Some(rules), Some(of)) = (&rules.additional, &of.additional) {
            node.additional = Self::compile(rules, of).map(Box::new);
        }
        node.all_of = rules.all_of.iter().filter_map(|rules| Self::compile(rules, of)).collect();
        (!node.is_empty()).then_some(node)
    }

    fn is_empty(&self) -> bool {
        self.rules.is_empty()
            && self.items.is_none()
            && self.properties.is_empty()
            && self.additional.is_none()
            && self.all_of.is_empty()
    }
}

/// The compilation results that CRD validation needs for one schema.
pub(super) fn described(schema: &Schema) -> Vec<CompiledRule> {
    let decl = DeclType::of(schema);
    let cost = |program: &Program| estimate(program, decl.as_ref()).max;
    let compiled = compile_all(schema, schema);
    let describe = |compiled: &Compiled| CompiledRule {
        error: compiled.program.as_ref().and_then(|program| program.as_ref().err().cloned()),
        max_cost: compiled.program.as_ref().and_then(|program| program.as_ref().ok()).map_or(0, cost),
        max_cardinality: decl.as_ref().map_or(0, DeclType::max_cardinality),
        uses_old_self: compiled.uses_old_self,
        message_expression: compiled
            .message
            .as_ref()
            .map(|message| message.as_ref().map(cost).map_err(Clone::clone)),
    };
    compiled.iter().map(describe).collect()
}

fn compile_all(rules: &Schema, of: &Schema) -> Vec<Compiled> {
    if rules.rules.is_empty() {
        return Vec::new();
    }
    let mut env = Env::new();
    let self_type = match DeclType::of(of) {
        Some(decl) => decl.declare(SELF_TYPE, &mut env),
        None => Type::Dyn,
    };
    let env = env.with_variable("self", self_type.clone());
    let required = env.clone().with_variable("oldSelf", self_type.clone());
    let optional = env.with_variable("oldSelf", Type::optional(self_type));
    let choose = |rule: &Rule| if rule.optional_old_self == Some(true) { &optional } else { &required };
    rules.rules.iter().map(|rule| Compiled::of(rule, choose(rule), of)).collect()
}

impl Compiled {
    fn of(rule: &Rule, env: &Env, schema: &Schema) -> Self {
        let mut compiled =
            Self { rule: rule.clone(), program: None, uses_old_self: false, message: None, field_path: None };
        if rule.expression.trim().is_empty() {
            return compiled;
        }
        let program = match Program::compile(env, &rule.expression, Some(&Type::Bool)) {
            Ok(program) => program,
            Err(error) => {
                let problem = match error {
                    CompileError::ResultType { .. } => "cel expression must evaluate to a bool".to_owned(),
                    other => other.to_string(),
                };
                compiled.program = Some(Err(problem));
                return compiled;
            }
        };
        compiled.uses_old_self = program.uses("oldSelf");
        compiled.program = Some(Ok(program));
        if !rule.message_expression.is_empty() {
            let message = Program::compile(env, &rule.message_expression, Some(&Type::String));
            let message = message.map_err(|error| match error {
                CompileError::Invalid(issues) => format!("messageExpression compilation failed: {issues}"),
                CompileError::ResultType { .. } | CompileError::ResultTypes { .. } => {
                    "messageExpression must evaluate to a string".to_owned()
                }
                CompileError::Constant(problem) => {
                    format!("messageExpression instantiation failed: {problem}")
                }
            });
            let failed = message.is_err();
            compiled.message = Some(message);
            if failed {
                return compiled;
            }
        }
        if !rule.field_path.is_empty() {
            compiled.field_path = field_path(&rule.field_path, schema);
        }
        compiled
    }
}

/// Converts a `fieldPath` of fields and bracketed keys to the format of errors, if it exists in the schema.
fn field_path(path: &str, schema: &Schema) -> Option<String> {
    let mut found = String::new();
    let mut schema = Some(schema);
    let mut rest = path;
    while !rest.is_empty() {
        let (name, after) = if let Some(quoted) = rest.strip_prefix("['") {
            let end = quoted.find("']")?;
            (quoted[..end].replace("\\'", "'").replace("\\\\", "\\"), &quoted[end + 2..])
        } else {
            let bare = rest.strip_prefix('.')?;
            let end = bare.find(['.', '[']).unwrap_or(bare.len());
            (bare[..end].to_owned(), &bare[end..])
        };
        let here = schema?;
        if let Some(declared) = here.declared() {
            let next = declared.get(&name)?;
            if !found.is_empty() {
                found.push('.');
            }
            found.push_str(&name);
            schema = Some(next);
        } else if here.has_additional {
            found.push('[');
            found.push_str(&name);
            found.push(']');
            schema = here.additional.as_deref();
        } else {
            return None;
        }
        rest = after;
    }
    Some(found)
}
