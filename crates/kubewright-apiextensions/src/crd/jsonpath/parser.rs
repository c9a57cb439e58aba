//! JSONPath parser.

use super::{Node, Slice};

/// Why a text is not a JSONPath.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// A line break or an opening brace.
    #[error("unclosed action")]
    Unclosed,
    /// An unexpected character.
    #[error("unrecognized character in action: {0:?}")]
    Character(char),
    /// `....`
    #[error("invalid multiple recursive descent")]
    Recursive,
    /// `[` without `]`.
    #[error("unterminated array")]
    Array,
    /// `[?(` without `)]`.
    #[error("unterminated filter")]
    Filter,
    /// An unclosed quote.
    #[error("unterminated quoted string")]
    Quote,
    /// Not an index, a slice or a key.
    #[error("invalid array index {0}")]
    Index(String),
    /// An invalid number.
    #[error("cannot parse number {0}")]
    Number(String),
}

/// Parses the content of `{...}`. Ignores text after a closing brace.
pub(super) fn parse(text: &str) -> Result<Vec<Node>, ParseError> {
    let mut parser = Parser { rest: text, nodes: Vec::new() };
    while parser.step()? {}
    Ok(parser.nodes)
}

struct Parser<'a> {
    rest: &'a str,
    nodes: Vec<Node>,
}

impl<'a> Parser<'a> {
    /// Parses one step. Returns false at the end.
    fn step(&mut self) -> Result<bool, ParseError> {
        let Some(c) = self.rest.chars().next() else { return Ok(false) };
        if self.rest.starts_with("[?(") {
            self.filter()?;
        } else if self.rest.starts_with("..") {
            self.recursive()?;
        } else {
            match c {
                '}' => return Ok(false),
                '\r' | '\n' => return Err(ParseError::Unclosed),
                ' ' | '@' | '$' => self.skip(1),
                '[' => self.array()?,
                '"' | '\'' => self.quoted(c)?,
                '.' => {
                    self.skip(1);
                    self.field();
                }
                '+' | '-' | '0'..='9' => self.number()?,
                c if c == '_' || c.is_alphanumeric() => self.identifier(),
                c => return Err(ParseError::Character(c)),
            }
        }
        Ok(true)
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }

    fn recursive(&mut self) -> Result<(), ParseError> {
        if self.nodes.last() == Some(&Node::Recursive) {
            return Err(ParseError::Recursive);
        }
        self.skip(2);
        self.nodes.push(Node::Recursive);
        if self.rest.starts_with(|c: char| c == '_' || c.is_alphanumeric()) {
            self.field();
        }
        Ok(())
    }

    fn field(&mut self) {
        let mut end = self.rest.len();
        let mut chars = self.rest.char_indices();
        while let Some((i, c)) = chars.next() {
            if c == '\\' {
                chars.next();
            } else if is_terminator(c) {
                end = i;
                break;
            }
        }
        let name = self.take(end);
        self.nodes.push(if name == "*" { Node::Wildcard } else { Node::Field(name.replace('\\', "")) });
    }

    fn identifier(&mut self) {
        let end = self.rest.find(is_terminator).unwrap_or(self.rest.len());
        let node = match self.take(end) {
            "true" => Node::Bool(true),
            "false" => Node::Bool(false),
            name => Node::Identifier(name.to_owned()),
        };
        self.nodes.push(node);
    }

    fn number(&mut self) -> Result<(), ParseError> {
        let digits = self.rest.trim_start_matches(['+', '-']);
        let sign = (self.rest.len() - digits.len()).min(1);
        let end = self.rest[sign..]
            .find(|c: char| c != '.' && !c.is_ascii_digit())
            .map_or(self.rest.len(), |end| end + sign);
        let text = self.take(end);
        let node = text.parse().map(Node::Integer).or_else(|_| text.parse().map(Node::Number));
        self.nodes.push(node.map_err(|_| ParseError::Number(text.to_owned()))?);
        Ok(())
    }

    fn quoted(&mut self, quote: char) -> Result<(), ParseError> {
        let inner = &self.rest[1..];
        let mut plain = String::new();
        let mut chars = inner.char_indices();
        while let Some((i, c)) = chars.next() {
            match c {
                '\n' => break,
                '\\' => match chars.next() {
                    Some((_, 'n')) => plain.push('\n'),
                    Some((_, 't')) => plain.push('\t'),
                    Some((_, 'r')) => plain.push('\r'),
                    Some((_, c)) => plain.push(c),
                    None => break,
                },
                c if c == quote => {
                    self.skip(i + 2);
                    self.nodes.push(Node::Text(plain));
                    return Ok(());
                }
                c => plain.push(c),
            }
        }
        Err(ParseError::Quote)
    }

    fn array(&mut self) -> Result<(), ParseError> {
        let end = self.rest.find([']', '\n']).filter(|end| self.rest.as_bytes()[*end] == b']');
        let inner = self.take(end.ok_or(ParseError::Array)? + 1);
        let inner = &inner[1..inner.len() - 1];
        let inner = if inner == "*" { ":" } else { inner };
        if inner.contains(',') {
            let parts: Result<_, _> =
                inner.split(',').map(|part| parse(&format!("[{}]", part.trim_matches(' ')))).collect();
            self.nodes.push(Node::Union(parts?));
            return Ok(());
        }
        let key = inner.strip_prefix('\'').and_then(|key| key.strip_suffix('\''));
        if let Some(key) = key.filter(|key| !key.contains('\'')) {
            self.nodes.extend(parse(&format!(".{key}"))?);
            return Ok(());
        }
        self.nodes.push(Node::Slice(slice(inner).ok_or_else(|| ParseError::Index(inner.to_owned()))?));
        Ok(())
    }

    fn filter(&mut self) -> Result<(), ParseError> {
        self.skip(3);
        let inner = self.take(self.filter_end().ok_or(ParseError::Filter)?);
        if !self.rest.starts_with(")]") {
            return Err(ParseError::Array);
        }
        self.skip(2);
        let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
        let split = inner.find(is_operator).filter(|start| *start > 0).and_then(|start| {
            let (left, rest) = inner.split_at(start);
            let end = rest.find(|c| !is_operator(c))?;
            let (operator, right) = rest.split_at(end);
            Some((left, operator, right))
        });
        self.nodes.push(match split {
            Some((left, operator, right)) => {
                Node::Filter { left: parse(left)?, operator: operator.to_owned(), right: parse(right)? }
            }
            None => Node::Filter { left: parse(inner)?, operator: "exists".to_owned(), right: Vec::new() },
        });
        Ok(())
    }

    /// The position of the closing parenthesis outside quotes.
    fn filter_end(&self) -> Option<usize> {
        let mut quote = None;
        let mut closed = false;
        let mut before = ' ';
        for (i, c) in self.rest.char_indices() {
            match c {
                '\n' => return None,
                '"' | '\'' => match quote {
                    None => quote = Some(c),
                    Some(open) => closed |= open == c && before != '\\',
                },
                ')' if quote.is_some() == closed => return Some(i),
                _ => {}
            }
            before = c;
        }
        None
    }
}

fn is_terminator(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

fn slice(text: &str) -> Option<Slice> {
    let mut parts = text.split(':');
    let number = |part: Option<&str>| match part {
        None | Some("") => Some(None),
        Some(part) => {
            let digits = part.strip_prefix('-').unwrap_or(part);
            let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| part.parse().ok()).flatten().map(Some)
        }
    };
    let from = number(parts.next())?;
    let to = parts.next();
    let step = number(parts.next())?;
    if parts.next().is_some() {
        return None;
    }
    let single = to.is_none();
    let to = if single { Some(from.unwrap_or_default() + 1) } else { number(to)? };
    Some(Slice { from, to, single, step })
}
