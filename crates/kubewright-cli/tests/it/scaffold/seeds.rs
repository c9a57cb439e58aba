//! The commands of the tutorial notes with `kubewright` instead of `kubebuilder`. Each succeeds, or an error
//! says what to do instead.

use insta::assert_snapshot;

use super::Folder;
use crate::run::Run;

/// The messages of a command, without the list of written files.
fn said(run: &Run) -> String {
    // The path to the checkout differs between machines.
    let lines = run.stderr.lines().filter(|line| !line.contains("the project is not portable yet"));
    let lines: String = lines.flat_map(|line| [line, "\n"]).collect();
    format!("exit status {}\n{lines}", run.status)
}

#[test]
fn the_commands_of_the_markdown_view_notes_work() {
    let folder = Folder::new("markdown-view");
    let repo = "github.com/syunkitada/kubebuilder-traging-markdown-view";
    let init = folder.run(&format!("init --domain kubebuilder.example.com --repo {repo}"));
    assert_snapshot!(said(&init), @"
    exit status 0
    note: --repo has no effect: cargo packages have no module path
    note: Next: add an API with `kubewright create api --group GROUP --version v1 --kind KIND`
    ");

    let folder = Folder::new("markdown-view");
    let init = folder.run("init --domain ginoh.github.io --repo github.com/ginoh/markdown-view");
    assert_eq!(init.status, 0, "{init}");
    let api = folder.run("create api --group view --version v1 --kind MarkdownView");
    assert_snapshot!(said(&api), @"
    exit status 0
    note: Next: edit the spec and the reconciler, then run `make manifests test`
    ");
    let webhook = folder.run(
        "create webhook --group view --version v1 --kind MarkdownView --programmatic-validation --defaulting",
    );
    assert_snapshot!(said(&webhook), @"
    exit status 0
    note: Next: edit the handlers and the fixtures, then run `make manifests test`
    ");
    let makefile = folder.read("Makefile");
    for target in ["docker-build", "install", "deploy", "test"] {
        assert!(makefile.contains(&format!("\n{target}:")), "no `make {target}`");
    }
}

#[test]
fn the_commands_of_the_bar_controller_notes_work() {
    let folder = Folder::new("bar-controller");
    let init = folder.run("init --domain ginoh.github.io --repo github.com/ginoh/bar-controller");
    assert_eq!(init.status, 0, "{init}");
    folder.done("create api --group samplecontroller --version v1alpha1 --kind Bar");
    // `kubectl -n sample-bar apply -f config/samples/samplecontroller_v1alpha1_bar.yaml`
    let sample = folder.read("config/samples/samplecontroller_v1alpha1_bar.yaml");
    assert!(sample.contains("kind: Bar\n"), "{sample}");
    // The notes add this by hand.
    let manager = folder.read("config/manager/manager.yaml");
    assert!(
        manager.contains("image: controller:latest\n") && manager.contains("imagePullPolicy: IfNotPresent\n")
    );
    // `IMG=bar-controller:dev make docker-build`, `make install`, `IMG=bar-controller:dev make deploy`
    let variables = [("IMG", "bar-controller:dev"), ("CONTAINER_TOOL", "true"), ("MAKEFLAGS", "-n")];
    let made = folder.shell("make", "docker-build install deploy", &variables);
    assert!(made.contains("-t bar-controller:dev ."), "{made}");
    assert!(made.contains("newName: \"bar-controller\"") && made.contains("newTag: \"dev\""), "{made}");
}

#[test]
fn the_commands_of_the_collector_notes_work() {
    let folder = Folder::new("collector");
    let init = folder.run("init --domain ”项目名“ --skip-go-version-check");
    assert_snapshot!(said(&init), @"
    exit status 1
    note: --skip-go-version-check has no effect: Go is not needed
    error: the domain `”项目名“` is not a DNS name such as example.com: use lowercase letters, digits, `-` and dots
    ");
    folder.done("init --domain my.domain --skip-go-version-check");
    folder.done("create api --group collector.ip --version v1 --kind Collector");
    assert!(folder.read("PROJECT").contains("group: collector.ip\n"));
}

#[test]
fn other_flags_of_kubebuilder_are_accepted_with_a_note() {
    let folder = Folder::new("shop");
    let init = folder.run(
        "init --domain example.com --plugins go/v4 --project-version 3 --fetch-deps=false --component-config \
         --license-file header.txt",
    );
    let api = folder.run(
        "create api --group batch --version v1 --kind CronJob --make=false --ssa --crd-version v1 --plugins go/v4",
    );
    let edit = folder.run("edit --multigroup --plugins go/v4");
    assert_snapshot!([init, api, edit].map(|run| said(&run)).concat(), @"
    exit status 0
    note: --fetch-deps has no effect: cargo fetches dependencies when it builds
    note: --component-config has no effect: the manager is configured with flags
    note: --license-file has no effect: edit LICENSE, or use --owner for file headers
    note: --plugins has no effect: kubewright has no plugins
    note: --project-version has no effect: the project version is always 3
    note: Next: add an API with `kubewright create api --group GROUP --version v1 --kind KIND`
    exit status 0
    note: --make has no effect: the CRD and RBAC rules are generated without a build
    note: --ssa has no effect: derive ApplyConfiguration on the types instead
    note: --crd-version has no effect: CRDs always use apiextensions.k8s.io/v1
    note: --plugins has no effect: kubewright has no plugins
    note: batch.example.com/v1, CronJob is a new custom resource; use --resource=false to add a controller for the built-in kind CronJob
    note: Next: edit the spec and the reconciler, then run `make manifests test`
    exit status 0
    note: --plugins has no effect: kubewright has no plugins
    note: update imports of moved modules (crate::api, crate::controllers) in your own files
    ");
}
