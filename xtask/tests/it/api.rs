//! `cargo xtask api` on this repository.

use std::process::Command;

#[test]
fn the_lists_of_the_public_api_match_the_sources() {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask")).args(["api", "--check"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn internals_are_not_in_the_list() {
    let list = include_str!("../../../crates/kubewright/public-api.txt");
    for name in
        ["Fence", "Election", "certs", "journal", "ControllerManifest", "Writable", "Referable", "KindOf"]
    {
        let named = |line: &&str| {
            let item = line.split_whitespace().nth(2).unwrap_or_default();
            let is_member = line.starts_with("pub variant") || line.starts_with("pub field");
            line.starts_with("pub ")
                && !is_member
                && item.split(['(', '<', ':', '.', '!']).any(|part| part == name)
        };
        assert_eq!(list.lines().find(named), None, "{name} is public");
    }
    let leaks =
        |line: &&str| line.contains("clap::") && !line.contains("clap::Args") && !line.contains("use clap");
    let leaks: Vec<&str> = list.lines().filter(leaks).collect();
    // Custom flags are a `clap::Args`, and their errors convert.
    assert!(leaks.iter().all(|line| line.starts_with("impl ")), "{leaks:?}");
}
