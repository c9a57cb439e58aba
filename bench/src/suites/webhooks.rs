//! Webhook servers: admissions per second, latency and memory of the same rule on kubewright-runtime and on kube-rs with
//! axum, and the cost of conversions.
//!
//! Both servers are separate programs. They are called as an API server calls them, over TLS and HTTP/1.1 with kept
//! connections. Conversions are measured in-process.

pub(crate) mod conversion;
mod load;
mod program;

use anyhow::{Context as _, Result};
use kubewright_bench_work::{MUTATE, VALIDATE, Widget, widget};
use serde_json::{Value, json};
use tokio::runtime::Builder;

use super::{Bench, Suite};
use crate::row::{Row, Rows, Unit};
use load::Review;
use program::{Binary, Certificate};

pub(crate) const SUITE: Suite = Suite { name: "webhooks", run };

const PEER: &str = "kube-rs + axum";
/// Connections, each with one request at a time.
const CONNECTIONS: usize = 16;
/// Reviews of a measurement.
const REVIEWS: usize = 20_000;
/// Reviews before the first measurement.
const WARM_UP: usize = 2_000;

fn run(bench: &Bench) -> Result<Vec<Row>> {
    bench.progress.say("webhooks: building the programs");
    let ours = Binary::build("kubewright-bench-ours")?;
    let peer = Binary::build("kubewright-bench-peer")?;
    let certificate = Certificate::new()?;
    let runtime = Builder::new_current_thread().enable_all().build().context("start the tokio runtime")?;
    let mut rows = Rows::default();
    for round in 1..=bench.rounds {
        bench.progress.say(&format!("webhooks: admissions, round {round} of {}", bench.rounds));
        let programs = [ours.start(&certificate)?, peer.start(&certificate)?];
        for (name, review) in reviews() {
            let mut measured = Vec::new();
            for program in &programs {
                let target = certificate.target(program.address())?;
                runtime.block_on(load::send(&target, &review, CONNECTIONS, WARM_UP))?;
                measured.push(runtime.block_on(load::send(&target, &review, CONNECTIONS, REVIEWS))?);
            }
            let [ours, peer] = &measured[..] else { continue };
            let (rate, p99) = (format!("{name}, TLS"), format!("{name}, p99"));
            rows.sample_beside(&rate, Unit::PerSecond, ours.per_second, (PEER, peer.per_second));
            let [ours, peer] = [ours, peer].map(|it| it.latencies.quantile(0.99));
            rows.sample_beside(&p99, Unit::Micros, ours, (PEER, peer));
        }
        let [ours, peer] = &programs;
        rows.sample_beside("RSS after the load", Unit::Megabytes, ours.memory()?, (PEER, peer.memory()?));
        bench.progress.say(&format!("webhooks: conversions, round {round} of {}", bench.rounds));
        conversion::measure(&runtime, &mut rows)?;
    }
    Ok(rows.into_vec())
}

/// The reviews that are measured.
fn reviews() -> Vec<(&'static str, Review)> {
    let valid = widget("front-end", 0);
    let mut invalid = valid.clone();
    invalid.spec.replicas = 10;
    invalid.spec.ports[0].port = 70_000;
    invalid.spec.hosts.push("localhost".to_owned());
    let mut without_protocol = valid.clone();
    without_protocol.spec.ports.iter_mut().for_each(|port| port.protocol = None);
    let review =
        |path, object: &Widget, allowed| Review { path, body: admission(object).to_string().into(), allowed };
    vec![
        ("validations", review(VALIDATE, &valid, true)),
        ("rejections with three field errors", review(VALIDATE, &invalid, false)),
        ("defaults with a patch", review(MUTATE, &without_protocol, true)),
    ]
}

/// An AdmissionReview as kube-apiserver sends it.
fn admission(object: &Widget) -> Value {
    let kind = json!({"group": "bench.kubewright.dev", "version": "v1", "kind": "Widget"});
    let resource = json!({"group": "bench.kubewright.dev", "version": "v1", "resource": "widgets"});
    json!({
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
            "name": "front-end", "namespace": "default", "operation": "CREATE",
            "userInfo": {"username": "admin", "groups": ["system:masters", "system:authenticated"]},
            "object": object, "oldObject": null, "dryRun": false,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "kubectl-create"},
        },
    })
}

#[cfg(test)]
mod tests {
    use kubewright_bench_ours::Ours;
    use kubewright_bench_peer::Peer;
    use kubewright_bench_work::WebhookServer;

    use super::*;

    async fn every_review_is_answered<S: WebhookServer>() {
        let certificate = Certificate::new().unwrap();
        let (pem, key) = certificate.pem();
        let address = S::serve(pem, key).await.unwrap();
        let target = certificate.target(address).unwrap();
        for (name, review) in reviews() {
            let measured = load::send(&target, &review, 2, 10).await.expect(name);
            assert_eq!(measured.latencies.len(), 10);
        }
        // An unexpected response stops the benchmark.
        let (_, mut review) = reviews().remove(0);
        review.allowed = false;
        assert!(load::send(&target, &review, 1, 1).await.is_err());
    }

    #[tokio::test]
    async fn both_servers_answer_every_review() {
        every_review_is_answered::<Ours>().await;
        every_review_is_answered::<Peer>().await;
    }

    #[test]
    fn conversions_are_measured() {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let mut rows = Rows::default();
        conversion::measure(&runtime, &mut rows).unwrap();
        assert_eq!(rows.into_vec().len(), 2);
    }
}
