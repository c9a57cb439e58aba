//! Changes of the user survive later runs, and `--check` reports a stale chart.

use insta::assert_snapshot;

use super::{INIT, ORDER, helm, project};

#[test]
fn user_changes_are_merged() {
    let folder = project(&[INIT, ORDER]);
    folder.done("chart");
    assert_eq!(folder.done("chart"), "");
    let values = folder.read("dist/chart/values.yaml");
    folder.write("dist/chart/values.yaml", &values.replace("replicas: 1\n", "replicas: 2\n"));
    folder
        .write("dist/chart/templates/own.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: own\n");
    folder.remove("dist/chart/templates/NOTES.txt");
    assert_eq!(folder.run("chart --check").status, 0, "own changes are not stale");

    // A new kind and an optional part change the chart.
    folder.done("create api --group sales --version v1 --kind Item");
    folder.done("edit --prometheus");
    let stale = folder.run("chart --check");
    assert_eq!(stale.status, 1);
    assert!(stale.stdout.contains("+++ b/dist/chart/templates/crd/items.sales.example.com.yaml"), "{stale}");
    assert!(stale.stderr.contains("hint: run `kubewright chart` and commit the result"), "{stale}");
    let preview = folder.done("chart --dry-run");
    assert!(preview.contains("+++ b/dist/chart/templates/crd/items.sales.example.com.yaml"), "{preview}");
    let wrote = folder.done("chart");
    assert!(wrote.contains("merged dist/chart/values.yaml\n"), "{wrote}");
    let values = folder.read("dist/chart/values.yaml");
    assert!(values.contains("  replicas: 2\n") && values.contains("prometheus:\n"), "{values}");
    assert!(!folder.path().join("dist/chart/templates/NOTES.txt").exists());
    assert!(folder.path().join("dist/chart/templates/own.yaml").exists());
    assert_eq!(folder.run("chart --check").status, 0);
    helm(&folder.path(), &["lint", "--strict", "dist/chart"]);

    // Removed kinds take their templates along.
    let removed = folder.done("delete api --group sales --version v1 --kind Item");
    assert!(removed.contains("removed "), "{removed}");
    let wrote = folder.done("chart");
    assert!(wrote.contains("removed dist/chart/templates/crd/items.sales.example.com.yaml\n"), "{wrote}");

    folder.done("chart --force");
    assert!(folder.read("dist/chart/values.yaml").contains("  replicas: 1\n"));
    assert!(folder.path().join("dist/chart/templates/NOTES.txt").exists());
}

#[test]
fn conflicts_are_marked() {
    let folder = project(&[INIT, ORDER]);
    folder.done("chart");
    let values = folder.read("dist/chart/values.yaml");
    folder.write("dist/chart/values.yaml", &values.replace("memory: 128Mi\n", "memory: 1Gi\n"));
    let manager = folder.read("config/manager/manager.yaml");
    folder.write("config/manager/manager.yaml", &manager.replace("memory: 128Mi\n", "memory: 256Mi\n"));
    let conflict = folder.run("chart");
    assert_snapshot!(conflict, @"
    exit status 1
    --- stdout
    conflict dist/chart/values.yaml
    --- stderr
    error: merge conflicts: 1 place marked with <<<<<<< and >>>>>>>
      hint: resolve the conflicts, then run `kubewright chart` again
    ");
    let marked = folder.read("dist/chart/values.yaml");
    assert!(
        marked.contains("<<<<<<< yours\n      memory: 1Gi\n=======\n      memory: 256Mi\n>>>>>>> kubewright"),
        "{marked}"
    );
}

#[test]
fn a_chart_of_another_tool_is_kept() {
    let folder = project(&[INIT, ORDER]);
    std::fs::create_dir_all(folder.path().join("dist/chart")).expect("a folder");
    folder.write("dist/chart/Chart.yaml", "apiVersion: v2\nname: other\nversion: 9.0.0\n");
    let run = folder.run("chart");
    assert_eq!(run.status, 0, "{run}");
    assert!(run.stdout.contains("kept (you changed it): dist/chart/Chart.yaml\n"), "{run}");
    assert!(run.stderr.contains("`kubewright chart --force` replaces them"), "{run}");
    folder.done("chart --force");
    assert!(folder.read("dist/chart/Chart.yaml").contains("name: shop\n"));
}

#[test]
fn the_chart_is_committed_and_other_output_is_not() {
    let folder = project(&[INIT]);
    let ignored = folder.read(".gitignore");
    assert!(ignored.contains("\n/dist/*\n!/dist/chart\n"), "{ignored}");
}
