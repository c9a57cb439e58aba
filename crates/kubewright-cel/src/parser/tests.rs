//! Accepted syntax and the resulting trees.

use super::*;

fn tree(text: &str) -> String {
    match parse(text) {
        Ok(parsed) => show(&parsed.root),
        Err(issues) => issues.to_string().lines().next().unwrap_or_default().to_owned(),
    }
}

fn show(expr: &Expr) -> String {
    let all = |args: &[Expr]| args.iter().map(show).collect::<Vec<_>>().join(", ");
    match &expr.kind {
        Kind::Literal(Literal::String(text)) => format!("{text:?}"),
        Kind::Literal(Literal::Int(value)) => value.to_string(),
        Kind::Literal(other) => format!("{other:?}"),
        Kind::Ident(name) => name.clone(),
        Kind::Select(s) if s.test_only => format!("has({}.{})", show(&s.operand), s.field),
        Kind::Select(s) => format!("{}.{}", show(&s.operand), s.field),
        Kind::Call(c) => match &c.target {
            Some(target) => format!("{}.{}({})", show(target), c.function, all(&c.args)),
            None => format!("{}({})", c.function, all(&c.args)),
        },
        Kind::List(elements) => {
            let one = |e: &Element| format!("{}{}", if e.optional { "?" } else { "" }, show(&e.value));
            format!("[{}]", elements.iter().map(one).collect::<Vec<_>>().join(", "))
        }
        Kind::Map(entries) => {
            let one = |e: &Entry| format!("{}: {}", show(&e.key), show(&e.value));
            format!("{{{}}}", entries.iter().map(one).collect::<Vec<_>>().join(", "))
        }
        Kind::Struct(made) => format!("{}{{{}}}", made.name, made.fields.len()),
        Kind::Comprehension(c) => format!("fold({}, {})", show(&c.range), show(&c.step)),
        Kind::Error => "!".to_owned(),
    }
}

#[test]
fn operators_have_cel_precedence() {
    assert_eq!(tree("1 + 2 * 3 < 4 || a && !b"), "_||_(_<_(_+_(1, _*_(2, 3)), 4), _&&_(a, !_(b)))");
    assert_eq!(tree("a ? b : c ? d : e"), "_?_:_(a, b, _?_:_(c, d, e))");
    assert_eq!(tree("1 - -5 - --x"), "_-_(_-_(1, -5), x)");
    assert_eq!(tree("a || b || c || d"), "_||_(_||_(a, b), _||_(c, d))");
}

#[test]
fn members_and_optional_syntax_are_parsed() {
    assert_eq!(tree("a.b[0].?c[?d].f(1, 2)"), r#"_[?_](_?._(_[_](a.b, 0), "c"), d).f(1, 2)"#);
    assert_eq!(tree("[1, ?x,]"), "[1, ?x]");
    assert_eq!(tree("{'a': 1, ?'b': x}"), r#"{"a": 1, "b": x}"#);
    assert_eq!(tree("a.b.C{x: 1}"), "a.b.C{1}");
    assert_eq!(tree(".a.b"), ".a.b");
}

#[test]
fn literals_are_unescaped() {
    assert_eq!(tree(r"'a\n\x41\u00e9\101'"), r#""a\nAéA""#);
    assert_eq!(tree(r"r'\d'"), r#""\\d""#);
    assert_eq!(tree("b'\\xff'"), "Bytes([255])");
    assert_eq!(tree("0x10"), "16");
    assert_eq!(tree("9223372036854775808"), "ERROR: <input>:1:1: invalid int literal");
}

#[test]
fn macros_are_expanded() {
    assert_eq!(tree("has(a.b)"), "has(a.b)");
    assert_eq!(tree("l.all(x, x)"), "fold(l, _&&_(@result, x))");
    assert_eq!(tree("has(a)"), "ERROR: <input>:1:5: invalid argument to has() macro");
    assert_eq!(tree("l.all(x.y, x)"), "ERROR: <input>:1:8: argument must be a simple name");
}

#[test]
fn reserved_identifiers_are_rejected() {
    assert_eq!(tree("a + namespace"), "ERROR: <input>:1:5: reserved identifier: namespace");
}

#[test]
fn nesting_depth_is_limited() {
    let deep = format!("{}1{}", "(".repeat(300), ")".repeat(300));
    assert_eq!(tree(&deep), "ERROR: <input>:-1:0: expression recursion limit exceeded: 250");
}
