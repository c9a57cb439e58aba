//! Sizes of the ReplicaSets of a Deployment: rolling updates and proportional scaling.
//!
//! Pure. Invariants: there are never more than `replicas + maxSurge` pods, and scaling down never leaves
//! fewer than `replicas - maxUnavailable` available ones.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::revision;
use super::template::age;

/// The limits of a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) wanted: i32,
    /// `maxSurge`, resolved.
    pub(super) surge: i32,
    /// `maxUnavailable`, resolved.
    pub(super) unavailable: i32,
}

/// A ReplicaSet and its new size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resize {
    pub(super) set: String,
    pub(super) size: i32,
}

impl Resize {
    fn new(set: &ReplicaSet, size: i32) -> Self {
        Self { set: set.metadata.name.clone().unwrap_or_default(), size }
    }
}

impl Limits {
    pub(super) fn of(deployment: &Deployment) -> Self {
        let Some(spec) = &deployment.spec else { return Self { wanted: 1, surge: 0, unavailable: 0 } };
        let wanted = spec.replicas.unwrap_or(1);
        let rolls = is_rolling(deployment);
        let rolling = spec.strategy.as_ref().and_then(|strategy| strategy.rolling_update.as_ref());
        if !rolls || wanted == 0 {
            return Self { wanted, surge: if rolls { surge_of(rolling, wanted) } else { 0 }, unavailable: 0 };
        }
        let surge = surge_of(rolling, wanted);
        let unavailable =
            rolling.and_then(|it| it.max_unavailable.as_ref()).map_or(0, |it| scaled(it, wanted, false));
        // Both can only be zero by rounding down. Allow one unavailable pod, or the rollout would not
        // progress.
        let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
        Self { wanted, surge, unavailable: unavailable.min(wanted) }
    }
}

fn surge_of(rolling: Option<&k8s_openapi::api::apps::v1::RollingUpdateDeployment>, wanted: i32) -> i32 {
    rolling.and_then(|rolling| rolling.max_surge.as_ref()).map_or(0, |surge| scaled(surge, wanted, true))
}

/// Whether the strategy is `RollingUpdate`.
pub(super) fn is_rolling(deployment: &Deployment) -> bool {
    let strategy = deployment.spec.as_ref().and_then(|spec| spec.strategy.as_ref());
    strategy.and_then(|strategy| strategy.type_.as_deref()) != Some("Recreate")
}

/// Resolves a number or percentage.
pub(crate) fn scaled(value: &IntOrString, of: i32, up: bool) -> i32 {
    match value {
        IntOrString::Int(value) => *value,
        IntOrString::String(text) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or_default();
            let whole = percent * i64::from(of);
            let value = if up { (whole + 99) / 100 } else { whole / 100 };
            i32::try_from(value).unwrap_or(i32::MAX)
        }
    }
}

/// The desired replicas of a ReplicaSet.
pub(super) fn size(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

/// The available replicas of a ReplicaSet.
pub(super) fn available(set: &ReplicaSet) -> i32 {
    set.status.as_ref().and_then(|status| status.available_replicas).unwrap_or_default()
}

fn total(sets: &[&ReplicaSet]) -> i32 {
    sets.iter().map(|set| size(set)).sum()
}

/// The new size of the current ReplicaSet: as large as the limits allow.
pub(super) fn scaled_up(limits: Limits, rolling: bool, new: &ReplicaSet, all: &[&ReplicaSet]) -> i32 {
    if !rolling || size(new) > limits.wanted {
        return limits.wanted;
    }
    let room = (limits.wanted + limits.surge - total(all)).max(0);
    size(new) + room.min(limits.wanted - size(new))
}

/// Scales down the old ReplicaSets: unhealthy pods first, then available ones within the limits.
pub(super) fn scale_down(limits: Limits, new: &ReplicaSet, old: &[ReplicaSet]) -> Vec<Resize> {
    let all: Vec<&ReplicaSet> = old.iter().chain([new]).collect();
    let least = limits.wanted - limits.unavailable;
    // New pods that are not available yet must not count as spare.
    let spare = total(&all) - least - (size(new) - available(new));
    if spare <= 0 || old.iter().all(|set| size(set) == 0) {
        return Vec::new();
    }
    let mut sets: Vec<(&ReplicaSet, i32)> = old.iter().map(|set| (set, size(set))).collect();
    sets.sort_by_cached_key(|(set, _)| age(set));
    let mut cleaned = 0;
    for (set, left) in &mut sets {
        let unhealthy = (*left - available(set)).max(0);
        let go = unhealthy.min(spare - cleaned);
        *left -= go;
        cleaned += go;
    }
    let mut spare = all.iter().map(|set| available(set)).sum::<i32>() - least;
    for (_, left) in &mut sets {
        let go = (*left).min(spare.max(0));
        *left -= go;
        spare -= go;
    }
    let changed = sets.into_iter().filter(|(set, left)| *left != size(set));
    changed.map(|(set, left)| Resize::new(set, left)).collect()
}

/// Resizes the ReplicaSets of a scaled or paused Deployment.
pub(super) fn rescale(
    deployment: &Deployment,
    limits: Limits,
    new: Option<&ReplicaSet>,
    old: &[ReplicaSet],
) -> Vec<Resize> {
    let all: Vec<&ReplicaSet> = old.iter().chain(new).collect();
    let mut active: Vec<&ReplicaSet> = all.iter().copied().filter(|set| size(set) > 0).collect();
    // A single ReplicaSet gets the full size.
    let only = match active.as_slice() {
        [] => new.or_else(|| old.iter().max_by_key(|set| age(set))),
        [one] => Some(*one),
        _ => None,
    };
    if let Some(only) = only {
        let resize = (size(only) != limits.wanted).then(|| Resize::new(only, limits.wanted));
        return resize.into_iter().collect();
    }
    if let Some(new) = new.filter(|new| is_saturated(new, limits.wanted)) {
        let name = &new.metadata.name;
        let others = active.into_iter().filter(|set| set.metadata.name != *name);
        return others.map(|set| Resize::new(set, 0)).collect();
    }
    if !is_rolling(deployment) {
        return Vec::new();
    }
    let allowed = if limits.wanted > 0 { limits.wanted + limits.surge } else { 0 };
    let change = allowed - total(&active);
    // Scaling up starts with the newest of the largest ReplicaSets, scaling down with the oldest.
    active.sort_by_cached_key(|set| (-size(set), age(set)));
    if change > 0 {
        active.sort_by_cached_key(|set| (-size(set), std::cmp::Reverse(age(set))));
    }
    let mut changes: Vec<i32> = Vec::with_capacity(active.len());
    for set in &active {
        let left = change - changes.iter().sum::<i32>();
        let share = share(deployment, limits, set);
        changes.push(match change {
            0 => 0,
            _ if left == 0 => 0,
            1.. => share.min(left),
            _ => share.max(left),
        });
    }
    let rest = change - changes.iter().sum::<i32>();
    if let Some(first) = changes.first_mut().filter(|_| change != 0) {
        *first += rest;
    }
    let resized =
        active.iter().zip(changes).map(|(set, change)| Resize::new(set, (size(set) + change).max(0)));
    resized.collect()
}

/// Whether a ReplicaSet has all desired replicas, and all are available.
fn is_saturated(set: &ReplicaSet, wanted: i32) -> bool {
    let desired = revision::count(set, revision::DESIRED);
    size(set) == wanted && desired == Some(wanted) && available(set) == wanted
}

/// The proportional share of a ReplicaSet.
fn share(deployment: &Deployment, limits: Limits, set: &ReplicaSet) -> i32 {
    if limits.wanted == 0 {
        return -size(set);
    }
    let replicas = deployment.status.as_ref().and_then(|status| status.replicas);
    let before =
        revision::count(set, revision::MAX).filter(|before| *before > 0).or(replicas).unwrap_or_default();
    if before <= 0 {
        return 0;
    }
    let size_then = f64::from(size(set)) * f64::from(limits.wanted + limits.surge) / f64::from(before);
    #[expect(clippy::cast_possible_truncation, reason = "the cast saturates, and sizes are small")]
    let size_then = size_then.round() as i32;
    size_then - size(set)
}

#[cfg(test)]
mod tests;
