//! Macro expansion.
//!
//! Rewrites calls such as `all` and `map` to comprehensions during parsing. The new nodes have the position
//! of the call's opening parenthesis; errors point at the invalid argument.

use super::ast::{ACCUMULATOR, Comprehension, Element, Expr, Id, Kind, Literal, Select};
use super::parser::{Positions, call};
use super::source::Issues;

/// The accumulator name of older cel-go versions. Not allowed as an iteration variable.
const OLD_ACCUMULATOR: &str = "__result__";

/// Iteration variable of a comprehension that never iterates and only binds a name.
const UNUSED: &str = "#unused";

const SORT_INPUT: &str = "@__sortBy_input__";

const OPTIONAL_TARGET: &str = "@target";

/// Expands the call if it is a macro; otherwise returns it unchanged.
pub(crate) fn expand(
    positions: &mut Positions,
    issues: &mut Issues,
    id: Id,
    function: String,
    target: Option<Expr>,
    args: Vec<Expr>,
) -> Expr {
    let Some(expander) = find(&function, target.is_some(), args.len()) else {
        return Expr { id, kind: Kind::Call(Box::new(super::ast::Call { function, target, args })) };
    };
    let offset = positions.of(id);
    let mut made = Maker { positions, offset };
    match expander(&mut made, target, args) {
        Ok(expr) => expr,
        Err((at, message)) => {
            issues.report(positions.of(at), message);
            Expr { id, kind: Kind::Error }
        }
    }
}

type Expanded = Result<Expr, (Id, String)>;
type Expander = fn(&mut Maker<'_>, Option<Expr>, Vec<Expr>) -> Expanded;

fn find(function: &str, is_member: bool, args: usize) -> Option<Expander> {
    Some(match (function, is_member, args) {
        ("has", false, 1) => has,
        ("all", true, 2 | 3) => all,
        ("exists", true, 2 | 3) => exists,
        ("exists_one" | "existsOne", true, 2 | 3) => exists_one,
        ("map", true, 2 | 3) => map,
        ("filter", true, 2) => filter,
        ("transformList", true, 3 | 4) => transform_list,
        ("transformMap", true, 3 | 4) => transform_map,
        ("transformMapEntry", true, 3 | 4) => transform_map_entry,
        ("optMap", true, 2) => opt_map,
        ("optFlatMap", true, 2) => opt_flat_map,
        ("sortBy", true, 2) => sort_by,
        _ => return None,
    })
}

struct Maker<'a> {
    positions: &'a mut Positions,
    offset: usize,
}

impl Maker<'_> {
    fn id(&mut self) -> Id {
        self.positions.next(self.offset)
    }

    fn node(&mut self, kind: Kind) -> Expr {
        Expr { id: self.id(), kind }
    }

    fn ident(&mut self, name: &str) -> Expr {
        self.node(Kind::Ident(name.to_owned()))
    }

    fn accumulated(&mut self) -> Expr {
        self.ident(ACCUMULATOR)
    }

    fn literal(&mut self, literal: Literal) -> Expr {
        self.node(Kind::Literal(literal))
    }

    fn call(&mut self, function: &str, args: Vec<Expr>) -> Expr {
        call(self.id(), function, None, args)
    }

    fn member_call(&mut self, function: &str, target: Expr, args: Vec<Expr>) -> Expr {
        call(self.id(), function, Some(target), args)
    }

    fn list(&mut self, elements: Vec<Expr>) -> Expr {
        let elements = elements.into_iter().map(|value| Element { value, optional: false }).collect();
        self.node(Kind::List(elements))
    }

    /// `condition ? step : accumulator`.
    fn filtered(&mut self, condition: Option<Expr>, step: Expr) -> Expr {
        match condition {
            None => step,
            Some(condition) => {
                let otherwise = self.accumulated();
                self.call("_?_:_", vec![condition, step, otherwise])
            }
        }
    }

    fn fold(&mut self, range: Option<Expr>, vars: Vars, fold: Fold) -> Expr {
        let range = range.unwrap_or(Expr { id: 0, kind: Kind::Error });
        let (var, second_var) = vars;
        self.node(Kind::Comprehension(Box::new(Comprehension {
            range,
            var,
            second_var,
            accumulator: ACCUMULATOR.to_owned(),
            init: fold.init,
            condition: fold.condition,
            step: fold.step,
            result: fold.result,
        })))
    }

    /// Binds `name` to `value` in `body`, with a comprehension that never iterates.
    fn bind(&mut self, name: &str, value: Expr, body: Expr) -> Expr {
        let range = self.list(Vec::new());
        let condition = self.literal(Literal::Bool(false));
        let step = self.ident(name);
        self.node(Kind::Comprehension(Box::new(Comprehension {
            range,
            var: UNUSED.to_owned(),
            second_var: None,
            accumulator: name.to_owned(),
            init: value,
            condition,
            step,
            result: body,
        })))
    }
}

struct Fold {
    init: Expr,
    condition: Expr,
    step: Expr,
    result: Expr,
}

type Vars = (String, Option<String>);

/// The iteration variables and the remaining arguments.
fn variables(args: Vec<Expr>, count: usize, problem: &str) -> Result<(Vars, Vec<Expr>), (Id, String)> {
    let name = |arg: &Expr| match &arg.kind {
        Kind::Ident(name) => Ok(name.clone()),
        _ => Err((arg.id, problem.to_owned())),
    };
    let first = name(&args[0])?;
    let second = if count == 2 { Some(name(&args[1])?) } else { None };
    if second.as_ref() == Some(&first) {
        return Err((args[1].id, format!("duplicate variable name: {first}")));
    }
    let names = std::iter::once(&first).chain(&second);
    for (arg, name) in args.iter().zip(names) {
        if name == OLD_ACCUMULATOR {
            return Err((arg.id, "iteration variable overwrites accumulator variable".to_owned()));
        }
    }
    Ok(((first, second), args.into_iter().skip(count).collect()))
}

const NO_NAME: &str = "argument must be a simple name";
const NO_IDENTIFIER: &str = "argument is not an identifier";

fn only(mut rest: Vec<Expr>) -> Expr {
    rest.pop().unwrap_or(Expr { id: 0, kind: Kind::Error })
}

/// The optional condition and the last argument.
fn condition_and_last(mut rest: Vec<Expr>) -> (Option<Expr>, Expr) {
    let last = only(rest.split_off(rest.len() - 1));
    (rest.pop(), last)
}

fn has(make: &mut Maker<'_>, _: Option<Expr>, args: Vec<Expr>) -> Expanded {
    let arg = only(args);
    match arg.kind {
        Kind::Select(select) => Ok(make.node(Kind::Select(Box::new(Select { test_only: true, ..*select })))),
        _ => Err((arg.id, "invalid argument to has() macro".to_owned())),
    }
}

fn all(make: &mut Maker<'_>, range: Option<Expr>, args: Vec<Expr>) -> Expanded {
    let count = args.len() - 1;
    let (vars, rest) = variables(args, count, NO_NAME)?;
    let init = make.literal(Literal::Bool(true));
    let so_far = make.accumulated();
    let condition = make.call("@not_strictly_false", vec![so_far]);
    let so_far = make.accumulated();
    let step = make.call("_&&_", vec![so_far, only(rest)]);
    let result = make.accumulated();
    Ok(make.fold(range, vars, Fold { init, condition, step, result }))
}

fn exists(make: &mut Maker<'_>, range: Option<Expr>, args: Vec<Expr>) -> Expanded {
    let count = args.len() - 1;
    let (vars, rest) = variables(args, count, NO_NAME)?;
    let init = make.literal(Literal::Bool(false));
    let so_far = make.accumulated();
    let none = make.call("!_", vec![so_far]);
    let condition = make.call("@not_strictly_false", vec![none]);
    let so_far = make.accumulated();
    let step = make.call("_||_", vec![so_far, only(rest)]);
    let result = make.accumulated();
    Ok(make.fold(range, vars, Fold { init, condition, step, result }))
}

fn exists_one(make: &mut Maker<'_>, range: Option<Expr>, args: Vec<Expr>) -> Expanded {
    let count = args.len() - 1;
    let (vars, rest) = variables(args, count, NO_NAME)?;
    let init = make.literal(Literal::Int(0));
    let condition = make.literal(Literal::Bool(true));
    let (so_far, one) = (make.accumulated(), make.literal(Literal::Int(1)));
    let more = make.call("_+_", vec![so_far, one]);
    let step = make.filtered(Some(only(rest)), more);
    let (so_far, one) = (make.accumulated(), make.literal(Literal::Int(1)));
    let result = make.call("_==_", vec![so_far, one]);
    Ok(make.fold(range, vars, Fold { init, condition, step, result }))
}

fn collect(
    make: &mut Maker<'_>,
    range: Option<Expr>,
    vars: Vars,
    condition: Option<Expr>,
    item: Expr,
) -> Expr {
    let init = make.list(Vec::new());
    let (so_far, item) = (make.accumulated(), make.list(vec![item]));
    let more = make.call("_+_", vec![so_far, item]);
    let step = make.filtered(condition, more);
    let (condition, result) = (make.literal(Literal::Bool(true)), make.accumulated());
    make.fold(range, vars, Fold { init, condition, step, result })
}

fn map(make: &mut Maker<'_>, range: Option<Expr>, args: Vec<Expr>) -> Expanded {
    let (vars, rest) = variables(args, 1, NO_IDENTIFIER)?;
    let (condition, item) = condition_and_last(rest);
    Ok(collect(make, range, vars, condition, item))
}

fn filter(make: &mut Maker<'_>, range: Option<Expr>, args: Vec<Expr>) -> Expanded {
    let item = args[0].clone();
    let (vars, rest) = variables(args, 1, NO_IDENTIFIER)?;
    Ok(collect(make, range, vars, Some(only(rest)), item))
}

fn transform_list(make: &mut Maker<'_>, range: Option<Expr>, args: Vec<Expr>) -> Expanded {
    let (vars, rest) = variables(args, 2, NO_NAME)?;
    let (condition, item) = condition_and_last(rest);
    Ok(collect(make, range, vars, condition, item))
}

fn insert(
    make: &mut Maker<'_>,
    range: Option<Expr>,
    vars: Vars,
    condition: Option<Expr>,
    new: Vec<Expr>,
) -> Expr {
    let init = make.node(Kind::Map(Vec::new()));
    let mut args = vec![make.accumulated()];
    args.extend(new);
    let more = make.call("cel.@mapInsert", args);
    let step = make.filtered(condition, more);
    let (condition, result) = (make.literal(Literal::Bool(true)), make.accumulated());
    make.fold(range, vars, Fold { init, condition, step, result })
}

fn transform_map(make: &mut Maker<'_>, range: Option<Expr>, args: Vec<Expr>) -> Expanded {
    let (vars, rest) = variables(args, 2, NO_NAME)?;
    let (condition, value) = condition_and_last(rest);
    let key = make.ident(&vars.0);
    Ok(insert(make, range, vars, condition, vec![key, value]))
}

fn transform_map_entry(make: &mut Maker<'_>, range: Option<Expr>, args: Vec<Expr>) -> Expanded {
    let (vars, rest) = variables(args, 2, NO_NAME)?;
    let (condition, entry) = condition_and_last(rest);
    Ok(insert(make, range, vars, condition, vec![entry]))
}

/// `target.optMap(name, body)`: evaluates the target once, and the body only if the target has a value.
fn optional(
    make: &mut Maker<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
    function: &str,
    wrap: fn(&mut Maker<'_>, Expr) -> Expr,
) -> Expanded {
    let target = target.unwrap_or(Expr { id: 0, kind: Kind::Error });
    let Kind::Ident(name) = &args[0].kind else {
        return Err((args[0].id, format!("{function}() variable name must be a simple identifier")));
    };
    let name = name.clone();
    let bound = make.ident(OPTIONAL_TARGET);
    let has_value = make.member_call("hasValue", bound, Vec::new());
    let bound = make.ident(OPTIONAL_TARGET);
    let value = make.member_call("value", bound, Vec::new());
    let body = make.bind(&name, value, only(args));
    let some = wrap(make, body);
    let none = make.call("optional.none", Vec::new());
    let chosen = make.call("_?_:_", vec![has_value, some, none]);
    Ok(make.bind(OPTIONAL_TARGET, target, chosen))
}

fn opt_map(make: &mut Maker<'_>, target: Option<Expr>, args: Vec<Expr>) -> Expanded {
    optional(make, target, args, "optMap", |make, body| make.call("optional.of", vec![body]))
}

fn opt_flat_map(make: &mut Maker<'_>, target: Option<Expr>, args: Vec<Expr>) -> Expanded {
    optional(make, target, args, "optFlatMap", |_, body| body)
}

fn sort_by(make: &mut Maker<'_>, target: Option<Expr>, args: Vec<Expr>) -> Expanded {
    let target = target.unwrap_or(Expr { id: 0, kind: Kind::Error });
    if matches!(target.kind, Kind::Literal(_) | Kind::Map(_) | Kind::Struct(_)) {
        let problem =
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
        return Err((target.id, problem.to_owned()));
    }
    let range = make.ident(SORT_INPUT);
    let keys = map(make, Some(range), args)?;
    let input = make.ident(SORT_INPUT);
    let sorted = make.member_call("@sortByAssociatedKeys", input, vec![keys]);
    Ok(make.bind(SORT_INPUT, target, sorted))
}
