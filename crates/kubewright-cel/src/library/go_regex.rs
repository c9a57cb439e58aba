//! Go regular expressions.
//!
//! Translates Go's syntax to that of the `regex` crate. The differences: in Go `\d`, `\s`, `\w` and `\b` are
//! ASCII-only, character classes do not nest, and a brace that is not a repetition is a literal. Errors are
//! Go's.

use regex::Regex;

/// Maximum repetition count.
const MAX_REPEAT: u32 = 1000;

/// Compiles `pattern`; fails with Go's error text.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    let mut translator = Translator { chars: pattern.chars().collect(), at: 0, out: String::new() };
    translator.run().map_err(|problem| format!("error parsing regexp: {problem}"))?;
    Regex::new(&translator.out)
        .map_err(|_| format!("error parsing regexp: invalid or unsupported Perl syntax: `{pattern}`"))
}

struct Translator {
    chars: Vec<char>,
    at: usize,
    out: String,
}

impl Translator {
    fn run(&mut self) -> Result<(), String> {
        let mut open = 0usize;
        // Start of the repetition operators of the current operand.
        let mut repeated: Option<usize> = None;
        let mut can_repeat = false;
        while let Some(c) = self.peek(0) {
            match c {
                '(' => {
                    self.group()?;
                    open += 1;
                    (can_repeat, repeated) = (false, None);
                }
                ')' => {
                    open = open
                        .checked_sub(1)
                        .ok_or_else(|| format!("unexpected ): `{}`", self.text(0, self.chars.len())))?;
                    self.keep(1);
                    (can_repeat, repeated) = (true, None);
                }
                '|' | '^' => {
                    self.keep(1);
                    (can_repeat, repeated) = (c == '^', None);
                }
                '*' | '+' | '?' => self.repeat(1, can_repeat, &mut repeated)?,
                '{' => {
                    if let Some(length) = self.counted()? {
                        self.repeat(length, can_repeat, &mut repeated)?;
                    } else {
                        self.out.push_str("\\{");
                        self.at += 1;
                        (can_repeat, repeated) = (true, None);
                    }
                }
                '[' => {
                    self.class()?;
                    (can_repeat, repeated) = (true, None);
                }
                '\\' => {
                    self.escape(false)?;
                    (can_repeat, repeated) = (true, None);
                }
                ']' | '}' => {
                    self.out.push('\\');
                    self.keep(1);
                    (can_repeat, repeated) = (true, None);
                }
                _ => {
                    self.keep(1);
                    (can_repeat, repeated) = (true, None);
                }
            }
        }
        if open > 0 {
            return Err(format!("missing closing ): `{}`", self.text(0, self.chars.len())));
        }
        Ok(())
    }

    fn repeat(
        &mut self,
        length: usize,
        can_repeat: bool,
        repeated: &mut Option<usize>,
    ) -> Result<(), String> {
        let start = self.at;
        let lazy = usize::from(self.peek(length) == Some('?'));
        if !can_repeat {
            return Err(format!(
                "missing argument to repetition operator: `{}`",
                self.text(start, start + length)
            ));
        }
        if let Some(first) = *repeated {
            let operators = self.text(first, start + length);
            return Err(format!("invalid nested repetition operator: `{operators}`"));
        }
        *repeated = Some(start);
        self.keep(length + lazy);
        Ok(())
    }

    /// The length of `{n}`, `{n,}` or `{n,m}` at the current position, if present.
    fn counted(&self) -> Result<Option<usize>, String> {
        let digits = |from: usize| {
            self.chars[from.min(self.chars.len())..].iter().take_while(|c| c.is_ascii_digit()).count()
        };
        let first = digits(self.at + 1);
        let mut end = self.at + 1 + first;
        let mut second = 0;
        let has_comma = self.chars.get(end) == Some(&',');
        if has_comma {
            second = digits(end + 1);
            end += 1 + second;
        }
        if first == 0 || self.chars.get(end) != Some(&'}') {
            return Ok(None);
        }
        let number =
            |from: usize, length: usize| self.text(from, from + length).parse::<u32>().unwrap_or(u32::MAX);
        let low = number(self.at + 1, first);
        let high = if second > 0 { number(end - second, second) } else { low };
        if low > MAX_REPEAT || high > MAX_REPEAT || high < low {
            return Err(format!("invalid repeat count: `{}`", self.text(self.at, end + 1)));
        }
        Ok(Some(end + 1 - self.at))
    }

    fn group(&mut self) -> Result<(), String> {
        if self.peek(1) != Some('?') {
            self.keep(1);
            return Ok(());
        }
        let rest: String = self.chars[self.at..].iter().take(4).collect();
        if rest.starts_with("(?P<")
            || rest.starts_with("(?<") && !rest.starts_with("(?<=") && !rest.starts_with("(?<!")
        {
            let from = self.at;
            while !matches!(self.peek(0), Some('>') | None) {
                self.keep(1);
            }
            if self.peek(0).is_none() {
                return Err(format!("invalid named capture: `{}`", self.text(from, self.chars.len())));
            }
            self.keep(1);
            return Ok(());
        }
        let flags =
            self.chars[self.at + 2..].iter().take_while(|c| matches!(c, 'i' | 'm' | 's' | 'U' | '-')).count();
        match self.peek(2 + flags) {
            Some(')') if flags > 0 => {
                // `(?flags)` without a group: closed immediately.
                self.keep(2 + flags);
                Ok(())
            }
            Some(':') => {
                self.keep(3 + flags);
                Ok(())
            }
            None => Err(format!("missing closing ): `{}`", self.text(0, self.chars.len()))),
            Some(_) => Err(format!(
                "invalid or unsupported Perl syntax: `{}`",
                self.text(self.at, self.at + 3 + flags)
            )),
        }
    }

    fn class(&mut self) -> Result<(), String> {
        let start = self.at;
        self.keep(1);
        if self.peek(0) == Some('^') {
            self.keep(1);
        }
        let mut is_first = true;
        loop {
            match self.peek(0) {
                None => return Err(format!("missing closing ]: `{}`", self.text(start, self.chars.len()))),
                Some(']') if !is_first => {
                    self.keep(1);
                    return Ok(());
                }
                Some('[') if self.peek(1) == Some(':') => {
                    let from = self.at;
                    let rest = &self.chars[from + 2..];
                    let Some(end) = rest.windows(2).position(|w| w == [':', ']']) else {
                        self.out.push_str("\\[");
                        self.at += 1;
                        is_first = false;
                        continue;
                    };
                    let name: String = rest[..end].iter().collect();
                    let known = [
                        "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print",
                        "punct", "space", "upper", "word", "xdigit",
                    ];
                    if !known.contains(&name.trim_start_matches('^')) {
                        return Err(format!("invalid character class range: `[:{name}:]`"));
                    }
                    self.keep(end + 4);
                }
                Some('\\') => {
                    let from = self.at;
                    let low = self.escape(true)?;
                    self.range_end(from, low)?;
                }
                Some(c) => {
                    let from = self.at;
                    if matches!(c, '[' | ']' | '&' | '~' | '-' | '^') {
                        self.out.push('\\');
                    }
                    self.keep(1);
                    self.range_end(from, Some(c))?;
                }
            }
            is_first = false;
        }
    }

    /// Parses the end of a range, if `low` starts one.
    fn range_end(&mut self, from: usize, low: Option<char>) -> Result<(), String> {
        if self.peek(0) != Some('-') || matches!(self.peek(1), Some(']') | None) {
            return Ok(());
        }
        let Some(low) = low else { return Ok(()) };
        self.keep(1);
        let high = match self.peek(0) {
            Some('\\') => self.escape(true)?,
            Some(c) => {
                if matches!(c, '[' | ']' | '&' | '~' | '-' | '^') {
                    self.out.push('\\');
                }
                self.keep(1);
                Some(c)
            }
            None => None,
        };
        if high.is_none_or(|high| high < low) {
            return Err(format!("invalid character class range: `{}`", self.text(from, self.at)));
        }
        Ok(())
    }

    /// Translates an escape. Returns the character that it denotes, if it denotes one.
    fn escape(&mut self, in_class: bool) -> Result<Option<char>, String> {
        let from = self.at;
        let Some(c) = self.peek(1) else {
            return Err("trailing backslash at end of expression: ``".to_owned());
        };
        let ascii = match c {
            'd' => "[0-9]",
            'D' => "[^0-9]",
            's' => "[\\t\\n\\f\\r ]",
            'S' => "[^\\t\\n\\f\\r ]",
            'w' => "[0-9A-Za-z_]",
            'W' => "[^0-9A-Za-z_]",
            'b' if !in_class => "(?-u:\\b)",
            'B' if !in_class => "(?-u:\\B)",
            _ => "",
        };
        if !ascii.is_empty() {
            self.out.push_str(ascii);
            self.at += 2;
            return Ok(None);
        }
        match c {
            'A' | 'z' if !in_class => self.keep(2),
            'Q' if !in_class => self.quoted(),
            'p' | 'P' => {
                let end = match self.peek(2) {
                    Some('{') => self.chars[from..].iter().position(|c| *c == '}').map(|end| end + 1),
                    Some(_) => Some(3),
                    None => None,
                };
                let Some(length) = end else {
                    return Err(format!(
                        "invalid character class range: `{}`",
                        self.text(from, self.chars.len())
                    ));
                };
                self.keep(length);
            }
            'a' | 'f' | 'n' | 'r' | 't' | 'v' => {
                self.keep(2);
                return Ok(Some(match c {
                    'a' => '\u{7}',
                    'f' => '\u{c}',
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    _ => '\u{b}',
                }));
            }
            'x' => return self.hex(),
            '0'..='7' => return self.octal(),
            c if c.is_ascii_punctuation() => {
                let needs_escape = !matches!(c, '<' | '>' | '_');
                if needs_escape {
                    self.keep(2);
                } else {
                    self.out.push(c);
                    self.at += 2;
                }
                return Ok(Some(c));
            }
            _ => return Err(format!("invalid escape sequence: `{}`", self.text(from, from + 2))),
        }
        Ok(None)
    }

    fn quoted(&mut self) {
        self.at += 2;
        while let Some(c) = self.peek(0) {
            if c == '\\' && self.peek(1) == Some('E') {
                self.at += 2;
                return;
            }
            self.out.push_str(&regex::escape(&c.to_string()));
            self.at += 1;
        }
    }

    fn hex(&mut self) -> Result<Option<char>, String> {
        let from = self.at;
        let (digits, length) = if self.peek(2) == Some('{') {
            let digits: String =
                self.chars[from + 3..].iter().take_while(|c| c.is_ascii_hexdigit()).collect();
            let length = digits.len() + 4;
            (digits, length)
        } else {
            (self.text(from + 2, from + 4), 4)
        };
        let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
        let is_closed = self.peek(2) != Some('{') || self.peek(length - 1) == Some('}');
        let Some(c) = code.filter(|_| is_closed) else {
            return Err(format!(
                "invalid escape sequence: `{}`",
                self.text(from, (from + 2 + digits.len()).min(self.chars.len()))
            ));
        };
        self.push_code(c);
        self.at += length;
        Ok(Some(c))
    }

    fn octal(&mut self) -> Result<Option<char>, String> {
        let from = self.at;
        let digits: String =
            self.chars[from + 1..].iter().take(3).take_while(|c| matches!(c, '0'..='7')).collect();
        // A single digit other than zero is a backreference, which Go does not support.
        if digits.len() < 2 && digits != "0" {
            return Err(format!("invalid escape sequence: `{}`", self.text(from, from + 2)));
        }
        let c = u32::from_str_radix(&digits, 8).ok().and_then(char::from_u32).unwrap_or('\0');
        self.push_code(c);
        self.at += 1 + digits.len();
        Ok(Some(c))
    }

    fn push_code(&mut self, c: char) {
        self.out.push_str(&regex::escape(&c.to_string()));
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn keep(&mut self, count: usize) {
        let end = (self.at + count).min(self.chars.len());
        self.out.extend(&self.chars[self.at..end]);
        self.at = end;
    }

    fn text(&self, from: usize, to: usize) -> String {
        self.chars[from.min(self.chars.len())..to.min(self.chars.len())].iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_match(pattern: &str, text: &str) -> bool {
        compile(pattern).unwrap_or_else(|error| panic!("{error}")).is_match(text)
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
        let error = |pattern: &str| compile(pattern).unwrap_err();
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
}
