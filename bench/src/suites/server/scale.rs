//! CPU time of server-side applies, of large Tables, and of many CRDs. Measured in-process, on one thread.

use anyhow::Result;
use http::{Method, Request, header};
use http_body_util::Full;
use kubewright_apiserver::{ApiServer, Options};
use serde_json::{Value, json};

use super::endpoint::Endpoint;
use super::objects::{self, Kind};
use super::{OBJECTS, TABLE_CPU_MS, per_second, traffic};
use crate::row::{Rows, Unit};
use crate::suites::custom::objects as custom;

/// The sizes of the measurements.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// Applies of one object.
    applies: u32,
    /// Objects of a Table.
    objects: usize,
    /// CRDs of one group. A tenth of them is measured at the start and at the end.
    crds: usize,
}

pub(super) const SIZES: Sizes = Sizes { applies: 1_000, objects: OBJECTS, crds: 5_000 };

const APPLY_CPU_US: f64 = 250.0;
const CRDS_CPU_S: f64 = 10.0;

/// Fields of a CRD's spec.
const FIELDS: usize = 20;
const CUSTOM_RESOURCES: &str = "/apis/bench.example.com/v1/wides";

pub(super) async fn measure(sizes: Sizes, rows: &mut Rows) -> Result<()> {
    applies(sizes, rows).await?;
    tables(sizes, rows).await?;
    crds(sizes, rows).await
}

async fn applies(sizes: Sizes, rows: &mut Rows) -> Result<()> {
    let endpoint = Endpoint::InProcess(ApiServer::new(Options::default()));
    let deployment = custom::deployment();
    let apply = |turn: u32| {
        let object = deployment(turn);
        let uri = format!("{}?fieldManager=bench&force=true", custom::path_of(&object));
        let builder = Request::builder().method(Method::PATCH).uri(uri);
        let builder = builder.header(header::CONTENT_TYPE, "application/apply-patch+yaml");
        builder.body(Full::new(object.to_string().into())).expect("valid path and headers")
    };
    endpoint.call(apply(0)).await?;
    for (how, changes) in [("unchanged", 0), ("changed", 1)] {
        let calls = (1..=sizes.applies).map(|turn| apply(turn * changes)).collect();
        let seconds = traffic::send(&endpoint, calls, 1).await?.as_secs_f64() / f64::from(sizes.applies);
        let name = format!("CPU per apply of a Deployment of 5 KiB, {how}, in-process");
        rows.sample(&name, Unit::Micros, seconds).target = Some(APPLY_CPU_US);
    }
    Ok(())
}

/// Returns an object with this name.
type Named<'a> = &'a dyn Fn(&str) -> Value;

async fn tables(sizes: Sizes, rows: &mut Rows) -> Result<()> {
    let endpoint = Endpoint::InProcess(ApiServer::new(Options::default()));
    let mut crd = custom::definition("wides", FIELDS);
    crd["spec"]["versions"][0]["additionalPrinterColumns"] = json!([
        {"name": "Text", "type": "string", "jsonPath": ".spec.field0"},
        {"name": "Number", "type": "integer", "jsonPath": ".spec.field1"},
        {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]);
    endpoint.call(objects::post(custom::DEFINITIONS, &crd)).await?;
    let wide = custom::wide(FIELDS / 2);
    let custom_resource = |name: &str| {
        let mut object = wide(0);
        object["metadata"]["name"] = name.into();
        object
    };
    let deployment = |name: &str| Kind::Deployment.object(name, 0);
    let pod = |name: &str| {
        let mut pod = deployment(name)["spec"]["template"].take();
        pod["metadata"]["name"] = name.into();
        pod
    };
    let kinds: [(&str, &str, Named<'_>); 3] = [
        ("Pods", "/api/v1/namespaces/default/pods", &pod),
        ("Deployments", Kind::Deployment.collection(), &deployment),
        ("custom resources", CUSTOM_RESOURCES, &custom_resource),
    ];
    for (what, path, object) in kinds {
        for at in 0..sizes.objects {
            endpoint.call(objects::post(path, &object(&objects::name(at)))).await?;
        }
        let stopwatch = endpoint.stopwatch();
        endpoint.call(objects::table(path)).await?;
        let name = format!("CPU per Table of 10,000 {what}, in-process");
        rows.sample(&name, Unit::Millis, stopwatch.elapsed().as_secs_f64()).target = Some(TABLE_CPU_MS);
    }
    Ok(())
}

async fn crds(sizes: Sizes, rows: &mut Rows) -> Result<()> {
    let endpoint = Endpoint::InProcess(ApiServer::new(Options::default()));
    let part = sizes.crds / 10;
    let mut parts = Vec::new();
    for start in (0..sizes.crds).step_by(part) {
        let crd = |at: usize| custom::definition(&format!("things{at}"), FIELDS);
        let calls = (start..start + part).map(|at| objects::post(custom::DEFINITIONS, &crd(at))).collect();
        parts.push(traffic::send(&endpoint, calls, 1).await?.as_secs_f64());
    }
    let name = "CPU of 5,000 CRDs in one group, in-process";
    rows.sample(name, Unit::Seconds, parts.iter().sum()).target = Some(CRDS_CPU_S);
    let each = |seconds: Option<&f64>| per_second(part, *seconds.unwrap_or(&0.0)).recip();
    let (first, last) = (each(parts.first()), each(parts.last()));
    rows.sample_beside(
        "CPU per CRD, the last 500 of 5,000, in-process",
        Unit::Micros,
        last,
        ("the first 500", first),
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_row_is_measured() {
        let mut rows = Rows::default();
        measure(Sizes { applies: 3, objects: 5, crds: 10 }, &mut rows).await.unwrap();
        let rows = rows.into_vec();
        assert_eq!(rows.len(), 7);
        assert!(rows.iter().all(|row| row.ours() > 0.0));
    }
}
