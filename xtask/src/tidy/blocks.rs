//! Checks the code blocks of the book and of the examples' READMEs: commands start with `$ `, and translations have the
//! blocks of the English page.
//!
//! A block of a translation that differs stands after the comment `<!-- translated block -->`.

use super::{Files, Violation};

/// The folders of the translations.
const TRANSLATIONS: [&str; 2] = ["docs/ja/", "docs/zh/"];
const TRANSLATED: &str = "<!-- translated block -->";

pub(super) fn check(files: &Files, violations: &mut Vec<Violation>) {
    for (path, page) in files.written("md") {
        if path.starts_with("docs/") || path.starts_with("examples/") {
            let blocks = blocks(page);
            check_commands(path, &blocks, violations);
            check_translation(path, &blocks, files, violations);
        }
    }
}

struct Block<'a> {
    /// The line of the fence.
    line: usize,
    language: &'a str,
    is_translated: bool,
    lines: Vec<&'a str>,
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut found: Vec<Block<'_>> = Vec::new();
    let mut is_open = false;
    let mut before = "";
    for (index, line) in page.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(_) if is_open => is_open = false,
            Some(language) => {
                is_open = true;
                let is_translated = before == TRANSLATED;
                found.push(Block { line: index + 1, language, is_translated, lines: Vec::new() });
            }
            None if is_open => found.last_mut().expect("a block is open").lines.push(line),
            None => {}
        }
        before = line;
    }
    found
}

fn check_commands(path: &str, blocks: &[Block<'_>], violations: &mut Vec<Violation>) {
    for block in blocks {
        let mut report = |what: &str, fix: &str| {
            let (what, fix) = (what.to_owned(), fix.to_owned());
            violations.push(Violation { path: path.to_owned(), line: block.line, what, fix });
        };
        match block.language {
            "sh" | "bash" | "shell" => report(
                "the block of commands is not checked",
                "use `console`, and start each command with `$ `",
            ),
            "console" if block.lines.first().is_none_or(|line| !line.starts_with("$ ")) => {
                report("the first line is not a command", "start each command with `$ `");
            }
            _ => {}
        }
    }
}

fn check_translation(path: &str, blocks: &[Block<'_>], files: &Files, violations: &mut Vec<Violation>) {
    let Some(page) = TRANSLATIONS.iter().find_map(|folder| path.strip_prefix(folder)) else { return };
    let english = format!("docs/{page}");
    let Some(text) = files.text(&english) else { return };
    let originals = self::blocks(text);
    let mut report = |line, what: String| {
        let fix = format!("copy the block, or write {TRANSLATED} above it");
        violations.push(Violation { path: path.to_owned(), line, what, fix });
    };
    if originals.len() != blocks.len() {
        report(1, format!("{english} has {} code blocks, this page has {}", originals.len(), blocks.len()));
        return;
    }
    for (block, original) in blocks.iter().zip(&originals).filter(|(block, _)| !block.is_translated) {
        if (block.language, &block.lines) != (original.language, &original.lines) {
            report(block.line, format!("the block differs from that at {english}:{}", original.line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_without_prompts_and_stale_translations_are_reported() {
        let english = "```console\n$ a\nb\n```\n```text\nfree\n```\n```rust\nlet a;\n```\n";
        let japanese =
            "```console\n$ a\nb\n```\n<!-- translated block -->\n```text\n自由\n```\n```rust\nlet b;\n```\n";
        let files = [
            ("docs/page.md", english),
            ("docs/ja/page.md", japanese),
            ("docs/zh/page.md", "```console\n$ a\nb\n```\n"),
            ("docs/bare.md", "```console\nmake\n```\n```sh\nmake\n```\n"),
            ("README.md", "```sh\nmake\n```\n"),
        ];
        let mut violations = Vec::new();
        check(&Files::planted(&files), &mut violations);
        violations.sort();
        let reported: Vec<_> = violations.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(reported.join("\n"), @"
        docs/bare.md:1: the first line is not a command; start each command with `$ `
        docs/bare.md:4: the block of commands is not checked; use `console`, and start each command with `$ `
        docs/ja/page.md:9: the block differs from that at docs/page.md:8; copy the block, or write <!-- translated block --> above it
        docs/zh/page.md:1: docs/page.md has 3 code blocks, this page has 1; copy the block, or write <!-- translated block --> above it
        ");
    }
}
