//! Errors that are reported before anything is started.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use insta::assert_snapshot;
use tempfile::TempDir;

use super::running::line;
use crate::run::{Run, run};

/// The error output in a directory with these files; its path is replaced by FOLDER.
fn refused(files: &[(&str, &str)], arguments: &str, variables: &[(&str, &str)]) -> String {
    refused_in(&tempfile::tempdir().expect("a folder"), files, arguments, variables)
}

fn refused_in(
    folder: &TempDir,
    files: &[(&str, &str)],
    arguments: &str,
    variables: &[(&str, &str)],
) -> String {
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    let folder = folder.path().canonicalize().expect("it is there");
    let mut command = line(&folder, arguments);
    // Isolate the test from the user's home directory and kubeconfig.
    command.env("HOME", &folder).env_remove("KUBECONFIG").env("CARGO_TARGET_DIR", folder.join("target"));
    if let Some(cargo) = std::env::var_os("CARGO_HOME").or_else(|| {
        let home = std::env::var_os("HOME")?;
        Some(Path::new(&home).join(".cargo").into_os_string())
    }) {
        command.env("CARGO_HOME", cargo);
    }
    if let Some(rustup) = std::env::var_os("RUSTUP_HOME").or_else(|| {
        let home = std::env::var_os("HOME")?;
        Some(Path::new(&home).join(".rustup").into_os_string())
    }) {
        command.env("RUSTUP_HOME", rustup);
    }
    let ran: Run = run(command.envs(variables.iter().copied()));
    assert_eq!((ran.status, ran.stdout.as_str()), (1, ""), "{ran}");
    ran.stderr.replace(&folder.display().to_string(), "FOLDER")
}

const PACKAGE: (&str, &str) =
    ("Cargo.toml", "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2024\"\n");
const MAIN: (&str, &str) = ("src/main.rs", "fn main() {}\n");

#[test]
fn a_directory_without_a_project_is_rejected() {
    assert_snapshot!(refused(&[], ".", &[]), @"
    error: no Cargo.toml found in . or its parents
      hint: run this in a project directory, or pass it as an argument
    ");
    assert_snapshot!(refused(&[], "nowhere", &[]), @"
    error: cannot find the project nowhere
      cause: No such file or directory (os error 2)
      hint: pass a project directory
    ");
}

#[test]
fn an_invalid_manifest_is_reported_with_cargos_message() {
    let said = refused(&[("Cargo.toml", "[package]\nname = 1\n")], ".", &[]);
    assert!(said.starts_with("error: cargo cannot read the project in FOLDER\n  cause: error: "), "{said}");
    assert!(said.contains("name = 1") && said.ends_with("  hint: fix Cargo.toml\n"), "{said}");
}

#[test]
fn a_package_without_a_binary_is_rejected() {
    assert_snapshot!(refused(&[PACKAGE, ("src/lib.rs", "")], ".", &[]), @"
    error: the package in FOLDER has no binary
      hint: add a src/main.rs with `#[kubewright::main]`
    ");
    assert_snapshot!(refused(&[PACKAGE, MAIN], "--bin other", &[]), @"
    error: the package has no binary other
      hint: available: shop
    ");
    let two = [PACKAGE, MAIN, ("src/bin/other.rs", "fn main() {}\n")];
    assert_snapshot!(refused(&two, ".", &[]), @"
    error: the package has several binaries: other, shop
      hint: select the operator with --bin
    ");
}

#[test]
fn a_workspace_is_rejected_with_its_packages() {
    let files = [
        ("Cargo.toml", "[workspace]\nmembers = [\"shop\"]\nresolver = \"3\"\n"),
        ("shop/Cargo.toml", PACKAGE.1),
        ("shop/src/main.rs", MAIN.1),
    ];
    assert_snapshot!(refused(&files, ".", &[]), @"
    error: FOLDER is a workspace, not a package
      hint: pass the directory of the operator; packages with binaries: shop
    ");
}

#[test]
fn a_missing_cargo_is_reported() {
    assert_snapshot!(refused(&[PACKAGE, MAIN], ".", &[("CARGO", "/nowhere/cargo")]), @"
    error: cannot start /nowhere/cargo
      cause: No such file or directory (os error 2)
      hint: install Rust, or set CARGO to the path of cargo
    ");
}

#[test]
fn a_taken_port_is_reported() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = taken.local_addr().expect("it has an address").port().to_string();
    let said = refused(&[PACKAGE, MAIN], &format!("--port {port}"), &[]).replace(&port, "PORT");
    assert_snapshot!(said, @"
    error: failed to start the API server
      cause: cannot listen on 127.0.0.1:PORT
      cause: Address already in use (os error 98)
      hint: choose another --port, or use --port 0 for a free one
    ");
}

#[test]
fn fresh_with_a_taken_port_keeps_the_cluster_of_the_last_run() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = taken.local_addr().expect("it has an address").port();
    let folder = tempfile::tempdir().expect("a folder");
    let state = ("target/kubewright/dev/shop/objects/log", "the last run");
    let said = refused_in(&folder, &[PACKAGE, MAIN, state], &format!("--fresh --port {port}"), &[]);
    assert!(said.starts_with("error: failed to start the API server"), "{said}");
    assert_eq!(fs::read_to_string(folder.path().join(state.0)).expect("it is kept"), state.1);
}

#[test]
fn an_unusable_target_directory_is_reported() {
    let said = refused(&[PACKAGE, MAIN, ("file", "in the way")], ".", &[("CARGO_TARGET_DIR", "file")]);
    assert_snapshot!(said, @"
    error: cannot use the directory FOLDER/file/kubewright/dev/shop
      cause: Not a directory (os error 20)
      hint: check permissions and free disk space, or set CARGO_TARGET_DIR to another directory
    ");
}

#[test]
fn a_missing_kubeconfig_is_reported() {
    let said = refused(&[PACKAGE, MAIN], "--existing-cluster", &[]);
    assert!(
        said.starts_with("error: cannot load the kubeconfig\n  cause: no cluster configured: set KUBECONFIG"),
        "{said}"
    );
    let said = refused(&[PACKAGE, MAIN], "--existing-cluster --kubeconfig nowhere", &[]);
    assert!(said.contains("invalid --kubeconfig nowhere"), "{said}");
}

#[test]
fn flags_of_the_embedded_cluster_conflict_with_existing_cluster() {
    for arguments in
        ["--fresh --existing-cluster", "--port 1 --existing-cluster", "--kubeconfig x", "--context x"]
    {
        let ran = run(&mut line(Path::new("."), arguments));
        assert_eq!(ran.status, 2, "{ran}");
    }
}
