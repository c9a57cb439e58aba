//! End-to-end tests: from source text to value.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::cost::estimate::estimate;
use crate::schema::{DeclType, Keywords, Schema};

fn environment() -> Env {
    Env::new().with_variable("x", Type::Dyn)
}

/// Evaluates `text` and shows the value or the error. The variable `x` has fields of many types.
fn value(text: &str) -> String {
    let x = json!({"i": 5, "d": 1.5, "s": "abc", "l": [3, 1, 2], "m": {"a": 1, "b": 2}, "n": null});
    let bindings = Bindings::new().with("x", Value::from(&x));
    match Program::compile(&environment(), text, None) {
        Ok(program) => match program.eval(&bindings, PER_CALL_LIMIT).value {
            Ok(value) => value.shown(),
            Err(error) => error.to_string(),
        },
        Err(error) => error.to_string().lines().next().unwrap_or_default().to_owned(),
    }
}

fn holds(texts: &[&str]) {
    for text in texts {
        assert_eq!(value(text), "true", "{text}");
    }
}

#[test]
fn integer_overflow_is_an_error() {
    holds(&[
        "1 + 2 * 3 == 7",
        "7 / 2 == 3 && -7 % 3 == -1",
        "dyn(1) == 1.0 && dyn(1u) == 1",
        "2 < 2.5",
        "x.i > 4u",
        "-(1) == -1",
    ]);
    assert_eq!(value("9223372036854775807 + 1"), "integer overflow");
    assert_eq!(value("0u - 1u"), "unsigned integer overflow");
    assert_eq!(value("1 / (x.i - 5)"), "division by zero");
    assert_eq!(value("1 % (x.i - 5)"), "modulus by zero");
    assert_eq!(
        value("int(1e30)"),
        "compilation failed: ".to_owned().replace("compilation", "program instantiation")
            + "integer overflow"
    );
}

#[test]
fn logical_operators_drop_errors_when_the_other_side_decides() {
    holds(&[
        "true || 1 / 0 > 1",
        "1 / 0 > 1 || true",
        "!(false && 1 / 0 > 1)",
        "[1, 0, 2].exists(i, 2 / i == 1)",
    ]);
    holds(&["![0, 1].all(i, 1 / i == 2)", "x.i == 5 ? true : x.nosuch"]);
    assert_eq!(value("false || x.nosuch"), "no such key: nosuch");
    assert_eq!(value("x.l[7]"), "index out of bounds: 7");
    assert_eq!(value("x.i.y"), "no such overload");
    assert_eq!(value("x.s + 1"), "no such overload");
    assert_eq!(value("x.i.lowerAscii()"), "no such overload: lowerAscii(int)");
}

#[test]
fn macros_iterate_over_lists_and_maps() {
    holds(&[
        "x.l.map(i, i * 2) == [6, 2, 4] && x.l.filter(i, i > 1) == [3, 2] && x.l.map(i, i > 1, i + 1) == [4, 3]",
        "x.m.all(k, x.m[k] > 0) && x.l.exists_one(i, i == 3) && x.l.existsOne(i, v, i == 0 && v == 3)",
        "x.m.transformMap(k, v, v + 1) == {'a': 2, 'b': 3} && x.l.transformList(i, v, i > 0, v) == [1, 2]",
        "x.m.transformMapEntry(k, v, {v: k}) == {1: 'a', 2: 'b'}",
        "x.l.sortBy(i, -i) == [3, 2, 1]",
        "has(x.m.a) && !has(x.m.z) && !has(x.nosuch)",
    ]);
    assert_eq!(value("x.m.transformMapEntry(k, v, {'same': v})"), "insert failed: key same already exists");
}

#[test]
fn optional_values_can_be_absent() {
    holds(&[
        "x.?m.?a.orValue(0) == 1 && x.?z.?a.orValue(7) == 7 && !x.?z.y.hasValue() && x.l[?9].orValue(4) == 4",
        "x.?m.optMap(m, m.a + 1).value() == 2 && x.?m.optFlatMap(m, m.?z) == optional.none()",
        "[?x.?z, x.i] == [x.i] && {?'k': x.?z} == {} && optional.ofNonZeroValue('') == optional.none()",
        "x.l.first().value() == 3 && x.l.last().value() == 2 && [].first() == optional.none()",
        "optional.none().or(optional.of(1)).value() == 1 && [optional.of(1), optional.none()].unwrapOpt() == [1]",
    ]);
    assert_eq!(value("x.?z.value()"), "optional.none() dereference");
}

#[test]
fn string_functions_work() {
    holds(&[
        "'aXb'.lowerAscii() == 'axb' && 'äb'.charAt(1) == 'b' && 'abcb'.indexOf('b', 2) == 3 && 'abcb'.lastIndexOf('b') == 3",
        "'a,b'.split(',') == ['a', 'b'] && ['a', 'b'].join('-') == 'a-b' && ' a '.trim() == 'a' && 'hello'.substring(1, 3) == 'el'",
        "'%s is %d'.format(['a', 1]) == 'a is 1' && strings.quote('a\"') == '\"a\\\\\"\"'",
        "'abc'.matches('^a.c$') && 'a12b3'.findAll('[0-9]+') == ['12', '3'] && 'a12'.find('[0-9]+') == '12'",
        "size('äö') == 2 && 'abc'.contains('b') && 'abc'.startsWith('a') && 'abc'.endsWith('c') && 'a' + 'b' == 'ab'",
    ]);
    assert_eq!(value("'abc'.substring(5)"), "index out of range: 5");
    assert_eq!(
        value("'%d'.format(['a'])"),
        "compilation failed: ERROR: <input>:1:14: error during formatting: decimal clause can only be used on integers, was given string"
    );
    assert_eq!(
        value("'a'.find('(')"),
        "program instantiation failed: error parsing regexp: missing closing ): `(`"
    );
}

#[test]
fn kubernetes_libraries_work() {
    holds(&[
        "[1, 2].isSorted() && [1, 2].sum() == 3 && [2, 1].min() == 1 && [1, 2, 1].lastIndexOf(1) == 2 && [].sum() == 0",
        "quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('1k').add(5).asInteger() == 1005 && sign(quantity('-1')) == -1",
        "ip('::1').isLoopback() && cidr('10.0.0.0/8').containsIP(ip('10.1.1.1')) && string(cidr('10.1.0.0/8').masked()) == '10.0.0.0/8'",
        "url('https://a.com:80/p?q=1').getPort() == '80' && url('/x?q=1&q=2').getQuery() == {'q': ['1', '2']}",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && isSemver('v1.0', true) && semver('1.2.3').minor() == 2",
        "format.dns1123Label().validate('a-b') == optional.none() && format.named('uuid').value().validate('x').hasValue()",
        "sets.contains([1, 2], [2]) && sets.equivalent([1, 2], [2, 1]) && !sets.intersects([1], [2])",
        "[1, 2, 3].slice(1, 3) == [2, 3] && [[1], [2]].flatten() == [1, 2] && [2, 1].sort() == [1, 2] && [1, 1].distinct() == [1]",
        "lists.range(3) == [0, 1, 2] && [1, 2].reverse() == [2, 1]",
    ]);
    assert_eq!(value("[1].map(i, i).filter(i, i > 1).max()"), "max called on empty list");
}

#[test]
fn timestamps_and_conversions_work() {
    holds(&[
        "timestamp('2024-02-29T12:00:00Z') + duration('24h') == timestamp('2024-03-01T12:00:00Z')",
        "timestamp('2024-02-29T12:00:00Z').getMonth() == 1 && timestamp('2024-02-29T23:30:00Z').getDate('+01:00') == 1",
        "duration('90m').getHours() == 1 && string(duration('1.5s')) == '1.5s' && int(timestamp('1970-01-01T00:01:00Z')) == 60",
        "string(1.5) == '1.5' && int('12') == 12 && bool('true') && bytes('a') == b'a' && double('1e3') == 1000.0",
        "type(1) == int && type(x.d) == double && type([]) == list && type(type(1)) == type && type(null) == null_type",
    ]);
    assert_eq!(value("int(x.s)"), "type conversion error from 'string' to 'int'");
    assert_eq!(
        value("timestamp('x')"),
        "compilation failed: ERROR: <input>:1:11: invalid timestamp argument"
    );
}

#[test]
fn type_errors_are_found_at_compile_time() {
    assert_eq!(
        value("'a' + 1"),
        "compilation failed: ERROR: <input>:1:5: found no matching overload for '_+_' applied to '(string, int)'"
    );
    assert_eq!(
        value("nosuch(1)"),
        "compilation failed: ERROR: <input>:1:7: undeclared reference to 'nosuch' (in container '')"
    );
    assert_eq!(
        value("1.all(i, true)"),
        "compilation failed: ERROR: <input>:1:1: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)"
    );
    assert_eq!(
        value("[1, 'a']"),
        "compilation failed: ERROR: <input>:1:5: expected type 'int' but found 'string'"
    );
    assert_eq!(
        value("[1].map(i, i).join()"),
        "compilation failed: ERROR: <input>:1:19: found no matching overload for 'join' applied to 'list(int).()'"
    );
    assert_eq!(
        value("'a'.size() && true"),
        "compilation failed: ERROR: <input>:1:9: expected type 'bool' but found 'int'"
    );
    assert_eq!(
        value("Foo{a: 1}"),
        "compilation failed: ERROR: <input>:1:4: undeclared reference to 'Foo' (in container '')"
    );
}

#[test]
fn worst_case_costs_are_estimated_at_compile_time() {
    let cost = |schema: Keywords, text: &str| {
        let decl = DeclType::of(&Schema::from(schema)).unwrap();
        let mut env = Env::new();
        let of = decl.declare("t", &mut env);
        let program = Program::compile(&env.with_variable("self", of), text, None).unwrap();
        estimate(&program, Some(&decl)).max
    };
    let of_type = |name: &str| Keywords { type_name: name.to_owned(), ..Keywords::default() };
    let numbers = || Keywords { items: Some(Box::new(Schema::of_type("number"))), ..of_type("array") };
    assert_eq!(cost(numbers(), "self.all(x, true)"), 4_718_591);
    assert_eq!(cost(Keywords { max_items: Some(10), ..numbers() }, "self.all(x, true)"), 32);
    assert_eq!(cost(of_type("string"), "self.contains('test')"), 314_574);
    assert_eq!(cost(Keywords { max_length: Some(0), ..of_type("string") }, "self == 'x'"), 1);
    assert!(cost(numbers(), "self.all(x, self.all(y, true))") > 1_000_000_000);
}

#[test]
fn runtime_costs_are_counted() {
    let x = json!({"l": [1, 2, 3]});
    let cost = |text: &str| {
        let program = Program::compile(&environment(), text, None).unwrap();
        program.eval(&Bindings::new().with("x", Value::from(&x)), PER_CALL_LIMIT).cost
    };
    assert_eq!(cost("x.l"), 2);
    assert_eq!(cost("has(x.l)"), 1);
    assert_eq!(cost("x.l.all(i, i > 0)"), 2 + 3 * 5 + 1);
    assert_eq!(cost("2 in [1, 2]"), 0);
    assert_eq!(cost("x.l.map(i, i)"), 2 + 3 * 13 + 1);
}

#[test]
fn programs_are_send_and_sync() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Program>();
    is_shared::<rules::RuleSet>();
}

proptest! {
    #[test]
    fn no_input_panics(words in prop::collection::vec(prop::sample::select(vec![
        "x", ".", "?", "[", "]", "(", ")", "{", "}", ",", ":", "-", "!", "+", "*", "==", "in", "&&", "||", "1", "2u", "1.5",
        "'a'", "b'a'", "true", "null", ".all(", ".map(i,", "has(", "x.l", "size(", "type(", "\"", "`", "é", "\n",
    ]), 0..14)) {
        let text = words.join(" ");
        let data = json!({"l": [1, "a", null, {"b": 1.5}]});
        if let Ok(program) = Program::compile(&environment(), &text, None) {
            let found = program.eval(&Bindings::new().with("x", Value::from(&data)), 10_000);
            prop_assert!(found.cost <= 20_000);
        }
    }
}

#[test]
fn a_cheap_evaluation_has_no_costly_patterns() {
    for (call, is_cheap) in [
        ("x.s.matches('^[a-z]+$')", true),
        (r"x.s.matches('(\\p{L}{1,100}){1,10}!')", false),
        (r"x.s.findAll('(\\p{L}{1,100}){1,10}!') == []", false),
        ("x.s.matches(x.s)", false),
        ("x.l.all(a, x.l.all(b, a + b > 0))", true),
        ("lists.range(100).all(a, lists.range(100).all(b, a + b >= 0))", false),
    ] {
        let x = json!({"s": "abc", "l": [3, 1, 2]});
        let bindings = Bindings::new().with("x", Value::from(&x));
        let program = Program::compile(&environment(), call, None).unwrap();
        let found = program.eval_cheaply(&bindings, 1000);
        assert_eq!(matches!(found.value, Err(EvalError::CostLimitExceeded)), !is_cheap, "{call}");
    }
}

#[test]
fn a_match_that_needs_too_much_cpu_time_is_an_error() {
    let bits = (0..300_000).scan(1_u32, |state, _| {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some(*state >> 31)
    });
    let text: String = bits.map(|bit| if bit == 0 { 'x' } else { '\u{e4}' }).collect();
    let x = json!({"s": text});
    for call in ["matches", "find", "findAll"] {
        let program =
            Program::compile(&environment(), &format!(r"x.s.{call}('x(x|\\p{{L}}){{500}}!')"), None);
        let (program, bindings) = (program.unwrap(), Bindings::new().with("x", Value::from(&x)));
        let error = program.eval(&bindings, PER_CALL_LIMIT).value.unwrap_err().to_string();
        assert!(error.starts_with("the pattern is too complex for a value of "), "{call}: {error}");
    }
}

#[test]
fn a_pattern_function_with_arguments_of_other_types_is_an_error() {
    let x = json!({"s": "a", "p": "a", "n": 1});
    for (call, expected) in [
        ("x.s.findAll(x.p, x.s)", "no such overload: findAll(string, string, string)"),
        ("x.s.find(x.n)", "no such overload: find(string, int)"),
        ("x.n.matches(x.p)", "no such overload: matches"),
        ("x.s.matches(x.n)", "no such overload"),
    ] {
        let program = Program::compile(&environment(), call, None).unwrap();
        let error =
            program.eval(&Bindings::new().with("x", Value::from(&x)), PER_CALL_LIMIT).value.unwrap_err();
        assert_eq!(error.to_string(), expected, "{call}");
    }
}

#[test]
fn patterns_of_a_list_are_compiled_once_and_within_the_budget() {
    let program = Program::compile(&environment(), "x.all(p, 'a'.matches(p) || true)", None).unwrap();
    let evaluate = |patterns: &[String]| {
        let x = json!(patterns);
        let evaluation = program.eval(&Bindings::new().with("x", Value::from(&x)), PER_CALL_LIMIT);
        (evaluation.value.map(|value| matches!(value, Value::Bool(true))), evaluation.cost)
    };
    let of = |pattern: &dyn Fn(usize) -> String| (0..100).map(pattern).collect::<Vec<_>>();
    let small = |at| format!("^[a-z0-9]{{1,{}}}$", at % 60 + 1);
    // Upstream's cost: the size of each pattern counts, and its compilation does not.
    let (value, cost) = evaluate(&of(&small));
    assert_eq!(value, Ok(true));
    assert_eq!(evaluate(&of(&|at| small(at).replace("a-z", "x-z"))).1, cost);
    let large = |at: usize| format!("\\p{{L}}{{1,{}}}", 100 + at);
    assert_eq!(evaluate(&of(&large)).0, Err(EvalError::CostLimitExceeded));
    assert_eq!(evaluate(&of(&|_| large(0))).0, Ok(true));
}
