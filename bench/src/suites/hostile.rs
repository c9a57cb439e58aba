//! The latency of small reads of one client while another client sends an expensive request, and the peak memory of the
//! server.
//!
//! Each row has its own server process. The well-behaved client reads a ConfigMap every few milliseconds, alternately
//! over an open connection and over a new one, so that TLS handshakes are part of the latency.

mod requests;

use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tokio::runtime::Builder;

use super::server::objects::Call;
use super::server::program::{Binary, Program};
use super::server::tls::Connection;
use super::{Bench, Suite};
use crate::row::{Row, Rows, Unit};
use crate::samples::Samples;
use requests::{Attack, attacks};

pub(crate) const SUITE: Suite = Suite { name: "hostile", run };

/// The target for the 99th percentile of the well-behaved client.
const P99_MS: f64 = 50.0;
/// The target for the CPU time of many CRDs, with the reads beside them.
const CRDS_CPU_SECONDS: f64 = 10.0;
/// Pause between two reads of the well-behaved client.
const PAUSE: Duration = Duration::from_millis(5);
/// Requests are repeated for this time, so that the percentile is of enough reads.
const AT_LEAST: Duration = Duration::from_secs(2);

fn run(bench: &Bench) -> Result<Vec<Row>> {
    bench.progress.say("hostile: building kubewright");
    let binary = Binary::build()?;
    let runtime = Builder::new_multi_thread().enable_all().build().context("start the tokio runtime")?;
    let mut rows = Rows::default();
    for round in 1..=bench.rounds {
        for attack in attacks() {
            let name = attack.name;
            bench.progress.say(&format!("hostile: {name}, round {round} of {}", bench.rounds));
            let program = Program::start(&binary)?;
            let (peak, counts_cpu) = (attack.peak, name.contains("CRDs"));
            let latencies = runtime.block_on(measure(&program, attack)).with_context(|| name.to_owned())?;
            let p99 = rows.sample(&format!("{name}, p99 of others"), Unit::Millis, latencies.quantile(0.99));
            p99.target = Some(P99_MS);
            let memory = rows.sample(&format!("{name}, peak RSS"), Unit::Megabytes, program.peak_memory()?);
            memory.target = Some(peak);
            if counts_cpu {
                let cpu = program.cpu_time()?.as_secs_f64();
                rows.sample(&format!("{name}, CPU"), Unit::Seconds, cpu).target = Some(CRDS_CPU_SECONDS);
            }
        }
    }
    Ok(rows.into_vec())
}

/// Runs an attack and returns the latencies of the well-behaved client, in seconds.
async fn measure(program: &Program, attack: Attack) -> Result<Samples> {
    let hostile = program.connect().await?;
    let mut uid = String::new();
    for call in (attack.prepare)(hostile.url()) {
        let created = answer(&hostile, call).await?;
        created["metadata"]["uid"].as_str().unwrap_or_default().clone_into(&mut uid);
    }
    for call in (attack.then)(hostile.url(), &uid) {
        answer(&hostile, call).await?;
    }
    let attacker = async {
        let began = Instant::now();
        let mut unread = Vec::new();
        loop {
            let calls = (attack.calls)(hostile.url());
            for call in calls {
                // An expensive request may be rejected. The server must stay responsive either way.
                let response = hostile.send(call).await?;
                if attack.is_unread {
                    unread.push(response);
                } else {
                    let _ = response.into_body().collect().await;
                }
            }
            if attack.is_unread {
                // The responses stay open beside the reads of the well-behaved client.
                tokio::time::sleep(AT_LEAST).await;
            }
            if attack.is_single || began.elapsed() > AT_LEAST {
                return anyhow::Ok(());
            }
        }
    };
    Box::pin(while_running(program, attacker)).await
}

/// Reads small objects until `attacker` ends.
async fn while_running(program: &Program, attacker: impl Future<Output = Result<()>>) -> Result<Samples> {
    let open = program.connect().await?;
    let mut latencies = Samples::default();
    let mut attacker = std::pin::pin!(attacker);
    let mut is_open = true;
    loop {
        let uses_open = is_open;
        let read = async {
            let began = Instant::now();
            let connection = if uses_open { open.clone() } else { program.connect().await? };
            answer(&connection, requests::small_read(connection.url())).await?;
            anyhow::Ok(began.elapsed())
        };
        let mut read = std::pin::pin!(read);
        let ended = tokio::select! {
            took = &mut read => {
                latencies.push(took?.as_secs_f64());
                false
            }
            ended = &mut attacker => {
                ended?;
                true
            }
        };
        if ended {
            // The read that runs beside the end of the attack counts too.
            latencies.push(read.await?.as_secs_f64());
            return Ok(latencies);
        }
        is_open = !is_open;
        let pause = tokio::time::sleep(PAUSE);
        tokio::select! {
            () = pause => {}
            ended = &mut attacker => {
                ended?;
                return Ok(latencies);
            }
        }
    }
}

/// Sends a request and returns the object. Fails on an error response.
async fn answer(connection: &Connection, call: Call) -> Result<Value> {
    let what = format!("{} {}", call.method(), call.uri().path());
    let response = connection.send(call).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    anyhow::ensure!(status.is_success(), "{what}: {status}: {}", String::from_utf8_lossy(&body));
    serde_json::from_slice(&body).with_context(|| format!("{what}: the response is not JSON"))
}
