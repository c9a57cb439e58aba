//! `Warning` headers of the API server, such as deprecations.
//!
//! [`Warnings`] logs each distinct text once. Invariant: its memory is bounded.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Mutex, PoisonError};

use http::{HeaderMap, header};

/// The number of texts to remember. Beyond it, the oldest one may be logged again.
const REMEMBERED: usize = 256;

/// Hashes of the warnings that were logged.
#[derive(Debug, Default)]
pub(super) struct Warnings(Mutex<VecDeque<u64>>);

impl Warnings {
    /// Logs the new warnings of a response.
    pub(super) fn log(&self, headers: &HeaderMap) {
        for value in headers.get_all(header::WARNING) {
            for text in value.to_str().map(texts).unwrap_or_default() {
                if self.is_new(&text) {
                    tracing::warn!("API server warning: {text}");
                }
            }
        }
    }

    fn is_new(&self, text: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let hash = hasher.finish();
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.contains(&hash) {
            return false;
        }
        if logged.len() == REMEMBERED {
            logged.pop_front();
        }
        logged.push_back(hash);
        true
    }
}

/// The texts of a header: `299 - "text", 299 agent "text" "date"`. As in client-go, only code 299 counts, and invalid
/// parts are skipped.
fn texts(mut value: &str) -> Vec<String> {
    let mut texts = Vec::new();
    while let Some((code, rest)) = value.trim_start().split_once(' ') {
        let Some((_agent, rest)) = rest.split_once(' ') else { break };
        let Some((text, rest)) = quoted(rest.trim_start()) else { break };
        if code == "299" && !text.is_empty() {
            texts.push(text);
        }
        let rest = rest.trim_start();
        let rest = quoted(rest).map_or(rest, |(_date, rest)| rest.trim_start());
        let Some(rest) = rest.strip_prefix(',') else { break };
        value = rest;
    }
    texts
}

/// A quoted string and the rest after it.
fn quoted(value: &str) -> Option<(String, &str)> {
    let (mut text, mut chars) = (String::new(), value.strip_prefix('"')?.chars());
    loop {
        match chars.next()? {
            '"' => return Some((text, chars.as_str())),
            '\\' => text.push(chars.next()?),
            char => text.push(char),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_of_a_header_are_read_as_client_go_does() {
        let cases: [(&str, &[&str]); 6] = [
            (r#"299 - "policy/v1beta1 is deprecated""#, &["policy/v1beta1 is deprecated"]),
            (
                r#"299 - "one, two", 299 agent "three" "Wed, 21 Oct 2015 07:28:00 GMT""#,
                &["one, two", "three"],
            ),
            (r#"299 - "a \"quoted\" \\ text""#, &[r#"a "quoted" \ text"#]),
            (r#"110 - "stale", 299 - "new""#, &["new"]),
            (r#"299 - "cut off"#, &[]),
            ("", &[]),
        ];
        for (header, read) in cases {
            assert_eq!(texts(header), read, "{header}");
        }
    }

    #[test]
    fn a_text_is_new_once_and_memory_is_bounded() {
        let warnings = Warnings::default();
        assert!(warnings.is_new("a") && !warnings.is_new("a") && warnings.is_new("b"));
        for number in 0..10 * REMEMBERED {
            warnings.is_new(&number.to_string());
        }
        assert_eq!(warnings.0.lock().unwrap().len(), REMEMBERED);
        assert!(warnings.is_new("a"));
    }
}
