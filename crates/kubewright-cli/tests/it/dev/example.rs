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
    let line = format!("--existing-cluster --once --timeout 8m --kubeconfig {}", kubeconfig.display());
    let mut existing = Dev::start(&folder, NAME, &line);
    let ended = existing.wait();
    assert_eq!(ended.status, Some(0), "{}{}", ended.stdout, ended.stderr);
    let first = ended.stdout.lines().next().unwrap_or_default();
    assert!(first.contains(url) && first.contains(": context "), "{first}");
    is_available(&ended.stdout);
    pods_run(&kubeconfig);
    assert_eq!(existing.operators(), Vec::<String>::new());
}

#[track_caller]
fn is_available(stdout: &str) {
    let sample = stdout.lines().find(|line| line.contains("sample MarkdownView ")).unwrap_or_default();
    assert!(sample.contains(": Available, 1 Deployment ready, 1 Pod ready"), "{stdout}");
}

#[track_caller]
fn pods_run(kubeconfig: &Path) {
    let phases = kubectl(kubeconfig, "get pods -o jsonpath={..phase}");
    assert_eq!(phases, "Running");
}
