//! Lexer.
//!
//! Takes the longest token at each position, like cel-go's generated lexer, and reports unrecognized input
//! with the same text. The parser decodes the literals.

use super::source::{Issues, Source};

/// Token types, in the order and with the names of cel-go's grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    Equals,
    NotEquals,
    In,
    Less,
    LessEquals,
    GreaterEquals,
    Greater,
    And,
    Or,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
    LeftParen,
    RightParen,
    Dot,
    Comma,
    Minus,
    Exclam,
    Question,
    Colon,
    Plus,
    Star,
    Slash,
    Percent,
    True,
    False,
    Null,
    Float,
    Int,
    Uint,
    String,
    Bytes,
    Identifier,
    EscapedIdentifier,
    End,
}

impl Kind {
    /// The name of the token type in lists of expected tokens.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Equals => "'=='",
            Self::NotEquals => "'!='",
            Self::In => "'in'",
            Self::Less => "'<'",
            Self::LessEquals => "'<='",
            Self::GreaterEquals => "'>='",
            Self::Greater => "'>'",
            Self::And => "'&&'",
            Self::Or => "'||'",
            Self::LeftBracket => "'['",
            Self::RightBracket => "']'",
            Self::LeftBrace => "'{'",
            Self::RightBrace => "'}'",
            Self::LeftParen => "'('",
            Self::RightParen => "')'",
            Self::Dot => "'.'",
            Self::Comma => "','",
            Self::Minus => "'-'",
            Self::Exclam => "'!'",
            Self::Question => "'?'",
            Self::Colon => "':'",
            Self::Plus => "'+'",
            Self::Star => "'*'",
            Self::Slash => "'/'",
            Self::Percent => "'%'",
            Self::True => "'true'",
            Self::False => "'false'",
            Self::Null => "'null'",
            Self::Float => "NUM_FLOAT",
            Self::Int => "NUM_INT",
            Self::Uint => "NUM_UINT",
            Self::String => "STRING",
            Self::Bytes => "BYTES",
            Self::Identifier => "IDENTIFIER",
            Self::EscapedIdentifier => "ESC_IDENTIFIER",
            Self::End => "<EOF>",
        }
    }
}

/// A token and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    /// Start offset in characters.
    pub(crate) start: usize,
    /// End offset in characters, exclusive.
    pub(crate) end: usize,
}

/// Splits the text into tokens; the last one is [`Kind::End`]. Unrecognized input is reported and skipped.
pub(crate) fn tokens(source: &Source, issues: &mut Issues) -> Vec<Token> {
    let chars = source.chars();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        if let Some(end) = hidden(chars, at) {
            at = end;
            continue;
        }
        match token_at(chars, at) {
            Ok((kind, end)) => {
                tokens.push(Token { kind, start: at, end });
                at = end;
            }
            Err(failed) => {
                // The message includes the first character that does not match, and the lexer skips it too.
                let end = (failed + 1).min(chars.len());
                let text: String = chars[at..end].iter().collect();
                issues.report(at, format!("Syntax error: token recognition error at: '{text}'"));
                at = end;
            }
        }
    }
    tokens.push(Token { kind: Kind::End, start: chars.len(), end: chars.len() });
    tokens
}

/// The white space and comments between two tokens, without unrecognized input.
pub(crate) fn hidden_text(chars: &[char], from: usize, to: usize) -> String {
    let mut text = String::new();
    let mut at = from;
    while at < to {
        match hidden(chars, at) {
            Some(end) => {
                text.extend(&chars[at..end]);
                at = end;
            }
            None => at = token_at(chars, at).map_or_else(|failed| failed + 1, |(_, end)| end),
        }
    }
    text
}

/// The end of the white space or comment at `at`.
fn hidden(chars: &[char], at: usize) -> Option<usize> {
    let is_space = |c: &char| matches!(c, '\t' | ' ' | '\r' | '\n' | '\u{c}');
    if is_space(&chars[at]) {
        return Some(at + chars[at..].iter().take_while(|c| is_space(c)).count());
    }
    chars[at..].starts_with(&['/', '/']).then(|| at + chars[at..].iter().take_while(|c| **c != '\n').count())
}

/// The type and the end of the token at `at`, or the position of the first character that does not match.
fn token_at(chars: &[char], at: usize) -> Result<(Kind, usize), usize> {
    if let Some(found) = string(chars, at) {
        match found {
            // `b` and `r` before an unterminated string are identifiers.
            Err(failed) if !matches!(chars[at], 'b' | 'B' | 'r' | 'R') => return Err(failed),
            Err(_) => {}
            Ok(found) => return Ok(found),
        }
    }
    let c = chars[at];
    if c.is_ascii_alphabetic() || c == '_' {
        return Ok(name(chars, at));
    }
    if c.is_ascii_digit() || c == '.' && chars.get(at + 1).is_some_and(char::is_ascii_digit) {
        return Ok(number(chars, at));
    }
    if c == '`' {
        return escaped_name(chars, at);
    }
    operator(chars, at)
}

fn operator(chars: &[char], at: usize) -> Result<(Kind, usize), usize> {
    let next_is = |c: char| chars.get(at + 1) == Some(&c);
    let one = |kind| Ok((kind, at + 1));
    let two = |kind| Ok((kind, at + 2));
    match chars[at] {
        '=' if next_is('=') => two(Kind::Equals),
        '!' if next_is('=') => two(Kind::NotEquals),
        '<' if next_is('=') => two(Kind::LessEquals),
        '>' if next_is('=') => two(Kind::GreaterEquals),
        '&' if next_is('&') => two(Kind::And),
        '|' if next_is('|') => two(Kind::Or),
        '=' | '&' | '|' => Err(at + 1),
        '<' => one(Kind::Less),
        '>' => one(Kind::Greater),
        '[' => one(Kind::LeftBracket),
        ']' => one(Kind::RightBracket),
        '{' => one(Kind::LeftBrace),
        '}' => one(Kind::RightBrace),
        '(' => one(Kind::LeftParen),
        ')' => one(Kind::RightParen),
        '.' => one(Kind::Dot),
        ',' => one(Kind::Comma),
        '-' => one(Kind::Minus),
        '!' => one(Kind::Exclam),
        '?' => one(Kind::Question),
        ':' => one(Kind::Colon),
        '+' => one(Kind::Plus),
        '*' => one(Kind::Star),
        '/' => one(Kind::Slash),
        '%' => one(Kind::Percent),
        _ => Err(at),
    }
}

fn name(chars: &[char], at: usize) -> (Kind, usize) {
    let length = chars[at..].iter().take_while(|c| c.is_ascii_alphanumeric() || **c == '_').count();
    let text: String = chars[at..at + length].iter().collect();
    let kind = match text.as_str() {
        "in" => Kind::In,
        "true" => Kind::True,
        "false" => Kind::False,
        "null" => Kind::Null,
        _ => Kind::Identifier,
    };
    (kind, at + length)
}

fn escaped_name(chars: &[char], at: usize) -> Result<(Kind, usize), usize> {
    let is_inner = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/' | ' ');
    let end = at + 1 + chars[at + 1..].iter().take_while(|c| is_inner(c)).count();
    if end > at + 1 && chars.get(end) == Some(&'`') {
        Ok((Kind::EscapedIdentifier, end + 1))
    } else {
        Err(end)
    }
}

fn number(chars: &[char], at: usize) -> (Kind, usize) {
    let digits =
        |from: usize| chars[from.min(chars.len())..].iter().take_while(|c| c.is_ascii_digit()).count();
    let suffixed = |end: usize| match chars.get(end) {
        Some('u' | 'U') => (Kind::Uint, end + 1),
        _ => (Kind::Int, end),
    };
    if chars[at] == '0' && chars.get(at + 1) == Some(&'x') {
        let length = chars[at + 2..].iter().take_while(|c| c.is_ascii_hexdigit()).count();
        if length > 0 {
            return suffixed(at + 2 + length);
        }
    }
    let exponent = |end: usize| -> Option<usize> {
        matches!(chars.get(end), Some('e' | 'E')).then_some(())?;
        let sign = usize::from(matches!(chars.get(end + 1), Some('+' | '-')));
        let length = digits(end + 1 + sign);
        (length > 0).then_some(end + 1 + sign + length)
    };
    let whole = at + digits(at);
    if chars.get(whole) == Some(&'.') {
        let fraction = digits(whole + 1);
        if fraction > 0 {
            let end = whole + 1 + fraction;
            return (Kind::Float, exponent(end).unwrap_or(end));
        }
    }
    match exponent(whole) {
        Some(end) => (Kind::Float, end),
        None => suffixed(whole),
    }
}

/// A string or bytes literal, if one starts here.
fn string(chars: &[char], at: usize) -> Option<Result<(Kind, usize), usize>> {
    let mut open = at;
    let is_bytes = matches!(chars[open], 'b' | 'B');
    open += usize::from(is_bytes);
    let is_raw = matches!(chars.get(open), Some('r' | 'R'));
    open += usize::from(is_raw);
    let quote = *chars.get(open).filter(|c| matches!(c, '"' | '\''))?;
    let kind = if is_bytes { Kind::Bytes } else { Kind::String };
    let short = quoted(chars, open + 1, quote, 1, is_raw);
    if chars[open..].starts_with(&[quote; 3])
        && let Ok(end) = quoted(chars, open + 3, quote, 3, is_raw)
    {
        return Some(Ok((kind, end)));
    }
    Some(short.map(|end| (kind, end)))
}

/// The end of a string that is closed by `count` quotes.
fn quoted(chars: &[char], from: usize, quote: char, count: usize, is_raw: bool) -> Result<usize, usize> {
    let mut at = from;
    while let Some(c) = chars.get(at) {
        if *c == quote && (count == 1 || chars[at..].starts_with(&[quote; 3])) {
            return Ok(at + count);
        }
        if count == 1 && matches!(c, '\n' | '\r') {
            return Err(at);
        }
        at = if *c == '\\' && !is_raw { escape(chars, at)? } else { at + 1 };
    }
    Err(at)
}

/// The end of an escape sequence.
fn escape(chars: &[char], at: usize) -> Result<usize, usize> {
    let all = |count: usize, is_digit: fn(&char) -> bool, from: usize| {
        let length = chars[from.min(chars.len())..].iter().take(count).take_while(|c| is_digit(c)).count();
        if length == count { Ok(from + count) } else { Err(from + length) }
    };
    match chars.get(at + 1) {
        Some('a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '"' | '\'' | '\\' | '?' | '`') => Ok(at + 2),
        Some('x' | 'X') => all(2, char::is_ascii_hexdigit, at + 2),
        Some('u') => all(4, char::is_ascii_hexdigit, at + 2),
        Some('U') => all(8, char::is_ascii_hexdigit, at + 2),
        Some('0'..='3') => all(2, |c| matches!(c, '0'..='7'), at + 2),
        _ => Err(at + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lex(text: &str) -> Vec<String> {
        let source = Source::new(text);
        let mut issues = Issues::new(source.clone());
        let found = tokens(&source, &mut issues);
        let show =
            |t: &Token| format!("{:?}:{}", t.kind, source.chars()[t.start..t.end].iter().collect::<String>());
        found.iter().filter(|t| t.kind != Kind::End).map(show).collect()
    }

    fn errors(text: &str) -> String {
        let source = Source::new(text);
        let mut issues = Issues::new(source.clone());
        tokens(&source, &mut issues);
        issues.to_string().lines().next().unwrap_or_default().to_owned()
    }

    #[test]
    fn the_longest_token_wins() {
        assert_eq!(
            lex("1.5e3 0x1Fu 1.x .5"),
            ["Float:1.5e3", "Uint:0x1Fu", "Int:1", "Dot:.", "Identifier:x", "Float:.5"]
        );
        assert_eq!(lex("inx in true_ true"), ["Identifier:inx", "In:in", "Identifier:true_", "True:true"]);
        assert_eq!(lex("b'a' r'\\d' '''x'y'''"), ["Bytes:b'a'", "String:r'\\d'", "String:'''x'y'''"]);
        assert_eq!(lex("a // b\n<= c"), ["Identifier:a", "LessEquals:<=", "Identifier:c"]);
    }

    #[test]
    fn unrecognized_input_is_reported_with_the_first_invalid_character() {
        assert_eq!(errors("a & b"), "ERROR: <input>:1:3: Syntax error: token recognition error at: '& '");
        assert_eq!(errors("'abc"), "ERROR: <input>:1:1: Syntax error: token recognition error at: ''abc'");
        assert_eq!(errors("#"), "ERROR: <input>:1:1: Syntax error: token recognition error at: '#'");
        assert_eq!(errors(r"'\q'"), r"ERROR: <input>:1:1: Syntax error: token recognition error at: ''\q'");
    }
}
