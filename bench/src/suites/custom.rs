//! Custom resources and server-side apply: the additional cost compared with built-in kinds.
//!
//! Measured in-process, in CPU time except for CRDs. The peer of CEL rules is the crate `cel`. No comparable
//! implementation exists for schema validation and apply, so those rows have no peer.

pub(super) mod objects;

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use kubewright_apiextensions::Structural;
use kubewright_apiextensions::custom::{self, CrdValidation};
use kubewright_apiserver::{ApiServer, Options};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use super::{Bench, Suite};
use crate::row::{Row, Rows, Unit};
use crate::samples::in_turn;
use crate::stopwatch::{Stopwatch, mean_of};

pub(crate) const SUITE: Suite = Suite { name: "custom", run };

/// Number of fields of the validated custom resource.
const FIELDS: usize = 100;
/// CRDs created per round.
const DEFINITIONS: u32 = 50;
/// Applies of one object per round.
const APPLIES: u32 = 200;
const EVALUATIONS: u32 = 2_000;
const VALIDATIONS: u32 = 500;

fn run(bench: &Bench) -> Result<Vec<Row>> {
    let runtime = Builder::new_current_thread().enable_all().build().context("start the tokio runtime")?;
    let mut rows = Rows::default();
    for round in 1..=bench.rounds {
        bench.progress.say(&format!("custom: round {round} of {}", bench.rounds));
        let server = World::new(&runtime);
        let deployment: Version = Box::new(objects::deployment());
        let custom: Version = Box::new(objects::wide(85));
        for (what, object) in [("Deployment", deployment), ("custom resource", custom)] {
            let size = object(0).to_string().len() / 1024;
            let (same, changed) = server.applies(&object)?;
            let mut sample = |how: &str, cost: Duration| {
                let name = format!("apply of {how} {what} of {size} KiB");
                rows.sample(&name, Unit::Micros, cost.as_secs_f64());
            };
            sample("an unchanged", same);
            sample("a changed", changed);
        }
        let served = server.definitions()?;
        rows.sample("CRD create to served", Unit::Micros, served.as_secs_f64());
        rows.sample(&format!("validate a {FIELDS}-field object"), Unit::Micros, validation()?.as_secs_f64());
    }
    let mut rows = rows.into_vec();
    rows.push(evaluation(bench)?);
    Ok(rows)
}

/// Returns the object for a turn.
type Version = Box<dyn Fn(u32) -> Value>;

/// A server with a CRD, and its client.
struct World<'a> {
    server: ApiServer,
    runtime: &'a Runtime,
}

impl<'a> World<'a> {
    fn new(runtime: &'a Runtime) -> Self {
        Self { server: ApiServer::new(Options::default()), runtime }
    }

    /// CPU time of an apply without changes and of one that changes a field.
    fn applies(&self, object: &dyn Fn(u32) -> Value) -> Result<(Duration, Duration)> {
        if object(0)["kind"] == objects::KIND {
            self.call(
                Method::POST,
                objects::DEFINITIONS,
                "application/json",
                &objects::definition("wides", 85),
            )?;
        }
        let path = objects::path_of(&object(0));
        let apply =
            |turn: u32| self.call(Method::PATCH, &path, "application/apply-patch+yaml", &object(turn));
        apply(0)?;
        let measure = |changes: u32| -> Result<Duration> {
            let stopwatch = Stopwatch::thread();
            for turn in 1..=APPLIES {
                apply(turn * changes)?;
            }
            Ok(stopwatch.elapsed() / APPLIES)
        };
        Ok((measure(0)?, measure(1)?))
    }

    /// Time from the request that creates a CRD to the response to the first list of its objects.
    fn definitions(&self) -> Result<Duration> {
        let definitions: Vec<Value> =
            (0..DEFINITIONS).map(|at| objects::definition(&format!("things{at}"), 20)).collect();
        // Wall time, as a client sees it.
        let stopwatch = Stopwatch::wall();
        for definition in &definitions {
            self.call(Method::POST, objects::DEFINITIONS, "application/json", definition)?;
            let plural = definition["spec"]["names"]["plural"].as_str().unwrap_or_default();
            let path = format!("/apis/{}/v1/{plural}", objects::GROUP);
            self.call(Method::GET, &path, "application/json", &Value::Null)?;
        }
        Ok(stopwatch.elapsed() / DEFINITIONS)
    }

    fn call(&self, method: Method, path: &str, media: &str, body: &Value) -> Result<()> {
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let query = if method == Method::PATCH { "?fieldManager=bench&force=true" } else { "" };
        let request = Request::builder()
            .method(method)
            .uri(format!("{path}{query}"))
            .header(http::header::CONTENT_TYPE, media)
            .body(Full::new(body))?;
        self.runtime.block_on(async {
            let response = self.server.handle(request).await;
            let status = response.status();
            let answer = response.into_body().collect().await?.to_bytes();
            ensure!(status.is_success(), "{path}: {status}: {}", String::from_utf8_lossy(&answer));
            Ok(())
        })
    }
}

/// Schema and metadata validation of a new object.
fn validation() -> Result<Duration> {
    let definition = CrdValidation::compile(&objects::definition("wides", FIELDS))?;
    let object = objects::wide(FIELDS)(0);
    ensure!(custom::validate_create(&definition, "v1", &object).is_empty(), "the object is invalid");
    Ok(mean_of(VALIDATIONS, || {
        drop(black_box(custom::validate_create(&definition, "v1", black_box(&object))));
    }))
}

/// Evaluations of one CEL rule per second.
fn evaluation(bench: &Bench) -> Result<Row> {
    let rule =
        "self.replicas <= self.limit && self.image.startsWith('registry.') && self.ports.all(p, p > 0)";
    let spec = serde_json::json!({
        "replicas": 3, "limit": 5, "image": "registry.example.com/app:1", "ports": [80, 443, 8080],
    });
    let rules = Structural::parse(&objects::with_rule(rule))?.rules();
    let object = serde_json::json!({"spec": spec});
    ensure!(rules.validate(&object, None).errors.is_empty(), "the CEL rule evaluated to false");
    let program = cel::Program::compile(rule).map_err(|error| anyhow::anyhow!("{error}"))?;
    let (ours, peer) = in_turn(
        bench.rounds,
        || mean_of(EVALUATIONS, || drop(black_box(rules.validate(black_box(&object), None)))),
        || {
            mean_of(EVALUATIONS, || {
                let mut context = cel::Context::default();
                context.add_variable("self", black_box(&spec)).unwrap_or_default();
                drop(black_box(program.execute(&context)));
            })
        },
    );
    Ok(Row::new("CEL rule evaluations", Unit::PerSecond, ours.recip()).beside("cel", peer.recip()))
}
