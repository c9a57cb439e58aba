//! `make deploy` of the example on a server with RBAC, and the compiled operator as its ServiceAccount.
//!
//! The operator gets what its Deployment has: the arguments, the environment, and a token of its ServiceAccount in a
//! file. Only the ports differ, because tests share a machine. The server audits every request, so that forbidden
//! calls and unused permissions can be checked.

mod examples;
mod operator;
mod roles;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubewright_apiserver::audit::{Audit, Audited};
use kubewright_apiserver::serve::Listening;
use kubewright_apiserver::{AdmissionPlugins, ApiServer, Options};
use kubewright_manifests::inventory::Inventory;
use kubewright_manifests::rbac::{Call, Usage};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::kubectl::process::{DEADLINE, Process};
use crate::run::{self, Run};
use operator::Operator;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/markdown-view");
const NAMESPACE: &str = "markdown-view-system";
const USER: &str = "system:serviceaccount:markdown-view-system:markdown-view-controller-manager";
/// Objects that the operator injects its CA into, with the path of the bundle.
const TARGETS: [(&str, &str); 3] = [
    (
        "mutatingwebhookconfiguration/markdown-view-mutating-webhook-configuration",
        "{.webhooks[*].clientConfig.caBundle}",
    ),
    (
        "validatingwebhookconfiguration/markdown-view-validating-webhook-configuration",
        "{.webhooks[*].clientConfig.caBundle}",
    ),
    ("crd/markdownviews.view.example.com", "{.spec.conversion.webhook.clientConfig.caBundle}"),
];

/// The audited requests of the operator.
#[derive(Default)]
struct Requests(Mutex<BTreeSet<Call>>);

impl Audit for Requests {
    fn record(&self, request: Audited) {
        if request.user != USER || request.resource.is_empty() {
            return;
        }
        let call = Call {
            verb: request.verb,
            group: request.group,
            resource: request.resource,
            namespace: request.namespace,
            name: request.name,
            applies: request.applies,
            code: Some(request.code),
        };
        self.0.lock().expect("no panic").insert(call);
    }
}

/// A server with RBAC in this process, and kubectl.
struct Cluster {
    dir: TempDir,
    url: String,
    requests: Arc<Requests>,
    ca: String,
    _listening: Listening,
    _runtime: Runtime,
}

impl Cluster {
    fn start() -> Self {
        let requests = Arc::<Requests>::default();
        let mut admission = AdmissionPlugins::default();
        // Not a default plugin. Clusters that enable it need the permission on `finalizers`.
        admission.enable.push("OwnerReferencesPermissionEnforcement".to_owned());
        let options = Options { audit: Some(requests.clone()), admission, ..Options::default() };
        let runtime = Runtime::new().expect("a runtime");
        let listening = runtime.block_on(Listening::open(ApiServer::new(options), 0)).expect("a free port");
        let dir = tempfile::tempdir().expect("a folder");
        fs::write(dir.path().join("kubeconfig"), listening.kubeconfig()).expect("a file");
        let (url, ca) = (listening.url(), listening.authority().pem().to_owned());
        Self { dir, url, requests, ca, _listening: listening, _runtime: runtime }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn try_kubectl(&self, arguments: &[&str]) -> Run {
        run::run(run::kubectl().arg("--kubeconfig").arg(self.path("kubeconfig")).args(arguments))
    }

    #[track_caller]
    fn kubectl(&self, arguments: &[&str]) -> String {
        let run = self.try_kubectl(arguments);
        assert_eq!(run.status, 0, "kubectl {arguments:?}: {run}");
        run.stdout
    }

    #[track_caller]
    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.kubectl(&[arguments, &["-o", "json"][..]].concat())).expect("JSON")
    }

    fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.path(name), text).expect("a file");
        self.path(name).display().to_string()
    }

    #[track_caller]
    fn create(&self, object: &Value) {
        let file = self.write("object.json", &object.to_string());
        self.kubectl(&["create", "-f", &file]);
    }

    /// Runs `make deploy` of the example.
    #[track_caller]
    fn deploy(&self) {
        let kubectl = format!("KUBECTL=kubectl --kubeconfig {}", self.path("kubeconfig").display());
        let mut make = Command::new("make");
        make.args(["--directory", EXAMPLE, "deploy"]).arg(kubectl);
        make.env("KUBEWRIGHT", env!("CARGO_BIN_EXE_kubewright")).env("CARGO_TARGET_DIR", run::target());
        let deployed = run::run(&mut make);
        assert_eq!(deployed.status, 0, "make deploy: {deployed}");
    }

    /// A kubeconfig with a token of the operator's ServiceAccount in a file, as a Pod has it.
    fn operator_kubeconfig(&self) -> PathBuf {
        let account = "markdown-view-controller-manager";
        let token = self.kubectl(&["create", "token", account, "-n", NAMESPACE]);
        let token = self.write("token", token.trim());
        let ca = STANDARD.encode(&self.ca);
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: pod\n\
             clusters: [{{name: c, cluster: {{server: '{}', certificate-authority-data: {ca}}}}}]\n\
             contexts: [{{name: pod, context: {{cluster: c, user: u, namespace: {NAMESPACE}}}}}]\n\
             users: [{{name: u, user: {{tokenFile: '{token}'}}}}]\n",
            self.url
        );
        PathBuf::from(self.write("operator-kubeconfig", &text))
    }

    /// The Pod of the Deployment with the port of the operator on this machine, ready.
    #[track_caller]
    fn start_pod(&self, port: u16) {
        let deployment =
            self.json(&["get", "deployment", "markdown-view-controller-manager", "-n", NAMESPACE]);
        let mut pod = deployment["spec"]["template"].clone();
        pod["apiVersion"] = "v1".into();
        pod["kind"] = "Pod".into();
        pod["metadata"]["name"] = "manager".into();
        pod["metadata"]["namespace"] = NAMESPACE.into();
        let ports = pod["spec"]["containers"][0]["ports"].as_array_mut().expect("the container has ports");
        let webhooks = ports.iter_mut().find(|it| it["name"] == "webhook-server");
        webhooks.expect("the webhook server has a port")["containerPort"] = port.into();
        self.create(&pod);
        let status = r#"{"status":{"podIP":"127.0.0.1","podIPs":[{"ip":"127.0.0.1"}],"conditions":[{"type":"Ready","status":"True"}]}}"#;
        self.kubectl(&["patch", "pod", "manager", "-n", NAMESPACE, "--subresource=status", "-p", status]);
    }

    /// Repeats a command until its output has the text.
    #[track_caller]
    fn until(&self, arguments: &[&str], text: &str) {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let run = self.try_kubectl(arguments);
            if run.status == 0 && run.stdout.contains(text) {
                return;
            }
            assert!(Instant::now() < deadline, "kubectl {arguments:?} does not print {text}: {run}");
        }
    }

    /// The CA bundles of all targets, which must be equal. Empty if a target has none.
    fn bundle(&self) -> String {
        let mut bundles = BTreeSet::new();
        for (target, path) in TARGETS {
            let found = self.kubectl(&["get", target, "-o", &format!("jsonpath={path}")]);
            bundles.extend(found.split(' ').map(str::to_owned));
        }
        assert_eq!(bundles.len(), 1, "the targets have different bundles");
        bundles.pop_first().unwrap_or_default()
    }
}

/// The path of the operator, built from this workspace.
#[track_caller]
fn program() -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    // In the root, cargo builds with the features of the default members, as README's first command does.
    cargo.args(["build", "--quiet", "--offline", "--bin", "markdown-view"]).current_dir(ROOT);
    let mut build = Process::start(cargo.env("CARGO_TARGET_DIR", run::target()), "");
    build.be_patient(std::time::Duration::from_mins(9));
    let built = build.end();
    assert_eq!(built.status, Some(0), "{}{}", built.stdout, built.stderr);
    run::target().join("debug/markdown-view")
}

fn inventory(program: &Path) -> Inventory {
    let printed = run::run(Command::new(program).env("KUBEWRIGHT_MANIFESTS", "1"));
    assert_eq!(printed.status, 0, "{printed}");
    Inventory::read(&printed.stdout).expect("the program prints its declarations")
}

#[test]
fn a_deployed_operator_enforces_its_webhooks_with_exactly_its_permissions() {
    let program = program();
    let cluster = Cluster::start();
    cluster.deploy();
    assert_eq!(cluster.bundle(), "", "manifests have no CA");

    // The webhooks fail closed until the operator serves them.
    let sample = format!("{EXAMPLE}/config/samples/view_v1_markdownview.yaml");
    let early = cluster.try_kubectl(&["create", "-f", &sample]);
    assert!(early.stderr.contains("failed calling webhook"), "{early}");

    let mut operator = Operator::start(&cluster, &program);
    cluster.start_pod(operator.port);
    operator.is_ready(&cluster);
    assert_ne!(cluster.bundle(), "");

    // Defaulting, validation and conversion are enforced.
    cluster.kubectl(&["create", "-f", &sample]);
    let view = "markdownview-sample";
    let image = "jsonpath={.spec.viewer.image}";
    let read = cluster.kubectl(&["get", "markdownviews.v2.view.example.com", view, "-o", image]);
    assert_eq!(read, "peaceiris/mdbook:latest");
    let bad = cluster.write(
        "bad.yaml",
        "apiVersion: view.example.com/v1\nkind: MarkdownView\nmetadata: {name: bad}\n\
         spec: {replicas: 10, markdowns: {page1.md: text}}\n",
    );
    let denied = cluster.try_kubectl(&["create", "-f", &bad]);
    for error in ["spec.replicas: Invalid value: 10", "spec.markdowns: Required value: SUMMARY.md"] {
        assert!(denied.status == 1 && denied.stderr.contains(error), "{denied}");
    }

    // The controller works: children, their updates, and the status.
    let kinds = "configmaps,deployments,services";
    let owned = "-o=jsonpath={.items[*].metadata.ownerReferences[*].name}";
    cluster.until(&["get", kinds, owned], &[view; 3].join(" "));
    cluster.kubectl(&["patch", "markdownview", view, "--type=merge", "-p", r#"{"spec":{"replicas":2}}"#]);
    cluster.until(&["get", "deployments", "-o=jsonpath={.items[*].spec.replicas}"], "2");
    cluster.until(&["get", "markdownview", view, "-o=jsonpath={.status.conditions[*].type}"], "Available");
    cluster.until(&["get", "events", "-A", "-o=jsonpath={.items[*].reason}"], "WebhookCertificateUpdated");

    // Metrics are for readers only.
    operator.metrics_are_protected(&cluster);

    // A certificate for other names is renewed, and writes continue to succeed.
    operator::renew(&cluster);
    cluster.kubectl(&["label", "markdownview", view, "renewed=yes"]);

    operator.stop();
    let calls = cluster.requests.0.lock().expect("no panic").clone();
    let forbidden: Vec<&Call> = calls.iter().filter(|call| call.code == Some(403)).collect();
    assert!(forbidden.is_empty(), "{forbidden:?}");
    let mut usage = Usage::new(&inventory(&program));
    for call in &calls {
        usage.note(call);
    }
    let unused: Vec<String> = usage.unused().iter().map(ToString::to_string).collect();
    assert_eq!(unused, Vec::<String>::new());

    // The same for the roles as they are deployed, verb by verb.
    assert_eq!(
        roles::unused(&cluster, &calls),
        [
            // Reads without cache, after a write whose response was lost.
            "get configmaps",
            "get deployments.apps",
            "get markdownviews.view.example.com",
            "get services",
            // Series of events.
            "patch events.events.k8s.io",
            // Checked by the plugin OwnerReferencesPermissionEnforcement; not a request.
            "update markdownviews/finalizers.view.example.com",
        ]
    );
}
