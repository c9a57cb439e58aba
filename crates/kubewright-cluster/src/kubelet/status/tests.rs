//! The life of a pod, step by step: each status is written to the pod, and time advances.

use k8s_openapi::api::core::v1::PodSpec;
use proptest::prelude::*;

use super::*;
use crate::pod::{is_ready, phase};

fn pod(policy: &str, annotations: &[(&str, &str)]) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.name = Some("web".to_owned());
    pod.metadata.namespace = Some("default".to_owned());
    pod.metadata.uid = Some("1".to_owned());
    pod.metadata.annotations =
        Some(annotations.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect());
    let container =
        Container { name: "web".to_owned(), image: Some("web:1".to_owned()), ..Container::default() };
    pod.spec = Some(PodSpec {
        containers: vec![container],
        restart_policy: Some(policy.to_owned()),
        ..PodSpec::default()
    });
    pod
}

fn place() -> Place {
    Place { host_ip: "172.16.0.1".to_owned(), pod_ip: "10.128.0.1".to_owned() }
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_second(i64::try_from(seconds).unwrap()).unwrap()
}

/// The status that `kubectl get` shows.
fn shown(pod: &Pod) -> String {
    let containers = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    let Some(container) = containers.and_then(|it| it.first()) else { return phase(pod).to_owned() };
    let state = container.state.clone().unwrap_or_default();
    let terminated = state.terminated.and_then(|it| it.reason);
    let reason = state.waiting.and_then(|it| it.reason).or(terminated);
    let ready = if is_ready(pod) { " ready" } else { "" };
    format!("{}{ready} x{}", reason.unwrap_or_else(|| phase(pod).to_owned()), container.restart_count)
}

/// All statuses of a pod within some time, with their times.
fn life(mut pod: Pod, seconds: u64) -> Vec<String> {
    let (mut now, mut seen) = (0, Vec::new());
    for _ in 0..200 {
        let (behaviour, mistakes) = Behaviour::of(&pod);
        assert!(mistakes.is_empty(), "{mistakes:?}");
        let next = next(&pod, &behaviour, &place(), at(now));
        if let Some(status) = next.status {
            pod.status = Some(status);
            seen.push(format!("{now}s {}", shown(&pod)));
            continue;
        }
        let Some(wake) = next.wake else { break };
        now += wake.as_secs();
        if now > seconds {
            break;
        }
    }
    seen
}

#[test]
fn a_pod_starts_and_runs() {
    assert_eq!(life(pod("Always", &[]), 3600), ["0s ContainerCreating x0", "0s Running ready x0"]);
}

#[test]
fn start_and_ready_delays_are_respected() {
    let slow = pod("Always", &[("kubewright.dev/start-delay", "20s"), ("kubewright.dev/ready-delay", "5s")]);
    assert_eq!(life(slow, 3600), ["0s ContainerCreating x0", "20s Running x0", "25s Running ready x0"]);
}

#[test]
fn a_pod_without_restarts_completes_or_fails() {
    assert_eq!(
        life(pod("Never", &[]), 3600),
        ["0s ContainerCreating x0", "0s Running ready x0", "1s Completed x0"]
    );
    let failing = pod("Never", &[("kubewright.dev/exit-code", "2"), ("kubewright.dev/run-time", "7s")]);
    assert_eq!(life(failing, 3600), ["0s ContainerCreating x0", "0s Running ready x0", "7s Error x0"]);
}

#[test]
fn crash_loop_backoff_grows() {
    let crashing = pod("Always", &[("kubewright.dev/exit-code", "1")]);
    assert_eq!(
        life(crashing, 45),
        [
            "0s ContainerCreating x0",
            "0s Running ready x0",
            "1s Running ready x1",
            "2s CrashLoopBackOff x1",
            "12s Running ready x2",
            "13s CrashLoopBackOff x2",
            "33s Running ready x3",
            "34s CrashLoopBackOff x3",
        ]
    );
}

#[test]
fn an_image_pull_error_keeps_the_pod_pending() {
    let mut bad = pod("Always", &[("kubewright.dev/bad-images", "web:1")]);
    assert_eq!(
        life(bad.clone(), 3600),
        ["0s ContainerCreating x0", "0s ErrImagePull x0", "0s ImagePullBackOff x0"]
    );
    for _ in 0..3 {
        let next = next(&bad, &Behaviour::of(&bad).0, &place(), at(0));
        bad.status = next.status.or(bad.status);
    }
    assert_eq!(phase(&bad), "Pending");
    bad.spec.as_mut().unwrap().containers[0].image = Some("web:2".to_owned());
    let mended = next(&bad, &Behaviour::of(&bad).0, &place(), at(5)).status.expect("it starts");
    assert_eq!(mended.phase.as_deref(), Some("Running"));
}

#[test]
fn a_pod_fails_after_its_active_deadline() {
    let mut late = pod("Always", &[]);
    late.spec.as_mut().unwrap().active_deadline_seconds = Some(30);
    assert_eq!(life(late, 3600), ["0s ContainerCreating x0", "0s Running ready x0", "30s Error x0"]);
}

#[test]
fn a_deleted_pod_stops_within_its_grace_period() {
    let mut pod = pod("Always", &[("kubewright.dev/stop-delay", "10s")]);
    pod.metadata.deletion_timestamp = Some(Time(at(130)));
    pod.metadata.deletion_grace_period_seconds = Some(30);
    let behaviour = Behaviour::of(&pod).0;
    let waits = next(&pod, &behaviour, &place(), at(104));
    assert_eq!((waits.remove, waits.wake), (false, Some(Duration::from_secs(6))));
    let goes = next(&pod, &behaviour, &place(), at(110));
    assert!(goes.remove && goes.status.is_none());
    pod.metadata.finalizers = Some(vec!["example.com/hold".to_owned()]);
    let held = next(&pod, &behaviour, &place(), at(110));
    assert_eq!(held.status.and_then(|status| status.phase).as_deref(), Some("Succeeded"));
}

#[test]
fn init_containers_finish_and_sidecars_run_with_the_pod() {
    let mut pod = pod("Always", &[]);
    let sidecar = Container {
        name: "proxy".to_owned(),
        restart_policy: Some("Always".to_owned()),
        ..Container::default()
    };
    let setup = Container { name: "setup".to_owned(), ..Container::default() };
    pod.spec.as_mut().unwrap().init_containers = Some(vec![setup, sidecar]);
    for _ in 0..2 {
        let next = next(&pod, &Behaviour::of(&pod).0, &place(), at(0));
        pod.status = next.status.or(pod.status);
    }
    let statuses = pod.status.unwrap().init_container_statuses.unwrap();
    assert_eq!(exit_code(&statuses[0]), Some(0));
    assert!(statuses[1].state.as_ref().unwrap().running.is_some());
}

proptest! {
    #[test]
    fn every_status_is_written_once(
        policy in prop::sample::select(vec!["Always", "OnFailure", "Never"]),
        exit in prop::option::of(0_u8..3),
        run in prop::option::of(0_u64..100),
        start in 0_u64..50,
        bad in any::<bool>(),
        steps in prop::collection::vec(0_u64..100, 1..30),
    ) {
        let mut annotations = vec![("kubewright.dev/start-delay", format!("{start}s"))];
        annotations.extend(exit.map(|exit| ("kubewright.dev/exit-code", exit.to_string())));
        annotations.extend(run.map(|run| ("kubewright.dev/run-time", format!("{run}s"))));
        annotations.extend(bad.then(|| ("kubewright.dev/bad-images", "*".to_owned())));
        let annotations: Vec<(&str, &str)> = annotations.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mut pod = pod(policy, &annotations);
        let (mut now, mut restarts) = (0, 0);
        for step in steps {
            now += step;
            // A container with zero run time may restart several times at once, until the backoff applies.
            for _ in 0..8 {
                let behaviour = Behaviour::of(&pod).0;
                let Some(status) = next(&pod, &behaviour, &place(), at(now)).status else { break };
                pod.status = Some(status);
            }
            let behaviour = Behaviour::of(&pod).0;
            prop_assert!(next(&pod, &behaviour, &place(), at(now)).status.is_none(), "it does not settle");
            let count = crate::pod::restarts(&pod);
            prop_assert!(count >= restarts);
            restarts = count;
            prop_assert!(!(policy == "Never" && count > 0), "a container was restarted against its policy");
            prop_assert!(!(bad && phase(&pod) != "Pending"), "a pod runs without its image");
        }
    }
}
