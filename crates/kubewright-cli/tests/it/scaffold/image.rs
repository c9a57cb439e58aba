//! Checks the container image without Docker: the build context is sufficient.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Folder;
use crate::run::lock;

/// The arguments of a `COPY` from the project or the kubewright checkout.
struct Copied {
    is_checkout: bool,
    paths: Vec<String>,
    to: String,
}

fn copied(dockerfile: &str) -> Vec<Copied> {
    let lines = dockerfile.lines().filter_map(|line| line.strip_prefix("COPY "));
    let lines = lines.filter(|line| !line.starts_with("--from=build"));
    lines
        .map(|line| {
            let is_checkout = line.starts_with("--from=kubewright");
            let mut paths: Vec<String> =
                line.split_whitespace().filter(|word| !word.starts_with("--")).map(str::to_owned).collect();
            let to = paths.pop().expect("it is copied somewhere");
            Copied { is_checkout, paths, to }
        })
        .collect()
}

#[test]
fn the_build_context_has_all_copied_files() {
    let folder = Folder::with_order();
    lock(&folder.path());
    let kept: Vec<String> = folder
        .read(".dockerignore")
        .lines()
        .filter_map(|line| line.strip_prefix('!').map(str::to_owned))
        .collect();
    let copied = copied(&folder.read("Dockerfile"));
    assert_eq!(copied.len(), 2);
    for path in copied.iter().flat_map(|copied| &copied.paths) {
        // An asterisk marks an optional file.
        let path = path.trim_end_matches('*');
        assert!(folder.path().join(path).exists(), "there is no {path}");
        assert!(kept.iter().any(|kept| kept == path), "{path} is ignored");
    }
    let dockerfile = folder.read("Dockerfile");
    assert!(dockerfile.contains("USER 65532:65532") && dockerfile.contains("FROM scratch"), "{dockerfile}");
    let entry = "cp target/release/shop /manager";
    assert!(dockerfile.contains(entry), "{dockerfile}");
}

/// The kubewright checkout.
fn checkout() -> PathBuf {
    fs::canonicalize(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).expect("it is there")
}

/// The packages of the workspace in `folder`. Fails if a member is missing.
fn members(folder: &Path) -> BTreeSet<String> {
    let output = Command::new("cargo")
        .args(["metadata", "--offline", "--no-deps", "--format-version", "1"])
        .current_dir(folder)
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("an array");
    packages.iter().map(|package| package["name"].as_str().expect("a name").to_owned()).collect()
}

fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).expect("a folder");
        for entry in fs::read_dir(from).expect("a folder") {
            let entry = entry.expect("an entry");
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        fs::create_dir_all(to.parent().expect("it is in a folder")).expect("a folder");
        fs::copy(from, to).expect("a file");
    }
}

/// cargo finds all packages with only the files of the build context. Other tests build the same packages.
#[test]
fn the_build_context_is_sufficient_for_cargo() {
    let folder = Folder::new("shop");
    folder.done("init --domain example.com");
    folder.done("create api --group sales --version v1 --kind Order");
    lock(&folder.path());
    let checkout = checkout();
    let image = tempfile::tempdir().expect("a folder");
    for Copied { is_checkout, paths, to } in copied(&folder.read("Dockerfile")) {
        let from = if is_checkout { checkout.clone() } else { folder.path() };
        let to: PathBuf = if is_checkout {
            image.path().join(to.trim_start_matches('/'))
        } else {
            image.path().join("operator").join(to)
        };
        for path in &paths {
            let path = path.trim_end_matches('*');
            // COPY copies the content of a directory, and a file under its name.
            let to = if from.join(path).is_dir() { to.clone() } else { to.join(path) };
            copy(&from.join(path), &to);
        }
    }
    // The checkout has the same path in the image.
    let operator = image.path().join("operator");
    let manifest = fs::read_to_string(operator.join("Cargo.toml")).expect("it was copied");
    let inside = image.path().join(checkout.strip_prefix("/").expect("it is absolute"));
    let manifest = manifest.replace(&checkout.display().to_string(), &inside.display().to_string());
    fs::write(operator.join("Cargo.toml"), manifest).expect("a file");
    let output = Command::new("cargo")
        // Unlike `cargo metadata`, this reads only packages of this platform, which are available offline.
        .args(["tree", "--offline", "--edges", "normal,build"])
        .current_dir(&operator)
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(members(&inside), members(&checkout));
}

/// An example is built with its whole workspace as the build context.
#[test]
fn the_build_context_of_an_example_has_all_members_of_the_workspace() {
    let checkout = checkout();
    let mut examples = BTreeMap::<String, Vec<PathBuf>>::new();
    for example in fs::read_dir(checkout.join("examples")).expect("it is there") {
        let example = example.expect("an entry").path();
        if example.join("Dockerfile").exists() {
            let ignored = fs::read_to_string(example.join("Dockerfile.dockerignore")).expect("it has one");
            examples.entry(ignored).or_default().push(example);
        }
    }
    assert!(!examples.is_empty());
    let all = members(&checkout);
    for (ignored, examples) in examples {
        let context = tempfile::tempdir().expect("a folder");
        assert!(ignored.lines().any(|line| line == "*"), "{examples:?}: {ignored}");
        for kept in ignored.lines().filter_map(|line| line.strip_prefix('!')) {
            copy(&checkout.join(kept), &context.path().join(kept));
        }
        assert_eq!(members(context.path()), all, "{examples:?}");
    }
}

#[test]
fn make_reports_a_missing_checkout() {
    let folder = Folder::new("shop");
    folder.done("init --domain example.com");
    let makefile = folder.read("Makefile");
    let checkout = checkout().display().to_string();
    assert!(makefile.contains(&format!("--build-context kubewright={checkout} ")), "{makefile}");
    folder.write("Makefile", &makefile.replace(&checkout, "/gone/kubewright"));
    let output =
        Command::new("make").arg("docker-build").current_dir(folder.path()).output().expect("make starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        said.contains("Cargo.toml depends on kubewright at /gone/kubewright, which does not exist"),
        "{said}"
    );
}
