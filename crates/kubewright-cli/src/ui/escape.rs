//! Escapes external text for the terminal.

/// Escapes control characters: ESC becomes `\u{1b}`.
///
/// Line breaks and tabs stay. Bidirectional control characters are escaped too, because they can disguise a
/// line.
pub(crate) fn escape(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        if is_dangerous(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
        shown
    })
}

fn is_dangerous(c: char) -> bool {
    let reorders =
        matches!(c, '\u{061c}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    reorders || (c.is_control() && c != '\n' && c != '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(escape("\x1b[2J\x07 \u{9b}31m \r \x7f \0"), r"\u{1b}[2J\u{7} \u{9b}31m \r \u{7f} \u{0}");
    }

    #[test]
    fn bidirectional_control_characters_are_escaped() {
        assert_eq!(escape("a\u{202e}b\u{2066}c"), r"a\u{202e}b\u{2066}c");
    }

    #[test]
    fn plain_text_in_any_language_is_unchanged() {
        let text = "a\tb\n\"Grüße\" \\ 世界 مرحبا 🦀";
        assert_eq!(escape(text), text);
    }
}
