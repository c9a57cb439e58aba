//! The `pattern` of a schema.

use std::sync::OnceLock;

use kubewright_cel::go_regex::PatternError;
pub use kubewright_cel::go_regex::{Matcher, TooCostly, compile};

/// The `pattern` of a schema, compiled on first use.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    compiled: OnceLock<Result<Matcher, PatternError>>,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Pattern {
    /// An expression. An invalid one is kept and matches nothing.
    pub fn new(text: &str) -> Self {
        Self { text: text.to_owned(), compiled: OnceLock::new() }
    }

    /// The original expression.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The compiled expression, or its error.
    pub fn matcher(&self) -> Result<&Matcher, &PatternError> {
        self.compiled.get_or_init(|| compile(&self.text)).as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubewright_cel::go_regex::translate;
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
            if translate(&text).is_ok() {
                let compiled = compile(&text);
                let is_compiled = compiled.as_ref().map_or_else(
                    |error| error.to_string().contains("expression too large"),
                    |_| true,
                );
                prop_assert!(is_compiled, "{}: {:?}", text, compiled);
            }
        }
    }
}
