//! Replicas proposed by each metric. Pure functions of measurements, pods and time.
//!
//! An annotation provides the total of each metric, which all pods share evenly: more pods reduce the load of
//! each.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::autoscaling::v2::{
    ContainerResourceMetricStatus, ExternalMetricStatus, HorizontalPodAutoscaler, MetricIdentifier,
    MetricSpec, MetricStatus, MetricTarget, MetricValueStatus, ObjectMetricStatus, PodsMetricStatus,
    ResourceMetricStatus,
};
use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use kubewright_apimachinery::quantity::{Notation, Quantity};

use super::ratio::Ratio;
use crate::kubelet::annotation::METRICS;
use crate::pod;

/// How long after its start the CPU usage of an unready pod is ignored.
const CPU_INITIALIZATION: Duration = Duration::from_mins(5);
/// A pod whose readiness changed within this time after its start was never ready.
const INITIAL_READINESS: Duration = Duration::from_secs(30);

/// Metric totals in thousandths, by name.
pub(super) type Measured = BTreeMap<String, i64>;

/// Parses the annotation.
pub(super) fn measured(autoscaler: &HorizontalPodAutoscaler) -> Result<Measured, String> {
    let annotations = autoscaler.metadata.annotations.as_ref();
    let text = annotations.and_then(|it| it.get(METRICS)).map(String::as_str).unwrap_or_default();
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let read = |part: &str| {
        let (name, much) = part.split_once('=')?;
        Some((name.trim().to_owned(), Quantity::parse(much.trim()).ok()?.milli_value()))
    };
    parts
        .map(|part| {
            read(part).ok_or_else(|| {
                format!(
                    "annotation {METRICS}: {part:?} is not a metric; write it like \"cpu=1500m,requests=200\""
                )
            })
        })
        .collect()
}

/// The scale target.
#[derive(Debug)]
pub(super) struct Target<'a> {
    /// Desired and current replicas.
    pub(super) wanted: i32,
    pub(super) there: i32,
    pub(super) pods: &'a [Arc<Pod>],
    pub(super) namespace: &'a str,
    pub(super) now: Timestamp,
}

/// The replicas proposed by a metric.
#[derive(Debug)]
pub(super) struct Proposal {
    pub(super) replicas: i32,
    /// The metric in events and conditions.
    pub(super) name: String,
    pub(super) status: MetricStatus,
}

/// Why a metric proposes nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) reason: &'static str,
    pub(super) why: String,
    /// The prefix of the message if all metrics fail.
    pub(super) which: String,
}

/// Evaluates one metric.
pub(super) fn propose(
    spec: &MetricSpec,
    measured: &Measured,
    target: &Target<'_>,
) -> Result<Proposal, Failure> {
    let status = |kind: &str| MetricStatus { type_: kind.to_owned(), ..MetricStatus::default() };
    match (spec.type_.as_str(), spec) {
        ("Resource", MetricSpec { resource: Some(source), .. }) => {
            let (replicas, name, current) = resource(&source.name, None, &source.target, measured, target)
                .map_err(|why| {
                    failed("FailedGetResourceMetric", &format!("{} resource", source.name), why)
                })?;
            let current = ResourceMetricStatus { name: source.name.clone(), current };
            Ok(Proposal {
                replicas,
                name,
                status: MetricStatus { resource: Some(current), ..status("Resource") },
            })
        }
        ("ContainerResource", MetricSpec { container_resource: Some(source), .. }) => {
            let container = Some(source.container.as_str());
            let (replicas, name, current) =
                resource(&source.name, container, &source.target, measured, target).map_err(|why| {
                    failed("FailedGetContainerResourceMetric", &format!("{} container", source.name), why)
                })?;
            let current = ContainerResourceMetricStatus {
                name: source.name.clone(),
                container: source.container.clone(),
                current,
            };
            let status = MetricStatus { container_resource: Some(current), ..status("ContainerResource") };
            Ok(Proposal { replicas, name, status })
        }
        ("Pods", MetricSpec { pods: Some(source), .. }) => {
            let fail = |why| failed("FailedGetPodsMetric", "pods", why);
            let name = &source.metric.name;
            let total = total(name, measured).ok_or_else(|| {
                fail(format!("unable to get metric {name}: no metrics returned from custom metrics API"))
            })?;
            let (replicas, average) =
                shared(total, milli(source.target.average_value.as_ref()), "", target).map_err(fail)?;
            let current = PodsMetricStatus { metric: source.metric.clone(), current: average_value(average) };
            let name = format!("pods metric {name}");
            Ok(Proposal { replicas, name, status: MetricStatus { pods: Some(current), ..status("Pods") } })
        }
        ("Object", MetricSpec { object: Some(source), .. }) => {
            let fail = |why| failed("FailedGetObjectMetric", "object", why);
            let MetricIdentifier { name, .. } = &source.metric;
            let about = &source.described_object;
            let total = total(name, measured).ok_or_else(|| {
                let at = format!("{} {}/{}", about.kind, target.namespace, about.name);
                fail(format!(
                    "unable to get metric {name}: {at}: no metrics returned from custom metrics API"
                ))
            })?;
            let (replicas, current) = whole(total, &source.target, target);
            let name = format!("{} metric {name}", about.kind);
            let current = ObjectMetricStatus {
                metric: source.metric.clone(),
                described_object: about.clone(),
                current,
            };
            Ok(Proposal {
                replicas,
                name,
                status: MetricStatus { object: Some(current), ..status("Object") },
            })
        }
        ("External", MetricSpec { external: Some(source), .. }) => {
            let name = &source.metric.name;
            let total = total(name, measured).ok_or_else(|| {
                let at = format!("{}/{name}/nil", target.namespace);
                let why = format!(
                    "unable to get external metric {at}: no metrics returned from external metrics API"
                );
                failed("FailedGetExternalMetric", &format!("{name} external"), why)
            })?;
            let (replicas, current) = whole(total, &source.target, target);
            let name = format!("external metric {name}(nil)");
            let current = ExternalMetricStatus { metric: source.metric.clone(), current };
            Ok(Proposal {
                replicas,
                name,
                status: MetricStatus { external: Some(current), ..status("External") },
            })
        }
        (other, _) => {
            let why = format!("unknown metric source type {other:?}");
            Err(Failure { reason: "InvalidMetricSourceType", why: why.clone(), which: why })
        }
    }
}

fn failed(reason: &'static str, what: &str, why: String) -> Failure {
    let which = format!("failed to get {what} metric value: {why}");
    Failure { reason, why, which }
}

fn total(name: &str, measured: &Measured) -> Option<i64> {
    measured.get(name).copied()
}

fn milli(text: Option<&Text>) -> i64 {
    text.and_then(|text| Quantity::parse(&text.0).ok()).map(|much| much.milli_value()).unwrap_or_default()
}

fn text(milli: i64) -> Text {
    Text(Quantity::from_milli(milli, Notation::DecimalSi).to_string())
}

fn average_value(milli: i64) -> MetricValueStatus {
    MetricValueStatus { average_value: Some(text(milli)), ..MetricValueStatus::default() }
}

/// A resource metric, by average value or by utilization of the requests.
fn resource(
    name: &str,
    container: Option<&str>,
    wanted: &MetricTarget,
    measured: &Measured,
    target: &Target<'_>,
) -> Result<(i32, String, MetricValueStatus), String> {
    let fail = |why: String| format!("failed to get {name} utilization: {why}");
    let total = total(name, measured).ok_or_else(|| {
        fail(format!(
            "unable to get metrics for resource {name}: no metrics returned from resource metrics API"
        ))
    })?;
    if wanted.average_value.is_some() {
        let (replicas, average) =
            shared(total, milli(wanted.average_value.as_ref()), name, target).map_err(fail)?;
        return Ok((replicas, format!("{name} resource"), average_value(average)));
    }
    let Some(percent) = wanted.average_utilization else {
        let why = "invalid resource metric source: neither a utilization target nor a value target was set";
        return Err(why.to_owned());
    };
    let groups = group(name, target);
    if groups.ready.is_empty() {
        return Err(fail(none_ready(target)));
    }
    let requested = |pods: &[&Pod]| -> Result<i64, String> {
        let requests: Result<Vec<i64>, String> =
            pods.iter().map(|pod| request(pod, name, container)).collect();
        requests.map(|requests| requests.iter().sum())
    };
    let utilization = |requested: i64| total.saturating_mul(100) / requested.max(1);
    let requests = requested(&groups.ready).map_err(fail)?;
    let current = utilization(requests);
    let ratio = Ratio::new(current, percent.into());
    let all = requests.saturating_add(requested(&groups.unready).map_err(fail)?);
    let with_unready = Ratio::new(utilization(all), percent.into());
    let average = total / i64::try_from(groups.ready.len()).unwrap_or(i64::MAX);
    let current = MetricValueStatus {
        average_utilization: Some(i32::try_from(current).unwrap_or(i32::MAX)),
        ..average_value(average)
    };
    let name = format!("{name} resource utilization (percentage of request)");
    Ok((decide(ratio, with_unready, &groups, target), name, current))
}

/// A metric shared by the pods, by average value. Also returns the current average.
fn shared(total: i64, each: i64, resource: &str, target: &Target<'_>) -> Result<(i32, i64), String> {
    let groups = group(resource, target);
    if groups.ready.is_empty() {
        return Err(none_ready(target));
    }
    let share = |count: usize| total / i64::try_from(count).unwrap_or(i64::MAX);
    let average = share(groups.ready.len());
    let with_unready = Ratio::new(share(groups.ready.len() + groups.unready.len()), each);
    Ok((decide(Ratio::new(average, each), with_unready, &groups, target), average))
}

fn none_ready(target: &Target<'_>) -> String {
    if target.pods.is_empty() {
        "no pods returned by selector while calculating replica count".to_owned()
    } else {
        "did not receive metrics for any ready pods".to_owned()
    }
}

/// The replicas for a usage ratio. Unready pods count as idle when scaling up.
fn decide(ratio: Ratio, with_unready: Ratio, groups: &Groups<'_>, target: &Target<'_>) -> i32 {
    if groups.unready.is_empty() || !ratio.is_above() {
        return if ratio.is_near() { target.wanted } else { ratio.of(groups.ready.len()) };
    }
    if with_unready.is_near() || with_unready.is_below() {
        return target.wanted;
    }
    with_unready.of(groups.ready.len() + groups.unready.len()).max(target.wanted)
}

/// An object or external metric, by total or by average per pod.
fn whole(total: i64, wanted: &MetricTarget, target: &Target<'_>) -> (i32, MetricValueStatus) {
    if wanted.value.is_some() {
        let ratio = Ratio::new(total, milli(wanted.value.as_ref()));
        let ready =
            target.pods.iter().filter(|pod| pod::phase(pod) == "Running" && pod::is_ready(pod)).count();
        let replicas = match target.wanted {
            0 => ratio.of(1),
            wanted if ratio.is_near() => wanted,
            _ => ratio.of(ready),
        };
        return (replicas, MetricValueStatus { value: Some(text(total)), ..MetricValueStatus::default() });
    }
    let each = milli(wanted.average_value.as_ref());
    let there = i64::from(target.there);
    let near = there > 0 && Ratio::new(total, each.saturating_mul(there)).is_near();
    let replicas = if near { target.there } else { Ratio::new(total, each).of(1) };
    let average = if there > 0 { (total + there - 1) / there } else { total };
    (replicas, average_value(average))
}

#[derive(Debug, Default)]
struct Groups<'a> {
    ready: Vec<&'a Pod>,
    unready: Vec<&'a Pod>,
}

/// Splits the pods into ready and unready ones. Ignores failed and terminating pods.
fn group<'a>(resource: &str, target: &Target<'a>) -> Groups<'a> {
    let mut groups = Groups::default();
    for pod in target.pods {
        match pod::phase(pod) {
            _ if pod::is_terminating(pod) => {}
            "Failed" | "Succeeded" => {}
            "Pending" => groups.unready.push(pod),
            _ if resource == "cpu" && !has_begun(pod, target.now) => groups.unready.push(pod),
            _ => groups.ready.push(pod),
        }
    }
    groups
}

/// Whether the usage of a pod is meaningful: it is ready or has been.
fn has_begun(pod: &Pod, now: Timestamp) -> bool {
    let start = pod.status.as_ref().and_then(|status| status.start_time.as_ref()).map(|time| time.0);
    let (Some(ready), Some(start)) = (pod::condition(pod, "Ready"), start) else { return false };
    if ready.status == "True" || pod::until(start, CPU_INITIALIZATION, now).is_some() {
        return ready.status == "True";
    }
    let changed = ready.last_transition_time.as_ref().map_or(start, |time| time.0);
    pod::until(start, INITIAL_READINESS, changed).is_none()
}

/// The request of a pod or of one container, in thousandths.
fn request(pod: &Pod, resource: &str, container: Option<&str>) -> Result<i64, String> {
    let Some(spec) = &pod.spec else { return Ok(0) };
    let is_sidecar = |it: &&Container| it.restart_policy.as_deref() == Some("Always");
    let sidecars = spec.init_containers.iter().flatten().filter(is_sidecar);
    let mut sum = 0_i64;
    for own in spec.containers.iter().chain(sidecars).filter(|own| container.is_none_or(|it| it == own.name))
    {
        let requests = own.resources.as_ref().and_then(|it| it.requests.as_ref());
        let Some(asked) = requests.and_then(|it| it.get(resource)) else {
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            return Err(format!("missing request for {resource} in container {} of Pod {name}", own.name));
        };
        sum = sum.saturating_add(milli(Some(asked)));
    }
    Ok(sum)
}

#[cfg(test)]
mod tests;
