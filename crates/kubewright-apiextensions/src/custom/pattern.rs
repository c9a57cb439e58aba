//! Go regular expressions.
//!
//! Go's syntax and that of the `regex` crate are similar: neither backtracks, both support Unicode. The
//! differences (ASCII-only `\d`, literal `{` and `[`, `\Q...\E`, octal escapes) are translated. Expressions
//! that Go rejects are rejected with Go's error text, because users see it.

mod matcher;

use std::fmt::Write as _;

use regex_automata::util::syntax;

pub use matcher::{Matcher, TooCostly};

/// Go's maximum repetition count.
const MAX_REPEAT: u32 = 1000;

/// The `pattern` of a schema.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    compiled: Result<Matcher, PatternError>,
}

/// An expression that Go rejects. The text is Go's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {code}: `{at}`")]
pub struct PatternError {
    code: &'static str,
    at: String,
}

impl Pattern {
    /// Compiles an expression. An invalid one is kept and matches nothing.
    pub fn new(text: &str) -> Self {
        Self { text: text.to_owned(), compiled: compile(text) }
    }

    /// The original expression.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The compiled expression, or its error.
    pub fn matcher(&self) -> Result<&Matcher, &PatternError> {
        self.compiled.as_ref()
    }
}

/// Compiles an expression in Go's syntax.
pub fn compile(text: &str) -> Result<Matcher, PatternError> {
    let translated = translate(text)?;
    Matcher::compile(&translated).map_err(|error| {
        let code = if error.size_limit().is_some() {
            "expression too large"
        } else if text.contains("\\p") || text.contains("\\P") {
            INVALID_RANGE
        } else {
            "invalid regular expression"
        };
        PatternError { code, at: text.to_owned() }
    })
}

const INVALID_ESCAPE: &str = "invalid escape sequence";
const INVALID_RANGE: &str = "invalid character class range";
const INVALID_REPEAT: &str = "invalid nested repetition operator";
const INVALID_COUNT: &str = "invalid repeat count";
const INVALID_PERL: &str = "invalid or unsupported Perl syntax";
const INVALID_NAME: &str = "invalid named capture";
const MISSING_BRACKET: &str = "missing closing ]";
const MISSING_PAREN: &str = "missing closing )";
const MISSING_ARGUMENT: &str = "missing argument to repetition operator";
const TRAILING_BACKSLASH: &str = "trailing backslash at end of expression";
const UNEXPECTED_PAREN: &str = "unexpected )";

fn error(code: &'static str, at: &str) -> PatternError {
    PatternError { code, at: at.to_owned() }
}

/// Translates an expression to the syntax of the `regex` crate.
fn translate(text: &str) -> Result<String, PatternError> {
    let mut translator =
        Translator { whole: text, out: String::with_capacity(text.len() + 16), names: Vec::new() };
    translator.run()?;
    Ok(translator.out)
}

struct Translator<'a> {
    whole: &'a str,
    out: String,
    names: Vec<&'a str>,
}

impl<'a> Translator<'a> {
    fn run(&mut self) -> Result<(), PatternError> {
        let mut rest = self.whole;
        let mut depth = 0_usize;
        // Whether there is an operand for `*`.
        let mut item = false;
        // Start of the preceding repetition operator, if it is adjacent.
        let mut repeated: Option<&str> = None;
        while let Some(c) = rest.chars().next() {
            let here = rest;
            let mut operator = None;
            match c {
                '(' => {
                    let group;
                    (rest, group) = self.group(rest)?;
                    if group {
                        depth += 1;
                        item = false;
                    }
                }
                ')' => {
                    if depth == 0 {
                        return Err(error(UNEXPECTED_PAREN, self.whole));
                    }
                    depth -= 1;
                    self.out.push(')');
                    rest = &rest[1..];
                    item = true;
                }
                '|' => {
                    self.out.push('|');
                    rest = &rest[1..];
                    item = false;
                }
                '[' => {
                    rest = self.class(rest)?;
                    item = true;
                }
                '*' | '+' | '?' => {
                    rest = self.repeat(here, &rest[1..], &here[..1], item, repeated)?;
                    operator = Some(here);
                }
                '{' => {
                    if let Some((count, after)) = count(rest) {
                        if !count.is_valid() {
                            return Err(error(INVALID_COUNT, &here[..here.len() - after.len()]));
                        }
                        rest = self.repeat(here, after, &count.to_string(), item, repeated)?;
                        operator = Some(here);
                    } else {
                        self.out.push_str("\\{");
                        rest = &rest[1..];
                        item = true;
                    }
                }
                '\\' => {
                    rest = self.backslash(rest)?;
                    item = true;
                }
                '^' | '$' | '.' => {
                    self.out.push(c);
                    rest = &rest[1..];
                    item = true;
                }
                c => {
                    self.literal(c);
                    rest = &rest[c.len_utf8()..];
                    item = true;
                }
            }
            repeated = operator;
        }
        if depth > 0 { Err(error(MISSING_PAREN, self.whole)) } else { Ok(()) }
    }

    fn literal(&mut self, c: char) {
        if c.is_ascii_punctuation()
            && !matches!(
                c,
                '<' | '>' | '_' | '/' | '"' | '\'' | '%' | ',' | ':' | ';' | '=' | '@' | '`' | '!'
            )
        {
            self.out.push('\\');
        }
        self.out.push(c);
    }

    /// Writes a repetition operator; `operator` is its translation.
    fn repeat(
        &mut self,
        here: &'a str,
        mut after: &'a str,
        operator: &str,
        item: bool,
        repeated: Option<&'a str>,
    ) -> Result<&'a str, PatternError> {
        let lazy = after.starts_with('?');
        if lazy {
            after = &after[1..];
        }
        if let Some(first) = repeated {
            return Err(error(INVALID_REPEAT, &first[..first.len() - after.len()]));
        }
        if !item {
            return Err(error(MISSING_ARGUMENT, &here[..here.len() - after.len()]));
        }
        self.out.push_str(operator);
        if lazy {
            self.out.push('?');
        }
        Ok(after)
    }

    /// Parses what follows `(`: a group, or flags for the rest of the expression. Returns true for a group.
    fn group(&mut self, rest: &'a str) -> Result<(&'a str, bool), PatternError> {
        let Some(after) = rest.strip_prefix("(?") else {
            self.out.push('(');
            return Ok((&rest[1..], true));
        };
        let named = after.strip_prefix("P<").or_else(|| after.strip_prefix('<'));
        if let Some(name_on) = named {
            let Some(end) = name_on.find('>') else { return Err(error(INVALID_NAME, rest)) };
            let capture = &rest[..=rest.len() - name_on.len() + end];
            let name = &name_on[..end];
            let word = |c: char| c == '_' || c.is_ascii_alphanumeric();
            if name.is_empty() || !name.chars().all(word) {
                return Err(error(INVALID_NAME, capture));
            }
            if self.names.contains(&name) {
                return Err(error("duplicate capture group name", name));
            }
            self.names.push(name);
            // Group names do not matter for matching, and Go's may start with a digit.
            self.out.push('(');
            return Ok((&name_on[end + 1..], true));
        }
        let (mut negative, mut seen) = (false, false);
        for (at, c) in after.char_indices() {
            match c {
                'i' | 'm' | 's' | 'U' => seen = true,
                '-' if !negative => {
                    negative = true;
                    seen = false;
                }
                ':' | ')' if !negative || seen => {
                    let flags = &after[..at];
                    let group = c == ':';
                    // `(?)` has no effect.
                    if group || !flags.is_empty() {
                        write!(self.out, "(?{flags}{c}").unwrap_or_default();
                    }
                    return Ok((&after[at + 1..], group));
                }
                _ => return Err(error(INVALID_PERL, &rest[..2 + at + c.len_utf8()])),
            }
        }
        Err(error(INVALID_PERL, rest))
    }

    /// Translates an escape outside of a class.
    fn backslash(&mut self, rest: &'a str) -> Result<&'a str, PatternError> {
        let after = &rest[1..];
        match after.chars().next() {
            Some('A') => self.out.push_str("\\A"),
            Some('z') => self.out.push_str("\\z"),
            // An ASCII word boundary. `(?-u:\B)` is not allowed, because it can match inside a character.
            Some('b') => self.out.push_str("(?-u:\\b)"),
            Some('B') => self.out.push_str("\\B"),
            Some('Q') => {
                let (quoted, after) = after[1..].split_once("\\E").unwrap_or((&after[1..], ""));
                quoted.chars().for_each(|c| self.literal(c));
                return Ok(after);
            }
            Some('p' | 'P') => return self.unicode_class(rest),
            Some(c @ ('d' | 'D' | 's' | 'S' | 'w' | 'W')) => {
                let not = if c.is_ascii_uppercase() { "^" } else { "" };
                write!(self.out, "[{not}{}]", perl_class(c)).unwrap_or_default();
            }
            _ => {
                let (c, after) = escape(rest)?;
                self.literal(c);
                return Ok(after);
            }
        }
        Ok(&after[1..])
    }

    /// `\pL`, `\p{Greek}`, `\p{^Greek}` and their negations.
    fn unicode_class(&mut self, rest: &'a str) -> Result<&'a str, PatternError> {
        let mut negative = rest[1..].starts_with('P');
        let after = &rest[2..];
        let (name, after) = if let Some(inner) = after.strip_prefix('{') {
            let Some(end) = inner.find('}') else { return Err(error(INVALID_RANGE, rest)) };
            (&inner[..end], &inner[end + 1..])
        } else {
            let Some(c) = after.chars().next() else { return Err(error(INVALID_RANGE, rest)) };
            after.split_at(c.len_utf8())
        };
        let whole = &rest[..rest.len() - after.len()];
        let name = name.strip_prefix('^').map_or(name, |name| {
            negative = !negative;
            name
        });
        let known = !name.is_empty() && name.chars().all(|c| c == '_' || c.is_ascii_alphabetic());
        let class = format!("\\{}{{{name}}}", if negative { 'P' } else { 'p' });
        if !known || syntax::parse(&class).is_err() {
            return Err(error(INVALID_RANGE, whole));
        }
        self.out.push_str(&class);
        Ok(after)
    }

    fn class(&mut self, class: &'a str) -> Result<&'a str, PatternError> {
        let mut rest = &class[1..];
        self.out.push('[');
        if let Some(after) = rest.strip_prefix('^') {
            self.out.push('^');
            rest = after;
        }
        let mut first = true;
        while first || !rest.starts_with(']') {
            first = false;
            if rest.is_empty() {
                return Err(error(MISSING_BRACKET, class));
            }
            if let Some(inner) = rest.strip_prefix("[:")
                && let Some(end) = inner.find(":]")
            {
                let name = &rest[..end + 4];
                if !POSIX.contains(&inner[..end].trim_start_matches('^')) {
                    return Err(error(INVALID_RANGE, name));
                }
                self.out.push_str(name);
                rest = &rest[name.len()..];
                continue;
            }
            if rest.starts_with("\\p") || rest.starts_with("\\P") {
                rest = self.unicode_class(rest)?;
                continue;
            }
            let escaped = rest.strip_prefix('\\').and_then(|after| after.chars().next());
            if let Some(c @ ('d' | 'D' | 's' | 'S' | 'w' | 'W')) = escaped {
                if c.is_ascii_uppercase() {
                    write!(self.out, "[^{}]", perl_class(c)).unwrap_or_default();
                } else {
                    self.out.push_str(perl_class(c));
                }
                rest = &rest[2..];
                continue;
            }
            rest = self.range(class, rest)?;
        }
        self.out.push(']');
        Ok(&rest[1..])
    }

    /// Translates one character of a class, or a range.
    fn range(&mut self, class: &'a str, rest: &'a str) -> Result<&'a str, PatternError> {
        let (low, mut after) = class_char(class, rest)?;
        let mut high = low;
        if let Some(next) = after.strip_prefix('-')
            && !next.is_empty()
            && !next.starts_with(']')
        {
            (high, after) = class_char(class, next)?;
            if high < low {
                return Err(error(INVALID_RANGE, &rest[..rest.len() - after.len()]));
            }
        }
        self.class_literal(low);
        if high != low {
            self.out.push('-');
            self.class_literal(high);
        }
        Ok(after)
    }

    fn class_literal(&mut self, c: char) {
        if c.is_ascii_alphanumeric() || !c.is_ascii() {
            self.out.push(c);
        } else {
            write!(self.out, "\\x{:02x}", u32::from(c)).unwrap_or_default();
        }
    }
}

const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];

/// The content of a Perl class; for a capital letter its complement.
fn perl_class(c: char) -> &'static str {
    match c.to_ascii_lowercase() {
        'd' => "0-9",
        's' => "\\t\\n\\f\\r ",
        _ => "0-9A-Za-z_",
    }
}

fn class_char<'a>(class: &str, rest: &'a str) -> Result<(char, &'a str), PatternError> {
    match rest.chars().next() {
        None => Err(error(MISSING_BRACKET, class)),
        Some('\\') => escape(rest),
        Some(c) => Ok((c, &rest[c.len_utf8()..])),
    }
}

/// The character of an escape sequence.
fn escape(rest: &str) -> Result<(char, &str), PatternError> {
    let mut chars = rest[1..].chars();
    let Some(c) = chars.next() else { return Err(error(TRAILING_BACKSLASH, "")) };
    let after = chars.as_str();
    let invalid = |after: &str| error(INVALID_ESCAPE, &rest[..rest.len() - after.len()]);
    match c {
        '0'..='7' => {
            // A single digit other than zero would be a backreference.
            let more = after.bytes().take(2).take_while(|b| (b'0'..=b'7').contains(b)).count();
            if c != '0' && more == 0 {
                return Err(invalid(after));
            }
            let digits = &rest[1..=1 + more];
            let code = u32::from_str_radix(digits, 8).ok().and_then(char::from_u32);
            code.map(|c| (c, &after[more..])).ok_or_else(|| invalid(after))
        }
        'x' => {
            let braced = after.strip_prefix('{').and_then(|inner| inner.split_once('}'));
            let (digits, after) = match braced {
                Some(found) => found,
                None if after.len() >= 2 && after.is_char_boundary(2) => after.split_at(2),
                None => return Err(invalid("")),
            };
            let hex = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
            let code = hex.then(|| u32::from_str_radix(digits, 16).ok()).flatten().and_then(char::from_u32);
            code.map(|c| (c, after)).ok_or_else(|| invalid(after))
        }
        'a' => Ok(('\u{7}', after)),
        'f' => Ok(('\u{c}', after)),
        'n' => Ok(('\n', after)),
        'r' => Ok(('\r', after)),
        't' => Ok(('\t', after)),
        'v' => Ok(('\u{b}', after)),
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => Ok((c, after)),
        _ => Err(invalid(after)),
    }
}

struct Count {
    min: u32,
    /// `None` means no limit.
    max: Option<u32>,
    /// `{3}` and not `{3,3}`.
    exact: bool,
}

impl Count {
    fn is_valid(&self) -> bool {
        self.min <= MAX_REPEAT && self.max.is_none_or(|max| max <= MAX_REPEAT && self.min <= max)
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.max {
            _ if self.exact => write!(f, "{{{}}}", self.min),
            Some(max) => write!(f, "{{{},{max}}}", self.min),
            None => write!(f, "{{{},}}", self.min),
        }
    }
}

/// Parses `{n}`, `{n,}` or `{n,m}`; anything else is literal.
fn count(rest: &str) -> Option<(Count, &str)> {
    let (inner, after) = rest[1..].split_once('}')?;
    let number = |digits: &str| {
        let canonical = digits == "0" || !digits.starts_with('0');
        let digits_only = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        // Numbers beyond `u32` exceed Go's limit as well.
        (canonical && digits_only).then(|| digits.parse().unwrap_or(u32::MAX))
    };
    let count = match inner.split_once(',') {
        None => {
            let min = number(inner)?;
            Count { min, max: Some(min), exact: true }
        }
        Some((min, "")) => Count { min: number(min)?, max: None, exact: false },
        Some((min, max)) => Count { min: number(min)?, max: Some(number(max)?), exact: false },
    };
    Some((count, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &str, text: &str) -> bool {
        let matcher = compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        matcher.is_match(text).unwrap_or_else(|error| panic!("{pattern}: {error}"))
    }

    #[track_caller]
    fn refused(pattern: &str, why: &str) {
        let error = compile(pattern).expect_err(pattern).to_string();
        assert_eq!(error, format!("error parsing regexp: {why}"));
    }

    #[test]
    fn classes_are_ascii_as_in_go() {
        assert!(matches(r"^\d+$", "123"));
        assert!(!matches(r"^\d+$", "१२३"));
        assert!(matches(r"^\D$", "१"));
        assert!(matches(r"^[\w-]+$", "a_b-1"));
        assert!(!matches(r"^\w+$", "é"));
        assert!(matches(r"^\pL+$", "é"));
        assert!(matches(r"^[\W\d]+$", "é1"));
        assert!(!matches(r"^\s$", "\u{b}"));
        assert!(matches(r"\bfoo\b", "a foo b"));
    }

    #[test]
    fn characters_without_special_meaning_are_literal() {
        assert!(matches("^{a}$", "{a}"));
        assert!(matches("^a{,3}$", "a{,3}"));
        assert!(matches("^[[]+$", "[["));
        assert!(matches("^[a&&b]+$", "a&b"));
        assert!(matches("^[]-]+$", "]-"));
        assert!(matches(r"^\Qa.b*\E+$", "a.b**"));
        assert!(matches(r"^\<\_\x41\101\x{e9}$", "<_AAé"));
        assert!(matches("^#x y$", "#x y"));
        assert!(matches("^[a-zA-Z0-9-]+$", "a-9"));
        assert!(matches("^a~b$", "a~b"));
        assert!(matches("", "anything"));
        assert!(matches("^(?P<x>a)(?<y>b)(?:c)(?i)D$", "abcd"));
        assert!(matches(r"^[^/[:space:]]{1,1000}$", &"x".repeat(1000)));
    }

    #[test]
    fn invalid_patterns_have_gos_error_text() {
        refused("[a", "missing closing ]: `[a`");
        refused("(a", "missing closing ): `(a`");
        refused("a)", "unexpected ): `a)`");
        refused("*a", "missing argument to repetition operator: `*`");
        refused("(|*)", "missing argument to repetition operator: `*`");
        refused("a**", "invalid nested repetition operator: `**`");
        refused("a{2}{3}", "invalid nested repetition operator: `{2}{3}`");
        refused("a{1001}", "invalid repeat count: `{1001}`");
        refused("a{3,2}", "invalid repeat count: `{3,2}`");
        refused("(?=a)", "invalid or unsupported Perl syntax: `(?=`");
        refused("(?<=a)b", "invalid named capture: `(?<=a)b`");
        refused(r"\y", r"invalid escape sequence: `\y`");
        refused(r"\1", r"invalid escape sequence: `\1`");
        refused("[z-a]", "invalid character class range: `z-a`");
        refused(r"\p{Nope}", r"invalid character class range: `\p{Nope}`");
        refused("[[:nope:]]", "invalid character class range: `[:nope:]`");
        refused("a\\", "trailing backslash at end of expression: ``");
    }

    proptest! {
        #[test]
        fn no_pattern_panics(text in r"[a-c\\\[\](){}|*+?^$.,0-3:<>PQEdDwbpx-]{0,14}") {
            if let Ok(translated) = translate(&text) {
                let built = Matcher::compile(&translated);
                prop_assert!(
                    built.as_ref().map_or_else(|error| error.size_limit().is_some(), |_| true),
                    "{} became {}: {:?}", text, translated, built
                );
            }
        }
    }
}
