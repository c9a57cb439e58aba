//! Checks beyond types: invalid constants, and lists of mixed types.

use super::ast::{Expr, Id, Kind, Literal};
use super::checker::Checked;
use super::eval;
use super::library::format::{self, Clause, Part};
use super::source::Issues;
use super::types::Type;
use super::{go_regex, library};

/// Reports the errors of a type-checked tree.
pub(crate) fn validate(root: &Expr, positions: &[usize], checked: &Checked, issues: &mut Issues) {
    let mut validator = Validator { positions, checked, issues };
    validator.constants(root, "duration");
    validator.constants(root, "timestamp");
    validator.patterns(root);
    validator.mixed(root, false);
    validator.formats(root);
}

struct Validator<'a> {
    positions: &'a [usize],
    checked: &'a Checked,
    issues: &'a mut Issues,
}

impl Validator<'_> {
    fn report(&mut self, id: Id, message: String) {
        self.issues.report(self.positions[id], message);
    }

    /// `duration('x')` and `timestamp('x')`.
    fn constants(&mut self, root: &Expr, function: &str) {
        let Some(convert) = library::lookup(function) else { return };
        root.walk(&mut |expr| {
            if let Kind::Call(call) = &expr.kind
                && call.function == function
                && let Some(Expr { id, kind: Kind::Literal(literal) }) = call.args.first()
                && library::call(function, convert, &[eval::literal(literal)]).is_err()
            {
                self.report(*id, format!("invalid {function} argument"));
            }
        });
    }

    fn patterns(&mut self, root: &Expr) {
        root.walk(&mut |expr| {
            // Upstream checks only the first argument; where `matches` is called as a function, that is the
            // text and not the pattern.
            if let Kind::Call(call) = &expr.kind
                && call.function == "matches"
                && let Some(Expr { id, kind: Kind::Literal(Literal::String(pattern)) }) = call.args.first()
                && go_regex::compile(pattern).is_err()
            {
                self.report(*id, "invalid matches argument".to_owned());
            }
        });
    }

    /// Reports lists and maps with values of several types. Arguments of `format` are exempt.
    fn mixed(&mut self, expr: &Expr, is_exempt: bool) {
        let is_exempt = is_exempt || matches!(&expr.kind, Kind::Call(call) if call.function == "format");
        if !is_exempt {
            match &expr.kind {
                Kind::List(elements) => {
                    let items: Vec<(Id, &Type)> = elements
                        .iter()
                        .map(|e| (e.value.id, self.element_type(&e.value, e.optional)))
                        .collect();
                    self.homogeneous(&items, true);
                }
                Kind::Map(entries) => {
                    let keys: Vec<(Id, &Type)> =
                        entries.iter().map(|e| (e.key.id, self.element_type(&e.key, false))).collect();
                    let values: Vec<(Id, &Type)> = entries
                        .iter()
                        .map(|e| (e.value.id, self.element_type(&e.value, e.optional)))
                        .collect();
                    self.homogeneous(&keys, false);
                    self.homogeneous(&values, false);
                }
                _ => {}
            }
        }
        expr.each_child(&mut |child| self.mixed(child, is_exempt));
    }

    fn homogeneous(&mut self, items: &[(Id, &Type)], only_first: bool) {
        let Some((_, first)) = items.first() else { return };
        for (id, found) in &items[1..] {
            if !first.is_equivalent(found) {
                self.report(*id, format!("expected type '{first}' but found '{found}'"));
                if only_first {
                    return;
                }
            }
        }
    }

    /// Checks constant format strings against literal argument lists.
    fn formats(&mut self, root: &Expr) {
        root.walk(&mut |expr| {
            let Kind::Call(call) = &expr.kind else { return };
            let is_format =
                call.function == "format" && self.checked.overloads(expr.id).contains(&"string_format");
            if let Some(Expr { kind: Kind::Literal(Literal::String(text)), .. }) = &call.target
                && let [Expr { kind: Kind::List(args), .. }] = call.args.as_slice()
                && is_format
            {
                let args: Vec<&Expr> = args.iter().map(|arg| &arg.value).collect();
                self.format(expr.id, text, &args);
            }
        });
    }

    fn format(&mut self, id: Id, text: &str, args: &[&Expr]) {
        let (parts, problem) = format::parts(text, args.len());
        let clauses: Vec<Clause> = parts
            .iter()
            .filter_map(|part| if let Part::Clause(clause) = part { Some(*clause) } else { None })
            .collect();
        for (clause, arg) in clauses.iter().zip(args) {
            if let Some(bad) = self.unformattable(*clause, arg) {
                let name = self.checked.type_of(bad).runtime_name().to_owned();
                self.report(bad, clause.unsupported_type(&name));
                return;
            }
        }
        if let Some(problem) = problem {
            self.report(id, problem);
        } else if args.len() > clauses.len() {
            let (wanted, found) = (clauses.len(), args.len());
            self.report(
                id,
                format!("too many arguments supplied to string.format (expected {wanted}, got {found})"),
            );
        }
    }

    /// The node whose type the clause cannot format.
    fn unformattable(&self, clause: Clause, arg: &Expr) -> Option<Id> {
        let fits = match (clause, self.checked.type_of(arg.id)) {
            (_, Type::Dyn) => true,
            (Clause::String, found) => !matches!(found, Type::Object(_) | Type::Opaque(..)),
            (Clause::Decimal | Clause::Octal, found) => matches!(found, Type::Int | Type::Uint),
            (Clause::Fixed(_) | Clause::Scientific(_), found) => matches!(found, Type::Double | Type::String),
            (Clause::Binary, found) => matches!(found, Type::Int | Type::Uint | Type::Bool),
            (Clause::Hex { .. }, found) => {
                matches!(found, Type::Int | Type::Uint | Type::String | Type::Bytes)
            }
        };
        if !fits {
            return Some(arg.id);
        }
        match &arg.kind {
            Kind::List(elements) if clause == Clause::String => {
                elements.iter().find_map(|element| self.unformattable(clause, &element.value))
            }
            Kind::Map(entries) if clause == Clause::String => entries.iter().find_map(|entry| {
                self.unformattable(clause, &entry.key).or_else(|| self.unformattable(clause, &entry.value))
            }),
            _ => None,
        }
    }
}

impl<'a> Validator<'a> {
    fn element_type(&self, value: &Expr, is_optional: bool) -> &'a Type {
        let found = self.checked.type_of(value.id);
        if is_optional { found.optional_value().unwrap_or(found) } else { found }
    }
}
