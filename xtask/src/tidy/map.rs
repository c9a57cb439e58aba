//! Checks ARCHITECTURE.md: names in brackets are files, and reading lists are short.
//!
//! Links are checked by [`super::links`].

use super::{Files, Violation};

const PATH: &str = "ARCHITECTURE.md";
/// The section with the reading lists.
const READING: &str = "### Reading order";
/// The maximum number of files of a reading list.
const LONGEST: usize = 12;

pub(super) fn check(files: &Files, violations: &mut Vec<Violation>) {
    let Some(text) = files.text(PATH) else { return };
    let mut report = |line: usize, what: String, fix: &str| {
        violations.push(Violation { path: PATH.to_owned(), line, what, fix: fix.into() });
    };
    for (line, folder, name) in names(text) {
        // A name may also be relative to the folder above, for a file that is used by several.
        let above = folder.rsplit_once('/').map_or("", |(above, _)| above);
        let exists = |folder: &str| {
            files.has(&format!("{folder}/{name}.rs"))
                || files.has(&format!("{folder}/{}", name.trim_end_matches('/')))
        };
        if !exists(folder) && !exists(above) {
            report(
                line,
                format!("no file `{name}` in {folder}"),
                "name a file relative to the folder of the section",
            );
        }
    }
    for (line, links) in lists(text) {
        if links > LONGEST {
            report(
                line,
                format!("{links} files to read, more than {LONGEST}"),
                "leave out what a reader can skip",
            );
        }
    }
}

/// The names in brackets of the sections that give a folder: line, folder, and name.
fn names(text: &str) -> Vec<(usize, &str, &str)> {
    let mut names = Vec::new();
    let (mut folder, mut is_code, mut depth) = ("", false, 0_usize);
    for (at, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            is_code = !is_code;
        }
        if line.starts_with("## ") {
            folder = "";
        }
        if let Some(rest) = line.strip_prefix("*In `") {
            folder = rest.split('`').next().unwrap_or_default();
        }
        if is_code || folder.is_empty() {
            continue;
        }
        // Odd parts are in backticks. A bracket may continue on the next line.
        for (index, part) in line.split('`').enumerate() {
            if index % 2 == 0 {
                depth = part.bytes().fold(depth, |depth, byte| match byte {
                    b'[' => depth + 1,
                    b']' => depth.saturating_sub(1),
                    _ => depth,
                });
            } else if depth > 0 {
                names.push((at + 1, folder, part));
            }
        }
    }
    names
}

/// The reading lists: line and number of links.
fn lists(text: &str) -> Vec<(usize, usize)> {
    let mut lists: Vec<(usize, usize)> = Vec::new();
    let mut in_reading = false;
    for (at, line) in text.lines().enumerate() {
        if line.starts_with('#') {
            in_reading = line == READING;
        }
        let is_title = !line.starts_with('[') && line.ends_with(':');
        if in_reading && is_title {
            lists.push((at + 1, 0));
        }
        if let Some((_, links)) = lists.last_mut().filter(|_| in_reading) {
            *links += line.matches("](").count();
        }
    }
    lists
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(map: &str) -> Vec<String> {
        let mut violations = Vec::new();
        let files = Files::planted(&[(PATH, map), ("a/src/cache/store.rs", ""), ("a/other.rs", "")]);
        check(&files, &mut violations);
        violations.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn bracketed_names_are_files_of_the_section() {
        let map = "# Map\n\n## Life of one\n\n*In `a/src`; file names in brackets.*\n\nReads [`cache/store`,\n\
                   `cache`, `other`] and `nothing` [`store`].\n\n## Other\n\n[`unchecked`]\n";
        assert_eq!(
            reported(map),
            [
                "ARCHITECTURE.md:8: no file `store` in a/src; name a file relative to the folder of the section"
            ]
        );
    }

    #[test]
    fn a_reading_list_has_at_most_twelve_files() {
        let list =
            |files: usize| format!("### Reading order\n\nPOST:\n{}", "[a](a/other.rs),\n".repeat(files));
        assert_eq!(reported(&list(12)), [""; 0]);
        assert_eq!(
            reported(&list(13)),
            ["ARCHITECTURE.md:3: 13 files to read, more than 12; leave out what a reader can skip"]
        );
    }
}
