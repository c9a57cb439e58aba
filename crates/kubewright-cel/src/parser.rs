//! From words to a syntax tree.
//!
//! Accepts exactly cel-go's grammar with optional syntax. A text outside of it makes [`parse`] give up at
//! once; [`super::antlr`] then reads it again and words the errors. Errors of meaning, such as a reserved
//! name, are reported here and do not stop the parser.

mod literal;

use super::antlr;
use super::ast::{Call, Element, Entry, Expr, Field, Id, Kind, Literal, Select, Struct};
use super::escape::is_reserved;
use super::lexer::{self, Kind as Token, Token as Word};
use super::macros;
use super::source::{Issues, Source};

/// How deep expressions may be nested, and how long a chain of equal operators may be.
const MAX_DEPTH: usize = 250;

/// How long an expression may be.
const MAX_LENGTH: usize = 100_000;

/// A tree, and where its nodes stand in the text.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) root: Expr,
    /// By the number of the node.
    pub(crate) positions: Vec<usize>,
}

/// The tree of `text`, or what is wrong with it.
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
    let words = lexer::tokens(&source, &mut issues);
    let mut parser = Parser {
        source: &source,
        words: &words,
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
        Err(Fault::Syntax) => antlr::report(&source, &words, &mut issues),
        Err(Fault::TooDeep) => {
            issues.report_nowhere(format!("expression recursion limit exceeded: {MAX_DEPTH}"));
        }
        Err(Fault::TooLong) => issues.report_nowhere("max recursion depth exceeded"),
    }
    Err(issues)
}

/// Where nodes stand in the text, by their number.
#[derive(Debug, Default)]
pub(crate) struct Positions(Vec<usize>);

impl Positions {
    /// A new number, for a node at `offset`.
    pub(crate) fn next(&mut self, offset: usize) -> Id {
        self.0.push(offset);
        self.0.len() - 1
    }

    pub(crate) fn of(&self, id: Id) -> usize {
        self.0[id]
    }
}

/// Why there is no tree.
#[derive(Debug)]
enum Fault {
    Syntax,
    /// Too many brackets within each other.
    TooDeep,
    /// Too many operators in a row.
    TooLong,
}

type Parse<T> = Result<T, Fault>;

struct Parser<'a> {
    source: &'a Source,
    words: &'a [Word],
    at: usize,
    depth: usize,
    positions: Positions,
    issues: &'a mut Issues,
}

impl Parser<'_> {
    fn start(&mut self) -> Parse<Expr> {
        let root = self.expr()?;
        self.expect(Token::End)?;
        Ok(root)
    }

    fn expr(&mut self) -> Parse<Expr> {
        self.depth += 1;
        if self.depth >= MAX_DEPTH {
            return Err(Fault::TooDeep);
        }
        let mut result = self.logical(Token::Or, "_||_")?;
        if let Some(question) = self.accept(Token::Question) {
            let id = self.node_at(&question);
            let then = self.logical(Token::Or, "_||_")?;
            self.expect(Token::Colon)?;
            let otherwise = self.expr()?;
            result = call(id, "_?_:_", None, vec![result, then, otherwise]);
        }
        self.depth -= 1;
        Ok(result)
    }

    /// A chain of `||` or `&&` as a balanced tree.
    fn logical(&mut self, operator: Token, function: &str) -> Parse<Expr> {
        let mut terms = vec![Some(self.term(operator)?)];
        let mut ids = Vec::new();
        while let Some(word) = self.accept(operator) {
            let term = self.term(operator)?;
            ids.push(self.node_at(&word));
            terms.push(Some(term));
        }
        Ok(balanced(&mut terms, &ids, function))
    }

    fn term(&mut self, operator: Token) -> Parse<Expr> {
        if operator == Token::Or { self.logical(Token::And, "_&&_") } else { self.binary(0) }
    }

    /// A chain of operators that bind at least as strongly as `level`.
    fn binary(&mut self, level: usize) -> Parse<Expr> {
        const LEVELS: [fn(Token) -> Option<&'static str>; 3] = [relation, sum, product];
        let Some(operator) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        let mut length = 0;
        while let Some(function) = operator(self.peek()) {
            length += 1;
            if length > MAX_DEPTH {
                return Err(Fault::TooLong);
            }
            let word = self.next();
            let id = self.node_at(&word);
            let right = self.binary(level + 1)?;
            left = call(id, function, None, vec![left, right]);
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parse<Expr> {
        let (operator, function) = match self.peek() {
            Token::Exclam => (Token::Exclam, "!_"),
            // A sign before a number is part of it.
            Token::Minus if !matches!(self.peek_second(), Token::Int | Token::Float) => (Token::Minus, "-_"),
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
                Token::Dot => self.after_dot(operand)?,
                Token::LeftBracket => {
                    let open = self.next();
                    let optional = self.accept(Token::Question).is_some();
                    let id = self.node_at(&open);
                    let index = self.expr()?;
                    self.expect(Token::RightBracket)?;
                    call(id, if optional { "_[?_]" } else { "_[_]" }, None, vec![operand, index])
                }
                _ => return Ok(operand),
            };
        }
        Err(Fault::TooLong)
    }

    fn after_dot(&mut self, operand: Expr) -> Parse<Expr> {
        let dot = self.next();
        let optional = self.accept(Token::Question).is_some();
        let word = self.next();
        match word.kind {
            Token::Identifier => {}
            Token::EscapedIdentifier => {
                self.issues.report(word.start, "unsupported syntax: '`'");
                return Ok(self.error_at(&word));
            }
            _ => return Err(Fault::Syntax),
        }
        let name = self.text(&word);
        if optional {
            let id = self.node_at(&dot);
            let field = Expr { id: self.node_at(&word), kind: Kind::Literal(Literal::String(name)) };
            return Ok(call(id, "_?._", None, vec![operand, field]));
        }
        let Some(open) = self.accept(Token::LeftParen) else {
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
            Token::LeftParen => {
                self.next();
                let inner = self.expr()?;
                self.expect(Token::RightParen)?;
                Ok(inner)
            }
            Token::LeftBracket => self.list(),
            Token::LeftBrace => {
                let open = self.next();
                let id = self.node_at(&open);
                Ok(Expr { id, kind: Kind::Map(self.entries()?) })
            }
            Token::Dot | Token::Identifier => self.named(),
            _ => self.literal(),
        }
    }

    fn list(&mut self) -> Parse<Expr> {
        let open = self.next();
        let id = self.node_at(&open);
        let mut elements = Vec::new();
        while self.accept(Token::RightBracket).is_none() {
            if !elements.is_empty() {
                self.expect(Token::Comma)?;
                if self.accept(Token::RightBracket).is_some() {
                    break;
                }
            } else if self.accept(Token::Comma).is_some() {
                self.expect(Token::RightBracket)?;
                break;
            }
            let optional = self.accept(Token::Question).is_some();
            elements.push(Element { value: self.expr()?, optional });
        }
        Ok(Expr { id, kind: Kind::List(elements) })
    }

    fn entries(&mut self) -> Parse<Vec<Entry>> {
        let mut entries = Vec::new();
        self.separated(Token::RightBrace, |parser| {
            let optional = parser.accept(Token::Question).is_some();
            let key = parser.expr()?;
            parser.expect(Token::Colon)?;
            entries.push(Entry { key, value: parser.expr()?, optional });
            Ok(())
        })?;
        Ok(entries)
    }

    /// What stands between commas up to `close`; one more comma may come last.
    fn separated(&mut self, close: Token, mut item: impl FnMut(&mut Self) -> Parse<()>) -> Parse<()> {
        if self.peek() != close && self.peek() != Token::Comma {
            item(self)?;
            while self.peek() == Token::Comma && self.peek_second() != close {
                self.next();
                item(self)?;
            }
        }
        self.accept(Token::Comma);
        self.expect(close)?;
        Ok(())
    }

    fn named(&mut self) -> Parse<Expr> {
        let start = self.words[self.at].clone();
        if self.is_struct() {
            return self.made_struct();
        }
        let dot = self.accept(Token::Dot).map_or("", |_| ".");
        let word = self.expect(Token::Identifier)?;
        let name = self.text(&word);
        let open = self.accept(Token::LeftParen);
        if is_reserved(&name) {
            self.issues.report(start.start, format!("reserved identifier: {name}"));
            if open.is_some() {
                self.arguments()?;
            }
            return Ok(self.error_at(&start));
        }
        let name = format!("{dot}{name}");
        let Some(open) = open else {
            return Ok(Expr { id: self.node_at(&word), kind: Kind::Ident(name) });
        };
        let id = self.node_at(&open);
        let args = self.arguments()?;
        Ok(macros::expand(&mut self.positions, self.issues, id, name, None, args))
    }

    /// Whether a name with dots and then a brace follows.
    fn is_struct(&self) -> bool {
        let mut words = self.words[self.at..].iter().map(|word| word.kind).peekable();
        words.next_if_eq(&Token::Dot);
        loop {
            if words.next() != Some(Token::Identifier) {
                return false;
            }
            match words.next() {
                Some(Token::LeftBrace) => return true,
                Some(Token::Dot) => {}
                _ => return false,
            }
        }
    }

    fn made_struct(&mut self) -> Parse<Expr> {
        let mut name = self.accept(Token::Dot).map_or_else(String::new, |_| ".".to_owned());
        let open = loop {
            let word = self.expect(Token::Identifier)?;
            name.push_str(&self.text(&word));
            if let Some(open) = self.accept(Token::LeftBrace) {
                break open;
            }
            self.expect(Token::Dot)?;
            name.push('.');
        };
        let id = self.node_at(&open);
        let mut fields = Vec::new();
        self.separated(Token::RightBrace, |parser| {
            let optional = parser.accept(Token::Question).is_some();
            let word = parser.next();
            if word.kind == Token::EscapedIdentifier {
                parser.issues.report(word.start, "unsupported syntax: '`'");
            } else if word.kind != Token::Identifier {
                return Err(Fault::Syntax);
            }
            let name = parser.text(&word);
            let colon = parser.expect(Token::Colon)?;
            let id = parser.node_at(&colon);
            fields.push(Field { id, name, value: parser.expr()?, optional });
            Ok(())
        })?;
        Ok(Expr { id, kind: Kind::Struct(Box::new(Struct { name, fields })) })
    }

    fn arguments(&mut self) -> Parse<Vec<Expr>> {
        let mut args = Vec::new();
        if self.accept(Token::RightParen).is_some() {
            return Ok(args);
        }
        loop {
            args.push(self.expr()?);
            if self.accept(Token::RightParen).is_some() {
                return Ok(args);
            }
            self.expect(Token::Comma)?;
        }
    }

    fn literal(&mut self) -> Parse<Expr> {
        let start = self.words[self.at].clone();
        let sign = self.accept(Token::Minus).map_or("", |_| "-");
        let word = self.next();
        let text = self.text(&word);
        let read = match word.kind {
            Token::Int => literal::int(sign, &text),
            Token::Float => literal::double(sign, &text),
            _ if !sign.is_empty() => return Err(Fault::Syntax),
            Token::Uint => literal::uint(&text),
            Token::String => literal::string(&text),
            Token::Bytes => literal::bytes(&text),
            Token::True => Ok(Literal::Bool(true)),
            Token::False => Ok(Literal::Bool(false)),
            Token::Null => Ok(Literal::Null),
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

    fn peek(&self) -> Token {
        self.words[self.at].kind
    }

    fn peek_second(&self) -> Token {
        self.words.get(self.at + 1).map_or(Token::End, |word| word.kind)
    }

    fn next(&mut self) -> Word {
        let word = self.words[self.at].clone();
        if word.kind != Token::End {
            self.at += 1;
        }
        word
    }

    fn accept(&mut self, kind: Token) -> Option<Word> {
        (self.peek() == kind).then(|| self.next())
    }

    fn expect(&mut self, kind: Token) -> Parse<Word> {
        self.accept(kind).ok_or(Fault::Syntax)
    }

    fn text(&self, word: &Word) -> String {
        self.source.chars()[word.start..word.end].iter().collect()
    }

    fn node_at(&mut self, word: &Word) -> Id {
        self.positions.next(word.start)
    }

    fn error_at(&mut self, word: &Word) -> Expr {
        Expr { id: self.node_at(word), kind: Kind::Error }
    }
}

/// A call as a node.
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

fn relation(word: Token) -> Option<&'static str> {
    match word {
        Token::Less => Some("_<_"),
        Token::LessEquals => Some("_<=_"),
        Token::Greater => Some("_>_"),
        Token::GreaterEquals => Some("_>=_"),
        Token::Equals => Some("_==_"),
        Token::NotEquals => Some("_!=_"),
        Token::In => Some("@in"),
        _ => None,
    }
}

fn sum(word: Token) -> Option<&'static str> {
    match word {
        Token::Plus => Some("_+_"),
        Token::Minus => Some("_-_"),
        _ => None,
    }
}

fn product(word: Token) -> Option<&'static str> {
    match word {
        Token::Star => Some("_*_"),
        Token::Slash => Some("_/_"),
        Token::Percent => Some("_%_"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
