//! The commands in README.md are those that CI runs.

use std::fs;
use std::path::PathBuf;

fn read(path: &str) -> String {
    let full = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    fs::read_to_string(&full).unwrap_or_else(|error| panic!("read {path}: {error}"))
}

#[test]
fn ci_runs_the_first_test_command_of_the_readme() {
    let readme = read("README.md");
    let tests = |line: &&str| line.starts_with("cargo test") || line.starts_with("cargo xtask");
    let command = readme.lines().map(str::trim).find(tests).expect("README gives a test command");
    let command = command.split('#').next().unwrap_or_default().trim();
    assert_eq!(command, "cargo xtask ci");
    assert_eq!(read(".ci/run").lines().last(), Some("cargo xtask ci"));
}

#[test]
fn ci_runs_the_first_command_of_the_readme() {
    let readme = read("README.md");
    let command = readme.lines().find(|line| line.starts_with("cargo ")).expect("README gives a command");
    assert_eq!(command, "cargo run -- dev examples/markdown-view");
    assert!(read(".ci/run").contains(&format!("\n    {command} >>")), "CI does not run `{command}`");
}

/// `rust-version` of the workspace.
fn minimum_rust_version() -> String {
    let manifest = read("Cargo.toml");
    let version = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "));
    version.expect("the workspace states it").trim_matches('"').to_owned()
}

#[test]
fn the_release_workflow_checks_all_crates_with_the_minimum_rust_version() {
    // A pinned toolchain would be what every build uses.
    let pinned = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../rust-toolchain.toml");
    assert!(!pinned.exists(), "compare the channel of {} with rust-version instead", pinned.display());
    let version = minimum_rust_version();
    let workflow = read(".github/workflows/release.yml");
    let checked = workflow.lines().filter_map(|line| line.trim().strip_prefix("- run: cargo +"));
    let checked: Vec<&str> = checked.collect();
    assert_eq!(checked, [format!("{version} check --workspace --locked")]);
    let installed = format!("- run: rustup toolchain install {version} ");
    assert!(workflow.lines().any(|line| line.trim().starts_with(&installed)), "no line `{installed}`");
    let contributing = read("CONTRIBUTING.md");
    assert!(contributing.contains(&format!("`cargo +{version} check --workspace`")), "CONTRIBUTING.md");
}

#[test]
fn the_toolchain_is_at_least_the_minimum_rust_version() {
    let version = |text: &str| -> Vec<u32> {
        let number = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        let number = number.unwrap_or_default().split('-').next().unwrap_or_default();
        number.split('.').take(2).filter_map(|part| part.parse().ok()).collect()
    };
    let line = minimum_rust_version();
    let minimum = version(&line);
    let rustc = std::process::Command::new("rustc").arg("--version").output().expect("rustc runs");
    let rustc = String::from_utf8_lossy(&rustc.stdout).into_owned();
    assert_eq!(minimum.len(), 2, "{line}");
    assert!(version(&rustc) >= minimum, "{rustc} is older than {line}");
}
