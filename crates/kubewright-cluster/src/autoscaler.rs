//! The HorizontalPodAutoscaler controller.
//!
//! No containers run, so there are no real metrics: an annotation on the autoscaler provides them, see
//! `metrics`. `behaviour` limits how fast the number of replicas changes. Both are free of I/O; this file
//! reads and writes the scale and records events.

mod behaviour;
mod metrics;
mod ratio;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::autoscaling::v2::{
    HorizontalPodAutoscaler, HorizontalPodAutoscalerCondition, HorizontalPodAutoscalerSpec,
    HorizontalPodAutoscalerStatus,
};
use k8s_openapi::api::core::v1::Pod;
use kubewright_runtime::client::ignore_not_found;
use kubewright_runtime::controller::{Predicate, Watch};
use kubewright_runtime::{Context, Key, ListOptions, Manager, Outcome, Reconciler, RegisterError, Result};

use self::behaviour::{Bounds, History};
use crate::node::whole;
use crate::scale::{Found, Target};

/// The sync period.
const PERIOD: Duration = Duration::from_secs(15);
const ABLE: &str = "AbleToScale";
const ACTIVE: &str = "ScalingActive";
const LIMITED: &str = "ScalingLimited";

/// Registers the HorizontalPodAutoscaler controller.
pub fn register(manager: &Manager) -> Result<(), RegisterError> {
    // Ignore updates of the status only.
    let asked = Predicate::<HorizontalPodAutoscaler>::new(|event| match (event.old(), event.new_object()) {
        (Some(old), Some(new)) => {
            old.spec != new.spec || old.metadata.annotations != new.metadata.annotations
        }
        _ => true,
    });
    manager
        .controller_with(Autoscalers::default(), Watch::new().filter(asked))
        .named("horizontalpodautoscaler")
        .register()
}

#[derive(Default)]
struct Autoscalers {
    histories: Mutex<BTreeMap<Key, History>>,
}

impl Autoscalers {
    fn histories(&self) -> MutexGuard<'_, BTreeMap<Key, History>> {
        self.histories.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reconciler for Autoscalers {
    type Object = HorizontalPodAutoscaler;

    async fn reconcile(&self, autoscaler: &HorizontalPodAutoscaler, cx: &Context) -> Result<Outcome> {
        // Not optional since Kubernetes 1.36.
        let spec: Option<HorizontalPodAutoscalerSpec> = autoscaler.spec.clone().into();
        let Some(spec) = &spec else { return Ok(Outcome::done()) };
        let mut status = Status { new: autoscaler.status.clone().unwrap_or_default(), now: cx.now() };
        self.scale(autoscaler, spec, &mut status, cx).await?;
        let mut wanted = autoscaler.clone();
        wanted.status = Some(status.new);
        ignore_not_found(cx.client().status().patch_between(autoscaler, &wanted).await)?;
        Ok(Outcome::requeue_after(PERIOD))
    }

    async fn deleted(&self, key: &Key, _: &Context) -> Result<Outcome> {
        self.histories().remove(key);
        Ok(Outcome::done())
    }
}

impl Autoscalers {
    async fn scale(
        &self,
        autoscaler: &HorizontalPodAutoscaler,
        spec: &HorizontalPodAutoscalerSpec,
        status: &mut Status,
        cx: &Context,
    ) -> Result<()> {
        let (target, scale) = match find(spec, cx).await? {
            Ok(found) => found,
            Err(why) => {
                cx.events().warning(autoscaler, "FailedGetScale").action("Scale").note(&why);
                let message =
                    format!("the HPA controller was unable to get the target's current scale: {why}");
                status.set(ABLE, "False", "FailedGetScale", &message);
                return Ok(());
            }
        };
        let message = "the HPA controller was able to get the target's current scale";
        status.set(ABLE, "True", "SucceededGetScale", message);
        let current = scale.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or_default();
        status.new.current_replicas = Some(current);
        self.histories().entry(cx.key().clone()).or_default().begin(current, cx.now());
        let least = spec.min_replicas.unwrap_or(1);
        let (desired, why) = if current == 0 && least != 0 {
            let message = "scaling is disabled since the replica count of the target is zero";
            status.set(ACTIVE, "False", "ScalingDisabled", message);
            (current, String::new())
        } else if current > spec.max_replicas {
            (spec.max_replicas, "Current number of replicas above Spec.MaxReplicas".to_owned())
        } else if current < least {
            (least, "Current number of replicas below Spec.MinReplicas".to_owned())
        } else {
            let Some((proposed, name)) = measure(autoscaler, spec, &scale, status, cx).await? else {
                return Ok(());
            };
            let bounds = Bounds { least, most: spec.max_replicas, behaviour: spec.behavior.as_ref() };
            let verdict = self.histories().entry(cx.key().clone()).or_default().apply(
                current,
                proposed,
                &bounds,
                cx.now(),
            );
            let (_, reason, message) = verdict.stabilized;
            status.set(ABLE, "True", reason, message);
            let (is_limited, reason, message) = verdict.limited;
            status.set(LIMITED, if is_limited { "True" } else { "False" }, reason, message);
            let why = if proposed > current {
                format!("{name} above target")
            } else {
                "All metrics below target".to_owned()
            };
            (verdict.replicas, why)
        };
        if desired != current {
            if let Err(error) = target.set(&scale, desired).await {
                let note = format_args!("New size: {desired}; reason: {why}; error: {error}");
                cx.events().warning(autoscaler, "FailedRescale").action("Scale").note(note);
                let message = format!("the HPA controller was unable to update the target scale: {error}");
                status.set(ABLE, "False", "FailedUpdateScale", &message);
                return Ok(());
            }
            let message = format!("the HPA controller was able to update the target scale to {desired}");
            status.set(ABLE, "True", "SucceededRescale", &message);
            let note = format_args!("New size: {desired}; reason: {why}");
            cx.events().normal(autoscaler, "SuccessfulRescale").action("Scale").note(note);
            self.histories().entry(cx.key().clone()).or_default().changed(current, desired, cx.now());
            status.new.last_scale_time = Some(whole(cx.now()));
        }
        status.new.desired_replicas = desired;
        Ok(())
    }
}

/// The target and its scale, or why it is not available.
async fn find(spec: &HorizontalPodAutoscalerSpec, cx: &Context) -> Result<Result<(Target, Scale), String>> {
    let reference = &spec.scale_target_ref;
    let key = Key::namespaced(cx.key().namespace().unwrap_or_default(), &reference.name);
    let api_version = reference.api_version.as_deref().unwrap_or("v1");
    let target = match Target::named(cx.client(), api_version, &reference.kind, &key).await {
        Ok(target) => target,
        Err(error) if error.is_unknown_kind() => {
            let group = api_version.split_once('/').map_or("", |(group, _)| group);
            return Ok(Err(format!("no matches for kind {:?} in group {group:?}", reference.kind)));
        }
        Err(error) => return Err(error.into()),
    };
    Ok(match target.get(cx.client()).await? {
        Found::Scale(scale) => Ok((target, *scale)),
        Found::Gone => Err(format!("{} {:?} not found", target.resource(), reference.name)),
        Found::NotScalable => Err("the server could not find the requested resource".to_owned()),
    })
}

/// The replicas proposed by the metrics and the name of the deciding metric; `None` if they cannot be
/// computed.
async fn measure(
    autoscaler: &HorizontalPodAutoscaler,
    spec: &HorizontalPodAutoscalerSpec,
    scale: &Scale,
    status: &mut Status,
    cx: &Context,
) -> Result<Option<(i32, String)>> {
    let selector = scale.status.as_ref().and_then(|status| status.selector.as_deref()).unwrap_or_default();
    if selector.is_empty() {
        cx.events().warning(autoscaler, "SelectorRequired").action("Measure").note("selector is required");
        let message = "the HPA target's scale is missing a selector";
        status.set(ACTIVE, "False", "InvalidSelector", message);
        return Ok(None);
    }
    let measured = metrics::measured(autoscaler).unwrap_or_else(|mistake| {
        cx.events().warning(autoscaler, "InvalidAnnotation").action("Simulate").note(mistake);
        metrics::Measured::new()
    });
    let namespace = cx.key().namespace().unwrap_or_default();
    let pods = cx.client().list::<Pod>(&ListOptions::namespace(namespace).labels(selector)).await?;
    let wanted = scale.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or_default();
    let there = scale.status.as_ref().map_or(0, |status| status.replicas);
    let target = metrics::Target { wanted, there, pods: &pods, namespace, now: cx.now() };
    let (mut best, mut failures, mut shown) = (None::<(i32, String)>, Vec::new(), Vec::new());
    let specs = spec.metrics.as_deref().unwrap_or_default();
    for metric in specs {
        match metrics::propose(metric, &measured, &target) {
            Ok(proposal) => {
                shown.push(proposal.status);
                if best.as_ref().is_none_or(|(replicas, _)| proposal.replicas > *replicas) {
                    best = Some((proposal.replicas, proposal.name));
                }
            }
            Err(failure) => {
                cx.events().warning(autoscaler, failure.reason).action("Measure").note(&failure.why);
                failures.push(failure);
            }
        }
    }
    // A failed metric might have proposed more: do not scale down.
    if let Some(first) = failures.first()
        && best.as_ref().is_none_or(|(replicas, _)| *replicas < wanted)
    {
        let message = format!("the HPA was unable to compute the replica count: {}", first.why);
        status.set(ACTIVE, "False", first.reason, &message);
        let note = format_args!(
            "invalid metrics ({} invalid out of {}), first error is: {}",
            failures.len(),
            specs.len(),
            first.which
        );
        cx.events().warning(autoscaler, "FailedComputeMetricsReplicas").action("Measure").note(note);
        return Ok(None);
    }
    status.new.current_metrics = Some(shown).filter(|shown| !shown.is_empty());
    if let Some((_, name)) = &best {
        let message = format!("the HPA was able to successfully calculate a replica count from {name}");
        status.set(ACTIVE, "True", "ValidMetricFound", &message);
    }
    Ok(best)
}

/// The status under construction.
struct Status {
    new: HorizontalPodAutoscalerStatus,
    now: Timestamp,
}

impl Status {
    /// Sets a condition. `lastTransitionTime` changes only with the status.
    fn set(&mut self, type_: &str, value: &str, reason: &str, message: &str) {
        let conditions = self.new.conditions.get_or_insert_default();
        let at = conditions.iter().position(|condition| condition.type_ == type_);
        let kept = at.map(|at| &conditions[at]).filter(|old| old.status == value);
        let since = kept.and_then(|old| old.last_transition_time.clone());
        let condition = HorizontalPodAutoscalerCondition {
            type_: type_.to_owned(),
            status: value.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_transition_time: since.or_else(|| Some(whole(self.now))),
        };
        match at {
            Some(at) => conditions[at] = condition,
            None => conditions.push(condition),
        }
    }
}
