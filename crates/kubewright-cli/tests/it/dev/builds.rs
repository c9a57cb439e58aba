//! Saves and exits during a build. The package has a build script that blocks until a test releases it.

use std::fs;
use std::process::Command;

use super::running::{Dev, processes_in};

#[test]
fn a_save_restarts_the_build_and_an_exit_stops_cargo() {
    let held = tempfile::tempdir().expect("a folder");
    let folder = held.path().canonicalize().expect("it is there");
    let write = |path: &str, text: &str| fs::write(folder.join(path), text).expect("a file");
    fs::create_dir(folder.join("src")).expect("a folder");
    write("Cargo.toml", "[package]\nname = \"dev-builds\"\nversion = \"0.1.0\"\nedition = \"2024\"\n");
    // Opening a FIFO for reading blocks until it is opened for writing.
    let gate = tempfile::tempdir().expect("a folder");
    let gate = gate.path().join("gate");
    let made = Command::new("mkfifo").arg(&gate).status().expect("mkfifo of the coreutils");
    assert!(made.success(), "mkfifo: {made}");
    let slow = format!(
        "fn main() {{ println!(\"cargo::rerun-if-changed=src\"); std::fs::read({gate:?}).expect(\"the gate\"); }}\n"
    );
    write("build.rs", &slow);
    write("src/main.rs", "fn main() {}\n");

    let mut dev = Dev::in_target(&folder, "dev-builds", "--fresh", &folder.join("target"));
    dev.says("Compiling dev-builds");
    write("src/main.rs", "fn main() { std::process::exit(3) }\n");
    dev.says("saved during the build; restarting it");
    fs::write(&gate, "").expect("somebody who waits");
    // The binary builds, but is not an operator.
    dev.says("error: dev-builds failed to print its inventory (exit status: 3)");
    dev.says("rebuilt failed; waiting for changes");

    write("src/main.rs", "fn main() {}\n");
    dev.says("Compiling dev-builds");
    let ended = dev.end("INT");
    assert_eq!(ended.status, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(processes_in(&folder), Vec::<String>::new());
}
