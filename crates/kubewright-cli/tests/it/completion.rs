//! The completion scripts.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::run::kubewright;

#[test]
fn every_script_contains_the_commands_and_flags() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = kubewright(&format!("completion {shell}")).result();
        for word in ["kubewright", "completion", "version", "help", "short", "output", "color"] {
            assert!(script.contains(word), "the script for {shell} does not know `{word}`");
        }
    }
}

#[test]
fn bash_completes_commands_flags_and_values() {
    let script = kubewright("completion bash").result();
    for (line, completions) in [
        ("kubewright ver", "version"),
        ("kubewright version --sh", "--short"),
        ("kubewright version --output y", "yaml"),
        ("kubewright completion z", "zsh"),
        ("kubewright help co", "completion"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let [.., previous, current] = words.as_slice() else { unreachable!("two words at least") };
        let ask = format!(
            "COMP_WORDS=({line}); COMP_CWORD={}; _kubewright kubewright {current} {previous}; echo ${{COMPREPLY[@]}}",
            words.len() - 1
        );
        // Skipped without bash.
        let Some(answer) = bash(&format!("{script}\n{ask}\n")) else { return };
        assert_eq!(answer.trim_end(), completions, "for `{line}`");
    }
}

/// Runs a bash script that must not print to standard error. `None` without bash.
fn bash(script: &str) -> Option<String> {
    let mut child = Command::new("bash")
        .args(["--norc", "--noprofile", "-s"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    child.stdin.take().expect("piped").write_all(script.as_bytes()).expect("bash reads its script");
    let output = child.wait_with_output().expect("bash ends");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    Some(String::from_utf8(output.stdout).expect("text"))
}
