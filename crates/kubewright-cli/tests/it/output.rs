//! Output streams and write errors.

use std::process::Stdio;

use crate::run::{command, kubewright, run};

#[test]
fn a_closed_pipe_is_not_an_error() {
    for line in ["completion bash", "version", "version -o json", "--help", "--version"] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let child = command(line).stdout(writer).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let output = child.wait_with_output().expect("the binary ends");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), stderr.as_ref()), (Some(0), ""), "for `{line}`");
    }
}

#[test]
fn a_closed_standard_error_does_not_change_the_status() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let status = command("nonsense").stderr(writer).stdout(Stdio::null()).status().expect("the binary runs");
    assert_eq!(status.code(), Some(2));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_with_cause_and_hint() {
    for line in ["version", "--help"] {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("Linux has it");
        let child = command(line).stdout(full).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let output = child.wait_with_output().expect("the binary ends");
        assert_eq!(output.status.code(), Some(1));
        insta::allow_duplicates! {
            insta::assert_snapshot!(String::from_utf8_lossy(&output.stderr), @"
            error: cannot write to standard output
              cause: No space left on device (os error 28)
              hint: check for free disk space, or redirect the output
            ");
        }
    }
}

#[test]
fn quiet_prints_results() {
    assert_eq!(kubewright("--quiet version").result(), kubewright("version").result());
    assert_eq!(kubewright("completion fish -q").result(), kubewright("completion fish").result());
}

#[test]
fn results_are_the_same_with_and_without_color() {
    for line in ["version", "version -o json", "completion zsh"] {
        let coloured = run(command(line).args(["--color", "always"]));
        assert_eq!(coloured.result(), kubewright(line).result());
    }
}
