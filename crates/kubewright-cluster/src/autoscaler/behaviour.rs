//! Scaling behaviour: stabilization windows and scaling policies.
//!
//! [`History`] is the only state of an autoscaler. It is lost when the controller stops, as upstream.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::autoscaling::v2::{HPAScalingPolicy, HPAScalingRules, HorizontalPodAutoscalerBehavior};

use crate::pod::until;

/// Default stabilization window for scaling down, in seconds.
const SCALE_DOWN_WINDOW: i32 = 300;
/// The longest window or policy period.
const LONGEST: Duration = Duration::from_hours(1);

/// Recent recommendations and scale events.
#[derive(Debug, Default)]
pub(super) struct History {
    asked: Vec<(Timestamp, i32)>,
    added: Vec<(Timestamp, i32)>,
    removed: Vec<(Timestamp, i32)>,
}

/// The replica limits of an autoscaler.
#[derive(Debug)]
pub(super) struct Bounds<'a> {
    pub(super) least: i32,
    pub(super) most: i32,
    pub(super) behaviour: Option<&'a HorizontalPodAutoscalerBehavior>,
}

/// Whether a limit applies, with the reason and message of its condition.
pub(super) type Limit = (bool, &'static str, &'static str);

/// The result of applying the limits to a recommendation.
#[derive(Debug)]
pub(super) struct Decision {
    pub(super) replicas: i32,
    /// Changed by the stabilization window.
    pub(super) stabilized: Limit,
    /// Changed by the replica bounds or a scaling policy.
    pub(super) limited: Limit,
}

impl History {
    /// Records the initial number of replicas.
    pub(super) fn begin(&mut self, current: i32, now: Timestamp) {
        if self.asked.is_empty() {
            self.asked.push((now, current));
        }
    }

    /// Records a scale event.
    pub(super) fn changed(&mut self, from: i32, to: i32, now: Timestamp) {
        let changes = if to > from { &mut self.added } else { &mut self.removed };
        changes.push((now, (to - from).abs()));
    }

    /// Applies the behaviour to a recommendation.
    pub(super) fn apply(
        &mut self,
        current: i32,
        proposed: i32,
        bounds: &Bounds<'_>,
        now: Timestamp,
    ) -> Decision {
        for remembered in [&mut self.asked, &mut self.added, &mut self.removed] {
            remembered.retain(|(at, _)| until(*at, LONGEST, now).is_some());
        }
        let (steady, stabilized) = self.stabilize(current, proposed, bounds, now);
        let (replicas, limited) = self.limit(current, steady, bounds, now);
        Decision { replicas, stabilized, limited }
    }

    /// Applies the stabilization windows: at most the smallest recent recommendation when scaling up, at
    /// least the largest when scaling down.
    fn stabilize(
        &mut self,
        current: i32,
        proposed: i32,
        bounds: &Bounds<'_>,
        now: Timestamp,
    ) -> (i32, Limit) {
        let window = |up: bool, otherwise: i32| {
            rules(bounds, up).and_then(|rules| rules.stabilization_window_seconds).unwrap_or(otherwise)
        };
        let low = within(&self.asked, window(true, 0), now).fold(proposed, i32::min);
        let high = within(&self.asked, window(false, SCALE_DOWN_WINDOW), now).fold(proposed, i32::max);
        let steady = current.max(low).min(high);
        self.asked.push((now, proposed));
        let limit = match (steady == proposed, proposed >= current) {
            (true, _) => (false, "ReadyForNewScale", "recommended size matches current size"),
            (false, true) => (
                true,
                "ScaleUpStabilized",
                "recent recommendations were lower than current one, applying the lowest recent recommendation",
            ),
            (false, false) => (
                true,
                "ScaleDownStabilized",
                "recent recommendations were higher than current one, applying the highest recent recommendation",
            ),
        };
        (steady, limit)
    }

    fn limit(&self, current: i32, wanted: i32, bounds: &Bounds<'_>, now: Timestamp) -> (i32, Limit) {
        if wanted > current {
            let fastest = self.fastest_up(current, bounds, now).max(current);
            let (most, why) = if bounds.most > fastest {
                let why = "the desired replica count is increasing faster than the maximum scale rate";
                (fastest, ("ScaleUpLimit", why))
            } else {
                let why = "the desired replica count is more than the maximum replica count";
                (bounds.most, ("TooManyReplicas", why))
            };
            if wanted > most {
                return (most, (true, why.0, why.1));
            }
        } else {
            let fastest = self.fastest_down(current, bounds, now).min(current);
            let (least, why) = if bounds.least < fastest {
                let why = "the desired replica count is decreasing faster than the maximum scale rate";
                (fastest, ("ScaleDownLimit", why))
            } else {
                let why = "the desired replica count is less than the minimum replica count";
                (bounds.least, ("TooFewReplicas", why))
            };
            if wanted < least {
                return (least, (true, why.0, why.1));
            }
        }
        let within = (false, "DesiredWithinRange", "the desired count is within the acceptable range");
        (wanted, within)
    }

    fn fastest_up(&self, current: i32, bounds: &Bounds<'_>, now: Timestamp) -> i32 {
        let Some(rules) = rules(bounds, true) else { return current.saturating_mul(2).max(4) };
        let limit = |policy: &HPAScalingPolicy| {
            let begun = current - sum(&self.added, policy.period_seconds, now);
            if policy.type_ == "Pods" {
                return begun.saturating_add(policy.value);
            }
            percent(begun, i64::from(policy.value) + 100, true)
        };
        select(rules, limit, i32::max, i32::min).unwrap_or(current)
    }

    fn fastest_down(&self, current: i32, bounds: &Bounds<'_>, now: Timestamp) -> i32 {
        let Some(rules) = rules(bounds, false) else { return i32::MIN };
        let limit = |policy: &HPAScalingPolicy| {
            let begun = current + sum(&self.removed, policy.period_seconds, now);
            if policy.type_ == "Pods" {
                return begun.saturating_sub(policy.value);
            }
            percent(begun, 100 - i64::from(policy.value), false)
        };
        select(rules, limit, i32::min, i32::max).unwrap_or(current)
    }
}

fn rules<'a>(bounds: &Bounds<'a>, up: bool) -> Option<&'a HPAScalingRules> {
    let behaviour = bounds.behaviour?;
    if up { behaviour.scale_up.as_ref() } else { behaviour.scale_down.as_ref() }
}

/// Combines the policies: the largest change, or the smallest with `selectPolicy: Min`. `None` if scaling is
/// disabled.
fn select(
    rules: &HPAScalingRules,
    limit: impl Fn(&HPAScalingPolicy) -> i32,
    most: fn(i32, i32) -> i32,
    least: fn(i32, i32) -> i32,
) -> Option<i32> {
    let limits = rules.policies.iter().flatten().map(limit);
    match rules.select_policy.as_deref() {
        Some("Disabled") => None,
        Some("Min") => limits.reduce(least),
        _ => limits.reduce(most),
    }
}

fn percent(of: i32, percent: i64, up: bool) -> i32 {
    let whole = i64::from(of) * percent;
    i32::try_from(if up { (whole + 99).div_euclid(100) } else { whole / 100 }).unwrap_or(i32::MAX)
}

fn within(remembered: &[(Timestamp, i32)], seconds: i32, now: Timestamp) -> impl Iterator<Item = i32> {
    let window = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    remembered.iter().filter(move |(at, _)| until(*at, window, now).is_some()).map(|(_, number)| *number)
}

fn sum(remembered: &[(Timestamp, i32)], seconds: i32, now: Timestamp) -> i32 {
    within(remembered, seconds, now).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn bounds(behaviour: Option<&HorizontalPodAutoscalerBehavior>) -> Bounds<'_> {
        Bounds { least: 2, most: 20, behaviour }
    }

    fn behaviour(value: &Value) -> HorizontalPodAutoscalerBehavior {
        serde_json::from_value(value.clone()).unwrap()
    }

    #[test]
    fn scaling_down_waits_for_the_stabilization_window() {
        let mut history = History::default();
        history.begin(6, at(0));
        let soon = history.apply(6, 3, &bounds(None), at(15));
        assert_eq!((soon.replicas, soon.stabilized.1), (6, "ScaleDownStabilized"));
        assert_eq!(history.apply(6, 4, &bounds(None), at(299)).replicas, 6);
        let late = history.apply(6, 3, &bounds(None), at(301));
        assert_eq!((late.replicas, late.stabilized.1), (4, "ScaleDownStabilized"));
        assert_eq!(history.apply(4, 3, &bounds(None), at(600)).replicas, 3);
    }

    #[test]
    fn bounds_apply_and_scaling_up_at_most_doubles() {
        let mut history = History::default();
        let doubled = history.apply(5, 18, &bounds(None), at(0));
        assert_eq!((doubled.replicas, doubled.limited.1), (10, "ScaleUpLimit"));
        let most = history.apply(15, 90, &bounds(None), at(1));
        assert_eq!((most.replicas, most.limited.1), (20, "TooManyReplicas"));
        let least = History::default().apply(5, 0, &bounds(None), at(0));
        assert_eq!((least.replicas, least.limited.1), (2, "TooFewReplicas"));
        let within = History::default().apply(5, 6, &bounds(None), at(0));
        assert_eq!((within.replicas, within.limited.1), (6, "DesiredWithinRange"));
    }

    #[test]
    fn policies_limit_the_change_per_period() {
        let behaviour = behaviour(&json!({
            "scaleUp": { "stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [
                { "type": "Pods", "value": 2, "periodSeconds": 60 },
                { "type": "Percent", "value": 10, "periodSeconds": 60 },
            ] },
            "scaleDown": { "stabilizationWindowSeconds": 0, "selectPolicy": "Disabled", "policies": [] },
        }));
        let mut history = History::default();
        let first = history.apply(5, 18, &bounds(Some(&behaviour)), at(0));
        assert_eq!((first.replicas, first.limited.1), (7, "ScaleUpLimit"));
        history.changed(5, 7, at(0));
        assert_eq!(history.apply(7, 18, &bounds(Some(&behaviour)), at(30)).replicas, 7);
        assert_eq!(history.apply(7, 18, &bounds(Some(&behaviour)), at(60)).replicas, 9);
        let down = history.apply(7, 2, &bounds(Some(&behaviour)), at(90));
        assert_eq!((down.replicas, down.limited.1), (7, "ScaleDownLimit"));
    }
}
