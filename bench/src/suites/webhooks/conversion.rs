//! The CPU time of conversion reviews, in-process: decoding, conversion through the hub and encoding.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use kube::{CustomResource, Resource as _};
use kubewright_bench_work::{Port, Widget, WidgetSpec, WidgetStatus, widget};
use kubewright_runtime::webhook::{BoxError, CONVERT_PATH, Conversion, Spoke, Webhooks};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::row::{Rows, Unit};
use crate::stopwatch::Stopwatch;

/// Objects of a review, as in a list.
const OBJECTS: u32 = 500;
/// Reviews of a measurement.
const REVIEWS: u32 = 4;
const SPOKE: &str = "bench.kubewright.dev/v2";

/// WidgetV2Spec is the spec of a second version, with a renamed field.
#[derive(CustomResource, JsonSchema, Debug, Clone, Serialize, Deserialize)]
#[kube(
    group = "bench.kubewright.dev",
    version = "v2",
    kind = "Widget",
    root = "WidgetV2",
    namespaced,
    status = "WidgetStatus"
)]
struct WidgetV2Spec {
    image: String,
    size: i32,
    ports: Vec<Port>,
    #[serde(default)]
    hosts: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    paused: bool,
}

impl Spoke for WidgetV2 {
    type Hub = Widget;

    fn to_hub(&self) -> Result<Widget, BoxError> {
        let WidgetV2Spec { image, size, ports, hosts, env, paused } = self.spec.clone();
        let spec = WidgetSpec { image, replicas: size, ports, hosts, env, paused };
        Ok(Widget { metadata: self.metadata.clone(), spec, status: self.status.clone() })
    }

    fn from_hub(hub: &Widget) -> Result<Self, BoxError> {
        let WidgetSpec { image, replicas, ports, hosts, env, paused } = hub.spec.clone();
        let spec = WidgetV2Spec { image, size: replicas, ports, hosts, env, paused };
        Ok(Self { metadata: hub.metadata.clone(), spec, status: hub.status.clone() })
    }
}

/// The conversion between both versions.
pub(crate) fn of_widgets() -> Conversion {
    Conversion::hub::<Widget>().spoke::<WidgetV2>()
}

pub(super) fn measure(runtime: &Runtime, rows: &mut Rows) -> Result<()> {
    let webhooks = Webhooks::new();
    webhooks.conversion(of_widgets())?;
    let hub = Widget::api_version(&()).into_owned();
    let objects: Vec<Value> = (0..OBJECTS)
        .map(|turn| serde_json::to_value(widget(&format!("widget-{turn}"), turn)))
        .collect::<Result<_, _>>()?;
    let (seconds, converted) = runtime.block_on(convert(&webhooks, &objects, SPOKE))?;
    rows.sample("conversion of a widget to a spoke, in-process", Unit::Micros, seconds);
    let (seconds, back) = runtime.block_on(convert(&webhooks, &converted, &hub))?;
    rows.sample("conversion of a widget to the hub, in-process", Unit::Micros, seconds);
    ensure!(back[0]["spec"] == objects[0]["spec"], "a conversion lost a field: {}", back[0]);
    Ok(())
}

/// The CPU time per object in seconds, and the converted objects.
async fn convert(webhooks: &Webhooks, objects: &[Value], version: &str) -> Result<(f64, Vec<Value>)> {
    let request = json!({"uid": "1", "desiredAPIVersion": version, "objects": objects});
    let review =
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request});
    let body = Bytes::from(review.to_string());
    let stopwatch = Stopwatch::thread();
    let mut answer = Bytes::new();
    for _ in 0..REVIEWS {
        let request = http::Request::post(CONVERT_PATH).header("content-type", "application/json");
        let response = webhooks.handle(request.body(Full::new(body.clone()))?).await;
        answer = response.into_body().collect().await.context("read the response")?.to_bytes();
    }
    let seconds = stopwatch.elapsed().as_secs_f64() / f64::from(REVIEWS * OBJECTS);
    let mut answer: Value = serde_json::from_slice(&answer).context("the response is not JSON")?;
    ensure!(answer["response"]["result"]["status"] == "Success", "{}", answer["response"]["result"]);
    let Value::Array(converted) = answer["response"]["convertedObjects"].take() else {
        return Ok((seconds, Vec::new()));
    };
    Ok((seconds, converted))
}
