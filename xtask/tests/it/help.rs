//! Every chore explains itself.

use std::process::Command;

#[test]
fn the_help_of_every_chore_has_examples() {
    for chore in [&[][..], &["ci"], &["tidy"], &["bench"], &["facts"], &["soak"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_xtask")).args(chore).arg("--help").output().unwrap();
        let help = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{chore:?}");
        assert!(help.contains("\nExamples:\n  cargo xtask "), "{help}");
    }
}

#[test]
fn a_step_that_does_not_exist_is_answered_with_those_that_do() {
    let unknown = ["ci", "--only", "nextest"];
    let output = Command::new(env!("CARGO_BIN_EXE_xtask")).args(unknown).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        error.contains("[possible values: tools, fetch, fmt, clippy, tidy, doc, unit, doctest, test]"),
        "{error}"
    );
}
