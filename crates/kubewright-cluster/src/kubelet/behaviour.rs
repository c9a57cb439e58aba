//! Parses the simulation annotations of a pod.

use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;

use super::annotation::{BAD_IMAGES, EXIT_CODE, READY_DELAY, RUN_TIME, START_DELAY, STOP_DELAY};

/// Run time of containers that do not run forever.
const SHORT: Duration = Duration::from_secs(1);

/// The simulated behaviour of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Behaviour {
    pub(super) start_delay: Duration,
    pub(super) ready_delay: Duration,
    /// `None` means forever.
    pub(super) run_time: Option<Duration>,
    pub(super) exit_code: i32,
    pub(super) bad_images: Vec<String>,
    pub(super) stop_delay: Duration,
}

impl Behaviour {
    /// Parses the annotations. Also returns messages about invalid ones.
    pub(super) fn of(pod: &Pod) -> (Self, Vec<String>) {
        let mut problems = Vec::new();
        let annotation = |name: &str| pod.metadata.annotations.as_ref()?.get(name);
        let mut duration = |name: &str| -> Option<Duration> {
            let text = annotation(name)?;
            let parsed = text.parse::<SignedDuration>().ok().and_then(|it| Duration::try_from(it).ok());
            if parsed.is_none() {
                problems
                    .push(format!("annotation {name}: {text:?} is not a duration; write it like \"30s\""));
            }
            parsed
        };
        let start_delay = duration(START_DELAY).unwrap_or_default();
        let ready_delay = duration(READY_DELAY).unwrap_or_default();
        let run_time = duration(RUN_TIME);
        let stop_delay = duration(STOP_DELAY).unwrap_or_default();
        let exit_code = annotation(EXIT_CODE).and_then(|text| {
            let parsed = text.parse::<u8>().ok();
            if parsed.is_none() {
                problems.push(format!("annotation {EXIT_CODE}: {text:?} is not a number from 0 to 255"));
            }
            parsed
        });
        let runs_for_ever =
            pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()) == Some("Always");
        let ends = exit_code.is_some() || !runs_for_ever;
        let bad_images = annotation(BAD_IMAGES).map(String::as_str).unwrap_or_default();
        let behaviour = Self {
            start_delay,
            ready_delay,
            run_time: run_time.or(ends.then_some(SHORT)),
            exit_code: exit_code.unwrap_or_default().into(),
            bad_images: bad_images
                .split(',')
                .map(str::trim)
                .filter(|it| !it.is_empty())
                .map(Into::into)
                .collect(),
            stop_delay,
        };
        (behaviour, problems)
    }

    /// Whether an image cannot be pulled.
    pub(super) fn is_bad(&self, image: &str) -> bool {
        self.bad_images.iter().any(|bad| bad == "*" || bad == image)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::PodSpec;

    use super::*;

    fn pod(policy: &str, annotations: &[(&str, &str)]) -> Pod {
        let spec = PodSpec { restart_policy: Some(policy.to_owned()), ..PodSpec::default() };
        let mut pod = Pod { spec: Some(spec), ..Pod::default() };
        let annotations = annotations.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        pod.metadata.annotations = Some(annotations.collect());
        pod
    }

    #[test]
    fn pods_with_restart_policy_always_run_forever_by_default() {
        assert_eq!(Behaviour::of(&pod("Always", &[])).0.run_time, None);
        assert_eq!(Behaviour::of(&pod("Never", &[])).0.run_time, Some(SHORT));
        assert_eq!(Behaviour::of(&pod("OnFailure", &[])).0.run_time, Some(SHORT));
        let crashing = Behaviour::of(&pod("Always", &[(EXIT_CODE, "3")])).0;
        assert_eq!((crashing.run_time, crashing.exit_code), (Some(SHORT), 3));
        let slow = Behaviour::of(&pod("Never", &[(RUN_TIME, "1m 30s")])).0;
        assert_eq!(slow.run_time, Some(Duration::from_secs(90)));
    }

    #[test]
    fn bad_images_match_by_name_or_all() {
        let some = Behaviour::of(&pod("Always", &[(BAD_IMAGES, "web:2, web:3")])).0;
        assert!(some.is_bad("web:2") && some.is_bad("web:3") && !some.is_bad("web:1"));
        assert!(Behaviour::of(&pod("Always", &[(BAD_IMAGES, "*")])).0.is_bad("web:1"));
        assert!(!Behaviour::of(&pod("Always", &[(BAD_IMAGES, "")])).0.is_bad("web:1"));
    }

    #[test]
    fn invalid_annotations_are_reported_and_ignored() {
        let (behaviour, problems) =
            Behaviour::of(&pod("Always", &[(READY_DELAY, "soon"), (EXIT_CODE, "256")]));
        assert_eq!(behaviour, Behaviour::default());
        assert_eq!(
            problems,
            [
                "annotation kubewright.dev/ready-delay: \"soon\" is not a duration; write it like \"30s\"",
                "annotation kubewright.dev/exit-code: \"256\" is not a number from 0 to 255",
            ]
        );
    }
}
