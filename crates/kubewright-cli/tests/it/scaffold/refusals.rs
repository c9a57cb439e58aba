//! What the scaffold refuses, and what it says; nothing is written then.

use std::fs;

use insta::assert_snapshot;

use super::Folder;

const ORDER: &str = "create api --group sales --version v1 --kind Order";

#[test]
fn a_folder_that_is_no_project_is_told_how_to_become_one() {
    let folder = Folder::new("shop");
    let run = folder.run(ORDER);
    assert_snapshot!(run.to_string().replace(&folder.path().display().to_string(), "<FOLDER>"), @"");
}

#[test]
fn a_project_is_not_started_twice() {
    let folder = Folder::with_order();
    let before = folder.files();
    let run = folder.run("init --domain example.com");
    assert_snapshot!(run.to_string().replace(&folder.path().display().to_string(), "<FOLDER>"), @"");
    assert_eq!(folder.files(), before);
}

#[test]
fn a_kind_is_not_added_twice_and_nothing_is_written() {
    let folder = Folder::with_order();
    let before = folder.files();
    assert_snapshot!(folder.run(ORDER), @"");
    assert_eq!(folder.files(), before);
}

#[test]
fn a_change_of_the_users_that_would_be_lost_is_told() {
    let folder = Folder::with_order();
    let types = folder.read("src/api/v1/order.rs").replace("foo", "amount");
    folder.write("src/api/v1/order.rs", &types);
    let before = folder.files();
    assert_snapshot!(folder.run("delete api --group sales --version v1 --kind Order"), @"");
    assert_eq!(folder.files(), before);
    folder.done("delete api --group sales --version v1 --kind Order --force");
    assert!(!folder.path().join("src/api").exists());
}

#[test]
fn without_a_terminal_nothing_is_asked() {
    assert_snapshot!(Folder::new("shop").run("init"), @"");
    assert_snapshot!(Folder::with_order().run("create api --group sales --version v1"), @"");
}

#[test]
fn a_project_of_another_tool_or_a_later_release_is_told_apart() {
    let folder = Folder::with_order();
    let project = folder.read("PROJECT");
    folder.write("PROJECT", &project.replace("kubewright.dev/v1\nplugins", "go.kubebuilder.io/v4\nplugins"));
    assert_snapshot!(folder.run(ORDER), @"");
    folder.write("PROJECT", &project.replace("version: \"3\"", "version: \"4\""));
    assert_snapshot!(folder.run(ORDER), @"");
    folder.write("PROJECT", "version: \"3\"\nresources:\n- kind: [\n");
    assert_snapshot!(folder.run(ORDER), @"");
}

#[test]
fn a_dry_run_prints_a_diff_and_writes_nothing() {
    let folder = Folder::with_order();
    let before = folder.files();
    let diff = folder.done("create api --group sales --version v2 --kind Order --dry-run");
    assert!(diff.contains("--- a/src/registry.rs\n+++ b/src/registry.rs\n"), "{diff}");
    assert!(diff.contains("--- /dev/null\n+++ b/src/api/v2/order.rs\n"), "{diff}");
    assert_eq!(folder.files(), before);
}

#[test]
fn a_folder_that_cannot_be_written_to_keeps_what_it_has() {
    let folder = Folder::new("shop");
    // A file where a folder is to be: it cannot be made, whoever runs this.
    folder.write("config", "mine\n");
    let run = folder.run("init --domain example.com --kubewright-version 0.1.0");
    assert_eq!(run.status, 1, "{run}");
    assert_eq!(folder.files(), [("config".to_owned(), "mine\n".to_owned())]);
}

#[test]
fn a_readme_that_is_there_already_stays() {
    let folder = Folder::new("shop");
    folder.write("README.md", "mine\n");
    let run = folder.run("init --domain example.com --kubewright-version 0.1.0");
    assert_eq!(run.status, 0, "{run}");
    assert!(run.stderr.contains("README.md is there already, and stays as it is"), "{run}");
    assert_eq!(folder.read("README.md"), "mine\n");
}

#[test]
fn a_project_depends_on_the_checkout_that_built_the_tool_unless_told_otherwise() {
    let folder = Folder::new("shop");
    folder.done("init --domain example.com");
    let crates = fs::canonicalize(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).expect("it is there");
    let line = format!("kubewright = {{ path = \"{}/kubewright\" }}", crates.display());
    assert!(folder.read("Cargo.toml").contains(&line), "{}", folder.read("Cargo.toml"));
    let folder = Folder::new("shop");
    folder.done("init --domain example.com --kubewright-git https://example.com/kubewright");
    let line = "kubewright = { git = \"https://example.com/kubewright\" }";
    assert!(folder.read("Cargo.toml").contains(line), "{}", folder.read("Cargo.toml"));
}

#[test]
fn what_kubebuilder_says_of_a_project_is_carried_over() {
    let folder = Folder::new("shop");
    let theirs = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/kubebuilder/PROJECT");
    let run = folder.run(&format!("init --from {theirs} --kubewright-version 0.1.0"));
    assert_eq!(run.status, 0, "{run}");
    assert_snapshot!(run.stderr, @"");
    assert!(folder.path().join("src/controllers/world/region_backup.rs").is_file());
}
