//! Parser: tokens to syntax tree.
//!
//! Accepts exactly cel-go's grammar with optional syntax. [`parse`] stops at the first syntax error;
//! [`super::antlr`] then parses the text again to produce cel-go's error messages. Other errors, such as
//! reserved identifiers, are reported here and do not stop the parser.

mod literal;

use super::antlr;
use super::ast::{Call, Element, Entry, Expr, Field, Id, Kind, Literal, Select, Struct};
use super::escape::is_reserved;
use super::lexer::{self, Kind as TokenKind, Token};
use super::macros;
use super::source::{Issues, Source};

/// Maximum nesting depth, and maximum length of a chain of equal operators.
const MAX_DEPTH: usize = 250;

/// Maximum length of an expression in characters.
const MAX_LENGTH: usize = 100_000;

/// A syntax tree and the source positions of its nodes.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) root: Expr,
    /// Indexed by node ID.
    pub(crate) positions: Vec<usize>,
}

/// Parses `text`.
pub(crate) fn parse(text: &str) -> Result<Parsed, Issues> {
    let source = Source::new(text);
    let mut issues = Issues::new(source.clone());
    if source.chars().len() > MAX_LENGTH {
        let length = source.chars().len();
        issues.report_nowhere(format!(
            "expression code point size exceeds limit: size: {length}, limit {MAX_LENGTH}"
        ));
        return Err(issues);
    }
    let tokens = lexer::tokens(&source, &mut issues);
    let mut parser = Parser {
        source: &source,
        tokens: &tokens,
        at: 0,
        depth: 0,
        positions: Positions::default(),
        issues: &mut issues,
    };
    let root = parser.start();
    let positions = parser.positions.0;
    match root {
        Ok(root) if issues.is_empty() => return Ok(Parsed { root, positions }),
        Ok(_) => {}
        Err(Fault::Syntax) => antlr::report(&source, &tokens, &mut issues),
        Err(Fault::TooDeep) => {
            issues.report_nowhere(format!("expression recursion limit exceeded: {MAX_DEPTH}"));
        }
        Err(Fault::TooLong) => issues.report_nowhere("max recursion depth exceeded"),
    }
    Err(issues)
}

/// Source positions, indexed by node ID.
#[derive(Debug, Default)]
pub(crate) struct Positions(Vec<usize>);

impl Positions {
    /// Allocates an ID for a node at `offset`.
    pub(crate) fn next(&mut self, offset: usize) -> Id {
        self.0.push(offset);
        self.0.len() - 1
    }

    pub(crate) fn of(&self, id: Id) -> usize {
        self.0[id]
    }
}

/// Why parsing failed.
#[derive(Debug)]
enum Fault {
    Syntax,
    /// The nesting is too deep.
    TooDeep,
    /// A chain of operators is too long.
    TooLong,
}

type Parse<T> = Result<T, Fault>;

struct Parser<'a> {
    source: &'a Source,
    tokens: &'a [Token],
    at: usize,
    depth: usize,
    positions: Positions,
    issues: &'a mut Issues,
}

impl Parser<'_> {
    fn start(&mut self) -> Parse<Expr> {
        let root = self.expr()?;
        self.expect(TokenKind::End)?;
        Ok(root)
    }

    fn expr(&mut self) -> Parse<Expr> {
        self.depth += 1;
        if self.depth >= MAX_DEPTH {
            return Err(Fault::TooDeep);
        }
        let mut result = self.logical(TokenKind::Or, "_||_")?;
        if let Some(question) = self.accept(TokenKind::Question) {
            let id = self.node_at(&question);
            let then = self.logical(TokenKind::Or, "_||_")?;
            self.expect(TokenKind::Colon)?;
            let otherwise = self.expr()?;
            result = call(id, "_?_:_", None, vec![result, then, otherwise]);
        }
        self.depth -= 1;
        Ok(result)
    }

    /// Parses a chain of `||` or `&&` into a balanced tree.
    fn logical(&mut self, operator: TokenKind, function: &str) -> Parse<Expr> {
        let mut terms = vec![Some(self.term(operator)?)];
        let mut ids = Vec::new();
        while let Some(token) = self.accept(operator) {
            let term = self.term(operator)?;
            ids.push(self.node_at(&token));
            terms.push(Some(term));
        }
        Ok(balanced(&mut terms, &ids, function))
    }

    fn term(&mut self, operator: TokenKind) -> Parse<Expr> {
        if operator == TokenKind::Or { self.logical(TokenKind::And, "_&&_") } else { self.binary(0) }
    }

    /// Parses operators with at least the precedence `level`.
    fn binary(&mut self, level: usize) -> Parse<Expr> {
        const LEVELS: [fn(TokenKind) -> Option<&'static str>; 3] = [relation, sum, product];
        let Some(operator) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        let mut length = 0;
        while let Some(function) = operator(self.peek()) {
            length += 1;
            if length > MAX_DEPTH {
                return Err(Fault::TooLong);
            }
            let token = self.next();
            let id = self.node_at(&token);
            let right = self.binary(level + 1)?;
            left = call(id, function, None, vec![left, right]);
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parse<Expr> {
        let (operator, function) = match self.peek() {
            TokenKind::Exclam => (TokenKind::Exclam, "!_"),
            // A minus sign before a number literal belongs to the literal.
            TokenKind::Minus if !matches!(self.peek_second(), TokenKind::Int | TokenKind::Float) => {
                (TokenKind::Minus, "-_")
            }
            _ => return self.member(),
        };
        let first = self.next();
        let mut count = 1;
        while self.accept(operator).is_some() {
            count += 1;
        }
        if count % 2 == 0 {
            return self.member();
        }
        let id = self.node_at(&first);
        let operand = self.member()?;
        Ok(call(id, function, None, vec![operand]))
    }

    fn member(&mut self) -> Parse<Expr> {
        let mut operand = self.primary()?;
        for _ in 0..=MAX_DEPTH {
            operand = match self.peek() {
                TokenKind::Dot => self.after_dot(operand)?,
                TokenKind::LeftBracket => {
                    let open = self.next();
                    let optional = self.accept(TokenKind::Question).is_some();
                    let id = self.node_at(&open);
                    let index = self.expr()?;
                    self.expect(TokenKind::RightBracket)?;
                    call(id, if optional { "_[?_]" } else { "_[_]" }, None, vec![operand, index])
                }
                _ => return Ok(operand),
            };
        }
        Err(Fault::TooLong)
    }

    fn after_dot(&mut self, operand: Expr) -> Parse<Expr> {
        let dot = self.next();
        let optional = self.accept(TokenKind::Question).is_some();
        let token = self.next();
        match token.kind {
            TokenKind::Identifier => {}
            TokenKind::EscapedIdentifier => {
                self.issues.report(token.start, "unsupported syntax: '`'");
                return Ok(self.error_at(&token));
            }
            _ => return Err(Fault::Syntax),
        }
        let name = self.text(&token);
        if optional {
            let id = self.node_at(&dot);
            let field = Expr { id: self.node_at(&token), kind: Kind::Literal(Literal::String(name)) };
            return Ok(call(id, "_?._", None, vec![operand, field]));
        }
        let Some(open) = self.accept(TokenKind::LeftParen) else {
            let id = self.node_at(&dot);
            let select = Select { operand, field: name, test_only: false };
            return Ok(Expr { id, kind: Kind::Select(Box::new(select)) });
        };
        let id = self.node_at(&open);
        let args = self.arguments()?;
        Ok(macros::expand(&mut self.positions, self.issues, id, name, Some(operand), args))
    }

    fn primary(&mut self) -> Parse<Expr> {
        match self.peek() {
            TokenKind::LeftParen => {
                self.next();
                let inner = self.expr()?;
                self.expect(TokenKind::RightParen)?;
                Ok(inner)
            }
            TokenKind::LeftBracket => self.list(),
            TokenKind::LeftBrace => {
                let open = self.next();
                let id = self.node_at(&open);
                Ok(Expr { id, kind: Kind::Map(self.entries()?) })
            }
            TokenKind::Dot | TokenKind::Identifier => self.named(),
            _ => self.literal(),
        }
    }

    fn list(&mut self) -> Parse<Expr> {
        let open = self.next();
        let id = self.node_at(&open);
        let mut elements = Vec::new();
        while self.accept(TokenKind::RightBracket).is_none() {
            if !elements.is_empty() {
                self.expect(TokenKind::Comma)?;
                if self.accept(TokenKind::RightBracket).is_some() {
                    break;
                }
            } else if self.accept(TokenKind::Comma).is_some() {
                self.expect(TokenKind::RightBracket)?;
                break;
            }
            let optional = self.accept(TokenKind::Question).is_some();
            elements.push(Element { value: self.expr()?, optional });
        }
        Ok(Expr { id, kind: Kind::List(elements) })
    }

    fn entries(&mut self) -> Parse<Vec<Entry>> {
        let mut entries = Vec::new();
        self.separated(TokenKind::RightBrace, |parser| {
            let optional = parser.accept(TokenKind::Question).is_some();
            let key = parser.expr()?;
            parser.expect(TokenKind::Colon)?;
            entries.push(Entry { key, value: parser.expr()?, optional });
            Ok(())
        })?;
        Ok(entries)
    }

    /// Parses comma-separated items up to `close`. Allows a trailing comma.
    fn separated(&mut self, close: TokenKind, mut item: impl FnMut(&mut Self) -> Parse<()>) -> Parse<()> {
        if self.peek() != close && self.peek() != TokenKind::Comma {
            item(self)?;
            while self.peek() == TokenKind::Comma && self.peek_second() != close {
                self.next();
                item(self)?;
            }
        }
        self.accept(TokenKind::Comma);
        self.expect(close)?;
        Ok(())
    }

    fn named(&mut self) -> Parse<Expr> {
        let start = self.tokens[self.at].clone();
        if self.is_struct() {
            return self.made_struct();
        }
        let dot = self.accept(TokenKind::Dot).map_or("", |_| ".");
        let token = self.expect(TokenKind::Identifier)?;
        let name = self.text(&token);
        let open = self.accept(TokenKind::LeftParen);
        if is_reserved(&name) {
            self.issues.report(start.start, format!("reserved identifier: {name}"));
            if open.is_some() {
                self.arguments()?;
            }
            return Ok(self.error_at(&start));
        }
        let name = format!("{dot}{name}");
        let Some(open) = open else {
            return Ok(Expr { id: self.node_at(&token), kind: Kind::Ident(name) });
        };
        let id = self.node_at(&open);
        let args = self.arguments()?;
        Ok(macros::expand(&mut self.positions, self.issues, id, name, None, args))
    }

    /// Whether a qualified name and an opening brace follow.
    fn is_struct(&self) -> bool {
        let mut tokens = self.tokens[self.at..].iter().map(|token| token.kind).peekable();
        tokens.next_if_eq(&TokenKind::Dot);
        loop {
            if tokens.next() != Some(TokenKind::Identifier) {
                return false;
            }
            match tokens.next() {
                Some(TokenKind::LeftBrace) => return true,
                Some(TokenKind::Dot) => {}
                _ => return false,
            }
        }
    }

    fn made_struct(&mut self) -> Parse<Expr> {
        let mut name = self.accept(TokenKind::Dot).map_or_else(String::new, |_| ".".to_owned());
        let open = loop {
            let token = self.expect(TokenKind::Identifier)?;
            name.push_str(&self.text(&token));
            if let Some(open) = self.accept(TokenKind::LeftBrace) {
                break open;
            }
            self.expect(TokenKind::Dot)?;
            name.push('.');
        };
        let id = self.node_at(&open);
        let mut fields = Vec::new();
        self.separated(TokenKind::RightBrace, |parser| {
            let optional = parser.accept(TokenKind::Question).is_some();
            let token = parser.next();
            if token.kind == TokenKind::EscapedIdentifier {
                parser.issues.report(token.start, "unsupported syntax: '`'");
            } else if token.kind != TokenKind::Identifier {
                return Err(Fault::Syntax);
            }
            let name = parser.text(&token);
            let colon = parser.expect(TokenKind::Colon)?;
            let id = parser.node_at(&colon);
            fields.push(Field { id, name, value: parser.expr()?, optional });
            Ok(())
        })?;
        Ok(Expr { id, kind: Kind::Struct(Box::new(Struct { name, fields })) })
    }

    fn arguments(&mut self) -> Parse<Vec<Expr>> {
        let mut args = Vec::new();
        if self.accept(TokenKind::RightParen).is_some() {
            return Ok(args);
        }
        loop {
            args.push(self.expr()?);
            if self.accept(TokenKind::RightParen).is_some() {
                return Ok(args);
            }
            self.expect(TokenKind::Comma)?;
        }
    }

    fn literal(&mut self) -> Parse<Expr> {
        let start = self.tokens[self.at].clone();
        let sign = self.accept(TokenKind::Minus).map_or("", |_| "-");
        let token = self.next();
        let text = self.text(&token);
        let read = match token.kind {
            TokenKind::Int => literal::int(sign, &text),
            TokenKind::Float => literal::double(sign, &text),
            _ if !sign.is_empty() => return Err(Fault::Syntax),
            TokenKind::Uint => literal::uint(&text),
            TokenKind::String => literal::string(&text),
            TokenKind::Bytes => literal::bytes(&text),
            TokenKind::True => Ok(Literal::Bool(true)),
            TokenKind::False => Ok(Literal::Bool(false)),
            TokenKind::Null => Ok(Literal::Null),
            _ => return Err(Fault::Syntax),
        };
        let id = self.node_at(&start);
        match read {
            Ok(literal) => Ok(Expr { id, kind: Kind::Literal(literal) }),
            Err(message) => {
                self.issues.report(start.start, message);
                Ok(Expr { id, kind: Kind::Error })
            }
        }
    }

    fn peek(&self) -> TokenKind {
        self.tokens[self.at].kind
    }

    fn peek_second(&self) -> TokenKind {
        self.tokens.get(self.at + 1).map_or(TokenKind::End, |token| token.kind)
    }

    fn next(&mut self) -> Token {
        let token = self.tokens[self.at].clone();
        if token.kind != TokenKind::End {
            self.at += 1;
        }
        token
    }

    fn accept(&mut self, kind: TokenKind) -> Option<Token> {
        (self.peek() == kind).then(|| self.next())
    }

    fn expect(&mut self, kind: TokenKind) -> Parse<Token> {
        self.accept(kind).ok_or(Fault::Syntax)
    }

    fn text(&self, token: &Token) -> String {
        self.source.chars()[token.start..token.end].iter().collect()
    }

    fn node_at(&mut self, token: &Token) -> Id {
        self.positions.next(token.start)
    }

    fn error_at(&mut self, token: &Token) -> Expr {
        Expr { id: self.node_at(token), kind: Kind::Error }
    }
}

/// Builds a call node.
pub(crate) fn call(id: Id, function: &str, target: Option<Expr>, args: Vec<Expr>) -> Expr {
    Expr { id, kind: Kind::Call(Box::new(Call { function: function.to_owned(), target, args })) }
}

fn balanced(terms: &mut [Option<Expr>], ids: &[Id], function: &str) -> Expr {
    if ids.is_empty() {
        return terms[0].take().unwrap_or(Expr { id: 0, kind: Kind::Error });
    }
    let middle = ids.len() / 2;
    let (left, right) = terms.split_at_mut(middle + 1);
    let left = balanced(left, &ids[..middle], function);
    let right = balanced(right, &ids[middle + 1..], function);
    call(ids[middle], function, None, vec![left, right])
}

fn relation(token: TokenKind) -> Option<&'static str> {
    match token {
        TokenKind::Less => Some("_<_"),
        TokenKind::LessEquals => Some("_<=_"),
        TokenKind::Greater => Some("_>_"),
        TokenKind::GreaterEquals => Some("_>=_"),
        TokenKind::Equals => Some("_==_"),
        TokenKind::NotEquals => Some("_!=_"),
        TokenKind::In => Some("@in"),
        _ => None,
    }
}

fn sum(token: TokenKind) -> Option<&'static str> {
    match token {
        TokenKind::Plus => Some("_+_"),
        TokenKind::Minus => Some("_-_"),
        _ => None,
    }
}

fn product(token: TokenKind) -> Option<&'static str> {
    match token {
        TokenKind::Star => Some("_*_"),
        TokenKind::Slash => Some("_/_"),
        TokenKind::Percent => Some("_%_"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
