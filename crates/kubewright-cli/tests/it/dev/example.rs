//! The example on an embedded and on an existing cluster.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::page;
use super::running::{Dev, kubectl};
use crate::book::{Page, Test, run_by};
use crate::kubectl::process::Process;
use crate::manifests::Project;
use crate::run::{command, run, target};

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
    the_manifests_are_installed(&project, &kubeconfig);
    let line = format!("--existing-cluster --webhook-host 127.0.0.1 --kubeconfig {}", kubeconfig.display());
    let mut existing = Dev::start(&folder, NAME, &line);
    let page = page::address(&existing.says("page http://127.0.0.1:"));
    existing.says("sample MarkdownView default/markdownview-v2-sample: Available");
    pods_run(&kubeconfig);
    page::shows_an_existing_cluster(&page, NAME, &kubeconfig);
    the_tutorial_works(&project, &kubeconfig);
    let ended = existing.end("INT");
    assert_eq!(ended.status, Some(0), "{}{}", ended.stdout, ended.stderr);
    let first = ended.stdout.lines().next().unwrap_or_default();
    assert!(first.contains(url) && first.contains(": context "), "{first}");
    assert_eq!(existing.operators(), Vec::<String>::new());
    // No webhook configuration without a server is left behind.
    let left = "get mutatingwebhookconfigurations,validatingwebhookconfigurations -o name";
    assert_eq!(kubectl(&kubeconfig, left), "");
    // Objects can be read without this machine.
    let crd = "get crd markdownviews.view.example.com -o jsonpath={.spec.conversion}{.metadata.labels}";
    assert_eq!(kubectl(&kubeconfig, crd), r#"{"strategy":"None"}"#);
    kubectl(&kubeconfig, "get markdownviews.v2.view.example.com");
    the_next_start_cleans_up_after_a_killed_run(&project, NAME, &kubeconfig, &line);
}

/// Webhooks of a run that was killed point at a process that does not exist. The next start deletes the configurations,
/// and restores the conversion that a deployed operator has.
#[track_caller]
fn the_next_start_cleans_up_after_a_killed_run(project: &Project, name: &str, kubeconfig: &Path, line: &str) {
    let folder = project.path("");
    let conversion = r#"[{"op":"add","path":"/spec/conversion","value":{"strategy":"Webhook","webhook":{"clientConfig":{"service":{"namespace":"view-system","name":"view-webhook-service","path":"/convert"}},"conversionReviewVersions":["v1"]}}}]"#;
    let crd = "crd markdownviews.view.example.com";
    kubectl(kubeconfig, &format!("patch {crd} --type=json -p {conversion}"));
    let deployed = format!("get {crd} -o jsonpath={{.spec.conversion}}{{.metadata.labels}}");
    let before = kubectl(kubeconfig, &deployed);
    let configurations = "get mutatingwebhookconfigurations,validatingwebhookconfigurations -o name";

    let mut killed = Dev::start(&folder, name, line);
    killed.says("sample MarkdownView default/markdownview-v2-sample: Available");
    let ended = killed.end("KILL");
    assert_eq!(ended.status, None, "{}{}", ended.stdout, ended.stderr);
    assert_eq!(kubectl(kubeconfig, configurations).lines().count(), 2);
    let left = kubectl(kubeconfig, &deployed);
    assert!(left.contains("https://127.0.0.1:") && left.contains("kubewright.dev/dev"), "{left}");
    // The operator ends with `dev`, also without a signal.
    let deadline = Instant::now() + Duration::from_secs(30);
    while !killed.operators().is_empty() {
        assert!(Instant::now() < deadline, "{:?}", killed.operators());
    }

    // Nothing is installed again before the operator is built.
    project.edit("src/main.rs", "async fn main", "async fn main is broken");
    let mut next = Dev::start(&folder, name, line);
    next.says("webhooks 3 objects of an earlier run deleted or restored");
    next.says("error");
    assert_eq!(kubectl(kubeconfig, configurations), "");
    assert_eq!(kubectl(kubeconfig, &deployed), before);
    assert_eq!(next.end("INT").status, Some(0));
}

/// Runs the chapter about manifests: the CRD is installed, and no operator runs.
#[track_caller]
fn the_manifests_are_installed(project: &Project, kubeconfig: &Path) {
    let page = Page::read("docs/tutorial/manifests.md");
    let mut ran = 0;
    let undo = "kubectl delete crd markdownviews.view.example.com";
    for line in run_by(Test::Manifests, &page).map(|shown| shown.line.as_str()).chain([undo]) {
        let mut shell = Command::new("sh");
        shell.env("KUBEWRIGHT", env!("CARGO_BIN_EXE_kubewright")).env("KUBECONFIG", kubeconfig);
        shell.env("CARGO_TARGET_DIR", target()).env("CARGO_NET_OFFLINE", "true").env_remove("MAKEFLAGS");
        let result = run(shell.args(["-c", line]).current_dir(project.path("")));
        assert_eq!(result.status, 0, "{}: {line}: {result}", page.path);
        ran += 1;
    }
    assert_eq!(ran, 5, "`make manifests` and `make install` are on the page");
}

/// Runs the tutorial's commands for kubectl, which print what its pages show: an invalid object is rejected with all
/// its errors, and each version shows an object that was written in the other.
#[track_caller]
fn the_tutorial_works(project: &Project, kubeconfig: &Path) {
    let mut ran = 0;
    for name in ["dev", "reconcile", "status", "watches", "webhooks", "versions"] {
        let page = Page::read(&format!("docs/tutorial/{name}.md"));
        ran += works(Test::Tutorial, &page, &project.path(""), kubeconfig);
    }
    assert!(ran > 25, "{ran} commands");
    let readme = Page::read("examples/markdown-view/README.md");
    assert_eq!(works(Test::Tutorial, &readme, &project.path(""), kubeconfig), 6);
}

/// Runs the commands of a page for a test, in a folder. Each must print what the page shows, if it shows something.
/// Returns their number.
#[track_caller]
pub(super) fn works(test: Test, page: &Page, folder: &Path, kubeconfig: &Path) -> usize {
    let mut ran = 0;
    for shown in run_by(test, page) {
        // A command may run before the operator has reacted to the previous one, or before the next minute starts.
        let deadline = Instant::now() + Duration::from_secs(90);
        loop {
            let mut shell = shell(folder, kubeconfig);
            let result = run(shell.args(["-c", &shown.line]));
            let printed = result.stdout.clone() + &result.stderr;
            let is_as_shown =
                if shown.output.is_empty() { result.status == 0 } else { shown.matches(&printed) };
            if is_as_shown {
                break;
            }
            assert!(Instant::now() < deadline, "{}: {}: {result}", page.path, shown.line);
        }
        ran += 1;
    }
    ran
}

/// A shell in a folder, with only the configuration of the cluster.
fn shell(folder: &Path, kubeconfig: &Path) -> Command {
    let mut shell = Command::new("sh");
    shell.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    shell.env("HOME", folder).env("KUBECONFIG", kubeconfig).current_dir(folder);
    shell
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
