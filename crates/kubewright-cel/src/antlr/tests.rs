//! Syntax errors and their messages, compared with cel-go.

use crate::parser::parse;

const START: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

/// Positions and messages of all errors.
fn errors(text: &str) -> Vec<String> {
    let Err(issues) = parse(text) else { panic!("{text} is an expression") };
    let shown = issues.to_string();
    let messages = shown.lines().filter_map(|line| line.strip_prefix("ERROR: <input>:"));
    messages.map(|message| message.replace("Syntax error: ", "").replace(START, "START")).collect()
}

#[test]
fn a_truncated_expression_misses_an_operand() {
    assert_eq!(errors("self.a +"), ["1:9: mismatched input '<EOF>' expecting START"]);
    assert_eq!(errors(""), ["1:1: mismatched input '<EOF>' expecting START"]);
    assert_eq!(
        errors("1 + +"),
        ["1:5: mismatched input '+' expecting START", "1:6: mismatched input '<EOF>' expecting START"]
    );
    assert_eq!(errors("foo."), ["1:5: no viable alternative at input '.'"]);
    assert_eq!(
        errors("-"),
        ["1:2: no viable alternative at input '-'", "1:2: mismatched input '<EOF>' expecting START"]
    );
    assert_eq!(
        errors("--"),
        ["1:3: no viable alternative at input '-'", "1:3: mismatched input '<EOF>' expecting START"]
    );
    assert_eq!(
        errors("{"),
        [
            "1:2: mismatched input '<EOF>' expecting {'[', '{', '}', '(', '.', ',', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
        ]
    );
}

#[test]
fn an_extra_token_is_deleted() {
    assert_eq!(errors("a b"), ["1:3: extraneous input 'b' expecting <EOF>"]);
    assert_eq!(
        errors("*@a | b"),
        [
            "1:1: extraneous input '*' expecting START",
            "1:2: token recognition error at: '@'",
            "1:5: token recognition error at: '| '",
            "1:7: extraneous input 'b' expecting <EOF>",
        ]
    );
    assert_eq!(
        errors("func{{a}}"),
        [
            "1:6: extraneous input '{' expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}",
            "1:8: mismatched input '}' expecting ':'",
            "1:9: extraneous input '}' expecting <EOF>",
        ]
    );
    assert_eq!(
        errors("msg{:a}"),
        [
            "1:5: extraneous input ':' expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}",
            "1:7: mismatched input '}' expecting ':'",
        ]
    );
    assert_eq!(errors("f(a])"), ["1:4: extraneous input ']' expecting ')'"]);
}

#[test]
fn a_mismatched_token_is_reported() {
    assert_eq!(
        errors("in"),
        ["1:1: mismatched input 'in' expecting START", "1:3: mismatched input '<EOF>' expecting START"]
    );
    assert_eq!(
        errors("?"),
        ["1:1: mismatched input '?' expecting START", "1:2: mismatched input '<EOF>' expecting START"]
    );
    assert_eq!(errors("{a}"), ["1:3: mismatched input '}' expecting ':'"]);
    assert_eq!(errors("ind[a{b}]"), ["1:8: mismatched input '}' expecting ':'"]);
    assert_eq!(
        errors("x{."),
        ["1:3: mismatched input '.' expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}"]
    );
    assert_eq!(errors("x{?."), ["1:4: mismatched input '.' expecting {IDENTIFIER, ESC_IDENTIFIER}"]);
    assert_eq!(errors("{1:305 2:569}"), ["1:8: mismatched input '2' expecting {'}', ','}"]);
    assert_eq!(
        errors("w.filter(l, !(lin r.labels))"),
        ["1:19: mismatched input 'r' expecting ')'", "1:28: extraneous input ')' expecting <EOF>",]
    );
    assert_eq!(errors("`b-c`"), ["1:1: mismatched input '`b-c`' expecting START"]);
    assert_eq!(
        errors("`b-c`()"),
        ["1:1: extraneous input '`b-c`' expecting START", "1:7: mismatched input ')' expecting START"]
    );
    assert_eq!(
        errors("a.`b.c`()"),
        ["1:3: unsupported syntax: '`'", "1:8: mismatched input '(' expecting <EOF>"]
    );
}

#[test]
fn literals_used_as_field_names_have_their_own_message() {
    assert_eq!(errors("self.true == 1"), ["1:6: mismatched input 'true' expecting IDENTIFIER"]);
    assert_eq!(errors("{\"a\": 1}.\"a\""), ["1:10: no viable alternative at input '.\"a\"'"]);
    assert_eq!(errors("...."), ["1:2: no viable alternative at input '..'"]);
    assert_eq!(
        errors("'x' in ['x']\n && in.😁"),
        [
            "2:5: extraneous input 'in' expecting START",
            "2:8: token recognition error at: '😁'",
            "2:9: no viable alternative at input '.'",
        ]
    );
}

#[test]
fn parsing_stops_after_too_many_recovery_attempts() {
    let hopeless = "a ? b ".to_owned() + &"(? ".repeat(40);
    assert!(
        errors(&hopeless).iter().any(|error| error.ends_with("error recovery attempt limit exceeded: 30"))
    );
    assert_eq!(
        errors("a ? b ((?))")[..2],
        ["1:9: mismatched input '?' expecting START", "1:10: mismatched input ')' expecting START"]
    );
}
