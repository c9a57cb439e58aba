//! The features of dependencies, which decide how often each is compiled.

use std::collections::BTreeSet;
use std::process::Command;

/// Each package with its features in a build.
fn features(arguments: &str) -> BTreeSet<String> {
    let output = Command::new("cargo")
        .args(["tree", "--offline", "--prefix", "none", "--format", "{p}|{f}"])
        .args(arguments.split_whitespace())
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).expect("names are text");
    let lines = tree.lines().map(|line| line.trim_end_matches(" (*)").trim_end());
    lines.filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// README's first command compiles the dependencies that its second command uses.
#[test]
fn cargo_run_and_cargo_test_share_the_builds_of_dependencies() {
    let run = features("--edges normal,build");
    let test = features("--workspace --edges normal,build,dev");
    assert!(run.len() > 200 && test.len() > run.len(), "{} and {}", run.len(), test.len());
    let package = |line: &str| line.split('|').next().unwrap_or_default().to_owned();
    let differ: Vec<String> = run
        .difference(&test)
        .map(|line| {
            let tested: Vec<&String> = test.iter().filter(|other| package(other) == package(line)).collect();
            format!("{line}\n  cargo test: {tested:?}")
        })
        .collect();
    assert!(differ.is_empty(), "add the missing features to features/Cargo.toml:\n{}", differ.join("\n"));
}
