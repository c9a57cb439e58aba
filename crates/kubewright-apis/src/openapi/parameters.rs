//! Query parameters of options kinds: `facts/parameters.txt`.
//!
//! The format is a line with the name of the options kind, followed by one indented line per parameter,
//! sorted by name: name, type and description, separated by tabs. Descriptions escape `\n`, `\t` and `\\`.

use std::borrow::Cow;
use std::sync::LazyLock;

static OPTIONS: LazyLock<Vec<(&str, Vec<QueryParameter>)>> = LazyLock::new(|| {
    let mut options: Vec<(&str, Vec<_>)> = Vec::new();
    let text = include_str!("../../facts/parameters.txt");
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        match (line.strip_prefix('\t'), options.last_mut()) {
            (Some(parameter), Some((_, parameters))) => parameters.extend(QueryParameter::parse(parameter)),
            _ => options.push((line, Vec::new())),
        }
    }
    options
});

/// A query parameter: name, OpenAPI type and description.
pub(super) struct QueryParameter {
    pub(super) name: &'static str,
    pub(super) ty: &'static str,
    pub(super) text: Cow<'static, str>,
}

/// The query parameters of an options kind such as `ListOptions`, sorted by name.
pub(super) fn of_options(kind: &str) -> &'static [QueryParameter] {
    let found = OPTIONS.iter().find(|(name, _)| *name == kind);
    found.map_or(&[], |(_, parameters)| parameters)
}

impl QueryParameter {
    fn parse(line: &'static str) -> Option<Self> {
        let mut cells = line.splitn(3, '\t');
        Some(Self { name: cells.next()?, ty: cells.next()?, text: unescape(cells.next()?) })
    }
}

fn unescape(text: &'static str) -> Cow<'static, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        plain.push_str(before);
        plain.push(match after.as_bytes().first() {
            Some(b'n') => '\n',
            Some(b't') => '\t',
            _ => '\\',
        });
        rest = after.get(1..).unwrap_or_default();
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_become_query_parameters() {
        let names: Vec<_> = of_options("PatchOptions").iter().map(|parameter| parameter.name).collect();
        assert_eq!(names, ["dryRun", "fieldManager", "fieldValidation", "force"]);
        assert!(of_options("NoOptions").is_empty());
    }

    #[test]
    fn every_line_of_the_table_is_a_parameter() {
        for (kind, parameters) in OPTIONS.iter() {
            assert!(!parameters.is_empty() && parameters.is_sorted_by_key(|p| p.name), "{kind}");
            for parameter in parameters {
                assert!(
                    ["boolean", "integer", "string"].contains(&parameter.ty),
                    "{kind}.{}",
                    parameter.name
                );
            }
        }
    }

    #[test]
    fn descriptions_keep_their_line_breaks() {
        assert_eq!(unescape(r"a\n\tb\\n"), "a\n\tb\\n");
        let list = of_options("ListOptions").iter().find(|parameter| parameter.name == "continue");
        assert!(list.is_some_and(|parameter| parameter.text.contains("\n\n")));
    }
}
