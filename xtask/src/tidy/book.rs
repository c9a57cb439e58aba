//! Checks the book: excerpts of source files are up to date, the summary lists every page, and the reference lists the
//! environment variables that programs read, and no others.
//!
//! An excerpt is a fenced block directly after a comment with the path of its file:
//! `<!-- examples/markdown-view/src/main.rs -->`. Its lines are consecutive lines of that file. The indentation that all
//! of them have in common may differ.

use std::collections::BTreeSet;

use super::{Files, Violation};

const SUMMARY: &str = "docs/SUMMARY.md";
const VARIABLES: &str = "docs/reference/environment.md";
/// Variables of the system and of the Rust toolchain, with their usual meaning.
const STANDARD: [&str; 5] = ["COMPUTERNAME", "HOME", "OUT_DIR", "PATH", "RUSTC"];
/// Variables of cargo, and those of OpenTelemetry, which the page describes as a group.
const STANDARD_GROUPS: [&str; 2] = ["CARGO_", "OTEL_"];

pub(super) fn check(files: &Files, violations: &mut Vec<Violation>) {
    check_excerpts(files, violations);
    check_summary(files, violations);
    check_variables(files, violations);
}

fn check_excerpts(files: &Files, violations: &mut Vec<Violation>) {
    for (path, page) in files.written("md") {
        for excerpt in excerpts(page) {
            if let Err((what, fix)) = compare(&excerpt, files) {
                violations.push(Violation {
                    path: path.to_owned(),
                    line: excerpt.line,
                    what,
                    fix: fix.to_owned(),
                });
            }
        }
    }
}

fn check_summary(files: &Files, violations: &mut Vec<Violation>) {
    let Some(summary) = files.text(SUMMARY) else { return };
    let listed: BTreeSet<&str> =
        summary.split("](").skip(1).filter_map(|link| link.split(')').next()).collect();
    for (path, _) in files.written("md") {
        if let Some(page) = path.strip_prefix("docs/")
            && path != SUMMARY
            && !listed.contains(page)
        {
            violations.push(Violation {
                path: path.to_owned(),
                line: 1,
                what: format!("{SUMMARY} does not list the page"),
                fix: "add it to the summary".to_owned(),
            });
        }
    }
}

/// Variables of tests and of the workspace's own tasks are not part of the reference.
fn check_variables(files: &Files, violations: &mut Vec<Violation>) {
    let page = files.text(VARIABLES).unwrap_or_default();
    let mut literals = BTreeSet::new();
    for (path, text) in files.written("rs") {
        let mut parts = path.split('/');
        if (parts.next(), parts.nth(1)) != (Some("crates"), Some("src")) || path.contains("tests") {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            let names = line.split('"').skip(1).step_by(2).filter(|name| is_name(name));
            literals.extend(names.clone());
            for name in names.filter(|name| is_variable(name, line, text)) {
                if !page.contains(&format!("`{name}`")) {
                    violations.push(Violation {
                        path: path.to_owned(),
                        line: index + 1,
                        what: format!("{VARIABLES} does not describe {name}"),
                        fix: "describe it there".to_owned(),
                    });
                }
            }
        }
    }
    for (index, line) in page.lines().enumerate() {
        // The variables are in the first column.
        let cell = line.strip_prefix("| ").and_then(|row| row.split(" | ").next()).unwrap_or_default();
        let unread = |name: &&str| is_name(name) && !literals.contains(name);
        for name in cell.split('`').skip(1).step_by(2).filter(unread) {
            violations.push(Violation {
                path: VARIABLES.to_owned(),
                line: index + 1,
                what: format!("no program reads {name}"),
                fix: "remove it from the page".to_owned(),
            });
        }
    }
}

/// Whether a literal has the form of an environment variable's name.
fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_uppercase())
        && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Whether a name is an environment variable that the program reads and its user can set. A name that is passed to a
/// function is recognized in files that read variables.
fn is_variable(name: &str, line: &str, file: &str) -> bool {
    let is_read = line.contains(&format!("env::var(\"{name}\")"))
        || line.contains(&format!("env::var_os(\"{name}\")"))
        || name.starts_with("KUBEWRIGHT_")
        || (name.contains('_') && file.contains("env::var"));
    let is_standard = STANDARD.contains(&name) || STANDARD_GROUPS.iter().any(|start| name.starts_with(start));
    is_read && !is_standard
}

struct Excerpt<'a> {
    /// The line of the comment.
    line: usize,
    file: &'a str,
    lines: Vec<&'a str>,
}

fn excerpts(page: &str) -> Vec<Excerpt<'_>> {
    let lines: Vec<&str> = page.lines().collect();
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let comment = line.strip_prefix("<!-- ").and_then(|line| line.strip_suffix(" -->"));
        let is_fenced = lines.get(index + 1).is_some_and(|next| next.starts_with("```"));
        if let Some(file) = comment.filter(|file| is_fenced && !file.contains(' ')) {
            let body = lines[index + 2..].iter().take_while(|line| !line.starts_with("```"));
            found.push(Excerpt { line: index + 1, file, lines: body.copied().collect() });
        }
    }
    found
}

fn compare(excerpt: &Excerpt<'_>, files: &Files) -> Result<(), (String, &'static str)> {
    let Some(text) = files.text(excerpt.file) else {
        return Err((format!("the excerpt is of the missing file {}", excerpt.file), "fix the path"));
    };
    let lines: Vec<&str> = text.lines().collect();
    let wanted = dedented(&excerpt.lines);
    if !wanted.is_empty() && lines.windows(wanted.len()).any(|part| dedented(part) == wanted) {
        return Ok(());
    }
    let unknown = wanted.iter().find(|line| !lines.iter().any(|other| other.trim() == line.trim()));
    let what = match unknown {
        Some(line) => format!("{} has no line `{}`", excerpt.file, line.trim()),
        None => format!("the lines are not consecutive in {}", excerpt.file),
    };
    Err((what, "copy the current lines"))
}

/// The lines without the indentation that all of them have.
fn dedented<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let indentation = |line: &&str| line.len() - line.trim_start().len();
    let common =
        lines.iter().filter(|line| !line.trim().is_empty()).map(indentation).min().unwrap_or_default();
    lines.iter().map(|line| line.get(common..).unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_excerpts_and_missing_entries_are_reported() {
        let page = "<!-- src/a.rs -->\n```rust\none\n  two\n```\n\
                    <!-- src/a.rs -->\n```rust\none\nthree\n```\n\
                    <!-- src/a.rs -->\n```rust\nfour\n```\n\
                    <!-- src/b.rs -->\n```rust\none\n```\n\
                    <!-- a note -->\n```rust\nanything\n```\n\
                    <!-- src/c.rs -->\n```rust\nfn c() {\n\n    c();\n}\n```\n\
                    <!-- src/c.rs -->\n```rust\nfn c() {\n\nc();\n```\n";
        let files = [
            ("docs/page.md", page),
            ("docs/lost.md", ""),
            ("docs/SUMMARY.md", "- [Page](page.md) [Variables](reference/environment.md)\n"),
            ("docs/reference/environment.md", "| `KUBEWRIGHT_A`, `PATH` | a |\n| `GONE` | b |\n"),
            ("src/a.rs", "zero\none\n  two\nthree\n"),
            ("src/c.rs", "mod c {\n    fn c() {\n\n        c();\n    }\n}\n"),
            ("crates/a/src/lib.rs", "const A: &str = \"KUBEWRIGHT_A\";\nconst B: &str = \"KUBEWRIGHT_B\";\n"),
            ("crates/a/src/b.rs", "env::var_os(\"PATH\"); env::var(\"HOST\"); text(\"MY_HOST\"); \"GET\";\n"),
            ("crates/a/tests/it.rs", "const C: &str = \"KUBEWRIGHT_C\";\n"),
        ];
        let mut violations = Vec::new();
        check(&Files::planted(&files), &mut violations);
        let reported: Vec<_> = violations.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(reported.join("\n"), @"
        docs/page.md:6: the lines are not consecutive in src/a.rs; copy the current lines
        docs/page.md:11: src/a.rs has no line `four`; copy the current lines
        docs/page.md:15: the excerpt is of the missing file src/b.rs; fix the path
        docs/page.md:30: the lines are not consecutive in src/c.rs; copy the current lines
        docs/lost.md:1: docs/SUMMARY.md does not list the page; add it to the summary
        crates/a/src/b.rs:1: docs/reference/environment.md does not describe HOST; describe it there
        crates/a/src/b.rs:1: docs/reference/environment.md does not describe MY_HOST; describe it there
        crates/a/src/lib.rs:2: docs/reference/environment.md does not describe KUBEWRIGHT_B; describe it there
        docs/reference/environment.md:2: no program reads GONE; remove it from the page
        ");
    }
}
