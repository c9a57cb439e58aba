//! The commands in the book, in all its languages and in the READMEs of the examples, and what they print.

mod rules;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) use self::rules::{Test, run_by};
use crate::kubectl::process::Process;
use crate::run::{command, kubewright, run};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// English, Japanese, Chinese.
const LANGUAGES: [&str; 3] = ["", "ja/", "zh/"];
/// The chapters of the tutorial with commands that change the project, in their order.
const SCAFFOLDING: [&str; 4] = ["project", "api", "webhooks", "versions"];

/// A page with commands.
pub(crate) struct Page {
    /// Relative to the root of the repository.
    pub(crate) path: String,
    pub(crate) commands: Vec<Shown>,
    /// The page without its code blocks.
    prose: String,
}

impl Page {
    pub(crate) fn read(path: &str) -> Self {
        let text =
            fs::read_to_string(Path::new(ROOT).join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        // Every second part is a code block.
        let prose = text.split("\n```").step_by(2).collect::<Vec<_>>().join("\n");
        Self { path: path.to_owned(), commands: commands(&text), prose }
    }
}

/// A command of a page.
pub(crate) struct Shown {
    /// The command line, with its continuation lines and the lines of a here-document.
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

    /// The command line without its comment.
    fn command(&self) -> &str {
        self.line.split(" #").next().unwrap_or_default().trim_end()
    }
}

/// The commands of a page's console blocks.
fn commands(page: &str) -> Vec<Shown> {
    let mut found: Vec<Shown> = Vec::new();
    for block in page.split("```console\n").skip(1) {
        let mut lines = block.split("```").next().unwrap_or_default().lines();
        let first = found.len();
        while let Some(line) = lines.next() {
            match line.strip_prefix("$ ") {
                Some(line) => {
                    let mut line = line.to_owned();
                    let ends = if line.ends_with("<<EOF") { Some("EOF") } else { None };
                    while line.ends_with('\\') || ends.is_some_and(|end| line.lines().last() != Some(end)) {
                        let Some(more) = lines.next() else { break };
                        line = format!("{line}\n{more}");
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

/// Whether lines are the expected ones. `...` stands for any lines, and ages may differ.
fn matches(expected: &[&str], lines: &[&str]) -> bool {
    match expected {
        [] => lines.is_empty(),
        ["...", rest @ ..] => (0..=lines.len()).any(|from| matches(rest, &lines[from..])),
        [first, rest @ ..] => {
            lines
                .first()
                .is_some_and(|line| line == first || cells(line).is_some_and(|it| cells(first) == Some(it)))
                && matches(rest, &lines[1..])
        }
    }
}

/// The words of a row with an age, or of the header of such a table. The width of their columns depends on the ages.
fn cells(line: &str) -> Option<Vec<&str>> {
    let is_age = |word: &str| {
        let is_unit = |last| matches!(last, 's' | 'm' | 'h' | 'd');
        word.starts_with(|first: char| first.is_ascii_digit())
            && word.ends_with(is_unit)
            && word.chars().all(|letter| letter.is_ascii_digit() || is_unit(letter))
    };
    let is_header = line.contains("  ")
        && line.chars().all(|letter| letter.is_ascii_uppercase() || " -".contains(letter));
    // The number of times that an event was repeated.
    let repeated = line.split_once(" (x").and_then(|(before, rest)| Some((before, rest.split_once(')')?.1)));
    let (before, after) = repeated.unwrap_or((line, ""));
    let words = before.split_whitespace().chain(after.split_whitespace());
    let words: Vec<&str> = words.map(|word| if is_age(word) { "5s" } else { word }).collect();
    (is_header || words.contains(&"5s")).then_some(words)
}

#[test]
fn ages_of_a_page_may_differ() {
    let shown = |line: &str| Shown { line: String::new(), output: line.lines().map(str::to_owned).collect() };
    let table = shown("NAME   READY   AGE\nbar    True    5s");
    assert!(table.matches("NAME   READY   AGE\nbar    True    2m10s\n"));
    assert!(!table.matches("NAME   READY   AGE\nbar    False   5s\n"));
    let events = shown("LAST SEEN        TYPE\n3s (x2 over 3s)  Warning");
    assert!(events.matches("LAST SEEN   TYPE\n4s          Warning\n"));
    assert!(!shown("spec:\n  a: b").matches("spec:\n    a: b\n"));
}

/// All pages of the book, and the READMEs of the examples.
fn all() -> Vec<Page> {
    let root = Path::new(ROOT).canonicalize().expect("the repository is there");
    let mut found = Vec::new();
    pages(&root.join("docs"), &mut found);
    for example in fs::read_dir(root.join("examples")).expect("the examples can be read") {
        let readme = example.expect("the examples can be read").path().join("README.md");
        found.extend(readme.exists().then_some(readme));
    }
    let relative = |path: &PathBuf| path.strip_prefix(&root).expect("it is below").display().to_string();
    found.iter().map(|path| Page::read(&relative(path))).collect()
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
    let mut checked = 0;
    for page in all() {
        for shown in &page.commands {
            // Also those that `cargo run` starts, and those in a pipe or a substitution.
            let line = shown.command().replace("cargo run -- dev", "kubewright dev");
            let starts = ["| kubewright ", "$(kubewright "];
            let inner = starts.iter().find_map(|start| line.split_once(start)).map(|(_, rest)| rest);
            let Some(arguments) = line.strip_prefix("kubewright ").or(inner) else { continue };
            let arguments = arguments.split([';', '&', '|', '>', '#', ')']).next().unwrap_or_default();
            let ran = kubewright(&format!("{} --help", arguments.replace('\\', "")));
            assert_eq!(ran.status, 0, "{}: {}: {ran}", page.path, shown.line);
            checked += 1;
        }
    }
    assert!(checked > 150, "{checked} commands");
}

/// The text may name a flag without its value, and a value by its placeholder.
#[test]
fn every_kubewright_command_in_the_text_has_valid_arguments() {
    let mut checked = BTreeSet::new();
    for page in all() {
        let spans = page.prose.split('`').skip(1).step_by(2);
        for arguments in spans.filter_map(|span| span.strip_prefix("kubewright ")) {
            // Arguments after `--` are cargo's, so that `--help` would be one of them.
            if arguments.contains(" -- ")
                || arguments.starts_with("COMMAND")
                || !checked.insert(arguments.to_owned())
            {
                continue;
            }
            let ran = kubewright(&format!("{arguments} --help"));
            let is_placeholder =
                ran.stderr.contains("a value is required for") || ran.stderr.contains("invalid value");
            assert!(ran.status == 0 || is_placeholder, "{}: {arguments}: {ran}", page.path);
        }
    }
    assert!(checked.len() > 30, "{} commands", checked.len());
}

/// Runs the commands of pages that change a project, in one project.
#[track_caller]
fn scaffolds(pages: &[String]) -> usize {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let mut project = folder.path().join("project");
    let mut ran = 0;
    for path in pages {
        let page = Page::read(path);
        for shown in run_by(Test::Scaffold, &page) {
            if let Some(name) = shown.line.strip_prefix("mkdir ").and_then(|line| line.split(" && ").next()) {
                project = folder.path().join(name);
                continue;
            }
            fs::create_dir_all(&project).expect("a folder can be made");
            let arguments = shown.command().strip_prefix("kubewright ").expect("only these change a project");
            let result = run(command(arguments).current_dir(&project));
            assert_eq!(result.status, 0, "{path}: {}: {result}", shown.line);
            let printed = result.stdout + &result.stderr;
            assert!(
                shown.output.is_empty() || shown.matches(&printed),
                "{path} shows another output of `{}`, which is:\n{printed}",
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
        assert_eq!(scaffolds(&[format!("docs/{language}quick-start.md")]), 2, "`init` and `create api`");
    }
}

#[test]
fn the_commands_of_the_tutorial_print_what_its_pages_show() {
    for language in LANGUAGES {
        let pages = SCAFFOLDING.map(|name| format!("docs/{language}tutorial/{name}.md"));
        assert_eq!(scaffolds(&pages), 6, "init, two APIs, two webhooks, the storage version");
    }
}

#[test]
fn the_commands_of_the_other_pages_change_a_project() {
    for (path, count) in [
        ("docs/scaffold.md", 16),
        ("docs/cronjob.md", 5),
        ("docs/sample-controller.md", 2),
        ("docs/collector.md", 2),
        ("examples/markdown-view/README.md", 5),
        ("examples/cronjob/README.md", 5),
        ("examples/sample-controller/README.md", 2),
        ("examples/collector/README.md", 2),
    ] {
        assert_eq!(scaffolds(&[path.to_owned()]), count, "{path}");
    }
}

/// No scaffolding command is on a page that no test above reads.
#[test]
fn every_page_with_scaffolding_commands_is_run() {
    let mut found: Vec<String> = Vec::new();
    for page in all() {
        if run_by(Test::Scaffold, &page).any(|shown| shown.line.starts_with("kubewright ")) {
            found.push(page.path.replace("docs/ja/", "docs/").replace("docs/zh/", "docs/"));
        }
    }
    found.sort();
    found.dedup();
    insta::assert_snapshot!(found.join("\n"), @"
    docs/collector.md
    docs/cronjob.md
    docs/quick-start.md
    docs/sample-controller.md
    docs/scaffold.md
    docs/tutorial/api.md
    docs/tutorial/project.md
    docs/tutorial/versions.md
    docs/tutorial/webhooks.md
    examples/collector/README.md
    examples/cronjob/README.md
    examples/markdown-view/README.md
    examples/sample-controller/README.md
    ");
}

/// Runs the commands of a page on an API server.
#[track_caller]
fn on_server(test: Test, path: &str, arguments: &str, files: &[(&str, &str)]) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("a file can be written");
    }
    let kubeconfig = folder.path().join("kubewright.kubeconfig");
    let mut start = command(&format!("apiserver {arguments} --kubeconfig"));
    let mut server = Process::start(start.arg(&kubeconfig).current_dir(folder.path()), "");
    server.line_with("ready https://");
    let page = Page::read(path);
    let mut ran = 0;
    for shown in run_by(test, &page) {
        let mut shell = Command::new("sh");
        shell.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        shell.env("HOME", folder.path()).env("KUBECONFIG", &kubeconfig).current_dir(folder.path());
        let result = run(shell.args(["-c", &shown.line]));
        let printed = result.stdout.clone() + &result.stderr;
        let is_as_shown = if shown.output.is_empty() { result.status == 0 } else { shown.matches(&printed) };
        assert!(is_as_shown, "{path}: {}: {result}", shown.line);
        ran += 1;
    }
    assert!(ran > 0, "{path} has no commands");
}

const CRD: &str =
    include_str!("../../../../examples/markdown-view/config/crd/bases/view.example.com_markdownviews.yaml");
const OBJECT: &str =
    include_str!("../../../../examples/markdown-view/config/samples/view_v1_markdownview.yaml");

#[test]
fn the_commands_of_the_page_about_the_api_server_work() {
    let files = [
        ("objects.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: objects}\n"),
        ("crd.yaml", CRD),
        ("object.yaml", OBJECT),
    ];
    on_server(Test::Server, "docs/apiserver.md", "", &files);
}

#[test]
fn the_commands_of_the_page_about_the_cluster_work() {
    on_server(Test::Cluster, "docs/cluster.md", "--controllers all --nodes 3", &[]);
}
