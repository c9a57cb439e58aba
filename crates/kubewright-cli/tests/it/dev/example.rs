//! The example on an embedded and on an existing cluster.

use std::path::Path;

use super::running::{Dev, kubectl};
use crate::kubectl::process::Process;
use crate::manifests::Project;
use crate::run::command;

#[test]
fn the_example_becomes_available_on_both_clusters() {
    const NAME: &str = "dev-view";
    let project = Project::new();
    // A separate binary name, since other tests build into the same directory.
    project.edit("Cargo.toml", "copied-view", NAME);
    project.edit("Cargo.toml", "name = \"markdown-view\"", "name = \"dev-view\"");
    project.edit("Cargo.toml", "[workspace]\n", "[lib]\nname = \"markdown_view\"\n\n[workspace]\n");
    let folder = project.path("");

    let mut embedded = Dev::start(&folder, NAME, "--fresh --once --timeout 8m --nodes 2");
    let ended = embedded.wait();
    assert_eq!(ended.status, Some(0), "{}{}", ended.stdout, ended.stderr);
    is_available(&ended.stdout);

    let kubeconfig = project.path("kubeconfig");
    let mut server = Process::start(
        command("apiserver --controllers all --kubeconfig").arg(&kubeconfig).current_dir(&folder),
        "",
    );
    let ready = server.line_with("ready https://");
    let url = ready.split_whitespace().nth(1).expect("the line has the address");
    let line = format!("--existing-cluster --webhook-host 127.0.0.1 --kubeconfig {}", kubeconfig.display());
    let mut existing = Dev::start(&folder, NAME, &line);
    existing.says("page http://127.0.0.1:");
    existing.says("sample MarkdownView default/markdownview-v2-sample: Available");
    pods_run(&kubeconfig);
    rules_are_enforced(&project, &kubeconfig);
    let ended = existing.end("INT");
    assert_eq!(ended.status, Some(0), "{}{}", ended.stdout, ended.stderr);
    let first = ended.stdout.lines().next().unwrap_or_default();
    assert!(first.contains(url) && first.contains(": context "), "{first}");
    assert_eq!(existing.operators(), Vec::<String>::new());
    // No webhook is left that nothing answers.
    let left = "get mutatingwebhookconfigurations,validatingwebhookconfigurations -o name";
    assert_eq!(kubectl(&kubeconfig, left), "");
    // Objects can be read without this machine.
    let crd = "get crd markdownviews.view.example.com -o jsonpath={.spec.conversion}{.metadata.labels}";
    assert_eq!(kubectl(&kubeconfig, crd), r#"{"strategy":"None"}"#);
    kubectl(&kubeconfig, "get markdownviews.v2.view.example.com");
}

/// A bad object is refused with all its errors, and each version shows an object that was written in the other.
#[track_caller]
fn rules_are_enforced(project: &Project, kubeconfig: &Path) {
    let bad = project.path("bad.yaml");
    let text = "apiVersion: view.example.com/v1\nkind: MarkdownView\nmetadata: {name: bad}\n\
                spec: {replicas: 10, markdowns: {page1.md: text}}\n";
    std::fs::write(&bad, text).expect("the folder can be written");
    let refused = crate::run::run(
        crate::run::kubectl().arg("--kubeconfig").arg(kubeconfig).args(["apply", "-f"]).arg(&bad),
    );
    assert_eq!(refused.status, 1, "{}{}", refused.stdout, refused.stderr);
    for error in [
        "spec.replicas: Invalid value: 10: must be between 1 and 5",
        "spec.markdowns: Required value: SUMMARY.md",
    ] {
        assert!(refused.stderr.contains(error), "{}", refused.stderr);
    }
    let get = |version: &str, name: &str, path: &str| {
        let line = format!("get markdownviews.{version}.view.example.com {name} -o jsonpath={path}");
        kubectl(kubeconfig, &line)
    };
    let image = "peaceiris/mdbook:latest";
    assert_eq!(get("v2", "markdownview-sample", "{.spec.viewer.image}"), image);
    assert_eq!(get("v1", "markdownview-v2-sample", "{.spec.viewerImage}"), image);
}

#[track_caller]
fn is_available(stdout: &str) {
    let sample = stdout.lines().find(|line| line.contains("sample MarkdownView ")).unwrap_or_default();
    assert!(sample.contains(": Available, 1 Deployment ready, 1 Pod ready"), "{stdout}");
}

#[track_caller]
fn pods_run(kubeconfig: &Path) {
    let phases = kubectl(kubeconfig, "get pods -o jsonpath={..phase}");
    assert_eq!(phases, "Running Running");
}
