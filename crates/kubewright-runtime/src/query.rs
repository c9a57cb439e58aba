//! URL paths with query parameters.

use std::fmt::{Display, Write as _};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything but letters, digits and five unreserved characters.
const RESERVED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b':');

/// A URL path with query parameters.
pub(crate) struct Query {
    text: String,
    empty: bool,
}

impl Query {
    pub(crate) fn new(path: String) -> Self {
        Self { text: path, empty: true }
    }

    pub(crate) fn push(&mut self, name: &str, value: impl Display) {
        self.text.push(if std::mem::take(&mut self.empty) { '?' } else { '&' });
        self.text.push_str(name);
        self.text.push('=');
        encode(&mut self.text, value);
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }
}

/// Percent-encodes [`RESERVED`] characters.
pub(crate) fn encode(text: &mut String, value: impl Display) {
    write!(Encoded(text), "{value}").expect("writing to a string does not fail");
}

struct Encoded<'a>(&'a mut String);

impl std::fmt::Write for Encoded<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.extend(utf8_percent_encode(text, RESERVED));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_and_non_ascii_characters_are_encoded() {
        let mut query = Query::new("/api/v1/pods".to_owned());
        query.push("labelSelector", "app in (a,b),x/y=ü");
        query.push("limit", 500);
        assert_eq!(
            query.as_str(),
            "/api/v1/pods?labelSelector=app%20in%20%28a%2Cb%29%2Cx%2Fy%3D%C3%BC&limit=500"
        );
    }
}
