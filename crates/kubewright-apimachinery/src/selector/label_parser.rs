//! Parser of label selectors in queries.
//!
//! Works on tokens. `in` and `notin` are operators only where an operator is expected, so they are also valid
//! keys and values. Each error has upstream's text.

use std::collections::BTreeSet;

use super::label::{LabelSelectorError, Operator, Requirement, check_key};

/// Parses the requirements, in the order of the text.
pub(super) fn parse(selector: &str) -> Result<Vec<Requirement>, LabelSelectorError> {
    let mut parser = Parser { tokens: tokens(selector), at: 0 };
    parser.requirements().map_err(LabelSelectorError)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    End,
    Symbol,
    Identifier,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Token<'a> {
    kind: Kind,
    text: &'a str,
}

impl Token<'_> {
    fn is(self, symbol: &str) -> bool {
        self.kind == Kind::Symbol && self.text == symbol
    }

    fn is_identifier(self) -> bool {
        self.kind == Kind::Identifier
    }

    fn is_end(self) -> bool {
        self.kind == Kind::End
    }
}

const END: Token<'static> = Token { kind: Kind::End, text: "" };

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn is_symbol(byte: u8) -> bool {
    matches!(byte, b'=' | b'!' | b'(' | b')' | b',' | b'>' | b'<')
}

fn tokens(selector: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = selector.trim_start_matches([' ', '\t', '\r', '\n']);
    while let Some(first) = rest.bytes().next() {
        let (kind, len) = match first {
            _ if rest.starts_with("==") || rest.starts_with("!=") => (Kind::Symbol, 2),
            _ if is_symbol(first) => (Kind::Symbol, 1),
            _ => {
                let end = rest.bytes().position(|byte| is_symbol(byte) || is_space(byte));
                (Kind::Identifier, end.unwrap_or(rest.len()))
            }
        };
        let (text, after) = rest.split_at(len);
        tokens.push(Token { kind, text });
        rest = after.trim_start_matches([' ', '\t', '\r', '\n']);
    }
    tokens
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.at).copied().unwrap_or(END)
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn requirements(&mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        if self.peek().is_end() {
            return Ok(requirements);
        }
        if !self.at_requirement() {
            let found = self.peek().text;
            return Err(format!("found '{found}', expected: !, identifier, or 'end of string'"));
        }
        loop {
            let requirement = self.requirement();
            requirements.push(requirement.map_err(|e| format!("unable to parse requirement: {e}"))?);
            let token = self.next();
            if token.is_end() {
                return Ok(requirements);
            }
            if !token.is(",") {
                return Err(format!("found '{}', expected: ',' or 'end of string'", token.text));
            }
            if !self.at_requirement() {
                return Err(format!("found '{}', expected: identifier after ','", self.peek().text));
            }
        }
    }

    fn at_requirement(&self) -> bool {
        self.peek().is_identifier() || self.peek().is("!")
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let mut token = self.next();
        let negated = token.is("!");
        if negated {
            token = self.next();
        }
        if !token.is_identifier() {
            return Err(format!("found '{}', expected: identifier", token.text));
        }
        let key = token.text.to_owned();
        let mut errors = Vec::new();
        check_key(&key, "<nil>", &mut errors);
        if let Some(error) = errors.pop() {
            return Err(error);
        }
        let (operator, values) = if negated {
            (Operator::DoesNotExist, BTreeSet::new())
        } else if self.peek().is_end() || self.peek().is(",") {
            (Operator::Exists, BTreeSet::new())
        } else {
            let operator = self.operator()?;
            let values = match operator {
                Operator::In | Operator::NotIn => self.values()?,
                _ => BTreeSet::from([self.exact_value()?]),
            };
            (operator, values)
        };
        let values = values.into_iter().map(str::to_owned).collect();
        Requirement::new(key, operator, values).map_err(|error| error.0)
    }

    fn operator(&mut self) -> Result<Operator, String> {
        let token = self.next();
        Ok(match token.text {
            "in" => Operator::In,
            "notin" => Operator::NotIn,
            "=" => Operator::Equals,
            "==" => Operator::DoubleEquals,
            "!=" => Operator::NotEquals,
            ">" => Operator::GreaterThan,
            "<" => Operator::LessThan,
            found => return Err(format!("found '{found}', expected: in, notin, =, ==, !=, gt, lt")),
        })
    }

    /// The value after `=`, `==` or `!=`; may be empty.
    fn exact_value(&mut self) -> Result<&'a str, String> {
        if self.peek().is_end() || self.peek().is(",") {
            return Ok("");
        }
        let token = self.next();
        if !token.is_identifier() {
            return Err(format!("found '{}', expected: identifier", token.text));
        }
        Ok(token.text)
    }

    /// The values in parentheses. A missing value next to a comma is the empty one.
    fn values(&mut self) -> Result<BTreeSet<&'a str>, String> {
        let open = self.next();
        if !open.is("(") {
            return Err(format!("found '{}' expected: '('", open.text));
        }
        let first = self.peek();
        if first.is(")") {
            self.next();
            return Ok(BTreeSet::from([""]));
        }
        if !first.is_identifier() && !first.is(",") {
            return Err(format!("found '{}', expected: ',', ')' or identifier", first.text));
        }
        let mut values = BTreeSet::new();
        loop {
            let token = self.next();
            let following = self.peek();
            if token.is_identifier() {
                values.insert(token.text);
                if !following.is(",") && !following.is(")") {
                    return Err(format!("found '{}', expected: ',' or ')'", following.text));
                }
            } else if token.is(",") {
                if values.is_empty() || following.is(",") || following.is(")") {
                    values.insert("");
                }
            } else {
                return Err(format!("found '{}', expected: ',', or identifier", token.text));
            }
            if following.is(")") {
                self.next();
                return Ok(values);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(selector: &str) -> String {
        let requirements = parse(selector).expect(selector);
        requirements.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    }

    fn error(selector: &str) -> String {
        parse(selector).expect_err(selector).to_string()
    }

    #[test]
    fn every_requirement_syntax_is_parsed() {
        for (selector, text) in [
            ("", ""),
            ("   ", ""),
            ("a", "a"),
            ("!a", "!a"),
            (" ! a , b ", "!a,b"),
            ("a=b", "a=b"),
            ("a == b", "a==b"),
            ("a!=b", "a!=b"),
            ("a=", "a="),
            ("a==", "a=="),
            ("a=,b", "a=,b"),
            ("a>1,b<2", "a>1,b<2"),
            ("a in (x,y)", "a in (x,y)"),
            ("a in(x)", "a in (x)"),
            ("a in (y, x,y)", "a in (x,y)"),
            ("a notin ()", "a notin ()"),
            ("a in (,)", "a in ()"),
            ("a in (x,)", "a in (,x)"),
            ("a in (,x)", "a in (,x)"),
            ("a in (x,,y)", "a in (,x,y)"),
            ("in in (in,notin)", "in in (in,notin)"),
            ("notin=in", "notin=in"),
            ("!in", "!in"),
            ("example.com/a=b", "example.com/a=b"),
        ] {
            assert_eq!(canonical(selector), text, "{selector:?}");
        }
    }

    #[test]
    fn errors_have_upstreams_text() {
        for (selector, message) in [
            ("a in b", "unable to parse requirement: found 'b' expected: '('"),
            ("a in", "unable to parse requirement: found '' expected: '('"),
            ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
            ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
            ("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier"),
            ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
            ("a in (=)", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
            ("a in (b,=)", "unable to parse requirement: found '=', expected: ',', or identifier"),
            ("!", "unable to parse requirement: found '', expected: identifier"),
            ("!=a", "found '!=', expected: !, identifier, or 'end of string'"),
            ("!!a", "unable to parse requirement: found '!', expected: identifier"),
            ("!a=b", "found '=', expected: ',' or 'end of string'"),
            ("a=b c", "found 'c', expected: ',' or 'end of string'"),
            ("a=(b)", "unable to parse requirement: found '(', expected: identifier"),
            ("x y", "unable to parse requirement: found 'y', expected: in, notin, =, ==, !=, gt, lt"),
            ("a(", "unable to parse requirement: found '(', expected: in, notin, =, ==, !=, gt, lt"),
            ("=b", "found '=', expected: !, identifier, or 'end of string'"),
            (",", "found ',', expected: !, identifier, or 'end of string'"),
            ("a,", "found '', expected: identifier after ','"),
            ("a,,b", "found ',', expected: identifier after ','"),
            ("a=b,=", "found '=', expected: identifier after ','"),
            (
                "a>x",
                "unable to parse requirement: values[0]: Invalid value: \"x\": \
                 for 'Gt', 'Lt' operators, the value must be an integer",
            ),
        ] {
            assert_eq!(error(selector), message, "{selector:?}");
        }
    }

    #[test]
    fn keys_and_values_are_validated() {
        insta::assert_snapshot!(error("-a=b"), @r#"unable to parse requirement: <nil>: Invalid value: "-a": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#);
        insta::assert_snapshot!(error("a=b@"), @r#"unable to parse requirement: values[0][a]: Invalid value: "b@": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"#);
    }
}
