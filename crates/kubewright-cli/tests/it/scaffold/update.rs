//! `kubewright update` of a project from an older kubewright.

use insta::assert_snapshot;

use super::Folder;

const RECORD: &str = ".kubewright/scaffold.yaml";

/// A project with an older Makefile and scaffold record.
fn older() -> Folder {
    let folder = Folder::with_order();
    for path in ["Makefile", RECORD] {
        let text = folder.read(path).replace("$(CARGO) fmt\n", "$(CARGO) fmt --old\n");
        folder.write(path, &text);
    }
    let record = folder.read(RECORD);
    assert!(record.contains("kubewright: 0.1.0\n") && record.contains("fmt --old"), "{record}");
    folder.write(RECORD, &record.replace("kubewright: 0.1.0\n", "kubewright: 0.0.1\n"));
    folder.write("PROJECT", &folder.read("PROJECT").replace("cliVersion: 0.1.0", "cliVersion: 0.0.1"));
    folder
}

#[test]
fn an_update_keeps_user_changes() {
    let folder = older();
    let controller = folder.read("src/controllers/order.rs").replace("\"Reconciling\"", "\"mine\"");
    folder.write("src/controllers/order.rs", &controller);
    let before = folder.files();
    let diff = folder.done("update --dry-run");
    assert!(diff.contains("-\t$(CARGO) fmt --old\n+\t$(CARGO) fmt\n"), "{diff}");
    assert_eq!(folder.files(), before);

    let run = folder.run("update");
    assert_snapshot!(run, @"
    exit status 0
    --- stdout
    updated Makefile
    --- stderr
    note: Updated from 0.0.1 to [VERSION]. Next: run `make manifests test`
    ");
    assert_eq!(folder.read("src/controllers/order.rs"), controller);
    assert!(folder.read("PROJECT").contains("cliVersion: 0.1.0\n"));
    assert!(!folder.read("Makefile").contains("--old") && !folder.read(RECORD).contains("--old"));
    assert_snapshot!(folder.run("update"), @"
    exit status 0
    --- stderr
    note: already up to date with kubewright [VERSION]
    ");
}

#[test]
fn conflicts_are_marked() {
    let folder = older();
    folder.write("Makefile", &folder.read("Makefile").replace("fmt --old", "fmt --mine"));
    assert_snapshot!(folder.run("update"), @"
    exit status 1
    --- stdout
    conflict Makefile
    --- stderr
    error: merge conflicts: 1 place marked with <<<<<<< and >>>>>>>
      hint: resolve the conflicts, then run `make manifests test`
    ");
    let marked = "<<<<<<< yours\n\t$(CARGO) fmt --mine\n=======\n\t$(CARGO) fmt\n>>>>>>> kubewright 0.1.0\n";
    assert!(folder.read("Makefile").contains(marked));
}

#[test]
fn a_project_without_a_record_gets_one() {
    let folder = Folder::with_order();
    folder.remove(RECORD);
    let before = folder.files();
    folder.done("create api --group sales --version v1 --kind Customer");
    folder.done("delete api --group sales --version v1 --kind Customer");
    assert_eq!(folder.files(), before);
    assert_snapshot!(folder.run("update --dry-run"), @"
    exit status 0
    --- stderr
    note: .kubewright/scaffold.yaml is missing; the update would record the scaffold of [VERSION], which later updates merge with
    ");
    assert_eq!(folder.files(), before);
    assert_snapshot!(folder.run("update"), @"
    exit status 0
    --- stderr
    note: .kubewright/scaffold.yaml was missing and now records the scaffold of [VERSION], which later updates merge with
    ");
    assert!(folder.run("update").stderr.contains("already"));
    folder.remove(RECORD);
    assert_eq!(folder.files(), before);
}

#[test]
fn the_dependency_of_a_project_without_a_record_changes() {
    let folder = Folder::with_order();
    folder.remove(RECORD);
    let before = folder.files();
    let line = "update --kubewright-git https://example.com/kubewright";
    let diff = folder.done(&format!("{line} --dry-run"));
    assert!(diff.contains("+kubewright = { git = \"https://example.com/kubewright\""), "{diff}");
    assert_eq!(folder.files(), before);
    let run = folder.run(line);
    assert_eq!(run.status, 0, "{run}");
    assert!(run.stderr.contains("was missing and now records"), "{run}");
    assert!(run.stdout.contains("updated Cargo.toml\n"), "{run}");
    let git = "git = \"https://example.com/kubewright\"";
    assert!(folder.read("Cargo.toml").contains(git) && folder.read(RECORD).contains(git));
    assert!(folder.run(line).stderr.contains("already"));
}
