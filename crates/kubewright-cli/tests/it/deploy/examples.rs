//! The manifests of every example are accepted by a cluster, as `make deploy` applies them.

use std::path::Path;

use crate::kubectl::process::Process;
use crate::run::{command, kubectl, run};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

#[test]
fn a_cluster_accepts_the_manifests_of_every_example() {
    for (name, crds) in [
        ("collector", ""),
        ("cronjob", "customresourcedefinition.apiextensions.k8s.io/cronjobs.batch.tutorial.kubebuilder.io\n"),
        ("markdown-view", "customresourcedefinition.apiextensions.k8s.io/markdownviews.view.example.com\n"),
        (
            "sample-controller",
            "customresourcedefinition.apiextensions.k8s.io/bars.samplecontroller.example.com\n",
        ),
    ] {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let kubeconfig = folder.path().join("kubeconfig");
        let mut start = command("apiserver --kubeconfig");
        let mut server = Process::start(start.arg(&kubeconfig).current_dir(folder.path()), "");
        server.line_with("ready https://");
        let on_cluster = |line: &str| {
            let mut kubectl = kubectl();
            kubectl.env("KUBECONFIG", &kubeconfig).args(line.split_whitespace());
            let result = run(kubectl.current_dir(Path::new(EXAMPLES).join(name)));
            assert_eq!(result.status, 0, "{name}: kubectl {line}: {result}");
            result.stdout
        };
        on_cluster("apply --server-side -k config/default");
        let deployments = on_cluster(&format!("get deployments -n {name}-system -o name"));
        assert_eq!(deployments, format!("deployment.apps/{name}-controller-manager\n"));
        let roles = on_cluster("get clusterroles -o name");
        assert!(roles.contains(&format!("{name}-manager-role\n")), "{roles}");
        assert_eq!(on_cluster("get crds -o name"), crds);
        if name == "collector" || name == "sample-controller" {
            on_cluster("apply -k config/samples");
        }
    }
}
