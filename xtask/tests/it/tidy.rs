//! `cargo xtask tidy` on workspaces with deliberate violations, and on this repository.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// A small workspace without violations, to which tests add files.
struct Planted(TempDir);

impl Planted {
    fn new() -> Self {
        let planted = Self(tempfile::tempdir().unwrap());
        planted.write(
            "Cargo.toml",
            r#"[workspace]
resolver = "3"
members = ["crates/*", "examples/*"]
exclude = ["vendor"]

[workspace.package]
version = "0.1.0"
edition = "2024"
rust-version = "1.95"
license = "Apache-2.0"

[workspace.lints.rust]
unsafe_code = "forbid"

[workspace.dependencies]
clap = { path = "vendor/clap", version = "1.0" }
innocent = { path = "vendor/innocent", version = "1.0" }
kube-client = { path = "vendor/kube-client", version = "1.0" }
kubewright = { path = "crates/kubewright", version = "0.1.0" }
kubewright-apimachinery = { path = "crates/kubewright-apimachinery", version = "0.1.0" }
kubewright-cli = { path = "crates/kubewright-cli", version = "0.1.0" }
kubewright-runtime = { path = "crates/kubewright-runtime", version = "0.1.0" }
"#,
        );
        planted.write("README.md", "# Planted\n\n[map](docs/map.md#the-map)\n");
        planted.write("docs/map.md", "# The map\n");
        planted.write_crate("kubewright-apimachinery", "");
        planted
            .write_crate("kubewright-runtime", "[dependencies]\nkubewright-apimachinery.workspace = true\n");
        planted.write_crate("kubewright-cli", "[dependencies]\nkubewright-apimachinery.workspace = true\n");
        planted.write_crate("kubewright", "[dependencies]\nkubewright-runtime.workspace = true\n");
        planted.write_member("examples/short", "short", "[dependencies]\nkubewright.workspace = true\n");
        planted
    }

    fn write(&self, path: &str, text: &str) -> &Self {
        let full = self.0.path().join(path);
        fs::create_dir_all(full.parent().unwrap()).unwrap();
        fs::write(full, text).unwrap();
        self
    }

    fn write_crate(&self, name: &str, dependencies: &str) -> &Self {
        self.write_member(&format!("crates/{name}"), name, dependencies)
    }

    fn write_member(&self, folder: &str, name: &str, dependencies: &str) -> &Self {
        let fields = ["version", "edition", "rust-version", "license"]
            .map(|field| format!("{field}.workspace = true"));
        let fields = fields.join("\n");
        let manifest = format!(
            "[package]\nname = \"{name}\"\n{fields}\npublish = false\n\n[lints]\nworkspace = true\n\n{dependencies}"
        );
        self.write(&format!("{folder}/Cargo.toml"), &manifest);
        self.write(&format!("{folder}/src/lib.rs"), "//! Planted.\n")
    }

    /// Adds a third-party crate, as if it came from a registry.
    fn write_foreign(&self, name: &str, dependencies: &str) -> &Self {
        let manifest = format!("[package]\nname = \"{name}\"\nversion = \"1.0.0\"\n\n{dependencies}");
        self.write(&format!("vendor/{name}/Cargo.toml"), &manifest);
        self.write(&format!("vendor/{name}/src/lib.rs"), "//! Planted.\n")
    }

    /// All violations, one per line.
    fn violations(&self) -> String {
        let violations = xtask::tidy::check(self.0.path()).unwrap();
        violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }
}

#[test]
fn a_workspace_that_follows_the_rules_has_no_violations() {
    assert_eq!(Planted::new().violations(), "");
}

#[test]
fn an_upward_dependency_is_reported_at_its_line() {
    let planted = Planted::new();
    planted.write_crate("kubewright-apimachinery", "[build-dependencies]\nkubewright-cli.workspace = true\n");
    planted.write_crate("kubewright-cli", "");
    planted.write_crate("kubewright-runtime", "[dependencies]\nkubewright-cli.workspace = true\n");
    insta::assert_snapshot!(planted.violations(), @"
    crates/kubewright-apimachinery/Cargo.toml:13: `kubewright-apimachinery` depends on `kubewright-cli`; it may not depend on other workspace crates; move the code down
    crates/kubewright-runtime/Cargo.toml:13: `kubewright-runtime` depends on `kubewright-cli`; of the workspace crates it may only depend on kubewright-apimachinery, kubewright-structured-merge, kubewright-sync
    ");
}

#[test]
fn a_crate_missing_from_the_table_is_reported() {
    let planted = Planted::new();
    planted.write_crate("kubewright-util", "");
    insta::assert_snapshot!(planted.violations(), @"crates/kubewright-util/Cargo.toml:1: `kubewright-util` is not in the table of edges; add it to xtask/src/tidy/edges.rs and ARCHITECTURE.md, or make it a module");
}

#[test]
fn upward_dev_dependencies_need_a_path_and_integration_tests() {
    let planted = Planted::new();
    let by_path = "[dev-dependencies]\nkubewright-runtime = { path = \"../kubewright-runtime\" }\n";
    planted.write_crate("kubewright-apimachinery", by_path);
    planted.write("crates/kubewright-apimachinery/tests/it/main.rs", "//! X\nuse kubewright_runtime as _;\n");
    assert_eq!(planted.violations(), "");

    planted
        .write_crate("kubewright-apimachinery", "[dev-dependencies]\nkubewright-runtime.workspace = true\n");
    planted.write(
        "crates/kubewright-apimachinery/src/lib.rs",
        "//! X\n#[cfg(test)]\nmod tests {\n    use kubewright_runtime as _;\n}\n",
    );
    insta::assert_snapshot!(planted.violations(), @"
    crates/kubewright-apimachinery/Cargo.toml:13: the tests of `kubewright-apimachinery` depend upward on `kubewright-runtime` with a version; use `path` without a version
    crates/kubewright-apimachinery/src/lib.rs:4: `kubewright_runtime` depends on `kubewright-apimachinery` and is used in its src/; move the test to tests/, since a unit test would link its own crate twice
    ");
}

#[test]
fn an_example_depends_on_the_facade_alone() {
    let planted = Planted::new();
    planted.write_member("examples/long", "long", "[dependencies]\nkubewright-runtime.workspace = true\n");
    insta::assert_snapshot!(planted.violations(), @"examples/long/Cargo.toml:13: `long` depends on `kubewright-runtime`; of the workspace crates it may only depend on kubewright");
}

#[test]
fn only_some_crates_may_depend_on_clap() {
    let planted = Planted::new();
    planted.write_foreign("clap", "");
    planted.write_crate("kubewright-runtime", "[dependencies]\nclap.workspace = true\n");
    planted.write_crate("kubewright-cli", "[dependencies]\nclap.workspace = true\n");
    insta::assert_snapshot!(planted.violations(), @"crates/kubewright-runtime/Cargo.toml:13: `kubewright-runtime` depends on `clap`; only kubewright-cli, kubewright, kubewright-bench, xtask parse command lines; take options as a struct");
}

#[test]
fn crates_that_do_io_are_found_among_transitive_dependencies() {
    let planted = Planted::new();
    planted.write_foreign("tokio", "");
    planted.write_foreign("innocent", "[dependencies]\ntokio = { path = \"../tokio\" }\n");
    planted.write_crate("kubewright-apimachinery", "[dependencies]\ninnocent.workspace = true\n");
    insta::assert_snapshot!(planted.violations(), @"crates/kubewright-apimachinery/Cargo.toml:1: `kubewright-apimachinery` contains `tokio`; it does no I/O: `cargo tree -p kubewright-apimachinery -e normal,build -i tokio` shows the path");
}

#[test]
fn the_api_server_contains_no_client() {
    let planted = Planted::new();
    planted.write_foreign("kube-client", "");
    planted.write_crate("kubewright-apiserver", "[dependencies]\nkube-client.workspace = true\n");
    insta::assert_snapshot!(planted.violations(), @"crates/kubewright-apiserver/Cargo.toml:13: `kubewright-apiserver` contains `kube-client`; the API server must not contain a Kubernetes client: `cargo tree -p kubewright-apiserver -e normal,build -i kube-client` shows the path");
}

#[test]
fn a_pure_crate_reads_no_disk_and_no_clock_outside_its_tests() {
    let planted = Planted::new();
    planted.write(
        "crates/kubewright-apimachinery/src/lib.rs",
        "//! X\nuse std::{fs, net::IpAddr};\nfn now() {\n    std::time::SystemTime::now();\n}\n\
         #[cfg(test)]\nmod tests {\n    use std::env;\n}\n",
    );
    insta::assert_snapshot!(planted.violations(), @"
    crates/kubewright-apimachinery/src/lib.rs:2: `std::fs`; `kubewright-apimachinery` must be pure; take the value as a parameter
    crates/kubewright-apimachinery/src/lib.rs:4: `SystemTime::now`; `kubewright-apimachinery` must be pure; take the value as a parameter
    ");
}

#[test]
fn a_crate_that_does_not_inherit_is_reported_with_the_fix() {
    let planted = Planted::new();
    planted.write(
        "crates/kubewright-runtime/Cargo.toml",
        r#"[package]
name = "kubewright-runtime"
version = "0.1.0"
edition.workspace = true
license.workspace = true
publish = false

[dependencies]
kubewright-apimachinery = { path = "../kubewright-apimachinery" }

[target.'cfg(unix)'.dependencies]
kubewright-cli = { path = "../kubewright-cli", version = "0.1.0", optional = true }
"#,
    );
    insta::assert_snapshot!(planted.violations(), @"
    crates/kubewright-runtime/Cargo.toml:1: `rust-version` is not inherited from the workspace; write `rust-version.workspace = true`
    crates/kubewright-runtime/Cargo.toml:1: the lints are not inherited from the workspace; add `[lints] workspace = true`
    crates/kubewright-runtime/Cargo.toml:3: `version` is not inherited from the workspace; write `version.workspace = true`
    crates/kubewright-runtime/Cargo.toml:9: `kubewright-apimachinery` is not inherited from the workspace; add it to [workspace.dependencies] of the root and write `kubewright-apimachinery.workspace = true`
    crates/kubewright-runtime/Cargo.toml:12: `kubewright-cli` is not inherited from the workspace; add it to [workspace.dependencies] of the root and write `kubewright-cli.workspace = true`
    crates/kubewright-runtime/Cargo.toml:12: `kubewright-runtime` depends on `kubewright-cli`; of the workspace crates it may only depend on kubewright-apimachinery, kubewright-structured-merge, kubewright-sync
    ");
}

#[test]
fn machine_paths_and_registry_hosts_are_reported() {
    let planted = Planted::new();
    let folder = ["", "work", "main"].join("/");
    let host = ["https://pypi", "org/simple"].join(".");
    planted.write("docs/map.md", &format!("# The map\n\ncd {folder}\ncurl {host}\n"));
    // The message contains the forbidden name, so only the locations are compared.
    let violations = planted.violations();
    let places: Vec<_> = violations.lines().map(|line| line.split(": ").next().unwrap_or_default()).collect();
    assert_eq!(places, ["docs/map.md:3", "docs/map.md:4"]);
}

#[test]
fn the_program_prints_every_violation_and_fails() {
    let planted = Planted::new();
    planted.write("README.md", "# Planted\n\n[gone](docs/gone.md)\n");
    planted.write("crates/kubewright-cli/src/lib.rs", "fn main() {\n    todo!()\n}\n");
    let (status, stdout, stderr) = tidy(planted.0.path());
    assert_eq!(status, Some(1));
    insta::assert_snapshot!(stdout, @"
    README.md:3: the link `docs/gone.md` points to a missing file; fix it, or add the file
    crates/kubewright-cli/src/lib.rs:1: the file does not open with `//!`; describe what it owns and its invariant
    crates/kubewright-cli/src/lib.rs:2: `todo!`; implement it, or remove the caller
    ");
    insta::assert_snapshot!(stderr, @"error: 3 violations, see above");
}

#[test]
fn this_repository_is_tidy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    assert_eq!(tidy(&root), (Some(0), String::new(), String::new()));
}

#[test]
fn a_directory_without_a_workspace_is_an_error_with_its_path() {
    let empty = tempfile::tempdir().unwrap();
    let (status, _, stderr) = tidy(empty.path());
    assert_eq!(status, Some(1));
    assert!(stderr.contains("read the workspace at"), "{stderr}");
}

fn tidy(root: &Path) -> (Option<i32>, String, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_xtask")).arg("tidy").arg("--root").arg(root).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}
