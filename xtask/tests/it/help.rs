//! The help of every command.

use std::process::Command;

#[test]
fn the_help_of_every_command_has_examples() {
    let commands = [
        &[][..],
        &["ci"],
        &["tidy"],
        &["api"],
        &["bench"],
        &["facts"],
        &["soak"],
        &["prose"],
        &["screenshots"],
    ];
    for command in commands {
        let output = Command::new(env!("CARGO_BIN_EXE_xtask")).args(command).arg("--help").output().unwrap();
        let help = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{command:?}");
        assert!(help.contains("\nExamples:\n  cargo xtask "), "{help}");
    }
}

#[test]
fn an_unknown_step_is_rejected_with_the_valid_ones() {
    let unknown = ["ci", "--only", "nextest"];
    let output = Command::new(env!("CARGO_BIN_EXE_xtask")).args(unknown).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        error.contains(
            "[possible values: tools, fetch, fmt, clippy, tidy, doc, package, book, unit, doctest, debug-page, test, \
             features, kills]"
        ),
        "{error}"
    );
}
