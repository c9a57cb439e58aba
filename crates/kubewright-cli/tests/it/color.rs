//! When the output is coloured: `--color`, then `NO_COLOR`, then `CLICOLOR_FORCE`, then the terminal.
//!
//! [`crate::terminal`] has what needs a terminal.

use insta::assert_snapshot;

use crate::run::{command, kubewright, run};

/// Whether help and usage errors, which clap writes, are coloured: both, or none.
fn is_coloured(flags: &str, variables: &[(&str, &str)]) -> bool {
    let help = run(command(&format!("{flags} --help")).envs(variables.iter().copied()));
    let error = run(command(&format!("{flags} nonsense")).envs(variables.iter().copied()));
    assert_eq!(help.stdout.contains('\x1b'), error.stderr.contains('\x1b'), "with {flags} {variables:?}");
    help.stdout.contains('\x1b')
}

#[test]
fn a_pipe_is_not_coloured() {
    assert!(!is_coloured("", &[]));
    assert!(!is_coloured("--color auto", &[("TERM", "xterm")]));
}

#[test]
fn the_flag_colours_a_pipe() {
    assert!(is_coloured("--color always", &[]));
    assert!(is_coloured("--color=always", &[("NO_COLOR", "1")]));
}

#[test]
fn clicolor_force_colours_a_pipe_unless_the_user_says_no() {
    assert!(is_coloured("", &[("CLICOLOR_FORCE", "1")]));
    assert!(!is_coloured("", &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    assert!(!is_coloured("--color never", &[("CLICOLOR_FORCE", "1")]));
}

#[test]
fn an_empty_no_color_counts_as_not_set() {
    assert!(is_coloured("", &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "")]));
}

#[test]
fn an_unknown_choice_is_answered_with_the_known_ones() {
    assert_snapshot!(kubewright("version --color purple"), @"
    exit status 2
    --- stderr
    error: invalid value 'purple' for '--color <WHEN>'
      [possible values: auto, always, never]

    For more information, try '--help'.
    ");
}
