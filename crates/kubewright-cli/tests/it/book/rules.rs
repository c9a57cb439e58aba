//! How the tests treat each command of the book: a test runs it, or a reason is stated.
//!
//! A page of a translation has the treatment of the English page: `cargo xtask tidy` checks that their code blocks are the
//! same.

use super::{Page, Shown};

/// A test that runs commands of the book.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Test {
    /// Runs in a new project, with the output that the page shows.
    Scaffold,
    /// Runs in the example, before `dev` starts: the chapter about manifests.
    Manifests,
    /// Runs in the example and on its cluster, while `dev` runs.
    Tutorial,
    /// Runs on the cluster of `dev` with the example of the README.
    Example,
    /// Runs on an API server without controllers.
    Server,
    /// Runs on an API server with controllers and nodes.
    Cluster,
}

pub(crate) enum Treatment {
    Run(Test),
    /// Only the arguments of `kubewright` are checked.
    Skip(&'static str),
}

use Treatment::{Run, Skip};

/// The treatment of commands by the start of their page and their line. The first rule that matches applies.
const RULES: &[(&str, &str, Treatment)] = &[
    // New projects.
    (
        "docs/scaffold.md",
        "kubewright edit --namespaced",
        Skip("not for a project with a cluster-scoped kind"),
    ),
    (
        "docs/scaffold.md",
        "kubewright create api --from-crd",
        Skip("the page has no file; scaffold::tutorial imports CRDs"),
    ),
    (
        "docs/scaffold.md",
        "kubewright delete api",
        Skip("v2 is the storage version at this point; scaffold::golden deletes one"),
    ),
    ("docs/scaffold.md", "kubewright ", Run(Test::Scaffold)),
    (
        "docs/webhooks.md",
        "kubewright create ",
        Skip("the page has no project; the tutorial has the same commands"),
    ),
    ("docs/", "mkdir ", Run(Test::Scaffold)),
    ("", "kubewright init ", Run(Test::Scaffold)),
    ("", "kubewright create ", Run(Test::Scaffold)),
    ("", "kubewright edit ", Run(Test::Scaffold)),
    (
        "docs/debug-page.md",
        "kubectl ",
        Skip("needs a deployed operator; the tests of kubewright-page read the page"),
    ),
    // The example.
    (
        "docs/tutorial/manifests.md",
        "kubectl apply -k ",
        Skip(
            "the example has a second version, whose conversion needs the operator; Test::Tutorial applies the samples",
        ),
    ),
    (
        "docs/tutorial/manifests.md",
        "kubectl get markdownviews",
        Skip(
            "the example has a second version, whose conversion needs the operator; Test::Tutorial lists them",
        ),
    ),
    ("docs/tutorial/manifests.md", "", Run(Test::Manifests)),
    ("docs/tutorial/dev.md", "kubectl ", Run(Test::Tutorial)),
    ("docs/tutorial/reconcile.md", "kubectl ", Run(Test::Tutorial)),
    ("docs/tutorial/status.md", "kubectl ", Run(Test::Tutorial)),
    ("docs/tutorial/watches.md", "kubectl ", Run(Test::Tutorial)),
    ("docs/tutorial/webhooks.md", "kubectl ", Run(Test::Tutorial)),
    ("docs/tutorial/webhooks.md", "cat ", Run(Test::Tutorial)),
    ("docs/tutorial/versions.md", "kubectl ", Run(Test::Tutorial)),
    ("examples/markdown-view/", "kubectl ", Run(Test::Tutorial)),
    (
        "examples/",
        "kubectl apply -k ",
        Skip("needs a deployed image, or `make run`; `dev` applies the samples"),
    ),
    ("examples/", "kubectl get jobs --watch", Skip("runs until it is stopped")),
    ("examples/", "kubectl ", Run(Test::Example)),
    // API servers.
    ("docs/apiserver.md", "kubectl ", Run(Test::Server)),
    ("docs/cluster.md", "kubectl ", Run(Test::Cluster)),
    // Commands that other tests run, in other words.
    ("docs/adopt/", "", Skip("adopt:: runs the guides")),
    ("docs/cookbook/events.md", "kubectl ", Skip("tests/cookbook of kubewright reads the events")),
    ("", "cargo run -- --help", Skip("tests/it/flags.rs of kubewright compares the help")),
    ("", "cargo run -- apiserver ", Skip("modes:: starts it with other ports")),
    ("", "cargo run -- dev ", Skip("dev::examples runs the examples")),
    ("", "cargo run -p ", Skip("the tests of the example run it")),
    ("", "KUBECONFIG=dev.kubeconfig cargo run ", Skip("the tests of the example run it")),
    ("", "cargo test", Skip("CI runs the tests of the examples")),
    (
        "",
        "USE_EXISTING_CLUSTER=true cargo test",
        Skip("scaffold::tutorial runs the tests on a running server"),
    ),
    ("", "eval \"$(kubewright envtest assets", Skip("adopt:: runs it")),
    ("", "kubewright apiserver", Skip("runs until it is stopped; modes:: starts it")),
    ("", "kubewright build-installer", Skip("delivery::installer runs it")),
    ("", "kubewright bundle", Skip("chart::bundle runs it")),
    ("", "kubewright chart", Skip("chart:: runs it")),
    ("", "kubewright completion", Skip("completion:: runs it")),
    ("", "kubewright deploy", Skip("needs a registry; delivery::deploy runs it")),
    ("", "kubewright dev", Skip("runs until it is stopped; dev:: runs it")),
    ("", "kubewright image build", Skip("compiles a release; delivery:: runs it")),
    (
        "",
        "kubewright image load",
        Skip("needs kind, minikube, k3d or containerd; delivery::load records the call"),
    ),
    ("", "kubewright manifests", Skip("manifests:: runs it")),
    ("", "kubewright migrate", Skip("kubectl::custom::migrate runs it")),
    ("", "kubewright scorecard", Skip("chart::scorecard runs it")),
    ("", "kubewright undeploy", Skip("delivery::deploy runs it")),
    ("", "kubewright version", Skip("version:: runs it")),
    ("", "make deploy", Skip("scaffold::tutorial runs it")),
    ("", "make dev", Skip("runs until it is stopped; dev:: runs `kubewright dev`")),
    ("", "make docker-build", Skip("delivery::seeds runs it without Docker")),
    ("", "make help", Skip("scaffold::tutorial runs it")),
    ("", "make install run", Skip("runs until it is stopped; scaffold::tutorial runs both targets")),
    ("", "make manifests", Skip("scaffold::tutorial runs it")),
    ("", "make run", Skip("runs until it is stopped; scaffold::tutorial runs the operator")),
    ("", "make test", Skip("compiles a new project; scaffold::tutorial tests projects of each kind")),
    // Commands that need more than this machine has.
    (
        "",
        "OTEL_EXPORTER_OTLP_ENDPOINT=",
        Skip("needs a collector; tests/it/traces.rs of the runtime has one"),
    ),
    ("", "apt-get ", Skip("changes the machine")),
    ("", "cargo install ", Skip("needs the network; `cargo xtask ci` installs the program")),
    ("", "cargo uninstall ", Skip("changes the machine")),
    ("", "curl ", Skip("needs the operator of the page; deploy:: reads metrics and probes")),
    ("", "git clone ", Skip("needs the network")),
    ("", "go test ", Skip("needs Go")),
    ("", "helm ", Skip("needs a deployed image; chart::server installs charts")),
    ("", "pip install ", Skip("changes the machine")),
    ("", "rustup ", Skip("changes the machine")),
    // Steps without an effect of their own.
    ("", "cd ", Skip("the next command has the effect")),
    ("", "export ", Skip("the tests set the environment")),
    ("", "unset ", Skip("the tests set the environment")),
    // Clusters with a deployed operator.
    (
        "docs/quick-start.md",
        "kubectl ",
        Skip("needs the operator of the page; dev::example runs the tutorial's"),
    ),
    (
        "docs/scaffold.md",
        "kubectl ",
        Skip("needs the operator of the page; dev::example runs the tutorial's"),
    ),
    (
        "docs/tutorial/deploy.md",
        "kubectl ",
        Skip("needs a deployed image; deploy:: runs a deployed operator"),
    ),
    (
        "docs/tutorial/manager.md",
        "kubectl ",
        Skip("needs a deployed image; deploy:: runs a deployed operator"),
    ),
    ("docs/webhooks.md", "kubectl ", Skip("the tutorial has the same command")),
];

/// The index of the rule of a command.
fn rule(page: &Page, shown: &Shown) -> Option<usize> {
    let page = page.path.replace("docs/ja/", "docs/").replace("docs/zh/", "docs/");
    RULES.iter().position(|(of, start, _)| page.starts_with(of) && shown.line.starts_with(start))
}

/// The commands of a page that a test runs.
pub(crate) fn run_by(test: Test, page: &Page) -> impl Iterator<Item = &Shown> {
    page.commands.iter().filter(move |shown| {
        let rule = rule(page, shown).map(|rule| &RULES[rule].2);
        matches!(rule, Some(Run(of)) if *of == test)
    })
}

#[test]
fn every_command_is_run_or_has_a_reason() {
    let mut used = vec![0; RULES.len()];
    let mut unknown = Vec::new();
    for page in super::all() {
        for shown in &page.commands {
            match rule(&page, shown) {
                Some(rule) => used[rule] += 1,
                None => unknown.push(format!("{}: {}", page.path, shown.line)),
            }
        }
    }
    assert!(unknown.is_empty(), "add a rule, and run these commands if possible: {unknown:#?}");
    let unused: Vec<_> = RULES
        .iter()
        .zip(&used)
        .filter(|(_, used)| **used == 0)
        .map(|((page, start, _), _)| (page, start))
        .collect();
    assert!(unused.is_empty(), "no command matches these rules: {unused:?}");
    let run: usize =
        RULES.iter().zip(&used).filter(|(rule, _)| matches!(rule.2, Run(_))).map(|(_, used)| used).sum();
    let reasons = RULES.iter().filter(|rule| matches!(rule.2, Skip(reason) if !reason.is_empty())).count();
    let skipped: usize = used.iter().sum::<usize>() - run;
    println!("{run} commands are run, {skipped} have one of {reasons} reasons");
    assert!(run > 180, "{run} commands are run");
}
