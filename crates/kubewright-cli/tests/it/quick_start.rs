//! The quick start of the book: its scaffolding commands, and what they print.

use crate::run::{command, run};

const PAGE: &str = include_str!("../../../../docs/quick-start.md");

/// The commands of the console blocks, each with its expected output.
fn commands() -> Vec<(&'static str, String)> {
    let mut found: Vec<(&str, String)> = Vec::new();
    for block in PAGE.split("```console\n").skip(1) {
        let mut is_after_command = false;
        for line in block.split("```").next().unwrap_or_default().lines() {
            if let Some(line) = line.strip_prefix("$ ") {
                found.push((line, String::new()));
                is_after_command = true;
            } else if let Some((_, output)) = found.last_mut().filter(|_| is_after_command) {
                output.push_str(line);
                output.push('\n');
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

#[test]
fn the_scaffolding_commands_print_what_the_page_shows() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let project = folder.path().join("shop");
    let mut checked = 0;
    for (line, expected) in commands() {
        if line == "mkdir shop && cd shop" {
            std::fs::create_dir(&project).expect("a folder can be made");
        }
        let Some(arguments) = line.strip_prefix("kubewright ") else { continue };
        // `dev` and `make` build the operator; other tests run them.
        if !arguments.starts_with("init ") && !arguments.starts_with("create ") {
            continue;
        }
        let ran = run(command(arguments).current_dir(&project));
        assert_eq!(ran.status, 0, "{line}: {ran}");
        let (expected, printed): (Vec<&str>, Vec<&str>) =
            (expected.lines().collect(), ran.stdout.lines().collect());
        assert!(matches(&expected, &printed), "docs/quick-start.md: {line} printed:\n{}", ran.stdout);
        checked += 1;
    }
    assert_eq!(checked, 2, "the page has `init` and `create api`");
}
