//! The commands in the book, in all its languages, and what they print.

use std::fs;
use std::path::{Path, PathBuf};

use crate::run::{command, kubewright, run};

const BOOK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
/// English, Japanese, Chinese.
const LANGUAGES: [&str; 3] = ["", "ja/", "zh/"];
/// The chapters of the tutorial with commands that change the project, in their order.
const SCAFFOLDING: [&str; 4] = ["project", "api", "webhooks", "versions"];

/// A command of a page.
pub(crate) struct Shown {
    /// The command line, with the lines of a here-document.
    pub(crate) line: String,
    /// The output. `...` stands for any lines.
    pub(crate) output: Vec<String>,
}

impl Shown {
    /// Whether the page shows this output.
    pub(crate) fn matches(&self, printed: &str) -> bool {
        let expected: Vec<&str> = self.output.iter().map(String::as_str).collect();
        // kubectl prints a space after "is invalid:", which pages do not have.
        matches(&expected, &printed.lines().map(str::trim_end).collect::<Vec<_>>())
    }
}

pub(crate) fn page(path: &str) -> String {
    fs::read_to_string(Path::new(BOOK).join(path)).unwrap_or_else(|error| panic!("docs/{path}: {error}"))
}

/// The commands of a page's console blocks.
pub(crate) fn commands(page: &str) -> Vec<Shown> {
    let mut found: Vec<Shown> = Vec::new();
    for block in page.split("```console\n").skip(1) {
        let mut lines = block.split("```").next().unwrap_or_default().lines();
        let first = found.len();
        while let Some(line) = lines.next() {
            match line.strip_prefix("$ ") {
                Some(line) => {
                    let mut line = line.to_owned();
                    if line.ends_with("<<EOF") {
                        for more in lines.by_ref() {
                            line = format!("{line}\n{more}");
                            if more == "EOF" {
                                break;
                            }
                        }
                    }
                    found.push(Shown { line, output: Vec::new() });
                }
                None => {
                    if let Some(shown) = found[first..].last_mut() {
                        shown.output.push(line.to_owned());
                    }
                }
            }
        }
    }
    found
}

/// Whether lines are the expected ones. `...` stands for any lines.
fn matches(expected: &[&str], lines: &[&str]) -> bool {
    match expected {
        [] => lines.is_empty(),
        ["...", rest @ ..] => (0..=lines.len()).any(|from| matches(rest, &lines[from..])),
        [first, rest @ ..] => lines.first() == Some(first) && matches(rest, &lines[1..]),
    }
}

fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the book can be read") {
        let path = entry.expect("the book can be read").path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// With `--help` at the end, a command only checks its arguments.
#[test]
fn every_kubewright_command_of_the_book_has_valid_arguments() {
    let mut found = Vec::new();
    pages(Path::new(BOOK), &mut found);
    let mut checked = 0;
    for path in found {
        let page = fs::read_to_string(&path).expect("the page can be read");
        for shown in commands(&page) {
            let Some(arguments) = shown.line.strip_prefix("kubewright ") else { continue };
            let arguments = arguments.split([';', '&', '|', '>', '#']).next().unwrap_or_default();
            let ran = kubewright(&format!("{arguments} --help"));
            assert_eq!(ran.status, 0, "{}: {}: {ran}", path.display(), shown.line);
            checked += 1;
        }
    }
    assert!(checked > 50, "{checked} commands");
}

/// Runs the commands of pages that change a project, in one project.
#[track_caller]
fn scaffolds(pages: &[String]) -> usize {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let mut project = folder.path().to_owned();
    let mut ran = 0;
    for path in pages {
        for shown in commands(&page(path)) {
            if let Some(name) = shown.line.strip_prefix("mkdir ").and_then(|line| line.split(" && ").next()) {
                project = folder.path().join(name);
                fs::create_dir(&project).expect("a folder can be made");
            }
            let Some(arguments) = shown.line.strip_prefix("kubewright ") else { continue };
            // Other commands build the operator, or need a cluster.
            if !["init ", "create ", "edit "].iter().any(|start| arguments.starts_with(start)) {
                continue;
            }
            let result = run(command(arguments).current_dir(&project));
            assert_eq!(result.status, 0, "docs/{path}: {}: {result}", shown.line);
            let printed = result.stdout + &result.stderr;
            assert!(
                shown.output.is_empty() || shown.matches(&printed),
                "docs/{path} shows another output of `{}`, which is:\n{printed}",
                shown.line
            );
            ran += 1;
        }
    }
    ran
}

#[test]
fn the_commands_of_the_quick_start_print_what_the_page_shows() {
    for language in LANGUAGES {
        assert_eq!(scaffolds(&[format!("{language}quick-start.md")]), 2, "`init` and `create api`");
    }
}

#[test]
fn the_commands_of_the_tutorial_print_what_its_pages_show() {
    for language in LANGUAGES {
        let pages = SCAFFOLDING.map(|name| format!("{language}tutorial/{name}.md"));
        assert_eq!(scaffolds(&pages), 6, "init, two APIs, two webhooks, the storage version");
    }
}
