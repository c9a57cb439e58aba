//! The operator's process: its start as the Deployment describes it, its probes, metrics and certificates.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{Cluster, NAMESPACE};
use crate::kubectl::process::{DEADLINE, Process};
use crate::run::{self, Run};

const SECRET: &str = "markdown-view-webhook-cert";

pub(super) struct Operator {
    process: Process,
    /// The port of its webhook server.
    pub(super) port: u16,
    health: String,
    metrics: String,
}

impl Operator {
    /// Starts the program with the arguments and the environment of the Deployment, on free ports.
    #[track_caller]
    pub(super) fn start(cluster: &Cluster, program: &Path) -> Self {
        let deployment =
            cluster.json(&["get", "deployment", "markdown-view-controller-manager", "-n", NAMESPACE]);
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let port =
            TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a free port").port();
        let mut command = Command::new(program);
        for argument in container["args"].as_array().expect("the container has arguments") {
            let argument = argument.as_str().expect("an argument is a string");
            match argument.split_once("-bind-address=") {
                Some((server, _)) => command.arg(format!("{server}-bind-address=127.0.0.1:0")),
                None => command.arg(argument),
            };
        }
        // A Pod has its namespace in a file.
        command
            .arg(format!("--leader-election-namespace={NAMESPACE}"))
            .arg(format!("--webhook-bind-address=127.0.0.1:{port}"))
            .arg("--log-format=json")
            .env_clear()
            .env("POD_NAMESPACE", NAMESPACE)
            .env("KUBECONFIG", cluster.operator_kubeconfig());
        for variable in container["env"].as_array().into_iter().flatten() {
            let text = |field: &str| variable[field].as_str().expect("a variable has a value").to_owned();
            command.env(text("name"), text("value"));
        }
        let mut process = Process::start(&mut command, "");
        let [health, metrics] = ["Starting health probe server", "Starting metrics server"].map(|started| {
            let line: Value = serde_json::from_str(&process.line_with(started)).expect("logs are JSON");
            line["address"].as_str().unwrap_or_else(|| panic!("{line} has an address")).to_owned()
        });
        Self { process, port, health, metrics }
    }

    /// Waits until `/readyz` succeeds, which needs trusted certificates.
    #[track_caller]
    pub(super) fn is_ready(&self, cluster: &Cluster) {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let probe = raw(cluster, &["--server", &format!("http://{}", self.health)], "/readyz?verbose");
            if probe.status == 0 {
                assert!(probe.stdout.contains("[+]webhook-certificates ok"), "{probe}");
                return;
            }
            assert!(Instant::now() < deadline, "{probe}");
        }
    }

    /// The metrics endpoint rejects requests without a token, and tokens of accounts without the metrics-reader role.
    #[track_caller]
    pub(super) fn metrics_are_protected(&self, cluster: &Cluster) {
        cluster.kubectl(&["create", "serviceaccount", "prometheus"]);
        let token = cluster.kubectl(&["create", "token", "prometheus"]);
        let server = format!("https://{}", self.metrics);
        let scrape = ["--insecure-skip-tls-verify", "--server", server.as_str(), "--token", token.trim()];
        let denied = raw(cluster, &scrape, "/metrics");
        assert!(denied.status == 1 && denied.stderr.contains("Authorization denied"), "{denied}");
        let binding = [
            "create",
            "clusterrolebinding",
            "prometheus",
            "--clusterrole=markdown-view-metrics-reader",
            "--serviceaccount=default:prometheus",
        ];
        cluster.kubectl(&binding);
        // Decisions are cached for a short time.
        let deadline = Instant::now() + DEADLINE;
        loop {
            let scraped = raw(cluster, &scrape, "/metrics");
            if scraped.status == 0 {
                let expected = "kubewright_webhook_certificate_expiration_timestamp_seconds";
                assert!(scraped.stdout.contains(expected), "{scraped}");
                return;
            }
            assert!(Instant::now() < deadline, "{scraped}");
        }
    }

    #[track_caller]
    pub(super) fn stop(&mut self) {
        let sent = Command::new("kill").arg("-TERM").arg(self.process.id().to_string()).status();
        assert!(sent.is_ok_and(|status| status.success()), "the operator ended by itself");
        let ended = self.process.end();
        assert_eq!(ended.status, Some(0), "{}{}", ended.stdout, ended.stderr);
    }
}

/// A GET of a path. kubectl is the HTTP client, without the credentials of the cluster.
fn raw(cluster: &Cluster, connection: &[&str], path: &str) -> Run {
    let mut command = run::kubectl();
    command.current_dir(cluster.dir.path()).args(["--kubeconfig", "/dev/null"]).args(connection);
    run::run(command.args(["get", "--raw", path]))
}

/// Makes the operator renew its certificate, by a stored certificate that has other DNS names.
#[track_caller]
pub(super) fn renew(cluster: &Cluster) {
    let secret = cluster.json(&["get", "secret", SECRET, "-n", NAMESPACE]);
    let before = secret["data"]["tls.crt"].as_str().expect("a certificate").to_owned();
    let state = STANDARD.decode(secret["data"]["state.json"].as_str().expect("a state")).expect("base64");
    let mut state: Value = serde_json::from_slice(&state).expect("JSON");
    state["names"] = serde_json::json!(["old-name"]);
    let patch = serde_json::json!({ "data": { "state.json": STANDARD.encode(state.to_string()) } });
    cluster.kubectl(&["patch", "secret", SECRET, "-n", NAMESPACE, "-p", &patch.to_string()]);
    let deadline = Instant::now() + DEADLINE;
    loop {
        let secret = cluster.json(&["get", "secret", SECRET, "-n", NAMESPACE]);
        if secret["data"]["tls.crt"] != before.as_str() {
            return;
        }
        assert!(Instant::now() < deadline, "the certificate was not renewed");
    }
}
