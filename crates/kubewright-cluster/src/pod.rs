//! Properties of pods. Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The phase; `Pending` if not set.
pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending")
}

/// Whether the phase is `Succeeded` or `Failed`.
pub(crate) fn is_terminal(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Whether the pod is being deleted.
pub(crate) fn is_terminating(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Whether the pod is neither finished nor being deleted.
pub(crate) fn is_active(pod: &Pod) -> bool {
    !is_terminal(pod) && !is_terminating(pod)
}

/// A condition of the pod.
pub(crate) fn condition<'a>(pod: &'a Pod, type_: &str) -> Option<&'a PodCondition> {
    pod.status.as_ref()?.conditions.as_ref()?.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition Ready is `True`.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready.status == "True")
}

/// When the pod became ready, if it is.
pub(crate) fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let ready = condition(pod, "Ready").filter(|ready| ready.status == "True")?;
    ready.last_transition_time.as_ref().map(|time| time.0)
}

/// Whether the pod has been ready for `min_ready_seconds`, and otherwise the remaining time.
pub(crate) fn availability(pod: &Pod, min_ready_seconds: i32, now: Timestamp) -> Availability {
    if !is_ready(pod) {
        return Availability::No;
    }
    let wait = Duration::from_secs(u64::try_from(min_ready_seconds).unwrap_or_default());
    if wait.is_zero() {
        return Availability::Yes;
    }
    let Some(since) = ready_since(pod) else { return Availability::No };
    match until(since, wait, now) {
        Some(left) => Availability::In(left),
        None => Availability::Yes,
    }
}

/// See [`availability`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Availability {
    Yes,
    /// After this time, if it stays ready.
    In(Duration),
    No,
}

/// The remaining part of `wait`, which started at `since`.
pub(crate) fn until(since: Timestamp, wait: Duration, now: Timestamp) -> Option<Duration> {
    let end = since.saturating_add(wait).unwrap_or(Timestamp::MAX);
    Duration::try_from(end.duration_since(now)).ok().filter(|left| !left.is_zero())
}

/// The highest restart count of its containers.
pub(crate) fn restarts(pod: &Pod) -> i32 {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_deref());
    statuses.into_iter().flatten().map(|container| container.restart_count).max().unwrap_or_default()
}

/// The creation timestamp.
pub(crate) fn created(time: Option<&Time>) -> Timestamp {
    time.map_or(Timestamp::UNIX_EPOCH, |time| time.0)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::PodStatus;

    use super::*;

    fn ready_at(seconds: i64) -> Pod {
        let ready = PodCondition {
            type_: "Ready".to_owned(),
            status: "True".to_owned(),
            last_transition_time: Some(Time(Timestamp::from_second(seconds).unwrap())),
            ..PodCondition::default()
        };
        Pod {
            status: Some(PodStatus { conditions: Some(vec![ready]), ..PodStatus::default() }),
            ..Pod::default()
        }
    }

    #[test]
    fn availability_requires_min_ready_seconds() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let pod = ready_at(100);
        assert_eq!(availability(&pod, 0, at(100)), Availability::Yes);
        assert_eq!(availability(&pod, 10, at(104)), Availability::In(Duration::from_secs(6)));
        assert_eq!(availability(&pod, 10, at(110)), Availability::Yes);
        assert_eq!(availability(&Pod::default(), 0, at(110)), Availability::No);
    }
}
