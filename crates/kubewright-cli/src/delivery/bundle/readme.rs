//! Title and description from README.md.

/// The title and description in a README.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Readme {
    /// The first heading.
    pub(super) title: Option<String>,
    /// Everything after it.
    pub(super) text: String,
}

impl Readme {
    pub(super) fn parse(text: &str) -> Self {
        let text = text.trim_start();
        let Some(rest) = text.strip_prefix("# ") else {
            return Self { title: None, text: text.trim_end().to_owned() };
        };
        let (title, text) = rest.split_once('\n').unwrap_or((rest, ""));
        Self { title: Some(title.trim().to_owned()), text: text.trim().to_owned() }
    }
}

/// A display name: `markdown-view` and `markdownView` become `Markdown View`.
pub(super) fn display_name(name: &str) -> String {
    let mut words = String::new();
    let mut last = ' ';
    for c in name.chars() {
        let c = if c == '-' || c == '_' { ' ' } else { c };
        if c.is_uppercase() && (last.is_lowercase() || last.is_ascii_digit()) {
            words.push(' ');
        }
        let starts = words.is_empty() || words.ends_with(' ');
        if starts {
            words.extend(c.to_uppercase());
        } else {
            words.push(c);
        }
        last = c;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_heading_is_the_title() {
        let readme = Readme::parse("\n# Shop\n\nSells things.\n\n## More\n");
        assert_eq!(readme, Readme { title: Some("Shop".into()), text: "Sells things.\n\n## More".into() });
        assert_eq!(Readme::parse("Sells things.\n"), Readme { title: None, text: "Sells things.".into() });
    }

    #[test]
    fn names_are_split_into_words() {
        for (name, shown) in [
            ("markdown-view", "Markdown View"),
            ("viewerImage", "Viewer Image"),
            ("MarkdownView", "Markdown View"),
            ("replicas", "Replicas"),
            ("podIP", "Pod IP"),
        ] {
            assert_eq!(display_name(name), shown);
        }
    }
}
