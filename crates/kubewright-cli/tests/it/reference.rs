//! The reference of the command line, docs/reference/commands.md, is the help of all commands.
//!
//! `UPDATE_DOCS=1 cargo test -p kubewright-cli reference` writes the page.

use std::path::Path;

use crate::run::kubewright;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/commands.md");

/// The commands that the help of a command lists, without `help`.
fn listed(help: &str) -> Vec<&str> {
    let commands = help.split("\nCommands:\n").nth(1).unwrap_or_default();
    let lines = commands.lines().take_while(|line| !line.is_empty());
    let names =
        lines.filter(|line| !line.starts_with("    ")).filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").collect()
}

/// Writes the section of a command, and those of its subcommands.
fn section(command: &str, page: &mut String) {
    let help = kubewright(&format!("{command} --help")).result();
    page.extend(["\n## kubewright ", command, "\n\n```text\n", help.trim(), "\n```\n"]);
    for name in listed(&help) {
        section(&format!("{command} {name}"), page);
    }
}

#[test]
fn the_reference_is_the_help_of_every_command() {
    let help = kubewright("--help").result();
    let mut page = format!(
        "# Commands\n\nThe help of every command, as `kubewright COMMAND --help` prints it.\n\n```text\n{}\n```\n",
        help.trim()
    );
    let commands = listed(&help);
    assert!(commands.contains(&"dev") && commands.contains(&"create"), "{commands:?}");
    for command in commands {
        section(command, &mut page);
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(Path::new(PAGE).parent().expect("a folder")).expect("a folder");
        std::fs::write(PAGE, &page).expect("a file");
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert_eq!(written, page, "run `UPDATE_DOCS=1 cargo test -p kubewright-cli reference`");
}
