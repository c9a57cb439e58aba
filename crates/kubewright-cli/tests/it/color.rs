//! Colored output: `--color`, then `NO_COLOR`, then `CLICOLOR_FORCE`, then the terminal.
//!
//! [`crate::terminal`] tests output on a terminal.

use insta::assert_snapshot;

use crate::run::{command, kubewright, run};

/// Whether clap's help and usage errors are colored: both, or none.
fn is_colored(flags: &str, variables: &[(&str, &str)]) -> bool {
    let help = run(command(&format!("{flags} --help")).envs(variables.iter().copied()));
    let error = run(command(&format!("{flags} nonsense")).envs(variables.iter().copied()));
    assert_eq!(help.stdout.contains('\x1b'), error.stderr.contains('\x1b'), "with {flags} {variables:?}");
    help.stdout.contains('\x1b')
}

#[test]
fn a_pipe_is_not_colored() {
    assert!(!is_colored("", &[]));
    assert!(!is_colored("--color auto", &[("TERM", "xterm")]));
}

#[test]
fn the_flag_colors_a_pipe() {
    assert!(is_colored("--color always", &[]));
    assert!(is_colored("--color=always", &[("NO_COLOR", "1")]));
}

#[test]
fn clicolor_force_colors_a_pipe_unless_disabled() {
    assert!(is_colored("", &[("CLICOLOR_FORCE", "1")]));
    assert!(!is_colored("", &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    assert!(!is_colored("--color never", &[("CLICOLOR_FORCE", "1")]));
}

#[test]
fn an_empty_no_color_counts_as_not_set() {
    assert!(is_colored("", &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "")]));
}

#[test]
fn an_unknown_choice_lists_the_known_ones() {
    assert_snapshot!(kubewright("version --color purple"), @"
    exit status 2
    --- stderr
    error: invalid value 'purple' for '--color <WHEN>'
      [possible values: auto, always, never]

    For more information, try '--help'.
    ");
}
