//! The binary on a real terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::run::{command, kubewright};

/// Runs to completion on a new pseudo-terminal, and returns the output.
fn on_terminal(line: &str, variables: &[(&str, &str)]) -> String {
    typing("", command(line).envs(variables.iter().copied()))
}

/// The same, with typed input.
fn typing(typed: &str, command: &mut Command) -> String {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&ours).expect("the terminal is ours");
    unlockpt(&ours).expect("the terminal is ours");
    let name = ptsname(&ours, Vec::new()).expect("the terminal has a name");
    // Close on exec, so that processes of other tests do not hold it open.
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let theirs = File::from(open(name, flags, Mode::empty()).expect("the terminal opens"));

    if !command.get_envs().any(|(name, value)| name == "TERM" && value.is_some()) {
        command.env("TERM", "xterm");
    }
    let mut child = command
        .stdin(theirs.try_clone().expect("a stream"))
        .stdout(theirs.try_clone().expect("a stream"))
        .stderr(theirs)
        .spawn()
        .expect("the binary starts");
    // Drop the command: it holds the streams open.
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());

    let mut seen = Vec::new();
    let mut ours = File::from(ours);
    ours.write_all(typed.as_bytes()).expect("the terminal takes it");
    let mut part = [0; 4096];
    // Linux reports the end of a terminal as an error, others as an end of file.
    while let Ok(length @ 1..) = ours.read(&mut part) {
        seen.extend_from_slice(&part[..length]);
    }
    child.wait().expect("the binary ends");
    String::from_utf8(seen).expect("text").replace("\r\n", "\n")
}

#[test]
fn a_terminal_is_colored() {
    for line in ["--help", "nonsense"] {
        assert!(on_terminal(line, &[]).contains('\x1b'), "`{line}` is not coloured");
    }
}

#[test]
fn a_dumb_terminal_or_no_color_disables_color() {
    for (name, value) in [("NO_COLOR", "1"), ("CLICOLOR", "0"), ("TERM", "dumb")] {
        let seen = on_terminal("--help", &[(name, value)]);
        assert!(!seen.contains('\x1b'), "colored despite {name}={value}");
    }
    assert!(!on_terminal("--help --color never", &[]).contains('\x1b'));
}

#[test]
fn a_completion_script_on_a_terminal_prints_an_installation_note() {
    let script = kubewright("completion bash").result();
    let seen = on_terminal("completion bash", &[("NO_COLOR", "1")]);
    insta::assert_snapshot!(seen.strip_prefix(&script).expect("the script comes first"), @"note: run `kubewright completion --help` to see how to install this script");
    assert_eq!(on_terminal("completion bash --quiet", &[]), script);
}

#[test]
fn missing_flags_are_prompted_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let shop = folder.path().join("shop");
    std::fs::create_dir(&shop).expect("a folder");
    let seen = typing("example.com\n", command("init --quiet").env("NO_COLOR", "1").current_dir(&shop));
    assert!(seen.contains("domain (for example example.com): "), "{seen}");
    let mut create = command("create api --group sales --quiet");
    let seen = typing("v1\nOrder\n", create.env("NO_COLOR", "1").current_dir(&shop));
    assert!(
        seen.contains("kind (for example Order): ") && seen.contains("wrote src/api/v1/order.rs"),
        "{seen}"
    );
}
