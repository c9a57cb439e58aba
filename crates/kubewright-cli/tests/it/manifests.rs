//! `kubewright manifests` on real projects, built by the real cargo.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::run::{Run, command, run, share_dependencies, target};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/markdown-view");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A separate project with the sources of the example.
pub(crate) struct Project {
    root: PathBuf,
    /// Removes the directory.
    _held: Option<TempDir>,
}

impl Project {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let root = folder.path().to_owned();
        Self { root, _held: Some(folder) }.filled("copied-view", "0.1.1")
    }

    /// A project for several tests, in a directory that the next run replaces. Its program has the same name,
    /// because projects of other tests are built in the same target directory.
    pub(crate) fn shared(name: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).expect("a folder can be made");
        Self { root, _held: None }.filled(name, "0.1.0")
    }

    /// A copy of a workspace member, in a directory that the next run replaces.
    pub(crate) fn member(example: &str, name: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).expect("a folder can be made");
        let project = Self { root, _held: None };
        copy(&Path::new(ROOT).join("examples").join(example), &project.root);
        let manifest = project.read("Cargo.toml");
        let bin = format!("[[bin]]\nname = \"{name}\"\npath = \"src/main.rs\"\n");
        project.write("Cargo.toml", &format!("{manifest}\n{bin}\n[workspace]\n\n{}", inherited()));
        share_dependencies(&project.root);
        project
    }

    /// Projects in one target directory need different versions: cargo takes packages of one name and version, each the
    /// root of a workspace, for the same package.
    fn filled(self, program: &str, version: &str) -> Self {
        let project = self;
        copy(Path::new(EXAMPLE), &project.root);
        let root = Path::new(ROOT).canonicalize().expect("the workspace is there");
        let crates = root.join("crates");
        project.write(
            "Cargo.toml",
            &format!(
                r#"[package]
name = "markdown-view"
description = "A copy of the example"
version = "{version}"
edition = "2024"

[workspace]

# The target folder has a program of the example's name already.
[[bin]]
name = "{program}"
path = "src/main.rs"

[dependencies]
k8s-openapi = {{ version = "0.29", features = ["schemars", "v1_36"] }}
kube = {{ version = "5.0", default-features = false, features = ["client", "derive", "jsonpatch", "ring", "rustls-tls"] }}
kubewright = {{ path = "{}" }}
schemars = {{ version = "1.2", default-features = false, features = ["derive"] }}
serde = {{ version = "1.0", features = ["derive"] }}
serde_json = "1.0"

[profile.dev]
debug = "line-tables-only"

[profile.dev.package."*"]
debug = false
"#,
                crates.join("kubewright").display()
            ),
        );
        share_dependencies(&project.root);
        project
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).expect("the file is there")
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.path(path), text).expect("the file can be written");
    }

    pub(crate) fn edit(&self, path: &str, from: &str, to: &str) {
        let text = self.read(path);
        assert!(text.contains(from), "{path} has {from}");
        self.write(path, &text.replace(from, to));
    }

    fn manifests(&self, arguments: &str) -> Run {
        let mut command = command(&format!("manifests {arguments}"));
        run(command.current_dir(&self.root).env("CARGO_TARGET_DIR", target()))
    }
}

/// The tables of the workspace that a member inherits, with absolute paths. The version differs from that of the member.
fn inherited() -> String {
    let root = Path::new(ROOT).canonicalize().expect("the workspace is there");
    let workspace = fs::read_to_string(root.join("Cargo.toml")).expect("the workspace has a manifest");
    let tables = workspace.split_inclusive('\n').fold(Vec::<String>::new(), |mut tables, line| {
        if line.starts_with('[') || tables.is_empty() {
            tables.push(String::new());
        }
        tables.last_mut().expect("a table").push_str(line);
        tables
    });
    let wanted = ["[workspace.package]", "[workspace.dependencies]", "[workspace.lints", "[profile."];
    let inherited = tables.into_iter().filter(|table| wanted.iter().any(|it| table.starts_with(it)));
    let inherited = inherited.map(|table| {
        let is_package = table.starts_with("[workspace.package]");
        if is_package { table.replace("version = \"0.1.0\"", "version = \"0.1.2\"") } else { table }
    });
    inherited.collect::<String>().replace("path = \"", &format!("path = \"{}/", root.display()))
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("the example is there") {
        let entry = entry.expect("the example can be read");
        let place = to.join(entry.file_name());
        if entry.file_type().expect("the example can be read").is_dir() {
            fs::create_dir(&place).expect("a folder can be made");
            copy(&entry.path(), &place);
        } else {
            fs::copy(entry.path(), place).expect("a file can be copied");
        }
    }
}

#[test]
fn the_manifests_of_the_examples_are_up_to_date() {
    for example in ["markdown-view", "sample-controller", "collector"] {
        let checked = run(&mut command(&format!("manifests --check {ROOT}/examples/{example}")));
        assert_eq!((checked.status, checked.stdout.as_str()), (0, ""), "{example}: {checked}");
    }
}

#[test]
fn only_changes_are_written_and_check_detects_stale_files() {
    let project = Project::new();
    // The copy has another program name, which is in the name of the Secret with the webhook certificates.
    assert_eq!(project.manifests("--quiet").result(), "wrote config/rbac/webhook_certificates_role.yaml\n");
    let role = "src/controllers/markdown_view.rs";
    project.edit(
        role,
        r#"resources = "configmaps, services", verbs = "create"#,
        r#"resources = "configmaps, services", verbs = "deletecollection, create"#,
    );
    let checked = project.manifests("--check --quiet");
    assert_eq!(checked.status, 1, "{checked}");
    assert!(checked.stdout.contains("+  - deletecollection\n"), "{checked}");
    insta::assert_snapshot!(checked.stderr, @"
    error: out of date: config/rbac/role.yaml
      hint: run `kubewright manifests` (with --prune to remove stale files) and commit the result
    ");
    let definition = project.path("config/crd/bases/view.example.com_markdownviews.yaml");
    let before = fs::metadata(&definition).and_then(|file| file.modified()).expect("the definition is there");
    assert_eq!(project.manifests("--quiet").result(), "wrote config/rbac/role.yaml\n");
    let after = fs::metadata(&definition).and_then(|file| file.modified()).expect("the definition is there");
    assert_eq!(before, after);
    assert_eq!(project.manifests("--quiet").result(), "");

    // After a rename, stale files are reported, and removed with --prune.
    let kind = "src/api/v1/markdown_view.rs";
    for file in [kind, "src/api/v2/markdown_view.rs"] {
        project.edit(file, r#"plural = "markdownviews""#, r#"plural = "views""#);
    }
    let told = project.manifests("--quiet --dry-run");
    assert_eq!(told.status, 0, "{told}");
    assert!(
        told.stderr
            .starts_with("warning[KW501] copied-view: config/crd/bases/view.example.com_markdownviews.yaml"),
        "{told}"
    );
    assert!(definition.exists() && !project.path("config/crd/bases/view.example.com_views.yaml").exists());
    let pruned = project.manifests("--quiet --prune");
    insta::assert_snapshot!(pruned.stdout, @r"
    wrote config/crd/bases/view.example.com_views.yaml
    wrote config/rbac/role.yaml
    wrote config/webhook/manifests.yaml
    removed config/crd/bases/view.example.com_markdownviews.yaml
    ");
    assert!(!definition.exists());

    // Invalid CRDs are not written.
    project.edit(kind, "schema::min_properties(1)", "schema::min_length(1)");
    let refused = project.manifests("--quiet");
    assert_eq!((refused.status, refused.stdout.as_str()), (1, ""), "{refused}");
    assert!(refused.stderr.contains("error[KW1"), "{refused}");
    assert!(project.read("config/crd/bases/view.example.com_views.yaml").contains("minProperties: 1"));

    project.write("src/main.rs", "fn main() { 1 }");
    let broken = project.manifests("--quiet");
    assert_eq!(broken.status, 1);
    assert!(broken.stderr.contains("mismatched types"), "{broken}");
    assert!(broken.stderr.ends_with("error: failed to build the operator\n"), "{broken}");
}

/// A fake cargo that "builds" a script.
fn built(program: &str) -> (TempDir, Command) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("a file can be written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it can be made executable");
        path
    };
    let operator = write("operator", &format!("#!/bin/sh\n{program}\n"));
    let artifact = format!(
        r#"{{"reason":"compiler-artifact","target":{{"kind":["bin"],"name":"operator"}},"executable":"{}"}}"#,
        operator.display()
    );
    let cargo = write("cargo", &format!("#!/bin/sh\necho '{artifact}'\n"));
    write("Cargo.toml", "");
    fs::create_dir(folder.path().join("src")).expect("a folder can be made");
    let mut command = command("manifests");
    command.current_dir(folder.path()).env("CARGO", cargo);
    (folder, command)
}

#[test]
fn a_binary_that_is_not_an_operator_is_reported() {
    let (_folder, mut command) = built("echo hello");
    insta::assert_snapshot!(run(&mut command).stderr, @"
    error: cannot read the inventory of operator
      cause: failed to parse the operator's inventory; check that `main` prints nothing to standard output before `manager.run()`
      cause: expected value at line 1 column 1
    ");
}

#[test]
fn a_failing_operator_is_reported() {
    let (_folder, mut command) = built("echo 'error: no such thing' >&2; exit 3");
    insta::assert_snapshot!(run(&mut command).stderr, @"
    error: operator failed to print its inventory (exit status: 3)
      cause: error: no such thing
      hint: the operator must use `#[kubewright::main]` or call `kubewright::operator!().run(...)`
    ");
}

#[test]
fn an_operator_of_another_release_is_reported() {
    let (_folder, mut command) = built(r#"echo '{"format": 99}'"#);
    insta::assert_snapshot!(run(&mut command).stderr, @"
    error: cannot read the inventory of operator
      cause: the operator prints its inventory in format 99, but this tool reads format 1; use the same release of the `kubewright` crate and the command-line tool (`cargo update -p kubewright`)
    ");
}

#[test]
fn an_empty_inventory_is_reported() {
    let (_folder, mut command) = built(r#"echo '{"format": 1, "program": "operator"}'"#);
    insta::assert_snapshot!(run(&mut command).stderr, @"
    error[KW502] operator: the operator declares nothing: no kind, RBAC rule, webhook or controller. The linker drops a library that is never referenced, including its attributes
      help: reference the library in main.rs, as in the scaffold, and register a controller before `manager.run()`
    error: 1 error in the operator's inventory; nothing was written
    ");
}

#[test]
fn a_missing_cargo_is_reported() {
    let (_folder, mut command) = built("");
    insta::assert_snapshot!(run(command.env("CARGO", "no-such-cargo")).stderr, @"
    error: cannot start no-such-cargo
      cause: No such file or directory (os error 2)
      hint: install Rust, or set CARGO to the path of cargo
    ");
}

#[test]
fn a_directory_without_a_project_is_reported() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let told = run(command("manifests").current_dir(folder.path()));
    insta::assert_snapshot!(told.stderr, @"
    error: no Cargo.toml found in . or its parents
      hint: run this in a project directory, or pass it as an argument
    ");
}
