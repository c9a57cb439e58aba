//! Rollouts of StatefulSets and DaemonSets with kubectl: status, history and undo. Runs in real time.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use kubewright_envtest::Environment;
use serde_json::{Value, json};

/// A control plane with a cluster that kubectl can reach.
struct Session {
    env: Environment,
    kubeconfig: PathBuf,
}

impl Session {
    async fn start() -> Result<Self> {
        let env = Environment::builder().with_cluster().https().start().await?;
        let kubeconfig = env.kubeconfig().context("it listens")?;
        Ok(Self { env, kubeconfig })
    }

    /// The output of kubectl, which must succeed.
    async fn kubectl(&self, line: &str) -> Result<String> {
        let mut command = Command::new("kubectl");
        // kubectl must not use the user's configuration or locale.
        command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command
            .env("HOME", env!("CARGO_TARGET_TMPDIR"))
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(line.split_whitespace());
        let ended =
            tokio::task::spawn_blocking(move || command.output()).await?.context("failed to run kubectl")?;
        ensure!(ended.status.success(), "kubectl {line}: {}", String::from_utf8_lossy(&ended.stderr));
        Ok(String::from_utf8(ended.stdout)?)
    }

    /// Rolls out another image and undoes it.
    async fn there_and_back(&self, kind: &str) -> Result<()> {
        let image = format!("get {kind} web -o jsonpath={{.spec.template.spec.containers[0].image}}");
        self.kubectl(&format!("rollout status {kind} web --timeout=60s")).await?;
        self.kubectl(&format!("set image {kind} web web=web:2")).await?;
        let output = self.kubectl(&format!("rollout status {kind} web --timeout=60s")).await?;
        ensure!(output.contains("complete") || output.contains("successfully"), "{output}");
        ensure!(self.kubectl(&image).await? == "web:2");
        let history = self.kubectl(&format!("rollout history {kind} web")).await?;
        ensure!(numbers(&history) == ["1", "2"], "{history}");
        let first = self.kubectl(&format!("rollout history {kind} web --revision=1")).await?;
        ensure!(first.contains("web:1"), "{first}");

        let undone = self.kubectl(&format!("rollout undo {kind} web")).await?;
        ensure!(undone.contains("rolled back"), "{undone}");
        self.kubectl(&format!("rollout status {kind} web --timeout=60s")).await?;
        ensure!(self.kubectl(&image).await? == "web:1");
        let history = self.kubectl(&format!("rollout history {kind} web")).await?;
        ensure!(numbers(&history) == ["2", "3"], "{history}");
        Ok(())
    }
}

/// The revisions in the output of `kubectl rollout history`.
fn numbers(history: &str) -> Vec<&str> {
    let words = history.lines().filter_map(|line| line.split_whitespace().next());
    words.filter(|word| word.bytes().all(|it| it.is_ascii_digit())).collect()
}

fn set(kind: &str, more: &Value) -> String {
    let mut set = json!({
        "apiVersion": "apps/v1", "kind": kind,
        "metadata": { "name": "web" },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
            },
        },
    });
    if let (Some(into), Some(from)) = (set["spec"].as_object_mut(), more.as_object()) {
        into.extend(from.clone());
    }
    set.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stateful_set_is_rolled_out_scaled_and_undone() -> Result<()> {
    let session = Session::start().await?;
    let wanted = set("StatefulSet", &json!({ "replicas": 2, "serviceName": "web" }));
    session.env.apply_yaml("default", &wanted).await?;
    session.there_and_back("statefulset").await?;
    session.kubectl("scale statefulset web --replicas=3").await?;
    session.kubectl("rollout status statefulset web --timeout=60s").await?;
    let pods = session.kubectl("get pods -o name").await?;
    assert_eq!(pods, "pod/web-0\npod/web-1\npod/web-2\n");
    session.kubectl("delete statefulset web --cascade=foreground --timeout=60s").await?;
    assert_eq!(session.kubectl("get pods,controllerrevisions -o name").await?, "");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_set_is_rolled_out_and_undone() -> Result<()> {
    let session = Session::start().await?;
    session.env.apply_yaml("default", &set("DaemonSet", &json!({}))).await?;
    session.there_and_back("daemonset").await?;
    Ok(())
}
