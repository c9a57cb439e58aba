//! The dashboard, the alerts and the page about metrics name only metrics that an operator exports.
//!
//! `UPDATE_DOCS=1 cargo test -p kubewright monitoring` writes the reference, docs/reference/metrics.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow, bail, ensure};
use kubewright::connect::{self, ClientMetrics, Source};
use kubewright::k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kubewright::prelude::*;
use kubewright::serde_json::{self, Value};
use kubewright::webhook::{Rejection, Validation, Validator, WebhookOptions};
use kubewright::{Client, Context, Key, LeaderElectionOptions, ManagerOptions, terminal, tokio};
use kubewright_envtest::{Effect, Environment, Mode, eventually, objects};

const DASHBOARD: &str = include_str!("../../../../docs/grafana/kubewright.json");
const ALERTS: &str = include_str!("../../../../docs/grafana/alerts.yaml");
const PAGE: &str = include_str!("../../../../docs/metrics.md");

/// Fails in each way that has a metric.
struct Failing;

impl Reconciler for Failing {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, cx: &Context) -> Result<Outcome> {
        match cx.key().name() {
            "error" => bail!("not now"),
            "terminal" => Err(terminal(anyhow!("never"))),
            "panic" => panic!("this panic is expected"),
            "timeout" => std::future::pending().await,
            _ => Ok(Outcome::done()),
        }
    }
}

struct Panicking;

impl Validator for Panicking {
    type Object = Secret;

    async fn validate_create(&self, secret: &Secret, _: &mut Validation<'_>) -> Result<(), Rejection> {
        assert!(secret.name_any() != "panic", "this panic is expected");
        Ok(())
    }
}

fn map(name: &str) -> String {
    format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}")
}

/// An address without a server, for requests that are retried.
fn unused_address() -> Result<std::net::SocketAddr> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// Runs an operator and returns its metrics as text.
async fn exported() -> Result<String> {
    let env = Environment::builder().mode(Mode::Embedded).https().as_admin().start().await?;
    let election = LeaderElectionOptions {
        namespace: Some("default".into()),
        ..LeaderElectionOptions::new("monitoring")
    };
    let webhooks = WebhookOptions {
        bind_address: "127.0.0.1:0".parse()?,
        service_namespace: Some("default".into()),
        ..WebhookOptions::default()
    };
    let options =
        ManagerOptions { leader_election: Some(election), webhooks, ..ManagerOptions::new("monitoring") };
    let of_client = options.metrics.with_registry(ClientMetrics::register);
    let source = Source { kubeconfig: env.kubeconfig(), ..Source::default() };
    let config = connect::infer(&source).await?;
    let mut closed = config.clone();
    closed.cluster_url = format!("https://{}", unused_address()?).parse()?;
    for config in [config, closed] {
        let connection = connect::Options { metrics: Some(of_client.clone()), ..connect::Options::default() };
        let client = Client::new(connect::client(config, connection)?);
        let missing = client.get::<Secret>(&Key::namespaced("default", "missing")).await;
        assert!(missing.is_err(), "there is no Secret, or no server");
    }

    let manager = env.manager_with(options)?;
    manager.cache().index::<ConfigMap>("panics", |map| {
        assert!(map.name_any() != "panic", "this panic is expected");
        Vec::new()
    })?;
    manager.validator(Panicking)?;
    manager.controller(Failing).timeout(Duration::from_millis(50)).register()?;
    env.faults().operator().next(1, Effect::internal_error(), |asked| asked.is_of("configmaps"));
    let running = env.run(manager);
    for name in ["error", "panic", "success", "terminal", "timeout"] {
        env.apply_yaml("default", &map(name)).await?;
    }
    let secret = |name| format!("{{apiVersion: v1, kind: Secret, metadata: {{name: {name}}}}}");
    env.apply_yaml("default", &secret("fine")).await?;
    assert!(env.apply_yaml("default", &secret("panic")).await.is_err(), "the webhook panics");
    eventually(Duration::from_secs(30), async || {
        let of_reconciles =
            ["errors", "panics", "timeouts"].map(|it| format!("controller_runtime_reconcile_{it}_total"));
        let of_certificates = "kubewright_webhook_certificate_steps_total".to_owned();
        for name in of_reconciles.into_iter().chain([of_certificates]) {
            ensure!(running.metrics().value(&name, &[]) > Some(0.0), "{name} is 0");
        }
        Ok(())
    })
    .await?;
    let text = running.metrics().text().to_owned();
    running.stop().await?;
    Ok(text)
}

/// The names of metrics and of their samples.
fn names(text: &str) -> BTreeSet<String> {
    let lines = text.lines().map(|line| line.strip_prefix("# TYPE ").unwrap_or(line));
    let names = lines.filter(|line| !line.starts_with('#')).filter_map(|line| line.split(['{', ' ']).next());
    names.map(str::to_owned).collect()
}

/// The metric of a sample: buckets, sums and counts are samples of a histogram.
fn family(sample: &str) -> &str {
    let stem = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| sample.strip_suffix(suffix));
    stem.unwrap_or(sample)
}

/// The labels of each metric, without those of buckets.
fn labels(text: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((name, rest)) = line.split_once('{') else { continue };
        let of_metric = found.entry(family(name)).or_default();
        // The name of a label is what precedes `="`.
        let parts = rest.split("=\"").map(|part| part.rsplit(['{', ',']).next().unwrap_or_default());
        let parts: Vec<_> = parts.collect();
        of_metric.extend(parts[..parts.len() - 1].iter().filter(|label| **label != "le"));
    }
    found
}

/// The reference: every metric with its type, its labels and its help, as an operator exports them.
fn reference(text: &str) -> String {
    let value = |start: &str| -> BTreeMap<&str, &str> {
        text.lines().filter_map(|line| line.strip_prefix(start)?.split_once(' ')).collect()
    };
    let (types, help, labels) = (value("# TYPE "), value("# HELP "), labels(text));
    let mut page = "# List of metrics\n\nEvery metric of an operator, as it is exported: names, types, labels and help. \
                    [Metrics](../metrics.md) explains them, and has a dashboard and alerts.\n\n\
                    | metric | type | labels | help |\n|---|---|---|---|\n"
        .to_owned();
    for (name, kind) in types {
        let labels: Vec<_> =
            labels.get(name).into_iter().flatten().map(|label| format!("`{label}`")).collect();
        let help = help.get(name).copied().unwrap_or_default().trim_end_matches('.');
        let help = help.replace('<', "&lt;").replace('|', "\\|");
        writeln!(page, "| `{name}` | {kind} | {} | {help} |", labels.join(", ")).unwrap();
    }
    page
}

/// The metrics of a PromQL expression, or of a query of a dashboard variable.
fn metrics_of(expression: &str) -> BTreeSet<String> {
    let mut text = String::new();
    // Without label matchers and ranges.
    let mut depth = 0;
    for character in expression.chars() {
        match character {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            other if depth == 0 => text.push(other),
            _ => {}
        }
    }
    let text = text
        .split_once("label_values(")
        .map_or(text.clone(), |(_, rest)| rest.split(',').next().unwrap_or_default().to_owned());
    let mut found = BTreeSet::new();
    let mut rest = text.as_str();
    while let Some(start) = rest.find(|it: char| it.is_ascii_alphabetic() || it == '_') {
        let word = &rest[start..];
        let end =
            word.find(|it: char| !it.is_ascii_alphanumeric() && it != '_' && it != ':').unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        rest = after;
        match word {
            // The labels of the aggregation are no metrics.
            "by" | "without" | "on" | "ignoring" => rest = after.split_once(')').map_or("", |(_, rest)| rest),
            "and" | "or" | "unless" => {}
            _ if after.trim_start().starts_with('(') || after.starts_with(" by ") => {}
            _ => _ = found.insert(word.to_owned()),
        }
    }
    found
}

/// The strings with a key, anywhere in a JSON value.
fn strings(value: &Value, key: &str, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| strings(item, key, found)),
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if name == key => found.push(text.clone()),
                    other => strings(other, key, found),
                }
            }
        }
        _ => {}
    }
}

/// The metrics in the first columns of the page's tables.
fn documented() -> BTreeSet<String> {
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| `")?.split(" |").next());
    let names = rows.flat_map(|cell| cell.split('`')).map(|name| name.trim_matches([',', ' ']));
    names.filter(|name| name.contains('_')).map(str::to_owned).collect()
}

#[test]
fn metrics_are_found_in_expressions() {
    let of = |expression| metrics_of(expression).into_iter().collect::<Vec<_>>().join(" ");
    assert_eq!(of("sum by (a, b) (rate(x_total{c=~\"$d\"}[5m])) / max by (a) (y) > 0.1"), "x_total y");
    assert_eq!(of("histogram_quantile(0.99, sum by (le) (rate(x_bucket[$__rate_interval])))"), "x_bucket");
    assert_eq!(of("label_values(x_total{a=~\"$b\"}, c)"), "x_total");
    assert_eq!(of("x_seconds - time() < 86400"), "x_seconds");
}

#[tokio::test]
async fn every_metric_of_dashboard_alerts_and_page_is_exported() -> Result<()> {
    let text = exported().await?;
    let exported = names(&text);
    let mut used = Vec::new();
    let dashboard: Value = serde_json::from_str(DASHBOARD)?;
    strings(&dashboard, "expr", &mut used);
    strings(&dashboard["templating"], "query", &mut used);
    assert!(used.len() > 25, "{} expressions in the dashboard", used.len());
    let alerts = objects(ALERTS)?.remove(0);
    let before = used.len();
    strings(&alerts.data, "expr", &mut used);
    assert_eq!(used.len() - before, PAGE.matches("| `Operator").count(), "the page lists every alert");
    for expression in used.iter().filter(|expression| *expression != "prometheus") {
        let names = metrics_of(expression);
        assert!(!names.is_empty(), "no metric in {expression}");
        for name in names {
            assert!(exported.contains(&name), "{name} in {expression} is not exported: {exported:#?}");
        }
    }

    let documented = documented();
    let exported: BTreeSet<String> = exported.iter().map(|name| family(name).to_owned()).collect();
    let difference: Vec<_> = documented.symmetric_difference(&exported).collect();
    assert!(difference.is_empty(), "in docs/metrics.md or exported, but not both: {difference:?}");

    let page = reference(&text);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/metrics.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page)?;
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(written, page, "run `UPDATE_DOCS=1 cargo test -p kubewright monitoring`");
    Ok(())
}
