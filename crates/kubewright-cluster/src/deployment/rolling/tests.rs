//! Sizes in rollouts: single steps, and whole rollouts with pods that become available in random order.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn deployment(wanted: i32, surge: &str, unavailable: &str) -> Deployment {
    let number = |text: &str| text.parse::<i32>().map_or_else(|_| json!(text), |number| json!(number));
    serde_json::from_value(json!({
        "spec": {
            "replicas": wanted, "selector": {}, "template": {},
            "strategy": { "type": "RollingUpdate",
                "rollingUpdate": { "maxSurge": number(surge), "maxUnavailable": number(unavailable) } },
        },
    }))
    .unwrap()
}

fn set(name: &str, size: i32, available: i32, max: i32) -> ReplicaSet {
    serde_json::from_value(json!({
        "metadata": { "name": name, "annotations": { revision::MAX: max.to_string() } },
        "spec": { "replicas": size, "selector": {} },
        "status": { "replicas": size, "availableReplicas": available },
    }))
    .unwrap()
}

fn sizes(resizes: &[Resize]) -> Vec<(&str, i32)> {
    resizes.iter().map(|resize| (resize.set.as_str(), resize.size)).collect()
}

#[test]
fn surge_rounds_up_and_unavailable_rounds_down() {
    let limits = |wanted, surge, unavailable| {
        let limits = Limits::of(&deployment(wanted, surge, unavailable));
        (limits.surge, limits.unavailable)
    };
    assert_eq!(limits(10, "25%", "25%"), (3, 2));
    assert_eq!(limits(1, "25%", "25%"), (1, 0));
    assert_eq!(limits(3, "0%", "10%"), (0, 1), "nothing would ever move");
    assert_eq!(limits(3, "0", "5"), (0, 3));
    assert_eq!(limits(0, "25%", "25%"), (0, 0));
}

#[test]
fn the_new_set_scales_up_to_the_surge_and_the_old_one_scales_down() {
    let limits = Limits::of(&deployment(10, "3", "2"));
    let (old, new) = (set("old", 10, 10, 13), set("new", 0, 0, 13));
    assert_eq!(scaled_up(limits, true, &new, &[&old, &new]), 3);
    let new = set("new", 3, 0, 13);
    assert_eq!(sizes(&scale_down(limits, &new, std::slice::from_ref(&old))), [("old", 8)]);
    let old = set("old", 8, 8, 13);
    assert_eq!(scale_down(limits, &new, std::slice::from_ref(&old)), []);
    assert_eq!(scaled_up(limits, true, &new, &[&old, &new]), 5);
    assert_eq!(scaled_up(limits, true, &set("new", 12, 0, 13), &[]), 10, "more than wanted is too much");
    assert_eq!(
        scaled_up(limits, false, &set("new", 0, 0, 13), &[&old]),
        10,
        "without rolling all come at once"
    );
}

#[test]
fn unhealthy_pods_are_removed_first() {
    let limits = Limits::of(&deployment(10, "3", "2"));
    let old = [set("a-works", 8, 8, 13), set("b-broken", 3, 0, 13)];
    let resizes = scale_down(limits, &set("new", 2, 2, 13), &old);
    assert_eq!(sizes(&resizes), [("a-works", 6), ("b-broken", 0)]);
}

#[test]
fn scaling_during_a_rollout_is_proportional() {
    let mut deployment = deployment(20, "0", "1");
    let limits = Limits::of(&deployment);
    let (old, new) = (set("old", 6, 6, 10), set("new", 4, 4, 10));
    let resizes = rescale(&deployment, limits, Some(&new), std::slice::from_ref(&old));
    assert_eq!(sizes(&resizes), [("old", 12), ("new", 8)]);
    deployment.spec.as_mut().unwrap().replicas = Some(5);
    let limits = Limits::of(&deployment);
    let resizes = rescale(&deployment, limits, Some(&new), std::slice::from_ref(&old));
    assert_eq!(sizes(&resizes), [("old", 3), ("new", 2)]);
    deployment.spec.as_mut().unwrap().replicas = Some(0);
    let resizes = rescale(&deployment, Limits::of(&deployment), Some(&new), &[old]);
    assert_eq!(sizes(&resizes), [("old", 0), ("new", 0)]);
}

#[test]
fn a_single_replica_set_gets_the_full_size() {
    let deployment = deployment(3, "1", "1");
    let limits = Limits::of(&deployment);
    let resizes = rescale(&deployment, limits, Some(&set("new", 0, 0, 4)), &[set("old", 1, 1, 2)]);
    assert_eq!(sizes(&resizes), [("old", 3)], "the active one is scaled, although it is old");
    let resizes = rescale(&deployment, limits, Some(&set("new", 0, 0, 4)), &[]);
    assert_eq!(sizes(&resizes), [("new", 3)]);
    assert_eq!(rescale(&deployment, limits, Some(&set("new", 3, 0, 4)), &[]), []);
}

proptest! {
    /// Pods become available one by one in random order: the rollout completes and never exceeds its limits.
    #[test]
    fn every_rollout_completes_within_its_limits(
        wanted in 1_i32..12,
        surge in 0_i32..5,
        unavailable in 0_i32..5,
        broken in 0_i32..4,
        choices in prop::collection::vec(any::<bool>(), 200),
    ) {
        let limits = Limits::of(&deployment(wanted, &surge.to_string(), &unavailable.to_string()));
        let broken = broken.min(wanted);
        let mut old = [set("a", wanted - broken, wanted - broken, 0), set("b", broken, 0, 0)];
        let mut new = set("c", 0, 0, 0);
        let mut choices = choices.into_iter();
        loop {
            let before: i32 = old.iter().chain([&new]).map(available).sum();
            let all: Vec<&ReplicaSet> = old.iter().chain([&new]).collect();
            let size_of_new = scaled_up(limits, true, &new, &all);
            let grew = size_of_new != size(&new);
            new.spec.as_mut().unwrap().replicas = Some(size_of_new);
            let mut shrank = false;
            if !grew {
                for resize in scale_down(limits, &new, &old) {
                    shrank = true;
                    let set = old.iter_mut().find(|set| set.metadata.name.as_ref() == Some(&resize.set)).unwrap();
                    prop_assert!(resize.size >= 0 && resize.size < size(set));
                    set.spec.as_mut().unwrap().replicas = Some(resize.size);
                    let status = set.status.as_mut().unwrap();
                    // The ReplicaSet controller deletes unavailable pods first.
                    status.available_replicas = Some(status.available_replicas.unwrap_or_default().min(resize.size));
                }
            }
            let total: i32 = old.iter().chain([&new]).map(size).sum();
            prop_assert!(total <= wanted + limits.surge, "{total} replicas");
            let now: i32 = old.iter().chain([&new]).map(available).sum();
            prop_assert!(now >= (wanted - limits.unavailable).min(before), "{now} available");
            let ready = available(&new);
            let catches_up = ready < size(&new) && (choices.next().unwrap_or(true) || (!grew && !shrank));
            if catches_up {
                new.status.as_mut().unwrap().available_replicas = Some(ready + 1);
            }
            if !grew && !shrank && !catches_up {
                break;
            }
        }
        prop_assert_eq!((size(&new), size(&old[0]), size(&old[1])), (wanted, 0, 0));
    }
}
