//! Checks the header, the length and forbidden constructs of every Rust file.
//!
//! Works on [`Tokens`], so comments and strings never match. Test data is exempt, because it is generated.

use proc_macro2::{Delimiter, LexError, TokenStream, TokenTree};

use super::{Files, Violation};

/// Maximum number of lines before the tests.
const LONGEST: usize = 600;

/// Forbidden tokens, their display name and the fix.
const FORBIDDEN: &[(&[&str], &str, &str)] = &[
    (&["#", "[", "ignore"], "`#[ignore]`", "fix the test, or delete it"),
    (&["#", "[", "allow"], "`#[allow]`", "write `#[expect(lint, reason = \"...\")]`"),
    (&["#", "!", "[", "allow"], "`#![allow]`", "write `#![expect(lint, reason = \"...\")]`"),
    (&["todo", "!"], "`todo!`", "implement it, or remove the caller"),
    (&["unimplemented", "!"], "`unimplemented!`", "implement it, or remove the caller"),
    (&["dbg", "!"], "`dbg!`", "remove it, or use tracing"),
];

pub(super) fn check(files: &Files, violations: &mut Vec<Violation>) {
    for (path, text) in files.written("rs") {
        let mut report = |line, what: String, fix: &str| {
            violations.push(Violation { path: path.to_owned(), line, what, fix: fix.into() });
        };
        let first = text.lines().position(|line| !line.trim().is_empty()).unwrap_or_default();
        if !text.lines().nth(first).unwrap_or_default().starts_with("//!") {
            report(
                first + 1,
                "the file does not open with `//!`".into(),
                "describe what it owns and its invariant",
            );
        }
        let tokens = match Tokens::of(text) {
            Ok(tokens) => tokens,
            Err(error) => {
                let line = error.span().start().line.max(1);
                report(line, "not valid Rust".into(), "fix it, or move it to templates/ or testdata/");
                continue;
            }
        };
        for (words, what, fix) in FORBIDDEN {
            for line in tokens.find(words) {
                report(line, (*what).into(), fix);
            }
        }
        for (word, line) in tokens.conditional_attributes() {
            if let Some((_, what, fix)) = FORBIDDEN.iter().find(|(words, ..)| words[1..] == ["[", word]) {
                report(line, format!("{what} in `cfg_attr`"), fix);
            }
        }
        let lines = tokens.first_test_line().map_or(text.lines().count(), |line| line - 1);
        if lines > LONGEST {
            report(
                LONGEST + 1,
                format!("{lines} lines before the tests, more than {LONGEST}"),
                "split it by noun",
            );
        }
    }
}

/// The tokens of a source in order, with groups flattened. Searches do not see the content of literals.
#[derive(Debug, Default)]
pub(super) struct Tokens(Vec<Token>);

#[derive(Debug)]
struct Token {
    word: String,
    /// The content of a plain string literal.
    text: Option<String>,
    line: usize,
}

/// Start of a module of unit tests.
const TESTS: &[&str] = &["#", "[", "cfg", "(", "test", ")", "]", "mod"];

impl Tokens {
    pub(super) fn of(text: &str) -> Result<Self, LexError> {
        let mut tokens = Self::default();
        tokens.flatten(text.parse()?);
        Ok(tokens)
    }

    /// The lines where the sequence `words` starts.
    pub(super) fn find<'a>(&'a self, words: &'a [&str]) -> impl Iterator<Item = usize> + 'a {
        self.positions(words).map(|at| self.0[at].line)
    }

    /// The plain string literals and their lines.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&str, usize)> {
        self.0.iter().filter_map(|token| Some((token.text.as_deref()?, token.line)))
    }

    /// The tokens before the first module of unit tests.
    pub(super) fn before_tests(mut self) -> Self {
        let end = self.first_test_position().unwrap_or(self.0.len());
        self.0.truncate(end);
        self
    }

    /// The modules directly below `root` in paths such as `std::fs` and `std::{fs, net}`.
    pub(super) fn paths_below<'a>(&'a self, root: &'a str) -> impl Iterator<Item = (&'a str, usize)> {
        let start = [root, ":", ":"];
        let starts: Vec<_> = self.positions(&start).map(|at| at + start.len()).collect();
        starts.into_iter().flat_map(move |at| {
            let mut depth = 0;
            let mut may_start = true;
            let mut found = Vec::new();
            for token in &self.0[at..] {
                match token.word.as_str() {
                    "{" => depth += 1,
                    "}" => depth -= 1,
                    "," => {}
                    word if may_start && depth <= 1 => found.push((word, token.line)),
                    _ => {}
                }
                may_start = matches!(token.word.as_str(), "{" | ",");
                if depth <= 0 {
                    break;
                }
            }
            found
        })
    }

    fn conditional_attributes(&self) -> impl Iterator<Item = (&str, usize)> {
        self.positions(&["[", "cfg_attr"]).flat_map(|at| {
            let end =
                self.0[at..].iter().position(|token| token.word == "]").map_or(self.0.len(), |end| at + end);
            let pairs = self.0[at..end].windows(2);
            pairs.filter(|pair| pair[0].word == ",").map(|pair| (pair[1].word.as_str(), pair[1].line))
        })
    }

    fn first_test_line(&self) -> Option<usize> {
        Some(self.0[self.first_test_position()?].line)
    }

    fn first_test_position(&self) -> Option<usize> {
        let opens = |at: usize| self.0.get(at + TESTS.len() + 1).is_some_and(|token| token.word == "{");
        self.positions(TESTS).find(|at| opens(*at))
    }

    fn positions<'a>(&'a self, words: &'a [&str]) -> impl Iterator<Item = usize> + 'a {
        let windows = self.0.windows(words.len()).enumerate();
        let matches =
            move |window: &[Token]| window.iter().zip(words).all(|(token, word)| token.word == *word);
        windows.filter(move |(_, window)| matches(window)).map(|(at, _)| at)
    }

    fn flatten(&mut self, stream: TokenStream) {
        for tree in stream {
            let line = tree.span().start().line;
            match tree {
                TokenTree::Group(group) => {
                    let (open, close) = match group.delimiter() {
                        Delimiter::Parenthesis => ("(", ")"),
                        Delimiter::Brace => ("{", "}"),
                        Delimiter::Bracket => ("[", "]"),
                        Delimiter::None => ("", ""),
                    };
                    self.push(open, line);
                    self.flatten(group.stream());
                    self.push(close, group.span_close().start().line);
                }
                TokenTree::Ident(word) => self.push(&word.to_string(), line),
                TokenTree::Punct(sign) => self.push(&sign.as_char().to_string(), line),
                TokenTree::Literal(literal) => {
                    let literal = literal.to_string();
                    let text = literal.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
                    let (word, text) = ("a literal".to_owned(), text.map(str::to_owned));
                    self.0.push(Token { word, text, line });
                }
            }
        }
    }

    fn push(&mut self, word: &str, line: usize) {
        self.0.push(Token { word: word.to_owned(), text: None, line });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(text: &str) -> Vec<String> {
        let mut violations = Vec::new();
        check(&Files::planted(&[("src/lib.rs", text)]), &mut violations);
        violations.sort();
        violations.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn comments_and_strings_do_not_match() {
        assert_eq!(
            reported("//! No `#[allow(x)]`.\n// todo!()\n/* #[ignore] */\nconst X: &str = \"dbg!(\";\n"),
            [""; 0]
        );
        assert_eq!(reported("//! X\nconst X: &str = r#\"#[allow(x)]\"#;\nfn todo() {}\n"), [""; 0]);
    }

    #[test]
    fn forbidden_attributes_and_macros_are_found_in_every_form() {
        let text = "//! X\n#![allow(x)]\n#[ allow(y)]\n#[test]\n#[ignore = \"slow\"]\nfn a() {\n    todo!();\n    \
                    std::unimplemented![];\n    dbg!(1);\n}\n#[cfg_attr(miri, ignore)]\nfn b() {}\n";
        insta::assert_snapshot!(reported(text).join("\n"), @r#"
        src/lib.rs:2: `#![allow]`; write `#![expect(lint, reason = "...")]`
        src/lib.rs:3: `#[allow]`; write `#[expect(lint, reason = "...")]`
        src/lib.rs:5: `#[ignore]`; fix the test, or delete it
        src/lib.rs:7: `todo!`; implement it, or remove the caller
        src/lib.rs:8: `unimplemented!`; implement it, or remove the caller
        src/lib.rs:9: `dbg!`; remove it, or use tracing
        src/lib.rs:11: `#[ignore]` in `cfg_attr`; fix the test, or delete it
        "#);
    }

    #[test]
    fn only_empty_lines_may_precede_the_header() {
        assert_eq!(reported("\n\n//! X\n"), [""; 0]);
        insta::assert_snapshot!(reported("\n// A comment.\n//! X\n").join("\n"), @"src/lib.rs:2: the file does not open with `//!`; describe what it owns and its invariant");
        insta::assert_snapshot!(reported("").join("\n"), @"src/lib.rs:1: the file does not open with `//!`; describe what it owns and its invariant");
    }

    #[test]
    fn unit_tests_do_not_count_toward_the_length() {
        let code = format!("//! X\n{}", "fn a() {}\n".repeat(599));
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "// line\n".repeat(100));
        assert_eq!(reported(&format!("{code}{tests}")), [""; 0]);
        insta::assert_snapshot!(reported(&format!("{code}fn b() {{}}\n{tests}")).join("\n"), @"src/lib.rs:601: 601 lines before the tests, more than 600; split it by noun");
        // A declaration of tests in another file does not end the count.
        assert_eq!(reported(&format!("//! X\n#[cfg(test)]\nmod tests;\n{code}")).len(), 1);
    }

    #[test]
    fn modules_are_found_in_plain_and_grouped_paths() {
        let tokens =
            Tokens::of("use std::{fs::File, collections::{self, net}, env};\nlet x = std::process::id();");
        let found: Vec<_> = tokens.as_ref().unwrap().paths_below("std").map(|(module, _)| module).collect();
        assert_eq!(found, ["fs", "collections", "env", "process"]);
    }

    #[test]
    fn test_data_is_not_checked() {
        let mut violations = Vec::new();
        check(&Files::planted(&[("tests/testdata/gen.rs", "#[allow(x)]")]), &mut violations);
        assert_eq!(violations, []);
    }
}
