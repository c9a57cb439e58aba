//! Go regular expressions.
//!
//! Go's syntax and that of the `regex` crate are similar: neither backtracks, both support Unicode. The
//! differences (ASCII-only `\d`, literal `{` and `[`, `\Q...\E`, octal escapes) are translated. Expressions
//! that Go rejects are rejected with Go's error text, because users see it.

mod limits;
mod matcher;

use std::fmt::Write as _;

use regex_automata::meta::Regex;

use limits::Limits;
pub use matcher::{Matcher, TooCostly};

/// Go's maximum repetition count.
const MAX_REPEAT: u32 = 1000;

/// An expression that Go rejects. The text is Go's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {code}: `{at}`")]
pub struct PatternError {
    code: &'static str,
    at: String,
}

impl PatternError {
    /// The error for an expression that can be translated, but not compiled.
    fn of_compilation(text: &str, is_too_large: bool) -> Self {
        let code = if is_too_large {
            "expression too large"
        } else if text.contains("\\p") || text.contains("\\P") {
            INVALID_RANGE
        } else {
            "invalid regular expression"
        };
        error(code, text)
    }
}

/// Compiles an expression in Go's syntax.
pub fn compile(text: &str) -> Result<Matcher, PatternError> {
    Matcher::compile(&translate(text)?)
        .map_err(|error| PatternError::of_compilation(text, error.size_limit().is_some()))
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
const TOO_DEEP: &str = "expression nests too deeply";
const UNEXPECTED_PAREN: &str = "unexpected )";

fn error(code: &'static str, at: &str) -> PatternError {
    PatternError { code, at: at.to_owned() }
}

/// Translates an expression to the syntax of the `regex` crate.
pub fn translate(text: &str) -> Result<String, PatternError> {
    let mut translator = Translator {
        whole: text,
        out: String::with_capacity(text.len() + 16),
        names: Vec::new(),
        limits: Limits::default(),
    };
    translator.run()?;
    Ok(translator.out)
}

struct Translator<'a> {
    whole: &'a str,
    out: String,
    names: Vec<&'a str>,
    limits: Limits,
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
                    self.limits.close();
                    self.check_depth()?;
                    self.out.push(')');
                    rest = &rest[1..];
                    item = true;
                }
                '|' => {
                    self.limits.alternative();
                    self.out.push('|');
                    rest = &rest[1..];
                    item = false;
                }
                '[' => {
                    rest = self.class(rest)?;
                    self.limits.item();
                    item = true;
                }
                '*' | '+' | '?' => {
                    rest = self.repeat(here, &rest[1..], &here[..1], item, repeated)?;
                    self.limits.star();
                    self.check_depth()?;
                    operator = Some(here);
                }
                '{' => {
                    if let Some((count, after)) = count(rest) {
                        if !count.is_valid() {
                            return Err(error(INVALID_COUNT, &here[..here.len() - after.len()]));
                        }
                        rest = self.repeat(here, after, &count.to_string(), item, repeated)?;
                        if !self.limits.repeat(&count) {
                            return Err(error(INVALID_COUNT, &here[..here.len() - rest.len()]));
                        }
                        self.check_depth()?;
                        operator = Some(here);
                    } else {
                        self.out.push_str("\\{");
                        self.limits.literal();
                        rest = &rest[1..];
                        item = true;
                    }
                }
                '\\' => {
                    rest = self.backslash(rest)?;
                    self.limits.item();
                    item = true;
                }
                '^' | '$' | '.' => {
                    self.out.push(c);
                    self.limits.item();
                    rest = &rest[1..];
                    item = true;
                }
                c => {
                    self.literal(c);
                    self.limits.literal();
                    rest = &rest[c.len_utf8()..];
                    item = true;
                }
            }
            repeated = operator;
        }
        if depth > 0 {
            return Err(error(MISSING_PAREN, self.whole));
        }
        self.check_depth()
    }

    fn check_depth(&self) -> Result<(), PatternError> {
        if self.limits.nests_too_deeply() { Err(error(TOO_DEEP, self.whole)) } else { Ok(()) }
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
            self.limits.open(true);
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
            self.limits.open(true);
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
                    if group {
                        self.limits.open(false);
                    }
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
        if !known || Regex::new(&class).is_err() {
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

    fn is_match(pattern: &str, text: &str) -> bool {
        let matcher = compile(pattern).unwrap_or_else(|error| panic!("{error}"));
        matcher.is_match(text).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn character_classes_are_ascii_only() {
        assert!(is_match(r"^\d+$", "12"));
        assert!(!is_match(r"^\d+$", "١٢"));
        assert!(!is_match(r"^\w$", "é"));
        assert!(is_match(r"^[\d.]+$", "1.2"));
        assert!(is_match(r"^[^\s]+$", "é"));
    }

    #[test]
    fn brackets_and_braces_follow_go_syntax() {
        assert!(is_match(r"^[[a]$", "["));
        assert!(is_match(r"^[a&&b]+$", "a&b"));
        assert!(is_match(r"^a{$", "a{"));
        assert!(is_match(r"^a{,2}$", "a{,2}"));
        assert!(is_match(r"^a{2,3}$", "aaa"));
        assert!(is_match(r"^[]a]+$", "]a"));
        assert!(is_match(r"^[a-c-]+$", "b-"));
        assert!(is_match(r"^\Qa.b\E$", "a.b"));
        assert!(is_match(r"(?i)^ABC$", "abc"));
        assert!(is_match("^[[:alpha:]]+$", "ab"));
        assert!(is_match(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", "a-b.c"));
    }

    #[test]
    fn invalid_patterns_have_gos_error_text() {
        let error = |pattern: &str| compile(pattern).unwrap_err().to_string();
        assert_eq!(error("("), "error parsing regexp: missing closing ): `(`");
        assert_eq!(error("a)"), "error parsing regexp: unexpected ): `a)`");
        assert_eq!(error("[a"), "error parsing regexp: missing closing ]: `[a`");
        assert_eq!(error("*a"), "error parsing regexp: missing argument to repetition operator: `*`");
        assert_eq!(error("a**"), "error parsing regexp: invalid nested repetition operator: `**`");
        assert_eq!(error(r"\q"), r"error parsing regexp: invalid escape sequence: `\q`");
        assert_eq!(error("[z-a]"), "error parsing regexp: invalid character class range: `z-a`");
        assert_eq!(error("a{2000}"), "error parsing regexp: invalid repeat count: `{2000}`");
        assert_eq!(error("(?=a)"), "error parsing regexp: invalid or unsupported Perl syntax: `(?=`");
        assert_eq!(error(r"a\"), "error parsing regexp: trailing backslash at end of expression: ``");
    }

    #[test]
    fn nested_counts_have_gos_limit() {
        let error = |pattern: &str| compile(pattern).unwrap_err().to_string();
        assert_eq!(error("(a{60}){60}"), "error parsing regexp: invalid repeat count: `{60}`");
        assert_eq!(error("(?:ab{10}|c){2,101}?d"), "error parsing regexp: invalid repeat count: `{2,101}?`");
        assert_eq!(error("((a{10}){10}){11,}"), "error parsing regexp: invalid repeat count: `{11,}`");
        for pattern in [
            "(a{30}){33}",
            "((a{10}){10}){10}",
            "(a{1000}){1}",
            "(a{1000})*",
            "(a{1000}){0}",
            "a{1000}b{1000}",
        ] {
            assert_eq!(compile(pattern).err(), None, "{pattern}");
        }
    }

    #[test]
    fn nesting_has_gos_limit() {
        let error = |pattern: &str| compile(pattern).unwrap_err().to_string();
        let nested = |depth: usize| format!("{}{}", "(".repeat(depth), ")".repeat(depth));
        assert_eq!(
            error(&nested(1000)),
            format!("error parsing regexp: expression nests too deeply: `{}`", nested(1000))
        );
        assert_eq!(translate(&nested(999)).err(), None);
        assert_eq!(translate(&"(a|b)*c".repeat(2000)).err(), None);
    }

    /// The regex crate refuses this expression with its default limit.
    #[test]
    fn a_repeated_unicode_class_is_accepted_as_in_go() {
        let letters = "\u{e4}".repeat(1000);
        assert!(is_match(r"^\p{L}{1,1000}$", &letters));
    }
}
